/* lease_sim.h - three machines (a gateway and a node each), one engine and their faults in virtual time: the
 * rules of cluster/lease.h run in it unchanged. Every random choice comes from the seed. */
#pragma once
#include <stdint.h>
#include <stdlib.h>

struct sim_result {
	unsigned faults, lost, moved,
		claimed; /* injected; nodes declared lost; boxes restarted elsewhere; names */
	unsigned double_boxes, double_names; /* active on two nodes at once */
	unsigned orphan_boxes, orphan_names; /* without an owner 30 s after the last fault */
	uint64_t first_ms;                   /* virtual time of the first violation */
	uint64_t events;
};

/* The rules, compiled so that single ones can be left out. */
#define LEASE_MUTANTS 1
#include "../../src/cluster/gateway_lease.c"
#include "../../src/cluster/node_lease.c"
unsigned lease_without;

enum { N = 3, BOXES = 30, NAMES = 25, FORGET = 6000, ANSWER_MS = 2000, SILENCE_MS = 2500 };
#define GATEWAY(i) (100 + (i))

/* ---- the engine: every operation is atomic ---- */

static struct {
	struct {
		int64_t epoch, forgotten;
		int lost;
	} nodes[N];
	struct {
		int64_t renewals, incarnation;
	} gateways[N];
	struct {
		int up;
		int64_t serial;
	} tunnels[N][N]; /* node, gateway */
	struct {
		int node; /* -1: free */
		int64_t epoch;
	} names[NAMES];
	struct {
		int node;
		int64_t epoch; /* since */
	} boxes[BOXES];
	int64_t superseded[N][BOXES];
	uint64_t down_until, slow_until;
} engine;

/* ---- machines ---- */

static struct machine {
	double rate;
	uint64_t offset;
	uint64_t out_until, in_until,
		slow_until;                 /* its link to the others and the engine is cut, slow */
	uint64_t engine_until, peers_until; /* its link to the engine, to the other machines */
	struct {
		struct gateway_lease *lease; /* NULL: no process */
		unsigned life;
		uint64_t stall_until, again;
		unsigned conn[N]; /* 0: none */
		int64_t epoch[N]; /* greeted with; 0: not */
		uint64_t last_seen[N];
	} g;
	struct {
		int alive;
		unsigned life;
		uint64_t stall_until, next_heartbeat;
		struct node_lease lease;
		unsigned conn[N];
		uint64_t last_seen[N], retry[N];
		uint64_t seq;
		int64_t stored_epoch;
	} n;
	/* survives the daemon */
	int runs[BOXES], holds[NAMES];
	int64_t since[BOXES];
	uint64_t box_until[BOXES], name_until[NAMES];
} machines[N];

static uint64_t now, overload_until, conn_ids;
static struct sim_result result;

/* ---- chance ---- */

static uint64_t sim_state;
static uint64_t sim_random(uint64_t below)
{
	sim_state ^= sim_state << 13;
	sim_state ^= sim_state >> 7;
	sim_state ^= sim_state << 17;
	return (sim_state >> 11) % below;
}

static uint64_t sim_local(const struct machine *m)
{
	return m->offset + (uint64_t)((double)now * m->rate);
}

/* ---- events ---- */

enum event_kind {
	EV_TICK, /* of both processes of a machine */
	EV_TO_GATEWAY,
	EV_TO_NODE,
	EV_COMMIT,
	EV_ANSWER,
	EV_START, /* of a process */
	EV_FAULT,
};
enum message { M_CONNECT, M_HEARTBEAT, M_GREET, M_ACK, M_START, M_NAME, M_CLOSED };

struct request { /* to the engine */
	enum { R_REGISTER, R_RENEW, R_TUNNEL, R_LOST, R_FORGET, R_MOVE, R_CLAIM } op;
	int node, from, up, what;
	int64_t epoch, from_epoch, serial, incarnation;
	struct view_gateway dead[N];
	unsigned ndead;
};

struct answer_of {
	enum lease_answer a;
	int done;
	int64_t epoch;
	/* of a renewal */
	struct view_gateway gateways[N];
	struct view_tunnel tunnels[N * N];
	struct view_node nodes[N];
	unsigned ntunnels;
	/* of a hello */
	int64_t superseded[BOXES];
	int names[NAMES];
};

