/* node_lease.c - the lease of a node: see lease.h. */
#include "cluster/lease_internal.h"

#include <string.h>

void node_lease_init(struct node_lease *l, int64_t epoch)
{
	*l = (struct node_lease){ .epoch = epoch };
}

static struct node_lease_tunnel *node_lease_find(struct node_lease *l, int gateway)
{
	for (unsigned i = 0; i < LEASE_GATEWAYS; i++)
		if (l->tunnels[i].gateway == gateway)
			return &l->tunnels[i];
	return NULL;
}

/* Beyond LEASE_GATEWAYS the node has connections that do not extend its lease. */
void node_lease_opened(struct node_lease *l, int gateway)
{
	struct node_lease_tunnel *t = node_lease_find(l, gateway);

	if (!t)
		t = node_lease_find(l, 0);
	if (t)
		*t = (struct node_lease_tunnel){ .gateway = gateway };
}

void node_lease_closed(struct node_lease *l, int gateway)
{
	struct node_lease_tunnel *t = node_lease_find(l, gateway);

	if (t)
		*t = (struct node_lease_tunnel){ 0 };
}

void node_lease_sent(struct node_lease *l, int gateway, uint64_t seq, uint64_t now_ms)
{
	struct node_lease_tunnel *t = node_lease_find(l, gateway);

	if (!t)
		return;
	t->heartbeats[t->at % LEASE_UNDER_WAY].seq = seq;
	t->heartbeats[t->at++ % LEASE_UNDER_WAY].sent_ms = now_ms;
}

enum node_lease_greeting node_lease_greeted(struct node_lease *l, int gateway, int64_t epoch)
{
	struct node_lease_tunnel *t = node_lease_find(l, gateway);

	if (epoch < l->epoch)
		return NODE_GREETING_STALE;
	if (epoch > l->epoch) {
		/* The greetings of other gateways belong to the old epoch. */
		for (unsigned i = 0; i < LEASE_GATEWAYS; i++)
			l->tunnels[i].greeted = 0;
		l->epoch = epoch;
		l->until_ms = 0;
		l->returning = 1;
	}
	if (t)
		t->greeted = 1;
	return l->returning ? NODE_GREETING_RETURN : NODE_GREETING_SAME;
}

void node_lease_settled(struct node_lease *l)
{
	l->returning = 0;
}

void node_lease_acked(struct node_lease *l, int gateway, uint64_t seq)
{
	const struct node_lease_tunnel *t = node_lease_find(l, gateway);

	for (unsigned i = 0; t && i < LEASE_UNDER_WAY; i++)
		if (t->heartbeats[i].seq == seq && t->heartbeats[i].sent_ms)
			node_lease_acked_at(l, gateway, t->heartbeats[i].sent_ms);
}

void node_lease_acked_at(struct node_lease *l, int gateway, uint64_t sent_ms)
{
	const struct node_lease_tunnel *t = node_lease_find(l, gateway);

	if (t && t->greeted && sent_ms + LEASE_NODE_MS > l->until_ms)
		l->until_ms = sent_ms + LEASE_NODE_MS;
}

uint64_t node_lease_left_ms(const struct node_lease *l, uint64_t now_ms)
{
	uint64_t until = l->until_ms;

	if (!until || l->returning)
		return 0;
	if (!LEASE_HAS(LEASE_RULE_8))
		until += LEASE_NODE_MS + 1000; /* fenced too late */
	return until > now_ms ? until - now_ms : 0;
}
