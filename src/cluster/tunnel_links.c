/* tunnel_links.c - request connections of nodes: the idle ones, and the callers that wait for one. */
#include "cluster/tunnel_internal.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- idle connections ---- */

static struct upstream_link tunnel_take_idle(struct tunnel_idle *i)
{
	struct upstream_link conn = i->conn;

	watch_stop(&i->watch);
	*i->link = i->next;
	if (i->next)
		i->next->link = i->link;
	i->node->node.idle--;
	free(i);
	return conn;
}

static void tunnel_close_idle(struct tunnel_idle *i)
{
	struct upstream_link conn = tunnel_take_idle(i);

	upstream_link_close(&conn);
}

/* An idle connection has something to read: its end, or bytes that belong to no request. */
static void tunnel_idle_ready(struct watch *w, unsigned what)
{
	struct tunnel_idle *i = loop_owner(w, struct tunnel_idle, watch);
	struct tunnel_peer *p = i->node;
	char byte;
	size_t got;
	enum link_result result;

	(void)what;
	if (upstream_link_is_silent(&i->conn))
		return; /* a message of TLS itself */
	result = upstream_link_read(&i->conn, &byte, 1, &got);
	if (got > 0) {
		p->tunnels->figures.closed_for_error++;
		log_warn("connection of a node closed", LOG_U("node", p->node.number),
			 LOG_S("why", "it sent a response without a request"));
	} else {
		log_debug("idle connection of a node ended", LOG_U("node", p->node.number),
			  LOG_T("broken", result == LINK_BROKEN));
	}
	tunnel_close_idle(i);
	tunnel_ask_for_links(p);
}

static void tunnel_put_idle(struct tunnel_peer *p, struct upstream_link take_link)
{
	struct tunnel_idle *i = calloc(1, sizeof(*i));

	if (!i)
		abort();
	i->node = p;
	i->conn = take_link;
	i->since_ms = loop_now_ms();
	i->next = p->idle;
	i->link = &p->idle;
	if (i->next)
		i->next->link = &i->next;
	p->idle = i;
	p->node.idle++;
	watch_init(&i->watch, p->tunnels->loop, take_link.fd, tunnel_idle_ready);
	watch_want(&i->watch, LOOP_READ);
	if (p->asks)
		timer_set(&p->tunnels->serve, 0);
}

void tunnel_add_link(struct tunnel_peer *p, struct upstream_link take_link)
{
	if (p->opening)
		p->opening--;
	tunnel_put_idle(p, take_link);
}

void tunnel_close_links(struct tunnel_peer *p)
{
	while (p->idle)
		tunnel_close_idle(p->idle);
}

/* Requests connections, so that every caller gets one and TUNNEL_IDLE remain. */
void tunnel_ask_for_links(struct tunnel_peer *p)
{
	unsigned have = p->node.idle + p->opening, want = p->node.waiting + TUNNEL_IDLE,
		 total = have + p->node.busy;
	auto_buf struct buf line = { 0 };

	if (!p->open || !p->hello || p->full || have >= want || total >= TUNNEL_LINKS)
		return;
	want -= have;
	want = want < TUNNEL_LINKS - total ? want : TUNNEL_LINKS - total;
	want = want < CONTROL_OPEN ? want : CONTROL_OPEN;
	p->opening += want;
	p->opening_ms = loop_now_ms();
	control_put_open(&line, want);
	tunnel_send(p, &line);
}

/* 1: an idle connection on which the node has sent nothing. */
static int tunnel_pop(struct tunnel_peer *p, struct upstream_link *out)
{
	while (p->idle) {
		*out = tunnel_take_idle(p->idle);
		if (upstream_link_is_silent(out)) {
			p->node.busy++;
			return 1;
		}
		upstream_link_close(out);
	}
	return 0;
}

/* ---- callers ---- */

static int tunnel_refuse_unknown(struct tunnel_ask *a, uint32_t node)
{
	a->refusal = TUNNEL_UNKNOWN;
	a->since_unix_ms = 0;
	snprintf(a->why, sizeof(a->why), "node %" PRIu32 " is not connected to this gateway", node);
	return -1;
}

static int tunnel_refuse(struct tunnel_ask *a, enum tunnel_refusal why, const struct tunnel_peer *p)
{
	const struct tunnel_node *n = &p->node;
	uint64_t away_ms = loop_now_ms() - n->since_ms;

	if (p->expected)
		return tunnel_refuse_unknown(a, n->number);
	a->refusal = why;
	a->since_unix_ms = 0;
	if (why == TUNNEL_AWAY) {
		a->since_unix_ms = n->since_unix_ms;
		snprintf(a->why, sizeof(a->why),
			 "node %" PRIu32 " (%s) has been unreachable for %" PRIu64 ".%" PRIu64 " s",
			 n->number, n->name, away_ms / 1000, away_ms % 1000 / 100);
	} else {
		snprintf(a->why, sizeof(a->why),
			 "node %" PRIu32 " (%s) has no free connection: %u are in use and %u "
			 "requests wait",
			 n->number, n->name, n->busy, n->waiting);
	}
	return -1;
}

