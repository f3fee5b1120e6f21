/* gateway.c - see gateway.h. */
#include "api/auth.h"
#include "api/quota.h"
#include "e2b/e2b.h"
#include "gateway/box_named.h"
#include "gateway/copies.h"
#include "gateway/deletions.h"
#include "gateway/everywhere.h"
#include "gateway/gateway_call.h"
#include "gateway/moved.h"
#include "gateway/node_events.h"
#include "gateway/nodes.h"
#include "gateway/shared_rows.h"
#include "gateway/socket.h"
#include "gateway/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GATEWAY_TICK_MS = 100 };

/* ---- requests ---- */

static void gateway_drop(struct call *c)
{
	struct gateway_call *x = c->state;

	forward_end(x);
	find_end(x);
	list_end(x);
	create_end(x);
	claim_end(x);
	deletions_end(x);
	gather_end(x);
	every_end(x);
	secrets_end(x);
	preview_end(x);
	stream_end(x);
	volume_end(x);
}

static void gateway_any(struct gateway_call *x);

void gateway_named(struct gateway_call *x, int node)
{
	int number = target_node_of(x->target.object, strlen(x->target.object));

	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (x->missing[0])
		find_fail_missing(x);
	else if (x->target.is_keyless)
		e2b_no_box(x->call, 502, x->target.object, 0, "The sandbox was not found");
	else if (x->ended)
		call_send(x->call, 404, json_incref(x->ended));
	else if (number >= 0 && !gateway_has_node(x->gateway, (unsigned)number)) {
		x->node = (unsigned)number;
		forward_fail_unknown(x);
	} else {
		gateway_any(x); /* which rejects it: with 403, 404, and in the audit log */
	}
}

static void gateway_any(struct gateway_call *x)
{
	struct place_request r = { .template = "", .node = -1 };
	struct err e;
	int node = place_choose(x->gateway->place, &r, loop_now_ms(), &e);

	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else
		forward_fail_unreachable(x, e.msg);
}

static void gateway_home(struct gateway_call *x)
{
	int node = create_own_node(x, "templates", "");

	forward_hold_body(x);
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else
		forward_fail_unreachable(x, "no node is connected");
}

/* The node itself carries out what the path orders. */
static void gateway_member(struct gateway_call *x)
{
	struct tunnel_node *n = gateway_find_node(x->gateway->tunnels, x->target.object);

	forward_hold_body(x);
	if (n)
		forward_begin(x, n->number);
	else
		gateway_any(x); /* which rejects it */
}

/* The node whose receipts are asked for. */
static void gateway_chain(struct gateway_call *x)
{
	const char *which = http_query(x->call->req, "node");
	struct tunnel_node *first = tunnels_next(x->gateway->tunnels, NULL);
	int node = which ? target_node_of(which, strlen(which)) : -1;

	if (which && node < 0 && (first = gateway_find_node(x->gateway->tunnels, which)))
		node = (int)first->number;
	else if (!which && first && !tunnels_next(x->gateway->tunnels, first))
		node = (int)first->number;
	if (node >= 0) {
		forward_hold_body(x);
		forward_begin(x, (unsigned)node);
	} else if (which) {
		call_error(x->call, 404, "not_found",
			   "no node of this name or number has been connected", which,
			   "atoll node ls");
	} else {
		call_error(x->call, 400, "invalid",
			   "each node has a chain of receipts and a key of its own: name the node",
			   "", "?node=NAME, or the id of a run; atoll node ls lists all nodes");
	}
}

