/* sandboxes.c - see sandboxes.h. */
#include "e2bcontrol/sandboxes.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "record/cause.h"
#include "e2bcontrol/pause.h"
#include "e2bcontrol/sandbox_json.h"

#include <stdio.h>
#include <string.h>

#define SECONDS_MAX (INT64_C(1) << 31)
enum { CONNECT_S = 300, RESUME_S = 15, REFRESH_S = 15, REFRESH_MAX_S = 3600 };
enum {
	AT_ONCE = 4
}; /* number of ending boxes above which a kill waits for its own box before the answer */

const struct field sandboxes_timeout_fields[] = {
	{ "timeout", FIELD_INT, 1, 0, SECONDS_MAX,
	  "lifetime in seconds from now; 0: end the sandbox", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field sandboxes_refresh_fields[] = {
	{ "duration", FIELD_INT, 0, 0, REFRESH_MAX_S, "minimum lifetime in seconds from now",
	  NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field sandboxes_connect_fields[] = {
	{ "timeout", FIELD_INT, 0, 0, SECONDS_MAX, "minimum lifetime in seconds from now", NULL },
	{ "memory", FIELD_BOOL, 0, 0, 0, "resume with the memory of its programs", NULL },
	{ "autoPause", FIELD_BOOL, 0, 0, 0, "pause the sandbox at the end of its lifetime", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- finding one ---- */

int sandboxes_paused(const struct box *b)
{
	return pausing_is_paused(b);
}

const char *sandboxes_state(const struct box *b)
{
	return sandboxes_paused(b) ? "paused" : "running";
}

int64_t sandboxes_started(const struct box *b)
{
	return b->row.started_ns ? b->row.started_ns : b->row.created_ns;
}

struct box *sandboxes_find(struct call *c)
{
	const char *id = call_param(c, 0);
	struct box *b = id_valid(id) ? fleet_find(&c->api->fleet, id) : NULL;
	struct err e;

	if (b && (strcmp(b->row.team, c->who.team) != 0 || b->is_installer ||
		  (c->who.box[0] && strcmp(c->who.box, b->row.id) != 0)))
		b = NULL;
	if (b && (b->state == BOX_RUNNING || sandboxes_paused(b)))
		return b;
	if (b && b->late) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the sandbox does not answer at the moment", id, NULL);
		return NULL;
	}
	if (!id_valid(id) || !call_ended(c->api, &c->who, id, &e, NULL))
		err_set(&e, ERR_NOT_FOUND, "there is no such sandbox");
	call_error(c, 404, "not_found", e.msg, id, NULL);
	return NULL;
}

static struct box *find_running(struct call *c)
{
	struct box *b = sandboxes_find(c);

	if (!b || !sandboxes_paused(b))
		return b;
	call_error(c, 404, "not_found", "this sandbox is not running: it is paused", b->row.id,
		   NULL);
	return NULL;
}

void sandboxes_show(struct call *c)
{
	struct box *b = sandboxes_find(c);

	if (b)
		call_json(c, 200, sandbox_json_detail(c, b));
}

void sandboxes_health(struct call *c)
{
	call_empty(c, 204);
}

/* ---- its time ---- */

int sandboxes_timeout_ms(struct call *c, const char *name, int64_t otherwise_s, uint64_t *out_ms,
			 struct err *e)
{
	uint64_t most = quota_max_lifetime_ms(c->api, c->who.team);
	uint64_t ms = (uint64_t)call_int(c, name, otherwise_s) * 1000;

	if (most && ms > most && call_get(c, name))
		return err_set(e, ERR_INVALID,
			       "%s: %llu s are more than this server allows, which is %llu s", name,
			       (unsigned long long)ms / 1000, (unsigned long long)most / 1000);
	*out_ms = most && ms > most ? most : ms;
	return 0;
}

static int set_end(struct box *b, uint64_t ms, struct err *e)
{
	int64_t ends = b->row.ends_ns;
	uint64_t lifetime = b->row.lifetime_ms;

	b->row.ends_ns = fleet_now_ns() + (int64_t)ms * 1000000;
	b->row.lifetime_ms = ms;
	if (box_changed(b, e) == 0)
		return 0;
	b->row.ends_ns = ends;
	b->row.lifetime_ms = lifetime;
	return -1;
}

/* A later end, or none, is not changed. */
static int sandboxes_extend(struct box *b, uint64_t ms, struct err *e)
{
	if (!b->row.ends_ns || b->row.ends_ns >= fleet_now_ns() + (int64_t)ms * 1000000)
		return 0;
	return set_end(b, ms, e);
}

void sandboxes_timeout(struct call *c)
{
	struct box *b = find_running(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	if (sandboxes_timeout_ms(c, "timeout", 0, &ms, &e) < 0 || (ms && set_end(b, ms, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	if (!ms)
		box_on_timeout(b, CAUSE_LIFETIME, b->row.lifetime_ms);
	call_empty(c, 204);
}

void sandboxes_refresh(struct call *c)
{
	struct box *b = find_running(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	if (sandboxes_timeout_ms(c, "duration", REFRESH_S, &ms, &e) < 0 ||
	    sandboxes_extend(b, ms, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- coming back to it ---- */

static int make_token(char out[E2B_TOKEN + 1], struct err *e)
{
	uint8_t bytes[E2B_TOKEN / 2];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	hex_encode(out, bytes, sizeof(bytes));
	return 0;
}

int sandboxes_tokens(struct e2b_box *x, struct err *e)
{
	return make_token(x->token, e) < 0 ? -1 : make_token(x->traffic, e);
}

static int set_surface(struct box *b, const struct e2b_box *x, struct err *e)
{
	char *before = b->row.surface;

	b->row.surface = e2b_box_text_on(before, x);
	if (box_changed(b, e) == 0) {
		free(before);
		return 0;
	}
	free(b->row.surface);
	b->row.surface = before;
	return -1;
}

/* A box of another surface gets tokens when a request names it here for the first time. */
static int sandboxes_adopt(struct box *b, struct err *e)
{
	struct e2b_box x;

	e2b_box_read(b, &x);
	if (x.ours)
		return 0;
	x.public_ports = 1;
	return sandboxes_tokens(&x, e) < 0 ? -1 : set_surface(b, &x, e);
}

/* The timeout settings in a resume request. */
static int set_auto_pause(struct call *c, struct box *b, struct err *e)
{
	struct e2b_box x;

	if (!call_get(c, "autoPause"))
		return 0;
	e2b_box_read(b, &x);
	x.auto_pause = call_flag(c, "autoPause", 0);
	pausing_want(&b->row, &x);
	return set_surface(b, &x, e);
}

struct sandboxes_wait {
	struct box_wait wait;
	struct call *call;
};

static void sandboxes_leave(struct call *c)
{
	box_wait_cancel(&((struct sandboxes_wait *)c->state)->wait);
}

static struct box_wait *wait_with(struct call *c,
				  void (*done)(struct box_wait *, struct box *, const struct err *))
{
	struct sandboxes_wait *w = call_alloc(c, sizeof(*w));

	*w = (struct sandboxes_wait){ .wait = { .done = done }, .call = c };
	c->state = w;
	c->drop = sandboxes_leave;
	return &w->wait;
}

static void sandboxes_awake(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct sandboxes_wait, wait)->call;

	c->drop = NULL;
	if (e)
		call_fail(c, e);
	else
		call_json(c, 201, sandbox_json_created(c, b));
}

/* Its lifetime starts again, with the requested timeout. */
static void sandboxes_wake(struct call *c, struct box *b, int64_t otherwise_s)
{
	uint64_t before = b->row.lifetime_ms, ms;
	struct err e;

	if (sandboxes_timeout_ms(c, "timeout", otherwise_s, &ms, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	b->row.lifetime_ms = ms;
	if (b->state == BOX_STOPPED) {
		box_wake(b);
		call_json(c, 201, sandbox_json_created(c, b));
	} else if (box_resume(b, !call_flag(c, "memory", 1), wait_with(c, sandboxes_awake), &e) <
		   0) {
		b->row.lifetime_ms = before;
		c->drop = NULL;
		call_fail(c, &e);
	}
}

void sandboxes_connect(struct call *c)
{
	struct box *b = sandboxes_find(c);
	uint64_t ms;
	struct err e;

	if (!b)
		return;
	call_hold(c, b);
	if (sandboxes_adopt(b, &e) < 0) {
		call_fail(c, &e);
	} else if (sandboxes_paused(b)) {
		sandboxes_wake(c, b, CONNECT_S);
	} else if (sandboxes_timeout_ms(c, "timeout", CONNECT_S, &ms, &e) < 0 ||
		   sandboxes_extend(b, ms, &e) < 0) {
		call_fail(c, &e);
	} else {
		call_json(c, 200, sandbox_json_created(c, b));
	}
}

void sandboxes_resume(struct call *c)
{
	struct box *b = sandboxes_find(c);
	struct err e;

	if (!b)
		return;
	call_hold(c, b);
	if (!sandboxes_paused(b)) {
		call_error(c, 409, "conflict", "this sandbox is running already", b->row.id, NULL);
	} else if (sandboxes_adopt(b, &e) < 0 || set_auto_pause(c, b, &e) < 0) {
		call_fail(c, &e);
	} else {
		sandboxes_wake(c, b, RESUME_S);
	}
}

/* ---- ending it ---- */

static void sandboxes_ended(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct sandboxes_wait, wait)->call;

	(void)b;
	(void)e;
	c->drop = NULL;
	call_empty(c, 204);
}

/* Writes in one transaction: that the box ends, how its programs ended, which key requested it. */
static void write_end(struct call *c, struct box *b)
{
	struct store *s = c->api->store;
	struct err e;
	int grouped = store_begin(s, &e) == 0;

	box_mark_ending(b, CAUSE_OPERATOR);
	call_audit(c, "box.delete", b->row.id, "ok");
	if (grouped)
		(void)!store_commit(s, &e); /* a full disk must not prevent the end of a box */
}

/* The end is written first, and no lookup finds the box from then on. The answer is sent before
 * the box is destroyed. But a client that kills boxes faster than the kernel can remove them
 * waits: otherwise its next creates would wait for both. */
void sandboxes_delete(struct call *c)
{
	struct box *b = sandboxes_find(c);

	if (!b || !call_may_end(c, b))
		return;
	write_end(c, b);
	if (c->api->fleet.ending >= AT_ONCE) {
		box_end(b, CAUSE_OPERATOR, wait_with(c, sandboxes_ended));
	} else {
		call_empty(c, 204);
		box_end(b, CAUSE_OPERATOR, NULL);
	}
}
