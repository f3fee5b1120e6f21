/* copies_restart.c - POST /cluster/restart: creates the box of a copy, with its id, and gives it the files.
 *
 *   CREATE -> row with BOX_RESTART: hidden from clients -> files -> row without it -> event box.restarted
 *
 * If this server ends meanwhile, the next one ends the hidden box, and the gateway requests the restart again. */
#include "v1box/copies_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/definition.h"
#include "fleet/snapshot.h"
#include "store/copies.h"

#include <stdlib.h>
#include <string.h>

const struct field copies_restart_fields[] = {
	{ "snapshot", FIELD_TEXT, 1, 0, ID_MAX, "the copy", NULL },
	{ "epoch", FIELD_INT, 1, 1, INT64_MAX, "of this node, for which the box was moved", NULL },
	{ 0 },
};

struct copies_restarting {
	struct box_wait wait;
	struct api *api;
	struct call *call; /* NULL: the gateway has left */
	struct store_copy copy;
};

static void copies_restart_answer(struct copies_restarting *take_x, struct box *b,
				  const struct err *e)
{
	struct call *c = take_x->call;

	if (e)
		log_error("a box cannot be restarted on this node", LOG_S("box", take_x->copy.box),
			  LOG_E(e));
	if (c) {
		c->drop = NULL;
		if (e)
			call_fail(c, e);
		else
			call_json(c, 201, json_pack("{s:s}", "box", b->row.id));
	}
	store_copy_fini(&take_x->copy);
	free(take_x);
}

/* The box is visible from now on. */
static int copies_show(struct copies_restarting *x, struct box *b, struct err *e)
{
	if (box_set_metadata(b, box_metadata_without(b->row.metadata, BOX_RESTART), e) < 0)
		return -1;
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.restarted",
		   json_pack("{s:s, s:I}", "snapshot", x->copy.id, "snapshot_created_ms",
			     (json_int_t)(x->copy.created_ns / 1000000)));
	log_warn("a box of a lost node was restarted", LOG_S("box", b->row.id));
	return 0;
}

static void copies_filled(void *ctx, const struct store_snapshot *row, const char *box,
			  const struct err *e)
{
	struct copies_restarting *x = ctx;
	struct box *b = fleet_find(&x->api->fleet, box);
	struct err own = e ? *e : (struct err){ 0 };

	(void)row;
	if (!own.kind && (!b || b->state != BOX_RUNNING || b->because != CAUSE_EXIT))
		err_set(&own, ERR_NOT_FOUND, "box %s has ended", box);
	if (!own.kind && copies_show(x, b, &own) == 0)
		own.kind = ERR_NONE;
	if (own.kind && b)
		box_end(b, CAUSE_HOST, NULL);
	copies_restart_answer(x, b, own.kind ? &own : NULL);
}

static void copies_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct copies_restarting *x = loop_owner(w, struct copies_restarting, wait);
	struct snapshot *snap; /* continues without the gateway */
	struct err own;

	if (e)
		copies_restart_answer(x, NULL, e);
	else if (snapshot_fill_copy(&x->api->fleet, b, x->copy.id, x->copy.sha256, copies_filled, x,
				    &snap, &own) < 0)
		copies_filled(x, NULL, b->row.id, &own);
}

static void copies_restart_left(struct call *c)
{
	((struct copies_restarting *)c->state)->call = NULL;
}

/* 0: the answer was sent. */
static int copies_may_restart(struct call *c, const struct store_copy *copy)
{
	const struct box *b = fleet_find(&c->api->fleet, copy->box);
	int64_t epoch = call_int(c, "epoch", 0);
	struct err e;

	if (epoch != c->api->fleet.lease.epoch) {
		call_error(c, 409, "conflict", "this node has another epoch", copy->box, NULL);
		return 0;
	}
	if (b && b->is_spare) {
		call_error(c, 409, "conflict", "the box gets its files at the moment", copy->box,
			   NULL);
		return 0;
	}
	if (b) {
		call_json(c, 200, json_pack("{s:s}", "box", copy->box));
		return 0;
	}
	/* The gateway has seen the list of this node before a client deleted the box. */
	if (store_copy_of_box(c->api->store, copy->team, copy->box, &e) <= 0) {
		call_error(c, 409, "conflict", "the box has ended on this node", copy->box, NULL);
		return 0;
	}
	return 1;
}

void copies_restart(struct call *c)
{
	struct copies_restarting *x = calloc(1, sizeof(*x));
	struct box_definition d = { 0 };
	json_t *doc = NULL;
	struct box *b;
	struct err e;
	int rc;

	if (!x)
		abort();
	*x = (struct copies_restarting){ .wait.done = copies_made, .api = c->api, .call = c };
	if (store_copy_get(c->api->store, call_text(c, "snapshot", ""), &x->copy, &e) < 0) {
		free(x);
		call_fail(c, &e);
		return;
	}
	if (!copies_may_restart(c, &x->copy)) {
		store_copy_fini(&x->copy);
		free(x);
		return;
	}
	c->state = x;
	c->drop = copies_restart_left;
	doc = json_loads(x->copy.definition, 0, NULL);
	rc = box_definition_read(doc, &d, &e);
	d.want.id = d.id;
	d.want.row.epoch = c->api->fleet.lease.epoch;
	if (rc == 0)
		rc = box_create(&c->api->fleet, &d.want, &x->wait, &b, &e);
	box_definition_fini(&d);
	json_decref(doc);
	if (rc < 0)
		copies_restart_answer(x, NULL, &e);
}
