/* unreachable.c - answers of a gateway for a node that cannot be reached: what is known about the node, and since when. */
#include "e2b/e2b.h"
#include "gateway/deletions.h"
#include "gateway/gateway_call.h"
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rest of the object `error` of an answer. */
static void unreachable_add(json_t *doc, const struct node_status *s)
{
	json_t *error = json_object_get(doc, "error");

	json_object_set_new(error, "node", json_integer((json_int_t)s->number));
	json_object_set_new(error, "node_name", json_text(s->name));
	json_object_set_new(error, "state", json_string(node_state_name(s->state)));
	json_object_set_new(error, "since", json_time((uint64_t)s->since_unix_ms * 1000000));
}

static void unreachable_send(struct gateway_call *x, int status, const char *code,
			     const char *message, const char *why, const char *hint,
			     const struct node_status *s)
{
	struct call *c = x->call;
	json_t *doc;

	if (x->target.is_keyless) {
		e2b_no_box(c, status == 404 ? 502 : status, x->target.object, 0, why);
	} else if (!s || (c->format && c->format->error)) {
		call_error(c, status, code, message, why, hint);
	} else {
		doc = call_error_json(c, code, message, why, hint);
		unreachable_add(doc, s);
		call_account(c, code);
		call_send(c, status, doc);
	}
}

/* The node is not in the cluster: nothing that its ids name exists. */
void forward_fail_unknown(struct gateway_call *x)
{
	char why[96];

	snprintf(why, sizeof(why), "the cluster has no node %u, which this id names", x->node);
	unreachable_send(x, 404, "not_found", "there is no such object", why,
			 "list those there are: GET /v1/boxes", NULL);
}

static void unreachable_gone(struct gateway_call *x, const struct node_status *s)
{
	char why[200];

	snprintf(why, sizeof(why),
		 "it was lost with node %u (%s), which did not return within cluster.forget_after "
		 "(cause: host)",
		 s->number, s->name);
	unreachable_send(x, 404, "box_ended", "this object was lost", why,
			 "create another one; atoll node ls shows the state of all nodes", s);
}

static void unreachable_not_stored(struct gateway_call *x)
{
	forward_fail_unreachable(x, "its deletion could not be stored");
}

static int unreachable_is_connected(const struct gateway_call *x)
{
	const struct tunnel_node *n = tunnels_find(x->gateway->tunnels, x->node);

	return n && n->state == TUNNEL_UP;
}

void forward_fail_unreachable(struct gateway_call *x, const char *why)
{
	const struct node_status *s = gateway_leases_find(x->gateway->leases, x->node);
	char text[240];
	uint64_t ago_s = s ? (loop_now_ms() - s->since_ms) / 1000 : 0;

	if (s && s->state != NODE_GONE && deletions_take(x, unreachable_not_stored))
		return;
	x->gateway->figures.unreachable++;
	if (!s && (x->node || x->target.kind == TARGET_NODE) &&
	    gateway_leases_has_list(x->gateway->leases)) {
		forward_fail_unknown(x);
		return;
	}
	if (s && s->state == NODE_GONE) {
		unreachable_gone(x, s);
		return;
	}
	if (s && s->state == NODE_UP && !unreachable_is_connected(x)) {
		snprintf(
			text, sizeof(text),
			"node %u (%s) is connected to other gateways, and not to this one: every node "
			"connects to every gateway (cluster.gateways of the node)",
			s->number, s->name);
		why = text;
	}
	http_set(x->call->req, "Retry-After", s && s->state == NODE_LOST ? "5" : "1");
	if (s && s->state == NODE_LOST) {
		snprintf(text, sizeof(text),
			 "node %u (%s) is lost since %" PRIu64
			 " s: what runs there may continue, and is used again if the node returns",
			 s->number, s->name, ago_s);
		why = text;
	}
	unreachable_send(x, 503, "unreachable", "the node of this box is not reachable", why,
			 "try again; atoll node ls shows the state of all nodes", s);
}
