/* call_box.c - the box that a request names: looked up in the caller's team, held while the request lasts,
 * restored from its row if another server process made it; 404 with the reason if it has ended. */
#include "api/api.h"
#include "base/units.h"
#include "record/record.h"
#include "store/copies.h"
#include "fleet/box.h"

#include <stdio.h>
#include <string.h>

void call_hold(struct call *c, struct box *b)
{
	if (c->held[0])
		return;
	snprintf(c->held, sizeof(c->held), "%s", b->row.id);
	box_hold(b);
	if (strcmp(c->req->method, "GET") != 0 && strcmp(c->req->method, "HEAD") != 0) {
		b->changes++;
		b->is_prepared = 0;
	}
}

void call_fail_paused(struct call *c, const struct box *b)
{
	call_error(c, 409, "paused", "the box is paused: its programs are frozen", b->row.id,
		   "POST /v1/boxes/{box}/resume");
}

struct box *call_box_any(struct call *c, unsigned param)
{
	struct box *b = call_box_peek(c, param);

	if (b)
		call_hold(c, b);
	return b;
}

struct box *call_box(struct call *c, unsigned param)
{
	struct box *b = call_box_peek(c, param);

	if (b && b->state == BOX_PAUSED) {
		call_fail_paused(c, b);
		return NULL;
	}
	if (b)
		call_hold(c, b);
	return b;
}

int call_may_end(struct call *c, const struct box *b)
{
	int is_here = b->because != CAUSE_SUPERSEDED && fleet_lease_left_ms(&c->api->fleet) > 0;

	if (!c->req->trusted_peer || b->row.on_loss != STORE_LOSS_RESTART || is_here)
		return 1;
	http_set(c->req, "Retry-After", "1");
	call_error(
		c, 503, "unreachable",
		b->because == CAUSE_SUPERSEDED
			? "the box was restarted on another node"
			: "the node has no lease: the box may have been restarted on another one",
		b->row.id, "try again in a second");
	return 0;
}

/* ---- a box that has ended ---- */

static const char *box_end_sentence(const struct store_box *row, char out[80])
{
	static const struct {
		const char *cause, *sentence;
	} known[] = {
		{ "exit", "its work was done" },
		{ "operator", "it was deleted" },
		{ "memory", "it was out of memory" },
		{ "cpu", "it had used its CPU time" },
		{ "host", "its processes were ended from outside, or the host was restarted" },
	};
	char time[UNITS_TEXT];

	if (!strcmp(row->cause, "lifetime") || !strcmp(row->cause, "idle")) {
		int idle = *row->cause == 'i';

		units_time(time, 1000 * (idle ? row->idle_ms : row->lifetime_ms));
		snprintf(out, 80, idle ? "it was not used for %s" : "its lifetime of %s was over",
			 time);
		return out;
	}
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].cause, row->cause))
			return known[i].sentence;
	return row->cause;
}

int call_ended(const struct api *a, const struct principal *who, const char *box, struct err *out,
	       json_t **out_when)
{
	struct store_box row = { 0 };
	char why[80];
	json_t *when;
	struct err e;

	if (store_box_gone(a->store, who->team, box, &row, &e) < 0)
		return 0;
	if (who->box[0] && strcmp(who->box, row.id) != 0) {
		store_box_fini(&row);
		return 0;
	}
	when = json_time((uint64_t)row.ended_ns);
	err_set(out, ERR_NOT_FOUND, "box %s ended at %s: %s", box, json_string_value(when),
		box_end_sentence(&row, why));
	if (out_when)
		*out_when = json_pack("{s:O, s:s}", "ended_at", when, "cause", row.cause);
	json_decref(when);
	store_box_fini(&row);
	return 1;
}

/* 1: a gateway has moved the box to this node, where it does not have its files yet. */
static int box_restarts_here(const struct call *c, const char *box)
{
	const struct box *b = fleet_find(&c->api->fleet, box);
	struct err e;

	return c->req->trusted_peer && id_valid(box) && (!b || b->is_spare) &&
	       store_copy_of_box(c->api->store, c->who.team, box, &e) > 0;
}

/* It moves to another node, or runs there: the gateway that asks knows that in a moment. */
static int box_is_moving(const struct call *c, const char *box)
{
	const struct box *b = fleet_leaving(&c->api->fleet, c->who.team, box);
	struct store_box row = { 0 };
	struct err e;
	int has_moved;

	if (b)
		return !c->who.box[0] || !strcmp(c->who.box, b->row.id);
	if (!c->req->trusted_peer || !id_valid(box) ||
	    store_box_gone(c->api->store, c->who.team, box, &row, &e) < 0)
		return 0;
	has_moved = !strcmp(row.cause, cause_name(CAUSE_SUPERSEDED));
	store_box_fini(&row);
	return has_moved;
}

