/* nodes.c - see nodes.h. */
#include "v1/nodes.h"
#include "base/log.h"
#include "fleet/box.h"

#include <stdio.h>
#include <string.h>

#define NODES_SELF "self"     /* the node that is asked */
enum { NODES_STAYING = 100 }; /* boxes in an answer */

void nodes_list(struct call *c)
{
	if (!c->api->nodes)
		call_error(c, 404, "not_found", "this daemon is not a gateway: it has no nodes",
			   NULL, "ask a daemon with cluster.role = gateway");
	else
		call_list(c, c->api->nodes(c->api), NULL);
}

void nodes_scale(struct call *c)
{
	if (!c->api->scale)
		call_error(c, 404, "not_found", "this daemon is not a gateway: it has no nodes",
			   NULL, "ask a daemon with cluster.role = gateway");
	else
		call_json(c, 200, c->api->scale(c->api));
}

/* By number or name. */
static int nodes_is(const json_t *node, const char *which)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld",
		 (long long)json_integer_value(json_object_get(node, "number")));
	return !strcmp(which, number) ||
	       !strcmp(which, json_string_value(json_object_get(node, "name")));
}

/* This machine, if it is the node that the path names; else NULL, and the request was answered. */
static json_t *nodes_self(struct call *c)
{
	json_t *self = c->api->node_self ? c->api->node_self(c->api) : NULL;

	if (!self)
		call_error(c, 404, "not_found", "this daemon is not a node of a cluster", NULL,
			   "ask a daemon with cluster.role = node or gateway");
	else if (strcmp(call_param(c, 0), NODES_SELF) != 0 && !nodes_is(self, call_param(c, 0))) {
		call_error(c, 404, "not_found", "this daemon is another node", call_param(c, 0),
			   "ask a gateway, or use /v1/nodes/" NODES_SELF);
		json_decref(self);
		self = NULL;
	}
	return self;
}

void nodes_show(struct call *c)
{
	const char *which = call_param(c, 0);
	json_t *all, *node, *found = NULL;
	size_t i;

	if (!c->api->nodes || (c->api->node_self && !strcmp(which, NODES_SELF))) {
		found = nodes_self(c);
		if (found)
			call_json(c, 200, found);
		return;
	}
	all = c->api->nodes(c->api);
	json_array_foreach(all, i, node) if (!found && nodes_is(node, which)) found =
		json_incref(node);
	json_decref(all);
	if (found)
		call_json(c, 200, found);
	else
		call_error(c, 404, "not_found", "no node of this name or number has been connected",
			   which, "GET /v1/nodes");
}

const struct field nodes_drain_fields[] = {
	{ "move", FIELD_BOOL, 0, 0, 0,
	  "boxes with on_loss restart move to other nodes: their programs end, their files, ids and names stay",
	  NULL },
	{ 0 },
};

/* Boxes that have not moved yet, and those that stay. */
static json_t *nodes_moves(const struct fleet *f)
{
	json_t *boxes = json_array();
	json_int_t moving = 0, staying = 0;

	for (const struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b)) {
		const char *why = box_stays_because(b);

		if (b->state >= BOX_ENDING || b->is_spare || b->is_installer)
			continue;
		moving += !why;
		staying += why != NULL;
		if (why && staying <= NODES_STAYING)
			json_array_append_new(boxes, json_pack("{ss ss ss ss}", "box", b->row.id,
							       "name", b->row.name, "team",
							       b->row.team, "reason", why));
	}
	return json_pack("{sI sI so}", "moving", moving, "staying", staying, "boxes", boxes);
}

static void nodes_set_draining(struct call *c, enum fleet_draining how)
{
	struct fleet *f = &c->api->fleet;
	int was = f->is_moving ? FLEET_DRAINS_AND_MOVES : f->is_draining;
	json_t *self;
	struct err e;

	if (!principal_is_operator(&c->who)) {
		call_error(c, 403, "denied", "only operators drain nodes",
			   "the key is not of an owner of team default", NULL);
		return;
	}
	self = nodes_self(c);
	if (!self)
		return;
	json_decref(self);
	if (was != (int)how && fleet_set_draining(f, c->api->conf.state, how, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (was != (int)how)
		log_info(how == FLEET_TAKES_BOXES ? "this node takes new boxes again"
						  : "this node takes no new boxes",
			 LOG_U("boxes", f->count), LOG_U("move", (uint64_t)f->is_moving));
	self = c->api->node_self(c->api);
	if (f->is_moving)
		json_object_set_new(self, "moves", nodes_moves(f));
	call_json(c, 200, self);
}

void nodes_drain(struct call *c)
{
	nodes_set_draining(c, call_flag(c, "move", 0) ? FLEET_DRAINS_AND_MOVES : FLEET_DRAINS);
}

void nodes_undrain(struct call *c)
{
	nodes_set_draining(c, FLEET_TAKES_BOXES);
}
