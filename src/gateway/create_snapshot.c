/* create_snapshot.c - boxes with the files of a snapshot: at the node that has it or, if that node takes no box now, at
 * another one, which gets the file first (bring.h). The node that creates the box checks whose snapshot it is. */
#include "coordinator/queries.h"
#include "gateway/gateway_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void create_snapshot_elsewhere(struct gateway_call *x);

static int create_snapshot_owner_is_up(const struct gateway_call *x)
{
	const struct tunnel_node *n = tunnels_find(x->gateway->tunnels, x->source.owner);

	return n && n->state == TUNNEL_UP;
}

static void create_snapshot_brought(struct bring_ask *a, const char *why)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, source.ask);

	if (!why) {
		x->refused = create_snapshot_elsewhere;
		create_at_chosen(x, x->source.to);
		return;
	}
	if (a->is_missing) {
		call_error(x->call, 404, "not_found", "there is no such snapshot", why,
			   "atoll snapshot ls shows all that exist");
		return;
	}
	if (create_snapshot_owner_is_up(x)) {
		call_error(
			x->call, 503, "unavailable",
			"its node takes no box now, and the snapshot cannot be copied to another "
			"node",
			why, "try again");
		return;
	}
	x->node = x->source.owner;
	forward_fail_unreachable(x, why);
}

static void create_snapshot_elsewhere(struct gateway_call *x)
{
	struct err e;
	int node = create_next_node(x, &e);

	if (node < 0 && !create_snapshot_owner_is_up(x)) {
		x->node = x->source.owner;
		forward_fail_unreachable(x, "no other node can take a box from its snapshot");
	} else if (node < 0) {
		create_fail(x, &e);
	} else {
		x->source.to = (unsigned)node;
		bring_begin(x->gateway->bring, &x->source.ask,
			    &(struct bring_what){ .snapshot = x->source.snapshot,
						  .team = x->call->who.team,
						  .owner = x->source.owner,
						  .to = (unsigned)node });
	}
}

/* Another node does not know the name of the snapshot. */
static void create_snapshot_name_by_id(struct gateway_call *x)
{
	const char *asked = json_string_value(json_object_get(x->doc, "snapshot"));
	char *text;

	if (!asked || strcmp(asked, x->source.snapshot) == 0)
		return;
	json_object_set_new(x->doc, "snapshot", json_string(x->source.snapshot));
	text = json_dumps(x->doc, JSON_COMPACT);
	if (!text)
		abort();
	buf_puts(&x->source.body, text);
	x->body = &x->source.body;
	if (x->call->req->length !=
	    UINT64_MAX) /* the whole body was read; this is what the node gets */
		x->call->req->length = x->source.body.len;
	free(text);
}

/* ---- by a name that only the object store knows now ---- */

static void create_snapshot_looked(struct cluster_request *r, const json_t *answer,
				   const struct err *e)
{
	struct gateway_call *x = loop_owner(r, struct gateway_call, source.looking);
	const json_t *row = e ? NULL : json_array_get(query_rows(answer, 0), 0);

	if (row && id_valid(query_text(row, 0)))
		create_snapshot_begin(x, query_text(row, 0), (unsigned)query_int(row, 1));
	else
		find_fail_missing(x);
}

void create_snapshot_from_store(struct gateway_call *x, const char *name)
{
	if (!x->gateway->objects) {
		find_fail_missing(x);
		return;
	}
	x->source.looking.done = create_snapshot_looked;
	query_request(x->gateway->engines, &x->source.looking, "object_find",
		      json_pack("[s, s]", x->call->who.team, name));
}

void create_snapshot_end(struct gateway_call *x)
{
	cluster_client_cancel(&x->source.looking);
	bring_cancel(&x->source.ask);
	buf_fini(&x->source.body);
}

void create_snapshot_begin(struct gateway_call *x, const char *id, unsigned owner)
{
	const struct tunnel_node *n = tunnels_find(x->gateway->tunnels, owner);

	x->source.owner = owner;
	x->source.ask.done = create_snapshot_brought;
	snprintf(x->source.snapshot, sizeof(x->source.snapshot), "%s", id);
	create_snapshot_name_by_id(x);
	x->tried[x->ntried++] = owner;
	if (n && n->state == TUNNEL_UP && !n->figures.draining && create_fits(x, n)) {
		x->refused = create_snapshot_elsewhere;
		create_at_chosen(x, owner);
	} else {
		create_snapshot_elsewhere(x);
	}
}
