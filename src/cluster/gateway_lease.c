/* gateway_lease.c - the lease of a gateway, and its opinion of other gateways and of nodes: see lease.h. */
#include "cluster/lease_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEASE_SERIAL_BITS = 24,
	LEASE_PENDING_MS = 5000, /* a declaration without answer is repeated */
	LEASE_OTHERS_MS = 3000,  /* actions for a lost node are repeated */
	LEASE_REFUSALS = 8,      /* in LEASE_REFUSED_MS: two processes have one number */
	LEASE_REFUSED_MS = 60000,
};

enum tunnel_phase {
	PHASE_DOWN,     /* as far as this process knows, the engine has no tunnel */
	PHASE_RAISING,  /* LEASE_TUNNEL_UP is under way */
	PHASE_UP,       /* greeted: heartbeats are acknowledged */
	PHASE_DRAINING, /* heartbeats are not acknowledged; the engine has it as up, perhaps */
	PHASE_LOWERING, /* LEASE_TUNNEL_DOWN is under way */
};

struct lease_node {
	int number; /* ascending */
	int connected;
	enum tunnel_phase phase;
	int64_t serial; /* of the last request about the tunnel */
	int64_t epoch;  /* PHASE_UP */
	uint64_t raised_ms, last_ack_ms;
	uint64_t again_ms; /* DRAINING: not stored as down before; connected: not raised before */
	/* in the last view */
	int known, lost;
	int64_t view_epoch, forgotten;
	int64_t declaring; /* epoch of a declaration without answer; 0 */
	uint64_t declared_ms;
	int first;                      /* this gateway has declared the node lost */
	uint64_t restart_ms, forget_ms; /* when these actions are given next */
};

struct lease_peer {
	int number;
	int64_t renewals;
	uint64_t changed_ms;
	int seen; /* in this view */
};

struct gateway_lease {
	int number;
	uint64_t forget_ms;
	int64_t incarnation; /* 0: not registered */
	int asking;          /* REGISTER or RENEW is under way */
	int replaced;
	unsigned refusals;
	uint64_t refused_ms;        /* the first of them */
	uint64_t asked_ms, next_ms; /* t0 of rule 1; when to ask next */
	uint64_t until_ms;          /* end of the lease; 0: none */
	uint64_t view_ms;           /* when the last view came; 0: none */
	int64_t serials;
	struct lease_node *nodes;
	unsigned nnodes;
	struct lease_peer *peers;
	unsigned npeers;
	struct lease_action *actions; /* from action_at on: to do */
	unsigned nactions, action_at;
	struct view_gateway *dead;       /* of the last action that needs it */
	const struct view_tunnel **rows; /* of the view that is read, by node */
	unsigned nrows;
};

/* ---- lists ---- */

struct gateway_lease *gateway_lease_new(int number, uint64_t forget_ms)
{
	struct gateway_lease *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->number = number;
	g->forget_ms = forget_ms;
	return g;
}

void gateway_lease_free(struct gateway_lease *g)
{
	if (!g)
		return;
	free(g->nodes);
	free(g->peers);
	free(g->actions);
	free(g->dead);
	free(g->rows);
	free(g);
}

static void *lease_grow(void *v, unsigned n, size_t size)
{
	v = reallocarray(v, n, size);
	if (!v)
		abort();
	return v;
}

static struct lease_action *lease_act(struct gateway_lease *g, enum lease_action_kind kind,
				      int node)
{
	if (g->action_at == g->nactions)
		g->action_at = g->nactions = 0;
	g->actions = lease_grow(g->actions, g->nactions + 1, sizeof(*g->actions));
	g->actions[g->nactions] = (struct lease_action){ .kind = kind, .node = node };
	return &g->actions[g->nactions++];
}

