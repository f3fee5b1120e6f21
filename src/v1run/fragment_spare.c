/* fragment_spare.c - see fragment_spare.h. */
#include "v1run/fragment_spare.h"
#include "fleet/exec.h"
#include "v1box/box_spec.h"
#include "v1box/ports.h"
#include "v1run/fragment.h"
#include "v1run/fragment_server.h"
#include "v1run/port_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAGMENT_SPARES = 8, /* of all teams */
	FRAGMENT_SPARE_LIFE_MS = 30 * 60000,
	FRAGMENT_SPARE_READY_MS = 120 * 1000, /* time until its server must answer */
};

struct fragment_spare {
	struct fragment_spare *next;
	struct api *api;
	struct box_wait made;
	struct port_probe probe;
	struct timer limit;
	char box[ID_MAX + 1]; /* "": being created */
	char team[STORE_NAME + 1];
	char *root, *command;
	uint16_t port;
	int probing, ready;
};

struct fragment_spares {
	struct fragment_spare *list;
	unsigned count;
};

static char *fragment_spare_dup(const char *text)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		abort();
	return copy;
}

static void fragment_spare_free(struct fragment_spare *s)
{
	struct fragment_spare **at = &s->api->spares->list;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->api->spares->count--;
	s->api->fleet.spares -= (unsigned)s->ready;
	box_wait_cancel(&s->made);
	if (s->probing)
		port_probe_stop(&s->probe);
	timer_fini(&s->limit);
	free(s->root);
	free(s->command);
	free(s);
}

static void fragment_spare_end(struct fragment_spare *s)
{
	struct box *b = s->box[0] ? fleet_find(&s->api->fleet, s->box) : NULL;

	if (b)
		box_end(b, CAUSE_OPERATOR, NULL);
	fragment_spare_free(s);
}

void fragment_spares_free(struct api *a)
{
	while (a->spares && a->spares->list)
		fragment_spare_free(a->spares->list);
	free(a->spares);
	a->spares = NULL;
}

/* ---- preparing ---- */

static void fragment_spare_late(struct timer *t)
{
	fragment_spare_end(loop_owner(t, struct fragment_spare, limit));
}

static void fragment_spare_answered(struct port_probe *p, struct box *b)
{
	struct fragment_spare *s = loop_owner(p, struct fragment_spare, probe);
	const struct exec *r = fragment_server_find(b);
	struct err e;

	s->probing = 0;
	if (!r || ports_set_server(b, s->port, r->id, &e) < 0) {
		fragment_spare_end(s);
		return;
	}
	s->ready = 1;
	s->api->fleet.spares++;
	timer_set(&s->limit, FRAGMENT_SPARE_LIFE_MS);
}

static void fragment_spare_made(struct box_wait *w, struct box *b, const struct err *failed)
{
	struct fragment_spare *s = loop_owner(w, struct fragment_spare, made);
	const char *argv[] = { "/bin/sh", "-c", s->command, NULL };
	char port[16];
	const char *env[] = { port, NULL };
	struct exec_spec want = {
		.argv = argv, .env = env, .tag = FRAGMENT_APP, .kind = STORE_RUN_EXEC
	};
	struct exec *r;
	struct err e;

	if (failed) {
		fragment_spare_free(s);
		return;
	}
	snprintf(port, sizeof(port), "PORT=%u", s->port);
	snprintf(s->box, sizeof(s->box), "%s", b->row.id);
	if (!fragment_server_find(b) && exec_launch(b, &want, NULL, &r, &e) < 0) {
		fragment_spare_end(s);
		return;
	}
	s->probing = 1;
	port_probe_start(&s->probe, &s->api->fleet, s->box, s->port, fragment_spare_answered);
}

static int fragment_spare_matches(const struct fragment_spare *s, const struct call *c,
				  const struct box_spec *want)
{
	const char *command = json_string_value(call_get(c, "command"));

	return command && !strcmp(s->team, want->row.team) &&
	       !strcmp(s->root, want->row.root ? want->row.root : "") &&
	       !strcmp(s->command, command) && s->port == (uint16_t)call_int(c, "port", 0);
}

