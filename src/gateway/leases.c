/* leases.c - see leases.h.
 *
 *   timer, tunnel hooks, answers -> gateway_lease -> actions: requests to the coordinator, hello, close
 *   RENEW, every 0.5 s -> the list of nodes -> states; nodes that are not in it: tunnels_forget()
 *
 * An engine that does not answer changes nothing: the last list counts, and connections stay open. Before the first list
 * every node with a valid certificate is accepted, because a gateway that starts during an outage of the database must
 * serve. */
#include "gateway/leases.h"
#include "base/log.h"
#include "cluster/lease.h"
#include "cluster/role.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEASES_CONFLICT_MS = 10000 };

struct leases_ask {
	struct leases_ask *next, **link;
	struct gateway_leases *leases;
	enum coordinator_op op;
	unsigned generation; /* of the lease: a new one follows when this gateway was replaced */
	int node;
	int64_t serial;
};

struct gateway_leases {
	struct coordinator *coordinator;
	struct tunnels *tunnels;
	struct gateway_lease *lease;
	struct gateway_leases_conf conf;
	struct gateway_lease_hooks hooks;
	struct timer clock;
	struct leases_ask *asks;
	unsigned generation;
	int has_list, is_stopped, is_acting, is_replaced, has_trouble;
	uint64_t replaced_ms, lost;
	struct node_status *nodes; /* by number, ascending */
	unsigned nnodes;
	uint8_t gateways[(CLUSTER_NUMBER_MAX + 8) / 8]; /* a bit each: they may be nodes, too */
};

static void leases_act(struct gateway_leases *g, const struct coordinator_answer *hello);

const char *node_state_name(enum node_state s)
{
	static const char *const names[NODE_STATES] = { "up", "unreachable", "lost", "gone" };

	return names[s];
}

/* ---- states of nodes ---- */