static void gateway_go(struct gateway_call *x)
{
	switch (x->target.kind) {
	case TARGET_NODE:
		forward_hold_body(x);
		forward_begin(x, x->target.node);
		break;
	case TARGET_NAME:
		if (x->target.is_keyless) { /* nodes tell names to known callers only */
			preview_begin(x);
			break;
		}
		forward_hold_body(x);
		if (strcmp(x->target.collection, TARGET_TEMPLATES) == 0)
			templates_go(x);
		else
			find_begin(x, x->target.collection, x->target.object, gateway_named);
		break;
	case TARGET_SHARED:
		link_run(x);
		break;
	case TARGET_FILE:
		link_file(x);
		break;
	case TARGET_HOME:
		gateway_home(x);
		break;
	case TARGET_CREATE:
	case TARGET_TEMPLATE:
	case TARGET_STREAM:
		create_begin(x, x->target.kind == TARGET_STREAM);
		break;
	case TARGET_BODY:
		create_from_body(x);
		break;
	case TARGET_ANY:
		forward_hold_body(x);
		gateway_any(x);
		break;
	case TARGET_MEMBER:
		gateway_member(x);
		break;
	case TARGET_LIST:
		list_begin(x);
		break;
	case TARGET_GATHER:
		gather_begin(x);
		break;
	case TARGET_EVERY:
		every_begin(x);
		break;
	case TARGET_CHAIN:
		gateway_chain(x);
		break;
	case TARGET_SOCKET:
		gateway_socket_open(x);
		break;
	case TARGET_SIGNED: /* target_find() has made it TARGET_NODE or TARGET_LOCAL */
	case TARGET_ABSENT:
	case TARGET_LOCAL:
		call_error(x->call, 501, "not_supported", "a gateway does not serve this path yet",
			   x->call->req->path,
			   "docs/cluster.md lists what gateways serve; ask the node itself");
		break;
	}
}

static void gateway_admitted(struct http_req *r)
{
	gateway_go(((struct call *)r->user)->state);
}

/* 1: the caller is known and may send requests. */
static int gateway_admits(struct gateway_call *x)
{
	struct call *c = x->call;
	struct identity who = { 0 };
	struct store_team team;
	const char *why;
	struct err e;
	int status = auth_origin(c->api, c->req, &why);

	if (status) {
		call_error(c, status, "denied", "not from this web page", why, NULL);
		return 0;
	}
	status = auth_principal(c->api, c->req, &c->who, &why);
	if (status) {
		call_refuse_key(c, status, why);
		return 0;
	}
	if (!quota_request(c))
		return 0;
	who.principal = c->who;
	if (store_team_get(c->api->store, c->who.team, &team, &e) == 0)
		snprintf(who.team_isolation, sizeof(who.team_isolation), "%s", team.isolation);
	else if (e.kind != ERR_NOT_FOUND) {
		call_fail(c, &e);
		return 0;
	}
	identity_text(&who, x->identity);
	return 1;
}

/* A box that was restarted on another node. */
static void gateway_find_moved(const struct gateway *g, struct target *t)
{
	int node = t->kind == TARGET_NODE || t->kind == TARGET_NAME
			   ? gateway_moved_node(g->moved, t->object, strcspn(t->object, "-."))
			   : -1;

	if (node < 0)
		return;
	t->kind = TARGET_NODE;
	t->node = (unsigned)node;
}

int gateway_has_node(const struct gateway *g, unsigned number)
{
	return !gateway_leases_has_list(g->leases) || gateway_leases_find(g->leases, number) ||
	       tunnels_find(g->tunnels, number);
}

/* Fifteen letters can be a name, too: they are an id only if the cluster has such a node. */
static void gateway_find_name(const struct gateway *g, struct target *t)
{
	size_t n = strlen(t->object);

	if (t->kind == TARGET_NODE && t->collection && !t->is_keyless && n == ID_MAX &&
	    target_node_of(t->object, n) == (int)t->node && !gateway_has_node(g, t->node))
		t->kind = TARGET_NAME;
}

static int gateway_take(struct call *c)
{
	struct gateway *g = c->api->gateway;
	const char *host = http_header(c->req, "host");
	struct gateway_call *x;
	struct target t;

	if (!g || c->req->trusted_peer) /* a gateway has sent it here: never in a circle */
		return 0;
	target_find(&t, c->req, host && auth_is_preview_host(c->api, host));
	gateway_find_moved(g, &t);
	gateway_find_name(g, &t);
	/* A path that no daemon has gets the same answer as on one machine. */
	if (t.kind == TARGET_LOCAL ||
	    (t.kind == TARGET_ABSENT && !t.is_e2b && !call_has_path(c->api->native, c->req)))
		return 0;
	x = call_alloc(c, sizeof(*x));
	*x = (struct gateway_call){
		.gateway = g, .call = c, .target = t, .secrets_node = -1, .granted_node = -1
	};
	c->state = x;
	c->drop = gateway_drop;
	if (t.is_e2b)
		c->format = &e2b_format;
	if (t.is_keyless)
		gateway_go(x);
	else if (gateway_admits(x))
		http_charge(c->req, fleet_budget(&c->api->fleet, c->who.team), gateway_admitted);
	return 1;
}

