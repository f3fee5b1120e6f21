/* approval.c - see approval.h. */
#include "egress/approval.h"
#include "base/clock.h"
#include "wire/sock.h"

#include <string.h>

static void approval_send(const struct proxy *p, int ended)
{
	uint64_t left_ms = p->ask_until_ms > loop_now_ms() ? p->ask_until_ms - loop_now_ms() : 0;
	struct wire_egress_request f = { .head = sock_head(WIRE_EGRESS_REQUEST, 0),
					 .request = p->request,
					 .began_ns = p->end.began_ns,
					 .expires_ns = clock_ns(CLOCK_REALTIME) + left_ms * 1000000,
					 .port = p->port,
					 .ended = (uint32_t)ended };

	memcpy(f.id, p->way->id, sizeof(f.id));
	egress_send(p->way->egress, &f, sizeof(f), p->host, strlen(p->host) + 1);
}

/* Another connection of the box that waits for the same request. */
static const struct proxy *approval_other(const struct proxy *p)
{
	for (const struct proxy *o = p->way->proxies; o; o = o->next)
		if (o != p && o->request == p->request)
			return o;
	return NULL;
}

static unsigned approval_count(const struct egress_endpoint *w)
{
	unsigned n = 0;

	for (const struct proxy *p = w->proxies; p; p = p->next) {
		const struct proxy *first = w->proxies;

		while (p->request && first->request != p->request)
			first = first->next;
		n += p->request && first == p;
	}
	return n;
}

int approval_wait(struct proxy *p)
{
	struct egress *x = p->way->egress;

	for (const struct proxy *o = p->way->proxies; o; o = o->next)
		if (o->request && o->port == p->port && !strcmp(o->host, p->host)) {
			p->request = o->request;
			p->ask_until_ms = o->ask_until_ms;
			return 0;
		}
	if (approval_count(p->way) >= APPROVAL_REQUESTS)
		return -1;
	p->request = ++x->requests;
	p->ask_until_ms = loop_now_ms() + x->conf.limits.ask_ms;
	approval_send(p, 0);
	return 0;
}

void approval_leave(struct proxy *p)
{
	if (p->request && !approval_other(p))
		approval_send(p, 1);
	p->request = 0;
}

void approval_decide(struct egress_endpoint *w, uint64_t request, int allow)
{
	for (struct proxy *p = w->proxies, *next; p; p = next) {
		next = p->next;
		if (request && p->request == request)
			proxy_decided(p, allow);
	}
}

void approval_announce(const struct egress_endpoint *w)
{
	for (const struct proxy *p = w->proxies; p; p = p->next) {
		const struct proxy *first = w->proxies;

		while (p->request && first->request != p->request)
			first = first->next;
		if (p->request && first == p)
			approval_send(p, 0);
	}
}