static unsigned leases_position(const struct gateway_leases *g, unsigned number)
{
	unsigned low = 0, high = g->nnodes;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (g->nodes[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct node_status *gateway_leases_find(const struct gateway_leases *g, unsigned number)
{
	unsigned at = g ? leases_position(g, number) : 0;

	return g && at < g->nnodes && g->nodes[at].number == number ? &g->nodes[at] : NULL;
}

const struct node_status *gateway_leases_next(const struct gateway_leases *g,
					      const struct node_status *after)
{
	unsigned at = after ? (unsigned)(after - g->nodes) + 1 : 0;

	return g && at < g->nnodes ? &g->nodes[at] : NULL;
}

static void leases_set_state(struct gateway_leases *g, struct node_status *s, enum node_state state,
			     uint64_t at_ms)
{
	enum node_state was = s->state;
	uint64_t was_ms = at_ms > s->since_ms ? at_ms - s->since_ms : 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	s->state = state;
	s->since_ms = at_ms;
	s->since_unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
			   (int64_t)(loop_now_ms() - at_ms);
	if (was != state) {
		log_info("state of a node", LOG_U("node", s->number), LOG_S("name", s->name),
			 LOG_S("state", node_state_name(state)),
			 LOG_S("was", node_state_name(was)));
		if (g->hooks.changed)
			g->hooks.changed(g->hooks.user, s, was, was_ms);
	}
}

static struct node_status *leases_add(struct gateway_leases *g, unsigned number)
{
	unsigned at = leases_position(g, number);

	if (at < g->nnodes && g->nodes[at].number == number)
		return &g->nodes[at];
	g->nodes = reallocarray(g->nodes, g->nnodes + 1, sizeof(*g->nodes));
	if (!g->nodes)
		abort();
	memmove(g->nodes + at + 1, g->nodes + at, (g->nnodes - at) * sizeof(*g->nodes));
	g->nodes[at] =
		(struct node_status){ .number = number, .state = NODE_UNREACHABLE, .name = "?" };
	g->nnodes++;
	leases_set_state(g, &g->nodes[at], NODE_UNREACHABLE, loop_now_ms());
	return &g->nodes[at];
}

/* A node with epoch 1 has never been connected. */
static int leases_is_forgotten(const struct view_node *n)
{
	return n->lost && n->forgotten > 0 && n->forgotten >= n->epoch - 1;
}

/* seen: NULL: the node is not in the list of the coordinator, or there is none. */
static void leases_judge(struct gateway_leases *g, struct node_status *s,
			 const struct view_node *seen, int is_elsewhere)
{
	const struct tunnel_node *t = tunnels_find(g->tunnels, s->number);
	int is_here = t && t->state == TUNNEL_UP;
	enum node_state state = is_here                             ? NODE_UP
				: seen && leases_is_forgotten(seen) ? NODE_GONE
				: seen && seen->lost                ? NODE_LOST
				: is_elsewhere                      ? NODE_UP
								    : NODE_UNREACHABLE;

	s->is_elsewhere = is_elsewhere;
	if (t && t->name[0] != '?')
		snprintf(s->name, sizeof(s->name), "%s", t->name);
	if (state != s->state)
		leases_set_state(g, s, state,
				 t && (is_here || state == NODE_UNREACHABLE) ? t->since_ms
									     : loop_now_ms());
}

/* A tunnel came or went; the list says the same as before. */
static void leases_judge_again(struct gateway_leases *g, unsigned number)
{
	struct node_status *s = leases_add(g, number);
	struct view_node seen = { .epoch = s->epoch,
				  .lost = s->state == NODE_LOST || s->state == NODE_GONE,
				  .forgotten = s->state == NODE_GONE ? s->epoch : 0 };

	leases_judge(g, s, s->is_listed ? &seen : NULL, s->is_elsewhere);
}

/* Of nodes that have a tunnel to another gateway. */
static void leases_see_elsewhere(struct gateway_leases *g, const struct coordinator_answer *a)
{
	for (unsigned i = 0; i < a->ntunnels; i++) {
		unsigned number = (unsigned)a->tunnels[i].node, at = leases_position(g, number);

		if (a->tunnels[i].gateway != (int)g->conf.number && at < g->nnodes &&
		    g->nodes[at].number == number)
			g->nodes[at].seen_elsewhere = 1;
	}
}

static int leases_is_gateway(const struct gateway_leases *g, unsigned number)
{
	return number <= CLUSTER_NUMBER_MAX && g->gateways[number / 8] >> number % 8 & 1;
}

static void leases_drop_removed(struct gateway_leases *g)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < g->nnodes; i++) {
		unsigned number = g->nodes[i].number;

		if (g->nodes[i].is_listed ||
		    (leases_is_gateway(g, number) && tunnels_find(g->tunnels, number))) {
			g->nodes[kept++] = g->nodes[i];
			continue;
		}
		log_warn("node was removed from the cluster", LOG_U("node", number));
		tunnels_forget(g->tunnels, number);
	}
	g->nnodes = kept;
}

static void leases_listed(struct gateway_leases *g, const struct coordinator_answer *a)
{
	memset(g->gateways, 0, sizeof(g->gateways));
	for (unsigned i = 0; i < a->ngateways; i++)
		if (a->gateways[i].number >= 0 && a->gateways[i].number <= CLUSTER_NUMBER_MAX)
			g->gateways[a->gateways[i].number / 8] |=
				(uint8_t)(1 << a->gateways[i].number % 8);
	for (const struct tunnel_node *t = tunnels_next(g->tunnels, NULL); t;
	     t = tunnels_next(g->tunnels, t))
		(void)leases_add(g, t->number);
	for (unsigned i = 0; i < a->nnodes; i++)
		(void)leases_add(g, (unsigned)a->nodes[i].number);
	for (unsigned i = 0; i < g->nnodes; i++)
		g->nodes[i].is_listed = g->nodes[i].seen_elsewhere = 0;
	leases_see_elsewhere(g, a);
	for (unsigned i = 0; i < a->nnodes; i++) {
		const struct view_node *seen = &a->nodes[i];
		struct node_status *s = leases_add(g, (unsigned)seen->number);

		s->is_listed = 1;
		s->epoch = seen->epoch;
		snprintf(s->name, sizeof(s->name), "%s", seen->name);
		leases_judge(g, s, seen, s->seen_elsewhere);
	}
	g->has_list = 1;
	leases_drop_removed(g);
}

int gateway_leases_has_list(const struct gateway_leases *g)
{
	return g && g->has_list;
}

int gateway_leases_is_valid(const struct gateway_leases *g)
{
	return g && gateway_lease_valid(g->lease, loop_now_ms());
}

const char *gateway_leases_trouble(const struct gateway_leases *g)
{
	return coordinator_trouble(g->coordinator);
}

uint64_t gateway_leases_lost(const struct gateway_leases *g)
{
	return g->lost;
}

/* ---- the coordinator ---- */

static enum lease_answer leases_answer(const struct err *e)
{
	if (!e)
		return LEASE_DONE;
	return e->kind == ERR_CONFLICT    ? LEASE_REFUSED
	       : e->kind == ERR_NOT_FOUND ? LEASE_NOT_FOUND
					  : LEASE_UNKNOWN;
}

static void leases_log_trouble(struct gateway_leases *g, const struct err *e)
{
	int trouble = e && e->kind != ERR_CONFLICT && e->kind != ERR_NOT_FOUND;

	if (trouble && !g->has_trouble)
		log_warn(
			"the coordinator does not answer: requests continue, names and the states of nodes do not change",
			LOG_E(e));
	else if (!trouble && g->has_trouble)
		log_info("the coordinator answers again");
	g->has_trouble = trouble;
}

static void leases_renewed(struct gateway_leases *g, const struct coordinator_answer *a,
			   const struct err *e)
{
	struct view v = { 0 };

	if (a)
		v = (struct view){ a->gateways,  a->tunnels,  a->nodes,
				   a->ngateways, a->ntunnels, a->nnodes };
	gateway_lease_renewed(g->lease, loop_now_ms(), leases_answer(e), a ? &v : NULL);
	if (a)
		leases_listed(g, a);
}

static void leases_declared(struct gateway_leases *g, int node, const struct coordinator_answer *a)
{
	if (a && a->done) {
		g->lost++;
		log_warn("node is lost", LOG_U("node", (unsigned)node),
			 LOG_U("epoch", (uint64_t)a->epoch));
	}
	gateway_lease_declared(g->lease, loop_now_ms(), node, a && a->done);
}

static void leases_forget_ask(struct leases_ask *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	free(x);
}

static void leases_answered(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct leases_ask *x = user;
	struct gateway_leases *g = x->leases;

	if (g->is_stopped || x->generation != g->generation) {
		leases_forget_ask(x);
		return;
	}
	leases_log_trouble(g, e);
	switch (x->op) {
	case COORDINATOR_REGISTER:
		gateway_lease_registered(g->lease, loop_now_ms(), leases_answer(e),
					 a ? a->incarnation : 0);
		break;
	case COORDINATOR_RENEW:
		leases_renewed(g, a, e);
		break;
	case COORDINATOR_SET_TUNNEL:
		gateway_lease_tunnel_set(g->lease, loop_now_ms(), x->node, x->serial,
					 leases_answer(e), a ? a->epoch : 0);
		break;
	case COORDINATOR_DECLARE_LOST:
		leases_declared(g, x->node, a);
		break;
	default: /* FORGET_NODE, SETTLE_BOX: the next list or hello shows it */
		break;
	}
	leases_forget_ask(x);
	leases_act(g, a);
}

static void leases_ask(struct gateway_leases *g, const struct coordinator_request *q)
{
	struct leases_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct leases_ask){ .next = g->asks,
				  .link = &g->asks,
				  .leases = g,
				  .op = q->op,
				  .generation = g->generation,
				  .node = q->node,
				  .serial = q->serial };
	if (g->asks)
		g->asks->link = &x->next;
	g->asks = x;
	coordinator_ask(g->coordinator, q, leases_answered, x);
}