static void tunnel_remove_ask(struct tunnel_peer *p, struct tunnel_ask *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	else
		p->asks_end = a->link;
	a->link = NULL;
	a->tunnels = NULL;
	p->node.waiting--;
}

static enum tunnel_refusal tunnel_reason(const struct tunnel_peer *p)
{
	return p->node.state == TUNNEL_UNREACHABLE ? TUNNEL_AWAY : TUNNEL_BUSY;
}

static void tunnel_refuse_first(struct tunnel_peer *p)
{
	struct tunnel_ask *a = p->asks;

	tunnel_refuse(a, tunnel_reason(p), p);
	tunnel_remove_ask(p, a);
	a->done(a, NULL);
}

void tunnel_refuse_all(struct tunnel_peer *p)
{
	while (p->asks)
		tunnel_refuse_first(p);
}

int tunnels_take(struct tunnels *t, uint32_t node, struct tunnel_ask *a,
		 struct upstream_link *out_link)
{
	struct tunnel_peer *p = tunnels_peer(t, node);

	a->tunnels = NULL;
	a->link = NULL;
	if (!p)
		p = tunnels_expect(t, node);
	if (!p)
		return tunnel_refuse_unknown(a, node);
	if (!p->asks && tunnel_pop(p, out_link)) {
		tunnel_ask_for_links(p);
		return 1;
	}
	if (p->node.state == TUNNEL_UNREACHABLE &&
	    loop_now_ms() - p->node.since_ms >= (p->ended ? t->wait_up_ms : t->silence_ms))
		return tunnel_refuse(a, TUNNEL_AWAY, p);
	if (p->node.waiting >= TUNNEL_WAITING)
		return tunnel_refuse(a, TUNNEL_BUSY, p);
	a->tunnels = t;
	a->node = node;
	a->since_ms = loop_now_ms();
	a->next = NULL;
	a->link = p->asks_end;
	*p->asks_end = a;
	p->asks_end = &a->next;
	p->node.waiting++;
	tunnel_ask_for_links(p);
	return 0;
}

void tunnels_cancel(struct tunnel_ask *a)
{
	struct tunnel_peer *p = a->tunnels ? tunnels_peer(a->tunnels, a->node) : NULL;

	if (p && a->link)
		tunnel_remove_ask(p, a);
}

void tunnels_give(struct tunnels *t, uint32_t node, struct upstream_link take_link)
{
	struct tunnel_peer *p = tunnels_peer(t, node);

	if (!p) { /* it was removed meanwhile */
		upstream_link_close(&take_link);
		return;
	}
	if (p->node.busy)
		p->node.busy--;
	if (take_link.fd < 0)
		tunnel_ask_for_links(p);
	else if (p->node.state == TUNNEL_UP || p->node.idle < TUNNEL_IDLE)
		tunnel_put_idle(p, take_link);
	else
		upstream_link_close(&take_link);
}

static void tunnel_serve(struct tunnel_peer *p)
{
	struct upstream_link conn;

	while (p->asks && tunnel_pop(p, &conn)) {
		struct tunnel_ask *a = p->asks;

		tunnel_remove_ask(p, a);
		a->done(a, &conn);
	}
	tunnel_ask_for_links(p);
}

/* done() may call any function of tunnel.h: removed nodes are freed by the next tick. */
void tunnels_serve_asks(struct timer *timer)
{
	struct tunnels *t = loop_owner(timer, struct tunnels, serve);

	for (unsigned i = 0; i < t->count; i++)
		if (t->peers[i]->asks)
			tunnel_serve(t->peers[i]);
}

/* ---- time ---- */

/* Closes what was used last the longest time ago: the end of the list. */
static void tunnel_trim(struct tunnel_peer *p, uint64_t now)
{
	unsigned n = 0;

	for (struct tunnel_idle *i = p->idle, *next; i; i = next) {
		next = i->next;
		if (++n > TUNNEL_SPARE && now - i->since_ms >= TUNNEL_SPARE_MS)
			tunnel_close_idle(i);
	}
}

void tunnel_tick_links(struct tunnel_peer *p, uint64_t now)
{
	const struct tunnels *t = p->tunnels;
	uint32_t most = p->node.state == TUNNEL_UP || p->ended ? t->wait_up_ms : t->wait_ms;

	while (p->asks && p->asks->since_ms + most <= now)
		tunnel_refuse_first(p);
	if (p->opening && now - p->opening_ms >= TUNNEL_OPENING_MS)
		p->opening = 0;
	tunnel_trim(p, now);
	tunnel_ask_for_links(p);
}