static struct lease_node *lease_find_node(const struct gateway_lease *g, int number)
{
	unsigned low = 0, high = g->nnodes;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (g->nodes[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < g->nnodes && g->nodes[low].number == number ? &g->nodes[low] : NULL;
}

static struct lease_node *lease_node_of(struct gateway_lease *g, int number)
{
	struct lease_node *n = lease_find_node(g, number);
	unsigned at = g->nnodes;

	if (n)
		return n;
	g->nodes = lease_grow(g->nodes, g->nnodes + 1, sizeof(*g->nodes));
	for (; at > 0 && g->nodes[at - 1].number > number; at--)
		g->nodes[at] = g->nodes[at - 1];
	g->nodes[at] = (struct lease_node){ .number = number };
	g->nnodes++;
	return &g->nodes[at];
}

static struct lease_peer *lease_peer_of(struct gateway_lease *g, int number)
{
	for (unsigned i = 0; i < g->npeers; i++)
		if (g->peers[i].number == number)
			return &g->peers[i];
	g->peers = lease_grow(g->peers, g->npeers + 1, sizeof(*g->peers));
	g->peers[g->npeers] = (struct lease_peer){ .number = number };
	return &g->peers[g->npeers++];
}

/* ---- tunnels: rules 3, 4 and 5 ---- */

static int64_t lease_next_serial(struct gateway_lease *g)
{
	return (g->incarnation << LEASE_SERIAL_BITS) + ++g->serials;
}

/* From now on heartbeats of the node are not acknowledged. Rule 4 counts from the last one that was. */
static void lease_drain(struct lease_node *n, uint64_t now)
{
	n->phase = PHASE_DRAINING;
	n->again_ms = n->last_ack_ms + LEASE_NODE_MS + LEASE_MARGIN_MS;
	if (!LEASE_HAS(LEASE_RULE_4))
		n->again_ms = now;
}

static void lease_close(struct gateway_lease *g, struct lease_node *n, uint64_t now,
			const char *why)
{
	lease_act(g, LEASE_CLOSE, n->number)->why = why;
	n->connected = 0;
	lease_drain(n, now);
}

static void lease_raise(struct gateway_lease *g, struct lease_node *n)
{
	struct lease_action *a = lease_act(g, LEASE_TUNNEL_UP, n->number);

	n->phase = PHASE_RAISING;
	a->serial = n->serial = lease_next_serial(g);
}

static void lease_lower(struct gateway_lease *g, struct lease_node *n)
{
	struct lease_action *a = lease_act(g, LEASE_TUNNEL_DOWN, n->number);

	n->phase = PHASE_LOWERING;
	a->serial = n->serial = lease_next_serial(g);
}

/* The view that shows what was just stored, without the rest of the period: a loss needs three of them, one after the
 * other. A renewal that comes early extends the lease by the same rule. */
static void lease_renew_at(struct gateway_lease *g, uint64_t at)
{
	if (at < g->next_ms)
		g->next_ms = at;
}

int gateway_lease_valid(const struct gateway_lease *g, uint64_t now)
{
	return g->until_ms && now <= g->until_ms && !g->replaced;
}

/* Rule 5, before the lease is renewed: if it had lapsed, what was promised with it may have been given to others. Until
 * then connections stay open, without acknowledgements: an engine that does not answer cuts nothing. */
static void lease_lapse(struct gateway_lease *g, uint64_t now)
{
	if (!g->until_ms || now <= g->until_ms)
		return;
	if (!LEASE_HAS(LEASE_RULE_5))
		return;
	for (unsigned i = 0; i < g->nnodes; i++)
		if (g->nodes[i].phase == PHASE_UP || g->nodes[i].phase == PHASE_RAISING)
			lease_close(g, &g->nodes[i], now, "the lease of this gateway had lapsed");
}

static void lease_advance(struct gateway_lease *g, struct lease_node *n, uint64_t now)
{
	switch (n->phase) {
	case PHASE_DOWN:
		if (n->connected && gateway_lease_valid(g, now) && now >= n->again_ms)
			lease_raise(g, n);
		break;
	case PHASE_DRAINING:
		if (n->connected && gateway_lease_valid(g, now))
			lease_raise(g, n);
		else if (!n->connected && g->incarnation && now >= n->again_ms)
			lease_lower(g, n);
		break;
	default:
		break;
	}
}

void gateway_lease_connected(struct gateway_lease *g, uint64_t now, int node)
{
	struct lease_node *n = lease_node_of(g, node);

	n->connected = 1;
	/* A new connection needs a new hello. An answer that is under way is for the old one: its serial is
	 * no longer the last one. */
	if (n->phase != PHASE_DOWN)
		lease_drain(n, now);
	else
		n->again_ms = 0;
	lease_advance(g, n, now);
}

void gateway_lease_disconnected(struct gateway_lease *g, uint64_t now, int node)
{
	struct lease_node *n = lease_find_node(g, node);

	if (!n || !n->connected)
		return;
	n->connected = 0;
	if (n->phase == PHASE_UP || n->phase == PHASE_RAISING)
		lease_drain(n, now);
	lease_advance(g, n, now);
}

int gateway_lease_tunnel_set(struct gateway_lease *g, uint64_t now, int node, int64_t serial,
			     enum lease_answer a, int64_t epoch)
{
	struct lease_node *n = lease_find_node(g, node);

	if (!n || n->serial != serial)
		return 0;
	if (n->phase == PHASE_LOWERING) {
		n->phase = a == LEASE_UNKNOWN ? PHASE_DRAINING : PHASE_DOWN;
		n->again_ms = now + LEASE_RENEW_MS;
		if (a == LEASE_DONE)
			lease_renew_at(g, now);
		return 0;
	}
	if (n->phase != PHASE_RAISING)
		return 0;
	if (a != LEASE_DONE || !gateway_lease_valid(g, now)) {
		lease_close(g, n, now,
			    a == LEASE_NOT_FOUND ? "the node was removed from the cluster"
			    : a == LEASE_DONE    ? "the lease of this gateway had lapsed"
						 : "the coordinator does not answer");
		if (a == LEASE_NOT_FOUND)
			n->phase = PHASE_DOWN;
		return 0;
	}
	n->phase = PHASE_UP;
	n->epoch = epoch;
	n->raised_ms = now;
	lease_act(g, LEASE_GREET, node)->epoch = epoch;
	return 1;
}

int gateway_lease_may_acknowledge(struct gateway_lease *g, uint64_t now, int node)
{
	struct lease_node *n = lease_find_node(g, node);

	if (!n || n->phase != PHASE_UP || g->replaced)
		return 0;
	if (LEASE_HAS(LEASE_RULE_2) && (!g->until_ms || now + LEASE_NODE_MS > g->until_ms))
		return 0;
	n->last_ack_ms = now;
	return 1;
}

/* ---- what a view says ---- */

static int lease_peer_is_dead(const struct gateway_lease *g, int number, uint64_t now)
{
	for (unsigned i = 0; i < g->npeers; i++)
		if (g->peers[i].number == number)
			return now > g->peers[i].changed_ms + LEASE_GATEWAY_MS + LEASE_MARGIN_MS;
	return 0;
}

/* Rule 6. */
static void lease_see_peers(struct gateway_lease *g, uint64_t now, const struct view *v)
{
	int gap = !g->view_ms || now - g->view_ms > 3 * LEASE_RENEW_MS;

	for (unsigned i = 0; i < v->ngateways; i++) {
		struct lease_peer *p = lease_peer_of(g, v->gateways[i].number);

		if (gap || p->renewals != v->gateways[i].renewals || !p->changed_ms)
			p->changed_ms = now;
		p->renewals = v->gateways[i].renewals;
	}
	g->view_ms = now;
}

static int lease_compare_rows(const void *a, const void *b)
{
	const struct view_tunnel *x = *(const struct view_tunnel *const *)a,
				 *y = *(const struct view_tunnel *const *)b;

	return (x->node > y->node) - (x->node < y->node);
}

/* A thousand nodes are looked for in as many tunnels, twice a second. */
static void lease_sort_rows(struct gateway_lease *g, const struct view *v)
{
	g->rows = lease_grow(g->rows, v->ntunnels + 1, sizeof(const struct view_tunnel *));
	for (g->nrows = 0; g->nrows < v->ntunnels; g->nrows++)
		g->rows[g->nrows] = &v->tunnels[g->nrows];
	qsort(g->rows, g->nrows, sizeof(const struct view_tunnel *), lease_compare_rows);
}

/* The position of the first tunnel of a node; those of the same node follow. */
static unsigned lease_first_row(const struct gateway_lease *g, int node)
{
	unsigned low = 0, high = g->nrows;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (g->rows[middle]->node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct view_tunnel *lease_row(const struct gateway_lease *g, int node, int gateway)
{
	for (unsigned i = lease_first_row(g, node); i < g->nrows && g->rows[i]->node == node; i++)
		if (g->rows[i]->gateway == gateway)
			return g->rows[i];
	return NULL;
}

/* Rule 5, second half: only tunnels that were stored before this view was asked for. */
static void lease_check_tunnels(struct gateway_lease *g, uint64_t now, const struct view *v)
{
	for (unsigned i = 0; i < g->nnodes; i++) {
		struct lease_node *n = &g->nodes[i];
		const struct view_tunnel *row;

		if (n->phase != PHASE_UP || n->raised_ms >= g->asked_ms || !LEASE_HAS(LEASE_RULE_5))
			continue;
		row = lease_row(g, n->number, g->number);
		if (!row || row->serial != n->serial)
			lease_close(g, n, now, "the coordinator does not have this tunnel");
		else if (!n->known || n->view_epoch != n->epoch)
			lease_close(g, n, now, "the node was declared lost");
	}
	/* Tunnels that an earlier process of this gateway has left. */
	for (unsigned i = 0; i < v->ntunnels; i++) {
		struct lease_node *n;

		if (v->tunnels[i].gateway != g->number)
			continue;
		n = lease_node_of(g, v->tunnels[i].node);
		if (n->phase == PHASE_DOWN && v->tunnels[i].serial != n->serial) {
			/* That process may still have a lease, and acknowledge with it. */
			n->phase = PHASE_DRAINING;
			n->again_ms = now + LEASE_GATEWAY_MS + LEASE_MARGIN_MS;
		}
	}
}

static void lease_see_nodes(struct gateway_lease *g, uint64_t now, const struct view *v)
{
	for (unsigned i = 0; i < g->nnodes; i++)
		g->nodes[i].known = 0;
	for (unsigned i = 0; i < v->nnodes; i++) {
		const struct view_node *seen = &v->nodes[i];
		struct lease_node *n = lease_node_of(g, seen->number);

		if (seen->lost && (!n->lost || n->view_epoch != seen->epoch)) {
			n->restart_ms = now + LEASE_GRACE_MS + (n->first ? 0 : LEASE_OTHERS_MS);
			n->forget_ms = now + g->forget_ms;
		}
		if (!seen->lost)
			n->first = 0;
		n->known = 1;
		n->lost = seen->lost;
		n->view_epoch = seen->epoch;
		n->forgotten = seen->forgotten;
	}
}

/* Rule 7: no tunnel at a gateway that is not dead. Dead ones are listed with the counters that were seen. */
static void lease_judge_node(struct gateway_lease *g, struct lease_node *n, uint64_t now)
{
	if (!n->known || n->lost)
		return;
	if (n->declaring == n->view_epoch && now - n->declared_ms < LEASE_PENDING_MS)
		return;
	for (unsigned i = lease_first_row(g, n->number);
	     i < g->nrows && g->rows[i]->node == n->number; i++)
		if (g->rows[i]->gateway == g->number ||
		    !lease_peer_is_dead(g, g->rows[i]->gateway, now))
			return;
	n->declaring = n->view_epoch;
	n->declared_ms = now;
	lease_act(g, LEASE_DECLARE_LOST, n->number)->epoch = n->view_epoch;
}

void gateway_lease_declared(struct gateway_lease *g, uint64_t now, int node, int done)
{
	struct lease_node *n = lease_find_node(g, node);

	if (!n)
		return;
	n->declaring = 0;
	n->first |= done;
	if (done)
		lease_renew_at(g, now);
}

/* A lost node, until it was forgotten. The gateway that declared it acts first; the others repeat it, in case that one
 * has failed. */
static void lease_follow_up(struct gateway_lease *g, struct lease_node *n, uint64_t now)
{
	if (!n->known || !n->lost || n->forgotten >= n->view_epoch - 1)
		return;
	if (now >= n->restart_ms) {
		n->restart_ms = now + LEASE_OTHERS_MS;
		lease_act(g, LEASE_RESTART, n->number)->epoch = n->view_epoch;
	}
	lease_renew_at(g, n->restart_ms); /* when the grace ends, with a view of that moment */
	if (now >= n->forget_ms) {
		n->forget_ms = now + LEASE_OTHERS_MS;
		lease_act(g, LEASE_FORGET, n->number)->epoch = n->view_epoch;
	}
}

/* ---- renewals: rule 1 ---- */

void gateway_lease_registered(struct gateway_lease *g, uint64_t now, enum lease_answer a,
			      int64_t incarnation)
{
	g->asking = 0;
	if (a == LEASE_DONE) {
		g->incarnation = incarnation;
		g->next_ms = now;
	} else if (a == LEASE_NOT_FOUND) {
		g->replaced = 1;
		lease_act(g, LEASE_REPLACED, 0);
	}
	gateway_lease_tick(g, now);
}

/* Another registration came later: that of another process, or a delayed one of this or an earlier process. So it
 * registers again; a second live process would do the same, and both stop. */
static void lease_refused(struct gateway_lease *g, uint64_t now, enum lease_answer a)
{
	for (unsigned i = 0; i < g->nnodes; i++)
		if (g->nodes[i].connected)
			lease_close(g, &g->nodes[i], now, "another process serves as this gateway");
	g->until_ms = 0;
	g->incarnation = 0;
	if (now - g->refused_ms > LEASE_REFUSED_MS)
		g->refusals = 0;
	if (!g->refusals++)
		g->refused_ms = now;
	if (g->refusals <= LEASE_REFUSALS && a == LEASE_REFUSED)
		return;
	g->replaced = 1;
	lease_act(g, LEASE_REPLACED, 0);
}

void gateway_lease_renewed(struct gateway_lease *g, uint64_t now, enum lease_answer a,
			   const struct view *v)
{
	g->asking = 0;
	if (a == LEASE_DONE)
		lease_lapse(g, now);
	if (a == LEASE_REFUSED || a == LEASE_NOT_FOUND) {
		lease_refused(g, now, a);
	} else if (a == LEASE_DONE) {
		g->until_ms = g->asked_ms + LEASE_GATEWAY_MS;
		lease_sort_rows(g, v);
		lease_see_peers(g, now, v);
		lease_see_nodes(g, now, v);
		lease_check_tunnels(g, now, v);
		for (unsigned i = 0; i < g->nnodes && gateway_lease_valid(g, now); i++) {
			lease_judge_node(g, &g->nodes[i], now);
			lease_follow_up(g, &g->nodes[i], now);
		}
		g->nrows = 0; /* the view is the caller's */
	}
	gateway_lease_tick(g, now);
}

void gateway_lease_tick(struct gateway_lease *g, uint64_t now)
{
	if (g->replaced)
		return;
	if (!g->asking && now >= g->next_ms) {
		struct lease_action *a =
			lease_act(g, g->incarnation ? LEASE_RENEW : LEASE_REGISTER, 0);

		a->incarnation = g->incarnation;
		g->asking = 1;
		g->asked_ms = now;
		g->next_ms = now + LEASE_RENEW_MS;
	}
	for (unsigned i = 0; i < g->nnodes; i++)
		lease_advance(g, &g->nodes[i], now);
}

uint64_t gateway_lease_wake_ms(const struct gateway_lease *g, uint64_t now)
{
	uint64_t at = now + LEASE_HEARTBEAT_MS;

	if (!g->asking && g->next_ms < at)
		at = g->next_ms;
	/* A connected one waits for a lease, which no time brings. */
	for (unsigned i = 0; i < g->nnodes; i++)
		if (g->nodes[i].phase == PHASE_DRAINING && !g->nodes[i].connected &&
		    g->incarnation && g->nodes[i].again_ms < at)
			at = g->nodes[i].again_ms;
	return at > now ? at - now : 0;
}

struct lease_action gateway_lease_next(struct gateway_lease *g)
{
	struct lease_action a;

	if (g->action_at == g->nactions)
		return (struct lease_action){ 0 };
	a = g->actions[g->action_at++];
	if (a.kind == LEASE_DECLARE_LOST) {
		g->dead = lease_grow(g->dead, g->npeers + 1, sizeof(*g->dead));
		for (unsigned i = 0; i < g->npeers; i++)
			if (g->peers[i].number != g->number &&
			    lease_peer_is_dead(g, g->peers[i].number, g->view_ms))
				g->dead[a.ndead++] =
					(struct view_gateway){ .number = g->peers[i].number,
							       .renewals = g->peers[i].renewals };
		a.dead = g->dead;
	}
	return a;
}