/* ---- actions ---- */

/* Rule 3: what the node owns, and what it must destroy. */
static void leases_greet(struct gateway_leases *g, const struct lease_action *a,
			 const struct coordinator_answer *hello)
{
	const struct node_status *s = gateway_leases_find(g, (unsigned)a->node);
	json_t *owned = json_array();

	for (unsigned i = 0; hello && i < hello->nnames; i++) {
		const struct coordinator_name *n = &hello->names[i];
		const char kind[2] = { n->key.kind, 0 };

		json_array_append_new(owned, json_pack("{ss ss ss ss ss}", "team", n->key.team,
						       "kind", kind, "name", n->key.name,
						       "template", n->key.template, "box", n->box));
	}
	for (unsigned i = 0; hello && i < hello->nsuperseded; i++) {
		const struct coordinator_superseded *x = &hello->superseded[i];

		if (s && s->known_epoch >= x->epoch)
			leases_ask(g, &(struct coordinator_request){ .op = COORDINATOR_SETTLE_BOX,
								     .node = a->node,
								     .box = x->box });
		else
			json_array_append_new(owned, json_pack("{ss sI}", "superseded", x->box,
							       "epoch", (json_int_t)x->epoch));
	}
	tunnels_greet(g->tunnels, (uint32_t)a->node, (uint64_t)a->epoch, owned);
	json_decref(owned);
}

