/* sockets.c - see sockets.h. */
#include "v1box/sockets.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "record/changes.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* SOCKETS_EVENTS: of one list; a program in the box chooses how many ports it opens. */
enum { SOCKETS_PATIENCE_MS = 10000, SOCKETS_EVENTS = 32 };

json_t *sockets_json(const struct sockets_item *found)
{
	char address[INET6_ADDRSTRLEN] = "";

	if (!found)
		return json_pack("{s:n, s:n, s:n}", "address", "pid", "process");
	inet_ntop(found->v6 ? AF_INET6 : AF_INET, found->addr, address, sizeof(address));
	return json_pack("{s:s, s:o, s:o}", "address", address, "pid",
			 found->pid > 0 ? json_integer(found->pid) : json_null(), "process",
			 found->process[0] ? json_text(found->process) : json_null());
}

/* ---- events ---- */

static int sockets_has(const uint16_t *ports, unsigned n, uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (ports[i] == port)
			return 1;
	return 0;
}

/* A box of an earlier server has no list to compare with: its first one is no news. */
static void sockets_report(struct sockets *s, struct box *b)
{
	uint16_t now[SOCKETS_MOST];
	unsigned n = 0, left = b->listening || b->is_known ? SOCKETS_EVENTS : 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct sockets_item *x = &s->v[i];
		json_t *data;

		if (sockets_has(now, n, x->port))
			continue;
		now[n++] = x->port;
		if (!left || sockets_has(b->listening, b->nlistening, x->port))
			continue;
		left--;
		data = json_pack("{s:i}", "port", x->port);
		json_object_update_new(data, sockets_json(x));
		fleet_emit(s->fleet, b->row.team, b->row.id, "port.opened", data);
	}
	for (unsigned i = 0; i < b->nlistening && left; i++) {
		if (sockets_has(now, n, b->listening[i]))
			continue;
		left--;
		fleet_emit(s->fleet, b->row.team, b->row.id, "port.closed",
			   json_pack("{s:i}", "port", b->listening[i]));
	}
	free(b->listening);
	b->listening = malloc(sizeof(*now) * (n + 1));
	if (!b->listening)
		abort();
	memcpy(b->listening, now, sizeof(*now) * n);
	b->nlistening = n;
}

/* ---- the worker ---- */

static void sockets_failed(struct file_client *k, const struct err *e)
{
	struct sockets *s = loop_owner(k, struct sockets, file_client);
	struct err why = *e;

	sockets_close(s);
	s->done(s, &why);
}

static void sockets_late(struct timer *t)
{
	struct sockets *s = loop_owner(t, struct sockets, patience);
	struct err e;

	err_set(&e, ERR_SYS, "the box's file worker does not answer");
	sockets_failed(&s->file_client, &e);
}

static void sockets_ask(struct sockets *s)
{
	struct frame f = { .flags = s->brief ? WIRE_SOCKETS_BRIEF : 0 };

	s->n = 0;
	s->asked = 0;
	file_client_ask(&s->file_client, WIRE_SOCKETS, &f, sizeof(f), NULL, 0);
}

static void sockets_ready(struct file_client *k)
{
	struct sockets *s = loop_owner(k, struct sockets, file_client);

	s->ready = 1;
	if (s->asked)
		sockets_ask(s);
}

static void sockets_other(struct file_client *k, const struct frame *f, size_t len)
{
	struct sockets *s = loop_owner(k, struct sockets, file_client);
	const struct wire_socket *w = (const struct wire_socket *)f;
	size_t n = len - sizeof(*w);
	struct sockets_item *x;

	if (f->type != WIRE_SOCKET || s->n == SOCKETS_MOST || w->port < 1 || w->port > 65535)
		return;
	x = &s->v[s->n++];
	*x = (struct sockets_item){ .port = (uint16_t)w->port,
				    .v6 = w->family == 6,
				    .pid = w->pid > 0 ? w->pid : 0 };
	memcpy(x->addr, w->addr, sizeof(x->addr));
	memcpy(x->process, (const char *)(w + 1), n < SOCKETS_PROCESS ? n : SOCKETS_PROCESS);
}

/* By port, IPv4 first. */
static int sockets_compare(const void *a, const void *b)
{
	const struct sockets_item *x = a, *y = b;

	return x->port != y->port ? x->port - y->port : x->v6 - y->v6;
}

static void sockets_done(struct file_client *k, uint16_t flags)
{
	struct sockets *s = loop_owner(k, struct sockets, file_client);
	struct box *b = fleet_find(s->fleet, s->box);

	(void)flags; /* a list that was cut at SOCKETS_MOST is still a list */
	timer_clear(&s->patience);
	qsort(s->v, s->n, sizeof(s->v[0]), sockets_compare);
	if (b)
		sockets_report(s, b);
	s->done(s, NULL);
}

void sockets_open(struct sockets *s, struct box *b,
		  void (*done)(struct sockets *s, const struct err *e))
{
	static const struct file_client_events on = { .ready = sockets_ready,
						      .other = sockets_other,
						      .done = sockets_done,
						      .failed = sockets_failed };

	*s = (struct sockets){ .fleet = b->fleet, .open = 1, .done = done };
	memcpy(s->box, b->row.id, sizeof(s->box));
	timer_init(&s->patience, b->fleet->loop, sockets_late);
	file_client_open(&s->file_client, &b->line, 0, &on);
}

void sockets_read(struct sockets *s, int brief)
{
	s->brief = brief;
	s->asked = 1;
	timer_set(&s->patience, SOCKETS_PATIENCE_MS);
	if (s->ready)
		sockets_ask(s);
}

void sockets_close(struct sockets *s)
{
	if (!s->open)
		return;
	s->open = 0;
	timer_fini(&s->patience);
	file_client_close(&s->file_client);
}