const struct api_surface gateway_surface = { gateway_take, NULL, 0, NULL };

/* ---- the view of the nodes ---- */

static void gateway_update(struct gateway *g, const struct tunnel_node *n)
{
	const struct control_figures *f = &n->figures;
	struct place_figures p = { .memory = f->memory_total,
				   .memory_free = f->memory_free,
				   .is_draining = f->draining };
	struct err e;

	snprintf(p.arch, sizeof(p.arch), "%s", f->arch);
	for (unsigned i = 0; i < f->nlabels && p.nlabels < PLACE_LABELS; i++)
		snprintf(p.labels[p.nlabels++], sizeof(p.labels[0]), "%s", f->labels[i]);
	(void)!place_update(g->place, n->number, &p, &e);
}

static void gateway_tick(struct timer *t)
{
	struct gateway *g = loop_owner(t, struct gateway, tick);

	for (struct tunnel_node *n = tunnels_next(g->tunnels, NULL); n;
	     n = tunnels_next(g->tunnels, n)) {
		uint64_t seen = (uint64_t)(uintptr_t)n->user;

		int is_ready = n->state == TUNNEL_UP &&
			       (!g->rows || gateway_rows_node_is_ready(g->rows, n->number));

		if (!is_ready)
			place_remove(g->place, n->number);
		else if (n->heartbeat_ms && seen != n->heartbeats)
			gateway_update(g, n);
		n->user = (void *)(uintptr_t)(is_ready ? n->heartbeats : 0);
	}
	timer_set(&g->tick, GATEWAY_TICK_MS);
}

static void gateway_restart(void *user, unsigned node, int64_t epoch)
{
	struct gateway *g = user;

	if (g->copies)
		gateway_copies_restart(g->copies, node, epoch);
}

static void gateway_changed(void *user, const struct node_status *now, enum node_state was,
			    uint64_t was_ms)
{
	struct gateway *g = user;

	if (now->state == NODE_LOST)
		gateway_moved_hurry(g->moved);
	node_events_changed(g, now, was, was_ms);
}

int gateway_new(struct gateway **out, struct api *a, struct tunnels *t,
		struct gateway_leases *leases, enum place_policy policy, struct err *e)
{
	struct gateway *g = calloc(1, sizeof(*g));
	uint64_t seed;

	if (!g)
		abort();
	if (id_random(&seed, sizeof(seed), e) < 0 || place_new(&g->place, policy, seed, e) < 0) {
		free(g);
		return -1;
	}
	g->settles = settle_slots_new();
	g->api = a;
	g->tunnels = t;
	g->leases = leases;
	g->started_ms = loop_now_ms();
	timer_init(&g->tick, a->loop, gateway_tick);
	timer_set(&g->tick, GATEWAY_TICK_MS);
	a->gateway = *out = g;
	a->usage_of_cluster = gateway_usage_ask;
	a->merged = gateway_everywhere;
	a->box_of_cluster = gateway_box_named;
	if (leases)
		gateway_leases_set_hooks(
			leases, &(struct gateway_lease_hooks){ .user = g,
							       .changed = gateway_changed,
							       .restart = gateway_restart });
	return 0;
}

void gateway_free(struct gateway *g)
{
	if (!g)
		return;
	g->api->gateway = NULL;
	g->api->usage_of_cluster = NULL;
	g->api->merged = NULL;
	g->api->box_of_cluster = NULL;
	timer_fini(&g->tick);
	place_free(g->place);
	free(g->settles);
	free(g);
}
