/* copies_leave.c - POST /cluster/leave and /cluster/left: a box with on_loss restart leaves a node that drains.
 *
 *   gateway                      this node
 *   POST /cluster/leave   --->   hidden from clients -> its programs end -> its files are packed -> BOX_LEAVING has the snapshot
 *   copies, MOVE_BOX, POST /cluster/restart at the other node: as for a box of a lost node
 *   POST /cluster/left    --->   the box and the snapshot end
 *
 * A box whose snapshot is complete is never used here again, so it cannot be active on two nodes, whatever fails. If packing
 * fails, it stays. If this server ends meanwhile, the gateway repeats its request to the next one. */
#include "v1box/copies_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/snapshot.h"

#include <stdlib.h>
#include <string.h>

const struct field copies_leave_fields[] = {
	{ "box", FIELD_TEXT, 1, 0, ID_MAX, "the box", NULL },
	{ "stays_because", FIELD_TEXT, 0, 0, 160, "it cannot leave, and this is the reason", NULL },
	{ 0 },
};
const struct field copies_left_fields[] = {
	{ "box", FIELD_TEXT, 1, 0, ID_MAX, "the box, which another node has", NULL },
	{ 0 },
};

struct copies_leaving {
	struct box_wait wait;
	struct api *api;
	struct call *call; /* NULL: the gateway has left */
	char box[ID_MAX + 1];
	uint64_t retention_ms; /* of the box: a stop sets it */
};

static void copies_stays(struct box *b, const char *why)
{
	free(b->stays_because);
	b->stays_because = why ? strdup(why) : NULL;
}

static void copies_leave_answer(struct copies_leaving *take_x, const char *snapshot,
				const struct err *e)
{
	struct box *b = fleet_find(&take_x->api->fleet, take_x->box);
	struct call *c = take_x->call;
	struct err own = e ? *e : (struct err){ 0 }, ignored;

	if (!own.kind && !b)
		err_set(&own, ERR_NOT_FOUND, "box %s has ended", take_x->box);
	if (b) {
		b->is_packing = 0;
		b->row.retention_ms = take_x->retention_ms;
	}
	if (!own.kind && box_set_leaving(b, snapshot, &own) < 0)
		err_in(&own, "box %s", take_x->box);
	if (own.kind && b && b->state < BOX_ENDING) {
		log_error("a box cannot leave this node", LOG_S("box", take_x->box), LOG_E(&own));
		(void)!box_set_leaving(b, NULL, &ignored);
		copies_stays(b, own.msg);
	}
	if (c) {
		c->drop = NULL;
		if (own.kind)
			call_fail(c, &own);
		else
			call_json(c, 200,
				  json_pack("{s:s, s:s}", "box", take_x->box, "snapshot",
					    snapshot));
	}
	free(take_x);
}

static void copies_packed(void *ctx, const struct store_snapshot *row, const char *box,
			  const struct err *e)
{
	struct copies_leaving *x = ctx;

	(void)box;
	copies_leave_answer(x, e ? NULL : row->id, e);
}

static void copies_pack(struct copies_leaving *x, struct box *b)
{
	struct store_snapshot want = { 0 };
	struct snapshot *snap; /* continues without the gateway */
	struct err e;

	snprintf(want.team, sizeof(want.team), "%s", b->row.team);
	if (snapshot_take(&x->api->fleet, b, &want, 0, copies_packed, x, &snap, &e) < 0)
		copies_leave_answer(x, NULL, &e);
}

static void copies_stopped(struct box_wait *w, struct box *b, const struct err *e)
{
	struct copies_leaving *x = loop_owner(w, struct copies_leaving, wait);

	if (e)
		copies_leave_answer(x, NULL, e);
	else
		copies_pack(x, b);
}

static void copies_leave_left(struct call *c)
{
	((struct copies_leaving *)c->state)->call = NULL;
}

static void copies_leave_begin(struct call *c, struct box *b)
{
	struct copies_leaving *x = calloc(1, sizeof(*x));
	struct err e;

	if (!x)
		abort();
	*x = (struct copies_leaving){ .wait.done = copies_stopped,
				      .api = c->api,
				      .call = c,
				      .retention_ms = b->row.retention_ms };
	memcpy(x->box, b->row.id, sizeof(x->box));
	c->state = x;
	c->drop = copies_leave_left;
	copies_stays(b, NULL);
	if (box_set_leaving(b, "", &e) < 0) {
		copies_leave_answer(x, NULL, &e);
		return;
	}
	b->is_packing = 1;
	log_info("a box leaves this node", LOG_S("box", b->row.id));
	if (b->state == BOX_STOPPED)
		copies_pack(x, b);
	else if (box_pause(b, 0, &x->wait, &e) < 0)
		copies_leave_answer(x, NULL, &e);
}

int copies_may_leave(const struct box *b)
{
	return (b->state == BOX_RUNNING || b->state == BOX_STOPPED) && !b->is_packing &&
	       !b->replacing && !b->is_spare && b->row.on_loss == STORE_LOSS_RESTART;
}

void copies_leave(struct call *c)
{
	struct box *b = fleet_find(&c->api->fleet, call_text(c, "box", ""));
	const char *why = call_text(c, "stays_because", NULL);
	auto_free char *snapshot = b ? box_leaving_snapshot(b) : NULL;

	if (!b || (!c->api->fleet.is_moving && !b->is_leaving)) {
		call_error(c, 409, "conflict",
			   b ? "this node keeps its boxes" : "this node does not have the box",
			   call_text(c, "box", ""), NULL);
	} else if (*snapshot) {
		call_json(c, 200, json_pack("{s:s, s:s}", "box", b->row.id, "snapshot", snapshot));
	} else if (!copies_may_leave(b)) {
		call_error(c, 409, "conflict", "the box cannot leave at the moment",
			   b->is_packing ? "its files are being packed" : box_state_name(b->state),
			   NULL);
	} else if (why) {
		copies_stays(b, why);
		call_empty(c, 204);
	} else {
		copies_leave_begin(c, b);
	}
}

void copies_left(struct call *c)
{
	struct box *b = fleet_find(&c->api->fleet, call_text(c, "box", ""));
	auto_free char *snapshot = b ? box_leaving_snapshot(b) : NULL;
	struct err e;

	if (b && !*snapshot) {
		call_error(c, 409, "conflict", "the box is in use on this node", b->row.id, NULL);
		return;
	}
	if (b && b->state < BOX_ENDING) {
		log_info("a box has left this node", LOG_S("box", b->row.id));
		if (snapshot_remove(&c->api->fleet, snapshot, &e) < 0 && e.kind != ERR_NOT_FOUND)
			log_warn("the snapshot of a box that has left cannot be removed",
				 LOG_S("box", b->row.id), LOG_E(&e));
		box_end(b, CAUSE_SUPERSEDED, NULL);
	}
	call_empty(c, 204);
}