void call_no_box(struct call *c, const char *box)
{
	const char *hint = "list those there are: GET /v1/boxes", *cause;
	json_t *when, *doc;
	struct err e;

	if (box_restarts_here(c, box)) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "unreachable", "the box restarts on this node", box,
			   "try again in a second");
		return;
	}
	if (box_is_moving(c, box)) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "unreachable", "the box moves to another node", box,
			   "try again in a second");
		return;
	}
	if (!call_ended(c->api, &c->who, box, &e, &when)) {
		call_error(c, 404, "not_found", "there is no such box", box,
			   "list them: GET /v1/boxes");
		return;
	}
	cause = json_string_value(json_object_get(when, "cause"));
	if (cause && (!strcmp(cause, "lifetime") || !strcmp(cause, "idle")))
		hint = "a box that lives longer: {\"lifetime_ms\": N}, or \"on_timeout\": \"keep\"";
	if (c->format && c->format->error) {
		call_error(c, 404, "box_ended", e.msg, box, hint);
	} else {
		doc = call_error_json(c, "box_ended", e.msg, box, hint);
		json_object_update(json_object_get(doc, "error"), when);
		call_account(c, "box_ended");
		call_json(c, 404, doc);
	}
	json_decref(when);
}

struct box *call_box_peek(struct call *c, unsigned param)
{
	struct box *b = fleet_named(&c->api->fleet, c->who.team, call_param(c, param));

	if (b && (b->state == BOX_RUNNING || b->state == BOX_STOPPED || b->state == BOX_PAUSED) &&
	    (!c->who.box[0] || !strcmp(c->who.box, b->row.id)))
		return b;
	if (b && b->late) { /* the box runs and its init accepts no connection */
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "busy", "the box does not answer at the moment", b->row.id,
			   "repeat the request in a second");
		return NULL;
	}
	call_no_box(c, call_param(c, param));
	return NULL;
}

/* ---- a box that another server process made ---- */

static void box_on_fetched(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = *(struct call **)(w + 1);
	struct trace_context before;

	(void)b;
	(void)e; /* the handler looks the box up again and answers */
	c->drop = NULL;
	before = trace_enter(&c->trace);
	c->row->run(c);
	trace_leave(&before);
}

static void box_fetch_cancel(struct call *c)
{
	box_wait_cancel(c->fetching);
}

static struct box_wait *box_fetch_wait(struct call *c)
{
	struct box_wait *w = call_alloc(c, sizeof(*w) + sizeof(c));

	*w = (struct box_wait){ .done = box_on_fetched };
	memcpy(w + 1, &c, sizeof(c));
	c->fetching = w;
	c->fetched = 1;
	c->drop = box_fetch_cancel;
	return w;
}

int call_adopt(struct call *c, struct store_box *take_row)
{
	struct fleet *f = &c->api->fleet;
	struct box *b = fleet_find(f, take_row->id);

	/* A streamed body cannot wait until its handler runs again. */
	if (c->fetched || c->row->how == HTTP_BODY_STREAM || take_row->state == STORE_BOX_DELETED ||
	    strcmp(take_row->boot, f->boot) != 0 || (b && b->state != BOX_MAKING)) {
		store_box_fini(take_row);
		return 0;
	}
	if (b) {
		store_box_fini(take_row);
		box_await(b, box_fetch_wait(c));
	} else {
		box_restore(f, take_row, box_fetch_wait(c));
	}
	return 1;
}

int call_needs_adopt(struct call *c)
{
	const char *name = c->match.params[0];
	struct store_box row = { 0 };
	struct box *b;
	struct err e;

	if (c->row->scope != SCOPE_BOX || !c->match.nparams)
		return 0;
	b = fleet_named(&c->api->fleet, c->who.team, name);
	if (b && b->state != BOX_MAKING)
		return 0;
	if ((!id_valid(name) || store_box_get(c->api->store, name, &row, &e) < 0) &&
	    store_box_by_name(c->api->store, c->who.team, name, &row, &e) < 0)
		return 0;
	if (strcmp(row.team, c->who.team) != 0) {
		store_box_fini(&row);
		return 0;
	}
	return call_adopt(c, &row);
}

struct box *call_box_of_body(struct call *c)
{
	const char *text = call_text(c, "box", "");
	struct box *b = fleet_named(&c->api->fleet, c->who.team, text);

	if (!b || (c->who.box[0] && strcmp(c->who.box, b->row.id) != 0))
		call_no_box(c, text);
	else if (b->state != BOX_RUNNING && b->state != BOX_STOPPED)
		call_error(c, 409, "conflict", "box: it is not running", box_state_name(b->state),
			   "resume it first: POST /v1/boxes/{box}/resume");
	else
		return b;
	return NULL;
}