/* Only servers that read changed files by themselves, in boxes of a built template: another one would be
 * started again in any case. */
static int fragment_spare_suits(const struct call *c, const struct box_spec *want)
{
	return json_is_true(call_get(c, "reload")) && want->root[0];
}

void fragment_spare_keep(struct call *c)
{
	struct fragment_spare *s;
	struct box_spec want;
	struct box *b;
	struct err e;

	if (box_spec_read(c, &want, &e) < 0 || !fragment_spare_suits(c, &want))
		return;
	if (!c->api->spares && !(c->api->spares = calloc(1, sizeof(*c->api->spares))))
		abort();
	for (s = c->api->spares->list; s; s = s->next)
		if (fragment_spare_matches(s, c, &want))
			return;
	if (c->api->spares->count >= FRAGMENT_SPARES)
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->api = c->api;
	s->root = fragment_spare_dup(want.row.root);
	s->command = fragment_spare_dup(json_string_value(call_get(c, "command")));
	s->port = (uint16_t)call_int(c, "port", 0);
	s->made.done = fragment_spare_made;
	snprintf(s->team, sizeof(s->team), "%s", want.row.team);
	timer_init(&s->limit, c->api->loop, fragment_spare_late);
	timer_set(&s->limit, FRAGMENT_SPARE_READY_MS);
	s->next = c->api->spares->list;
	c->api->spares->list = s;
	c->api->spares->count++;
	want.row.session[0] = want.row.name[0] = 0;
	want.row.metadata = "{\"" BOX_SPARE "\":\"1\"}";
	want.row.lifetime_ms = 2 * FRAGMENT_SPARE_LIFE_MS; /* if this server does not end it */
	if (box_create(&c->api->fleet, &want, &s->made, &b, &e) < 0)
		fragment_spare_free(s);
}

/* ---- taking ---- */

static int fragment_spare_adopt(struct box *b, const struct box_spec *want, struct err *e)
{
	free(b->row.metadata);
	b->row.metadata = want->row.metadata ? fragment_spare_dup(want->row.metadata) : NULL;
	snprintf(b->row.session, sizeof(b->row.session), "%s", want->row.session);
	b->row.lifetime_ms = want->row.lifetime_ms;
	b->row.idle_ms = want->row.idle_ms;
	b->row.retention_ms = want->row.retention_ms;
	b->row.on_timeout = want->row.on_timeout;
	b->row.ends_ns = want->row.lifetime_ms
				 ? fleet_now_ns() + (int64_t)want->row.lifetime_ms * 1000000
				 : 0;
	box_read_marks(b);
	return box_changed(b, e);
}

struct box *fragment_spare_take(struct call *c, const struct box_spec *want)
{
	struct isolation_ask ask = box_isolation(want);
	struct fragment_spare *s, *next;
	struct err e;

	for (s = c->api->spares ? c->api->spares->list : NULL; s; s = next) {
		struct box *b = s->ready ? fleet_find(&c->api->fleet, s->box) : NULL;

		next = s->next;
		if (!s->ready || !fragment_spare_matches(s, c, want) ||
		    (b && isolation_accepts(&c->api->fleet, &ask, &b->row, &e) < 0))
			continue;
		if (!b || b->state != BOX_RUNNING || !fragment_server_find(b) ||
		    fragment_spare_adopt(b, want, &e) < 0) {
			fragment_spare_end(s);
			continue;
		}
		fragment_spare_free(s);
		return b;
	}
	return NULL;
}

/* ---- after a restart ---- */

/* The server that prepared it has ended. */
static void fragment_spare_left(struct box *b)
{
	if (b->is_spare && b->fleet->alone)
		box_end(b, CAUSE_OPERATOR, NULL);
}

const struct box_hooks fragment_spare_hooks = { .restored = fragment_spare_left,
						.resynced = fragment_spare_left };
