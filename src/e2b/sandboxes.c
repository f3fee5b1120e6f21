/* sandboxes.c - see sandboxes.h. */
#include "e2b/sandboxes.h"
#include "base/own.h"
#include "box/cause.h"
#include "e2b/pause.h"
#include "e2b/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct field sandboxes_create_fields[] = {
	{ "templateID", FIELD_TEXT, 1, 0, 200, "which template", NULL },
	{ "timeout", FIELD_INT, 0, 1, 30 * 24 * 3600, "seconds it may live", NULL },
	{ "autoPause", FIELD_BOOL, 0, 0, 0, "pause it when its time is over", NULL },
	{ "autoResume", FIELD_ANY, 0, 0, 0, "who comes wakes it", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

void sandboxes_health(struct call *c)
{
	call_empty(c, 204);
}

/* ---- making one ---- */

struct making {
	struct berth_wait wait;
	struct call *call;
	struct store_snapshot files; /* it begins with these; id "": none */
};

json_t *sandboxes_json(struct call *c, const struct berth *b)
{
	struct e2b_box x;

	(void)c;
	e2b_box_read(b, &x);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:n, s:n}", "sandboxID", b->row.id, "templateID",
			 x.template, "clientID", "atoll", "envdVersion", E2B_ENVD_VERSION,
			 "envdAccessToken", x.token, "domain", "trafficAccessToken");
}

static void answer(struct call *c, struct berth *b, const struct err *e)
{
	if (e)
		call_fail(c, e);
	else
		call_json(c, 201, sandboxes_json(c, b));
}

static void made(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct making *m = loop_owner(w, struct making, wait);

	m->call->drop = NULL;
	if (e || !m->files.id[0])
		answer(m->call, b, e);
	else
		snapshots_fill(m->call, b, m->files.id, answer);
}

static void leave(struct call *c)
{
	berth_wait_cancel(&((struct making *)c->state)->wait);
}

int sandboxes_token(char out[E2B_TOKEN + 1], struct err *e)
{
	uint8_t bytes[E2B_TOKEN / 2];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

void sandboxes_create(struct call *c)
{
	struct making *m = call_alloc(c, sizeof(*m));
	struct e2b_box x = { .pause_memory = 1 };
	struct berth_want want = { 0 };
	auto_free char *door = NULL;
	struct berth *b;
	struct err e;

	*m = (struct making){ .wait = { .done = made }, .call = c };
	snprintf(x.template, sizeof(x.template), "%s", call_text(c, "templateID", "base"));
	if (sandboxes_token(x.token, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	door = e2b_box_text(&x);
	want.row.door = door;
	want.row.lifetime_ms = (uint64_t)call_int(c, "timeout", 300) * 1000;
	want.limits = c->api->fleet.conf.limits;
	e2b_snapshot_want(c, x.template, &m->files);
	x.auto_pause = call_flag(c, "autoPause", 0);
	x.auto_resume = json_is_true(json_object_get(call_get(c, "autoResume"), "enabled"));
	free(door);
	want.row.door = door = e2b_box_text(&x);
	pausing_want(&want.row, &x);
	snprintf(want.row.team, sizeof(want.row.team), "%s", c->who.team);
	snprintf(want.row.template, sizeof(want.row.template), "base");
	c->state = m;
	c->drop = leave;
	if (berth_create(&c->api->fleet, &want, &m->wait, &b, &e) < 0) {
		c->drop = NULL;
		call_fail(c, &e);
	}
}

/* ---- ending it ---- */

static void ended(struct berth_wait *w, struct berth *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct making, wait)->call;

	(void)b;
	(void)e;
	c->drop = NULL;
	call_empty(c, 204);
}

void sandboxes_delete(struct call *c)
{
	struct making *m = call_alloc(c, sizeof(*m));
	struct berth *b = call_look(c, 0);

	if (!b)
		return;
	*m = (struct making){ .wait = { .done = ended }, .call = c };
	c->state = m;
	c->drop = leave;
	berth_end(b, CAUSE_OPERATOR, &m->wait);
}