struct event {
	uint64_t at, order;
	enum event_kind kind;
	int machine, peer; /* peer: the other machine of a message */
	unsigned life, conn;
	enum message message;
	uint64_t seq;
	int64_t epoch;
	int what;
	struct request *request;
	struct answer_of *answer;
	struct {
		int done, users;
	} * once; /* shared by the answer and its time limit */
};

static struct event heap[1 << 14];
static unsigned nheap;
static uint64_t orders;

static int sim_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void sim_push(struct event e)
{
	unsigned i = nheap++;

	if (nheap >= sizeof(heap) / sizeof(heap[0]))
		abort();
	for (; i && sim_before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static void sim_at(uint64_t at, struct event e)
{
	e.at = at;
	e.order = ++orders;
	sim_push(e);
}

static struct event sim_pop(void)
{
	struct event top = heap[0], last = heap[--nheap];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= nheap)
			break;
		if (child + 1 < nheap && sim_before(&heap[child + 1], &heap[child]))
			child++;
		if (!sim_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return top;
}

/* ---- links: ordered, delayed while cut ---- */

static uint64_t sim_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t sim_delay(const struct machine *a, const struct machine *b)
{
	uint64_t d = sim_random(4);

	if (now < a->slow_until || now < b->slow_until)
		d += sim_random(400);
	return d;
}

/* When a message from a to b that would arrive now can; 0: now. */
static uint64_t sim_cut(const struct machine *a, const struct machine *b)
{
	uint64_t until = sim_max(sim_max(a->out_until, b->in_until),
				 sim_max(a->peers_until, b->peers_until));
	if (a == b)
		return 0;
	return until > now ? until : 0;
}

static uint64_t pipes[2][N][N]; /* the last arrival */

static void sim_send(enum event_kind to, int from, int at, struct event e)
{
	uint64_t *last = &pipes[to == EV_TO_NODE][from][at];

	*last = sim_max(*last, now + sim_delay(&machines[from], &machines[at]));
	e.kind = to;
	e.machine = at;
	e.peer = from;
	sim_at(*last, e);
}

/* ---- violations ---- */

static void sim_violation(unsigned *count)
{
	if (!result.first_ms)
		result.first_ms = now;
	(*count)++;
}

static void sim_use_box(struct machine *m, int b, uint64_t until)
{
	for (struct machine *o = machines; o < machines + N; o++)
		if (o != m && o->runs[b] && o->box_until[b] > now)
			sim_violation(&result.double_boxes);
	m->box_until[b] = until;
}

static void sim_use_name(struct machine *m, int k, uint64_t until)
{
	for (struct machine *o = machines; o < machines + N; o++)
		if (o != m && o->holds[k] && o->name_until[k] > now)
			sim_violation(&result.double_names);
	m->name_until[k] = until;
}

/* LEASE to the inits. Init shares the CPU limit of its box and acts late, but not later than the grace. */
static void sim_fence(struct machine *m)
{
	uint64_t left = node_lease_left_ms(&m->n.lease, sim_local(m));
	uint64_t until = now + (uint64_t)((double)left / m->rate);

	if (!left)
		return;
	for (int b = 0; b < BOXES; b++)
		if (m->runs[b])
			sim_use_box(m, b,
				    until + sim_random(now < overload_until || !sim_random(8)
							       ? 1800
							       : 100));
	for (int k = 0; k < NAMES; k++)
		if (m->holds[k])
			sim_use_name(m, k, until);
}

/* ---- the engine's operations ---- */

static int sim_held(int k)
{
	int n = engine.names[k].node;

	return n >= 0 && engine.names[k].epoch > engine.nodes[n].forgotten;
}

static int sim_is_dead(const struct request *q, int g)
{
	for (unsigned i = 0; i < q->ndead; i++)
		if (q->dead[i].number == GATEWAY(g))
			return q->dead[i].renewals == engine.gateways[g].renewals;
	return 0;
}

static void sim_view(struct answer_of *a)
{
	for (int i = 0; i < N; i++) {
		a->gateways[i] = (struct view_gateway){ GATEWAY(i), engine.gateways[i].renewals,
							engine.gateways[i].incarnation };
		a->nodes[i] =
			(struct view_node){ i + 1, engine.nodes[i].epoch, engine.nodes[i].forgotten,
					    engine.nodes[i].lost, "" };
		for (int g = 0; g < N; g++)
			if (engine.tunnels[i][g].up)
				a->tunnels[a->ntunnels++] =
					(struct view_tunnel){ i + 1, GATEWAY(g),
							      engine.tunnels[i][g].serial };
	}
}

static void sim_execute(int g, const struct request *q, struct answer_of *a)
{
	int n = q->node;

	a->a = LEASE_DONE;
	switch (q->op) {
	case R_REGISTER:
		engine.gateways[g].renewals++;
		a->epoch = ++engine.gateways[g].incarnation;
		break;
	case R_RENEW:
		if (q->incarnation != engine.gateways[g].incarnation) {
			a->a = LEASE_REFUSED;
			break;
		}
		engine.gateways[g].renewals++;
		sim_view(a);
		break;
	case R_TUNNEL:
		if (engine.tunnels[n][g].serial > q->serial) {
			a->a = LEASE_REFUSED;
			break;
		}
		engine.tunnels[n][g].up = q->up;
		engine.tunnels[n][g].serial = q->serial;
		if (q->up)
			engine.nodes[n].lost = 0;
		a->epoch = engine.nodes[n].epoch;
		for (int b = 0; b < BOXES; b++)
			a->superseded[b] = engine.superseded[n][b];
		for (int k = 0; k < NAMES; k++)
			a->names[k] = engine.names[k].node == n && sim_held(k);
		break;
	case R_LOST:
		if (engine.nodes[n].epoch != q->epoch || engine.nodes[n].lost)
			break;
		for (int i = 0; i < N; i++)
			if (engine.tunnels[n][i].up && !sim_is_dead(q, i))
				return;
		engine.nodes[n].epoch++;
		engine.nodes[n].lost = a->done = 1;
		result.lost++;
		break;
	case R_FORGET:
		if (engine.nodes[n].epoch == q->epoch && engine.nodes[n].lost)
			engine.nodes[n].forgotten = q->epoch - 1;
		break;
	case R_MOVE:
		if (engine.boxes[q->what].node == n && engine.boxes[q->what].epoch == q->epoch) {
			a->done = 1;
			break;
		}
		if (engine.boxes[q->what].node != q->from || !engine.nodes[q->from].lost ||
		    engine.nodes[q->from].epoch != q->from_epoch || engine.nodes[n].lost ||
		    engine.nodes[n].epoch != q->epoch)
			break;
		engine.boxes[q->what].node = n;
		engine.boxes[q->what].epoch = q->epoch;
		engine.superseded[q->from][q->what] = q->from_epoch;
		a->done = 1;
		result.moved++;
		break;
	case R_CLAIM:
		if (engine.nodes[n].lost || engine.nodes[n].epoch != q->epoch || sim_held(q->what))
			break;
		engine.names[q->what].node = n;
		engine.names[q->what].epoch = q->epoch;
		a->done = 1;
		result.claimed++;
		break;
	}
}

static uint64_t sim_engine_cut(const struct machine *m, int to_engine)
{
	uint64_t until = sim_max(engine.down_until, m->engine_until);

	until = sim_max(until, to_engine ? m->out_until : m->in_until);
	return until > now ? until : 0;
}

static void sim_ask(int g, struct request q)
{
	struct machine *m = &machines[g];
	struct event e = { .machine = g, .life = m->g.life };
	struct request *copy = malloc(sizeof(*copy));
	uint64_t delay = 1 + sim_random(now < engine.slow_until ? 1800 : 5);

	*copy = q;
	e.request = copy;
	e.once = calloc(1, sizeof(*e.once));
	e.once->users = 2;
	e.answer = calloc(1, sizeof(*e.answer));
	e.answer->a = LEASE_UNKNOWN;
	e.kind = EV_COMMIT;
	sim_at(now + delay, e);
	/* The time limit has its own copy of the answer: unknown. */
	e.answer = calloc(1, sizeof(*e.answer));
	e.answer->a = LEASE_UNKNOWN;
	e.kind = EV_ANSWER;
	e.request = malloc(sizeof(*copy));
	*e.request = q;
	sim_at(now + ANSWER_MS, e);
}

/* ---- a gateway ---- */

static void sim_gateway_close(int g, int n)
{
	struct machine *m = &machines[g];

	if (m->g.conn[n])
		sim_send(EV_TO_NODE, g, n,
			 (struct event){ .message = M_CLOSED, .conn = m->g.conn[n] });
	m->g.conn[n] = 0;
	m->g.epoch[n] = 0;
}

static struct answer_of *hello; /* of the answer that is being handled */

static void sim_restart_boxes(int g, int from, int64_t epoch)
{
	unsigned tries = 0;

	for (int b = 0; b < BOXES; b++) {
		int to = (int)sim_random(N);

		while (to == from || !machines[g].g.epoch[to])
			if (++tries > 8 * BOXES)
				return;
			else
				to = (to + 1) % N;
		if (engine.boxes[b].node == from)
			sim_ask(g, (struct request){ .op = R_MOVE,
						     .what = b,
						     .from = from,
						     .from_epoch = epoch,
						     .node = to,
						     .epoch = machines[g].g.epoch[to] });
	}
}

static void sim_act(int g)
{
	struct machine *m = &machines[g];
	struct lease_action a;

	while ((a = gateway_lease_next(m->g.lease)).kind != LEASE_NOTHING) {
		struct request q = { .node = a.node - 1, .epoch = a.epoch, .serial = a.serial };

		switch (a.kind) {
		case LEASE_REGISTER:
			q.op = R_REGISTER;
			sim_ask(g, q);
			break;
		case LEASE_RENEW:
			q.op = R_RENEW;
			q.incarnation = a.incarnation;
			sim_ask(g, q);
			break;
		case LEASE_TUNNEL_UP:
		case LEASE_TUNNEL_DOWN:
			q.op = R_TUNNEL;
			q.up = a.kind == LEASE_TUNNEL_UP;
			sim_ask(g, q);
			break;
		case LEASE_GREET: {
			struct event e = { .message = M_GREET,
					   .conn = m->g.conn[q.node],
					   .epoch = a.epoch };

			e.answer = calloc(1, sizeof(*e.answer));
			*e.answer = *hello;
			m->g.epoch[q.node] = a.epoch;
			sim_send(EV_TO_NODE, g, q.node, e);
			break;
		}
		case LEASE_CLOSE:
			sim_gateway_close(g, q.node);
			break;
		case LEASE_DECLARE_LOST:
			q.op = R_LOST;
			q.ndead = a.ndead;
			for (unsigned i = 0; i < a.ndead; i++)
				q.dead[i] = a.dead[i];
			sim_ask(g, q);
			break;
		case LEASE_RESTART:
			sim_restart_boxes(g, q.node, a.epoch);
			break;
		case LEASE_FORGET:
			q.op = R_FORGET;
			sim_ask(g, q);
			break;
		default:
			abort(); /* nothing replaces a gateway here */
		}
	}
}

static void sim_answered(int g, const struct request *q, struct answer_of *a)
{
	struct machine *m = &machines[g];
	struct gateway_lease *l = m->g.lease;
	uint64_t t = sim_local(m);
	struct view v = { a->gateways, a->tunnels, a->nodes, N, a->ntunnels, N };

	hello = a;
	switch (q->op) {
	case R_REGISTER:
		gateway_lease_registered(l, t, a->a, a->epoch);
		break;
	case R_RENEW:
		gateway_lease_renewed(l, t, a->a, a->a == LEASE_DONE ? &v : NULL);
		break;
	case R_TUNNEL:
		gateway_lease_tunnel_set(l, t, q->node + 1, q->serial, a->a, a->epoch);
		break;
	case R_LOST:
		gateway_lease_declared(l, t, q->node + 1, a->done);
		break;
	case R_MOVE:
	case R_CLAIM:
		if (a->done && m->g.conn[q->node])
			sim_send(EV_TO_NODE, g, q->node,
				 (struct event){ .message = q->op == R_MOVE ? M_START : M_NAME,
						 .conn = m->g.conn[q->node],
						 .epoch = q->epoch,
						 .what = q->what });
		break;
	default:
		break;
	}
	sim_act(g);
}

/* What a node should have and does not: the message was lost. Each row is read together with the epoch. */
static void sim_reconcile(int g)
{
	struct machine *m = &machines[g];

	for (int n = 0; n < N; n++) {
		struct event e = { .conn = m->g.conn[n], .epoch = m->g.epoch[n] };

		if (!e.epoch || engine.nodes[n].lost || engine.nodes[n].epoch != e.epoch)
			continue;
		for (e.what = 0; e.what < BOXES; e.what++)
			if (engine.boxes[e.what].node == n && !machines[n].runs[e.what]) {
				e.message = M_START;
				sim_send(EV_TO_NODE, g, n, e);
			}
		for (e.what = 0; e.what < NAMES; e.what++)
			if (engine.names[e.what].node == n && sim_held(e.what) &&
			    !machines[n].holds[e.what]) {
				e.message = M_NAME;
				sim_send(EV_TO_NODE, g, n, e);
			}
	}
}

static void sim_gateway_tick(int g)
{
	struct machine *m = &machines[g];
	int k = (int)sim_random(NAMES), n = (int)sim_random(N);

	gateway_lease_tick(m->g.lease, sim_local(m));
	sim_act(g);
	for (int i = 0; i < N; i++)
		if (m->g.conn[i] && now > m->g.last_seen[i] + SILENCE_MS) {
			sim_gateway_close(g, i);
			gateway_lease_disconnected(m->g.lease, sim_local(m), i + 1);
			sim_act(g);
		}
	if (now > m->g.again && !sim_engine_cut(m, 1)) {
		m->g.again = now + 1000;
		sim_reconcile(g);
	}
	if (!sim_held(k) && m->g.epoch[n])
		sim_ask(g, (struct request){
				   .op = R_CLAIM, .what = k, .node = n, .epoch = m->g.epoch[n] });
}

static void sim_to_gateway(const struct event *e)
{
	int g = e->machine, n = e->peer;
	struct machine *m = &machines[g];
	uint64_t t = sim_local(m);

	switch (e->message) {
	case M_CONNECT:
		if (m->g.conn[n])
			gateway_lease_disconnected(m->g.lease, t, n + 1);
		m->g.conn[n] = e->conn;
		m->g.epoch[n] = 0;
		m->g.last_seen[n] = now;
		gateway_lease_connected(m->g.lease, t, n + 1);
		break;
	case M_HEARTBEAT:
		if (m->g.conn[n] != e->conn)
			break;
		m->g.last_seen[n] = now;
		if (gateway_lease_may_acknowledge(m->g.lease, t, n + 1))
			sim_send(
				EV_TO_NODE, g, n,
				(struct event){ .message = M_ACK, .conn = e->conn, .seq = e->seq });
		break;
	default:
		if (m->g.conn[n] != e->conn)
			break;
		m->g.conn[n] = 0;
		m->g.epoch[n] = 0;
		gateway_lease_disconnected(m->g.lease, t, n + 1);
	}
	sim_act(g);
}

/* ---- a node ---- */

static void sim_node_close(int n, int g, int tell)
{
	struct machine *m = &machines[n];

	if (tell && m->n.conn[g])
		sim_send(EV_TO_GATEWAY, n, g,
			 (struct event){ .message = M_CLOSED, .conn = m->n.conn[g] });
	m->n.conn[g] = 0;
	m->n.retry[g] = now + 200 + sim_random(800);
	node_lease_closed(&m->n.lease, GATEWAY(g));
}

static void sim_node_tick(int n)
{
	struct machine *m = &machines[n];

	for (int g = 0; g < N; g++) {
		/* Missing acknowledgements do not end a connection; missing packets do. */
		if (!sim_cut(m, &machines[g]) && !sim_cut(&machines[g], m))
			m->n.last_seen[g] = now;
		if (m->n.conn[g] && now > m->n.last_seen[g] + SILENCE_MS)
			sim_node_close(n, g, 1);
		if (!m->n.conn[g] && now >= m->n.retry[g]) {
			m->n.conn[g] = (unsigned)++conn_ids;
			m->n.last_seen[g] = now;
			node_lease_opened(&m->n.lease, GATEWAY(g));
			sim_send(EV_TO_GATEWAY, n, g,
				 (struct event){ .message = M_CONNECT, .conn = m->n.conn[g] });
		}
	}
	if (now >= m->n.next_heartbeat) {
		m->n.next_heartbeat = now + LEASE_HEARTBEAT_MS;
		m->n.seq++;
		for (int g = 0; g < N; g++) {
			if (!m->n.conn[g])
				continue;
			node_lease_sent(&m->n.lease, GATEWAY(g), m->n.seq, sim_local(m));
			sim_send(EV_TO_GATEWAY, n, g,
				 (struct event){ .message = M_HEARTBEAT,
						 .conn = m->n.conn[g],
						 .seq = m->n.seq });
		}
	}
	sim_fence(m);
}

static void sim_greeted(struct machine *m, int g, const struct event *e)
{
	switch (node_lease_greeted(&m->n.lease, GATEWAY(g), e->epoch)) {
	case NODE_GREETING_STALE:
		sim_node_close((int)(m - machines), g, 1);
		return;
	case NODE_GREETING_SAME:
		return;
	case NODE_GREETING_RETURN:
		break;
	}
	m->n.stored_epoch = e->epoch;
	for (int b = 0; b < BOXES; b++)
		if (m->runs[b] && m->since[b] < e->answer->superseded[b]) {
			m->runs[b] = 0;
			m->box_until[b] = 0;
		}
	for (int k = 0; k < NAMES; k++) {
		m->holds[k] = e->answer->names[k];
		m->name_until[k] = 0;
	}
	node_lease_settled(&m->n.lease);
}

static void sim_to_node(const struct event *e)
{
	int n = e->machine, g = e->peer;
	struct machine *m = &machines[n];
	int mine;

	if (m->n.conn[g] != e->conn)
		return;
	m->n.last_seen[g] = now;
	mine = e->epoch == m->n.lease.epoch && node_lease_left_ms(&m->n.lease, sim_local(m)) > 0;
	switch (e->message) {
	case M_GREET:
		sim_greeted(m, g, e);
		break;
	case M_ACK:
		node_lease_acked(&m->n.lease, GATEWAY(g), e->seq);
		sim_fence(m);
		break;
	case M_START:
		if (mine && !m->runs[e->what]) {
			m->runs[e->what] = 1;
			m->since[e->what] = e->epoch;
			sim_fence(m);
		}
		break;
	case M_NAME:
		if (mine && !m->holds[e->what]) {
			m->holds[e->what] = 1;
			sim_fence(m);
		}
		break;
	default:
		sim_node_close(n, g, 0);
	}
}

/* ---- processes and faults ---- */

static void sim_kill_gateway(int g, uint64_t back)
{
	struct machine *m = &machines[g];

	if (!m->g.lease)
		return;
	for (int n = 0; n < N; n++)
		sim_gateway_close(g, n); /* the kernel closes its sockets */
	gateway_lease_free(m->g.lease);
	m->g.lease = NULL;
	m->g.life++;
	sim_at(now + back, (struct event){ .kind = EV_START, .machine = g, .what = 0 });
}

static void sim_kill_node(int n, uint64_t back)
{
	struct machine *m = &machines[n];

	if (!m->n.alive)
		return;
	for (int g = 0; g < N; g++)
		sim_node_close(n, g, 1);
	m->n.alive = 0;
	m->n.life++;
	sim_at(now + back, (struct event){ .kind = EV_START, .machine = n, .what = 1 });
}

static void sim_start(const struct event *e)
{
	struct machine *m = &machines[e->machine];

	if (e->what == 0) {
		m->g.lease = gateway_lease_new(GATEWAY(e->machine), FORGET);
		m->g.stall_until = 0;
	} else {
		m->n.alive = 1;
		m->n.stall_until = 0;
		node_lease_init(&m->n.lease, m->n.stored_epoch);
	}
}

/* The peers get no notice: their connections stay silent. */
static void sim_kill_machine(int i, uint64_t back)
{
	struct machine *m = &machines[i];

	m->out_until = m->in_until = sim_max(m->in_until, now + back);
	sim_kill_gateway(i, back);
	sim_kill_node(i, back);
	for (int b = 0; b < BOXES; b++) {
		m->runs[b] = 0;
		m->box_until[b] = 0;
	}
	for (int k = 0; k < NAMES; k++)
		m->name_until[k] = 0;
}

static void sim_fault(void)
{
	int i = (int)sim_random(N);
	struct machine *m = &machines[i];
	uint64_t long_ms = 300 + sim_random(sim_random(2) ? 4000 : 16000);

	switch (sim_random(16)) {
	case 0:
		m->out_until = m->in_until = now + long_ms;
		break;
	case 1:
		m->out_until = now + long_ms;
		break;
	case 2:
		m->in_until = now + long_ms;
		break;
	case 3:
		m->slow_until = now + long_ms;
		break;
	case 4:
		sim_kill_node(i, 100 + sim_random(6000));
		break;
	case 5:
		sim_kill_gateway(i, 100 + sim_random(6000));
		break;
	case 6:
		sim_kill_machine(i, long_ms);
		break;
	case 7:
		engine.down_until = now + sim_random(8000);
		break;
	case 8:
		m->engine_until = now + long_ms;
		break;
	case 9:
		m->g.stall_until = now + long_ms;
		break;
	case 10:
		m->n.stall_until = now + long_ms;
		break;
	case 11:
		m->peers_until = now + long_ms;
		break;
	case 12:
		overload_until = now + long_ms;
		break;
	case 13:
		engine.slow_until = now + long_ms;
		break;
	case 14: /* alone with its own node; the engine is reachable again before the others are */
		m->peers_until = now + 6000 + sim_random(14000);
		m->engine_until = now + 1000 + sim_random(9000);
		break;
	default:
		m->peers_until = now + 6000 + sim_random(14000);
		m->g.stall_until = now + 1000 + sim_random(9000);
	}
	result.faults++;
}

/* On a busy machine every process stops for moments. */
static uint64_t sim_stalled(const struct event *e)
{
	struct machine *m = &machines[e->machine];
	uint64_t until = 0;

	if (e->kind == EV_TO_GATEWAY || e->kind == EV_ANSWER)
		until = m->g.stall_until;
	else if (e->kind == EV_TO_NODE)
		until = m->n.stall_until;
	if (until <= now && now < overload_until && e->kind != EV_FAULT && e->kind != EV_START &&
	    !sim_random(20)) {
		until = now + sim_random(900);
		if (e->kind == EV_TO_NODE)
			m->n.stall_until = until;
		else if (e->kind != EV_COMMIT)
			m->g.stall_until = until;
	}
	return until > now ? until : 0;
}

static void sim_event_free(struct event *e)
{
	free(e->request);
	free(e->answer);
	if (e->once && !--e->once->users)
		free(e->once);
}

static void sim_commit(struct event *e)
{
	struct machine *m = &machines[e->machine];
	uint64_t cut = sim_engine_cut(m, 1);

	if (cut) { /* it arrives later, when the caller has given up; or never */
		if (sim_random(2)) {
			sim_at(cut + sim_random(300), *e);
		} else {
			sim_event_free(e);
		}
		return;
	}
	sim_execute(e->machine, e->request, e->answer);
	if (sim_engine_cut(m, 0)) {
		sim_event_free(e);
		return;
	}
	e->kind = EV_ANSWER;
	sim_at(now + 1 + sim_random(5), *e);
}

/* 1: the event is not over: its memory is used by another one. */
static int sim_handle(struct event *e)
{
	struct machine *m = &machines[e->machine];
	uint64_t later = sim_stalled(e);

	if (!later && e->kind == EV_TO_GATEWAY)
		later = sim_cut(&machines[e->peer], m);
	if (!later && e->kind == EV_TO_NODE)
		later = sim_cut(&machines[e->peer], m);
	if (later) {
		e->at = later;
		if (e->kind == EV_ANSWER)
			e->order =
				sim_random(2) ? e->order : 0; /* before or after waiting messages */
		sim_push(*e);
		return 1;
	}
	switch (e->kind) {
	case EV_TICK:
		if (m->g.lease && now >= m->g.stall_until)
			sim_gateway_tick(e->machine);
		if (m->n.alive && now >= m->n.stall_until)
			sim_node_tick(e->machine);
		e->at = now + 80 + sim_random(40);
		sim_push(*e);
		return 1;
	case EV_TO_GATEWAY:
		if (m->g.lease)
			sim_to_gateway(e);
		else if (e->message != M_CLOSED) /* connection refused */
			sim_send(EV_TO_NODE, e->machine, e->peer,
				 (struct event){ .message = M_CLOSED, .conn = e->conn });
		break;
	case EV_TO_NODE:
		if (m->n.alive)
			sim_to_node(e);
		break;
	case EV_COMMIT:
		sim_commit(e);
		return 1;
	case EV_ANSWER:
		if (m->g.lease && e->life == m->g.life && !e->once->done)
			sim_answered(e->machine, e->request, e->answer);
		e->once->done = 1;
		break;
	case EV_START:
		sim_start(e);
		break;
	case EV_FAULT:
		sim_fault();
	}
	return 0;
}

static void sim_count_orphans(void)
{
	for (int b = 0; b < BOXES; b++) {
		int active = 0;

		for (int i = 0; i < N; i++)
			active += machines[i].runs[b] && machines[i].box_until[b] > now;
		result.orphan_boxes += active != 1;
	}
	for (int k = 0; k < NAMES; k++) {
		int active = 0;

		for (int i = 0; i < N; i++)
			active += machines[i].holds[k] && machines[i].name_until[k] > now;
		result.orphan_names += active != 1;
	}
}

static void sim_begin(uint64_t seed)
{
	memset(&engine, 0, sizeof(engine));
	memset(machines, 0, sizeof(machines));
	memset(pipes, 0, sizeof(pipes));
	result = (struct sim_result){ 0 };
	sim_state = seed * 0x9e3779b97f4a7c15u + 1;
	nheap = 0;
	now = orders = overload_until = conn_ids = 0;
	for (int i = 0; i < 16; i++)
		sim_random(2);
	for (int b = 0; b < BOXES; b++)
		engine.boxes[b].node = b % N;
	for (int k = 0; k < NAMES; k++)
		engine.names[k].node = -1;
	for (int i = 0; i < N; i++) {
		engine.nodes[i].epoch = engine.nodes[i].lost = 1;
		machines[i].rate = 0.99 + (double)sim_random(2001) / 100000;
		machines[i].offset = 1000 + sim_random(1000000);
		sim_at(0, (struct event){ .kind = EV_START, .machine = i, .what = 0 });
		sim_at(0, (struct event){ .kind = EV_START, .machine = i, .what = 1 });
		sim_at(sim_random(100), (struct event){ .kind = EV_TICK, .machine = i });
	}
}

/* without: rules that are left out (lease_without). */
static struct sim_result sim_run(uint64_t seed, unsigned faults, unsigned without)
{
	uint64_t at = 8000, end;

	lease_without = without;
	sim_begin(seed);
	for (unsigned i = 0; i < faults; i++) {
		sim_at(at, (struct event){ .kind = EV_FAULT });
		at += 200 + sim_random(i % 3 ? 6000 : 800);
	}
	end = at + 20000 + 30000; /* the longest fault, and 30 s */
	while (nheap && heap[0].at < end) {
		struct event e = sim_pop();

		now = e.at;
		result.events++;
		if (!sim_handle(&e))
			sim_event_free(&e);
	}
	now = end;
	sim_count_orphans();
	while (nheap) {
		struct event e = sim_pop();

		sim_event_free(&e);
	}
	for (int i = 0; i < N; i++)
		gateway_lease_free(machines[i].g.lease);
	return result;
}