static void leases_replaced(struct gateway_leases *g)
{
	if (!g->is_replaced)
		log_error(
			"this gateway has no lease: it was removed from the cluster, or another process has its number",
			LOG_U("gateway", g->conf.number));
	g->is_replaced = 1;
	g->replaced_ms = loop_now_ms();
}

static void leases_do(struct gateway_leases *g, const struct lease_action *a,
		      const struct coordinator_answer *hello)
{
	struct coordinator_request q = { .gateway = (int)g->conf.number,
					 .node = a->node,
					 .epoch = a->epoch,
					 .serial = a->serial,
					 .incarnation = a->incarnation,
					 .dead = a->dead,
					 .ndead = a->ndead };

	switch (a->kind) {
	case LEASE_NOTHING:
		return;
	case LEASE_REGISTER:
		q.op = COORDINATOR_REGISTER;
		q.address = g->conf.address;
		q.version = g->conf.version;
		break;
	case LEASE_RENEW:
		q.op = COORDINATOR_RENEW;
		break;
	case LEASE_TUNNEL_UP:
	case LEASE_TUNNEL_DOWN:
		q.op = COORDINATOR_SET_TUNNEL;
		q.up = a->kind == LEASE_TUNNEL_UP;
		break;
	case LEASE_GREET:
		leases_greet(g, a, hello);
		return;
	case LEASE_CLOSE:
		tunnels_close(g->tunnels, (uint32_t)a->node, a->why);
		return;
	case LEASE_DECLARE_LOST:
		q.op = COORDINATOR_DECLARE_LOST;
		break;
	case LEASE_RESTART:
		if (g->hooks.restart)
			g->hooks.restart(g->hooks.user, (unsigned)a->node, a->epoch);
		return;
	case LEASE_FORGET:
		q.op = COORDINATOR_FORGET_NODE;
		break;
	case LEASE_REPLACED:
		leases_replaced(g);
		return;
	}
	leases_ask(g, &q);
}

/* hello: the answer that has made the lease give LEASE_GREET. */
static void leases_act(struct gateway_leases *g, const struct coordinator_answer *hello)
{
	struct lease_action a;

	if (g->is_acting || g->is_stopped)
		return; /* a hook: the caller's loop continues */
	g->is_acting = 1;
	while ((a = gateway_lease_next(g->lease)).kind != LEASE_NOTHING)
		leases_do(g, &a, hello);
	g->is_acting = 0;
	timer_set(&g->clock, (uint32_t)gateway_lease_wake_ms(g->lease, loop_now_ms()));
}

/* The process that has this number may end: this one registers again. */
static void leases_begin_again(struct gateway_leases *g)
{
	gateway_lease_free(g->lease);
	g->lease = gateway_lease_new((int)g->conf.number, g->conf.forget_ms);
	g->generation++;
	g->is_replaced = 0;
	tunnels_close_all(g->tunnels, "this gateway registers again");
}

static void leases_tick(struct timer *t)
{
	struct gateway_leases *g = loop_owner(t, struct gateway_leases, clock);

	if (g->is_replaced && loop_now_ms() - g->replaced_ms >= LEASES_CONFLICT_MS)
		leases_begin_again(g);
	gateway_lease_tick(g->lease, loop_now_ms());
	leases_act(g, NULL);
}

/* ---- tunnels ---- */

static int leases_permits(void *user, uint32_t number)
{
	struct gateway_leases *g = user;
	const struct node_status *s = gateway_leases_find(g, number);

	return !g->has_list || (s && s->is_listed) || leases_is_gateway(g, number);
}

static void leases_tunnel_up(void *user, struct tunnel_node *n, uint64_t epoch)
{
	struct gateway_leases *g = user;

	if (g->is_stopped)
		return;
	leases_add(g, n->number)->known_epoch = (int64_t)epoch;
	leases_judge_again(g, n->number);
	gateway_lease_connected(g->lease, loop_now_ms(), (int)n->number);
	leases_act(g, NULL);
}

static void leases_tunnel_down(void *user, struct tunnel_node *n, const char *why)
{
	struct gateway_leases *g = user;

	(void)why;
	if (g->is_stopped)
		return;
	leases_judge_again(g, n->number);
	gateway_lease_disconnected(g->lease, loop_now_ms(), (int)n->number);
	leases_act(g, NULL);
}

static int leases_may_acknowledge(void *user, struct tunnel_node *n)
{
	struct gateway_leases *g = user;

	return !g->is_stopped &&
	       gateway_lease_may_acknowledge(g->lease, loop_now_ms(), (int)n->number);
}

/* ---- life ---- */

struct gateway_leases *gateway_leases_new(struct loop *l, struct coordinator *c, struct tunnels *t,
					  const struct gateway_leases_conf *conf)
{
	struct gateway_leases *g = calloc(1, sizeof(*g));
	struct tunnel_hooks hooks = { .user = g,
				      .up = leases_tunnel_up,
				      .may_acknowledge = leases_may_acknowledge,
				      .down = leases_tunnel_down,
				      .permitted = leases_permits };

	if (!g)
		abort();
	g->coordinator = c;
	g->tunnels = t;
	g->conf = *conf;
	g->lease = gateway_lease_new((int)conf->number, conf->forget_ms);
	timer_init(&g->clock, l, leases_tick);
	timer_set(&g->clock, 0);
	tunnels_set_hooks(t, &hooks);
	return g;
}

void gateway_leases_set_hooks(struct gateway_leases *g, const struct gateway_lease_hooks *hooks)
{
	g->hooks = *hooks;
}

void gateway_leases_stop(struct gateway_leases *g)
{
	if (!g)
		return;
	g->is_stopped = 1;
	timer_fini(&g->clock);
}

void gateway_leases_free(struct gateway_leases *g)
{
	if (!g)
		return;
	gateway_leases_stop(g);
	while (g->asks)
		leases_forget_ask(g->asks);
	gateway_lease_free(g->lease);
	free(g->nodes);
	free(g);
}
