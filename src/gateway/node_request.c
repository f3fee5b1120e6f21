/* node_request.c - see node_request.h. */
#include "gateway/node_request.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static void node_request_release(struct node_request *x)
{
	struct upstream_link link = { .fd = -1 };

	if (!x->has_link)
		return;
	x->has_link = 0;
	if (x->up.spare.fd >= 0)
		link = x->up.spare;
	x->up.spare = (struct upstream_link){ .fd = -1 };
	upstream_close(&x->up);
	tunnels_give(x->tunnels, x->node, link);
}

static void node_request_end(struct node_request *x, int status, const char *why)
{
	auto_buf struct buf answer = x->answer;

	if (!x->is_active)
		return;
	x->answer = (struct buf){ 0 };
	x->is_active = 0;
	tunnels_cancel(&x->ask);
	node_request_release(x);
	timer_fini(&x->clock);
	buf_fini(&x->head);
	buf_fini(&x->body);
	x->done(x, status, status ? answer.p : NULL, status ? answer.len : 0, why);
}

void node_request_cancel(struct node_request *x)
{
	if (!x->is_active)
		return;
	x->is_active = 0;
	tunnels_cancel(&x->ask);
	node_request_release(x);
	timer_fini(&x->clock);
	buf_fini(&x->head);
	buf_fini(&x->body);
	buf_fini(&x->answer);
}

/* ---- the answer ---- */

static const char *node_request_head(struct upstream *u, const struct http_answer *a)
{
	struct node_request *x = loop_owner(u, struct node_request, up);
	const char *token = http_answer_header(a, "x-next-token");

	x->status = a->status;
	if (token && strlen(token) < sizeof(x->next_token))
		snprintf(x->next_token, sizeof(x->next_token), "%s", token);
	return NULL;
}

static void node_request_body(struct upstream *u, const char *bytes, size_t n)
{
	struct node_request *x = loop_owner(u, struct node_request, up);

	if (x->answer.len + n <= NODE_REQUEST_BYTES)
		buf_add(&x->answer, bytes, n);
	else if (!x->why[0]) { /* the rest is not read: the clock ends the request */
		snprintf(x->why, sizeof(x->why), "its answer is too long");
		timer_set(&x->clock, 0);
	}
}

static void node_request_over(struct upstream *u, const char *why)
{
	struct node_request *x = loop_owner(u, struct node_request, up);

	if (!why && x->why[0])
		why = x->why;
	node_request_end(x, why ? 0 : x->status, why);
}

static void node_request_drain(struct upstream *u)
{
	(void)u;
}

static const struct upstream_events node_request_events = { .head = node_request_head,
							    .body = node_request_body,
							    .drain = node_request_drain,
							    .over = node_request_over };

/* ---- the request ---- */

static void node_request_begin(struct node_request *x, struct upstream_link take_link,
			       uint32_t head_ms)
{
	x->has_link = 1;
	upstream_init(&x->up, x->loop, take_link, head_ms, &node_request_events);
	upstream_ask(&x->up, &(struct upstream_question){ .head = x->head.p, .len = x->head.len });
	if (x->body.len)
		upstream_body(&x->up, x->body.p, x->body.len);
	upstream_body_end(&x->up);
}

static void node_request_connected(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	struct node_request *x = loop_owner(a, struct node_request, ask);

	if (take_link)
		node_request_begin(x, *take_link, 60000);
	else
		node_request_end(x, 0, a->why);
}

static void node_request_late(struct timer *t)
{
	struct node_request *x = loop_owner(t, struct node_request, clock);

	node_request_end(x, 0, x->why[0] ? x->why : "it did not answer in time");
}

static void node_request_write(struct node_request *x, const struct node_request_what *w)
{
	buf_printf(&x->head, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n",
		   w->method ? w->method : "GET", w->target);
	if (*w->identity)
		buf_printf(&x->head, "Atoll-Identity: %s\r\n", w->identity);
	if (w->body)
		buf_printf(&x->head, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   w->n);
	buf_puts(&x->head, w->headers ? w->headers : "");
	buf_puts(&x->head, "\r\n");
	if (w->body)
		buf_add(&x->body, w->body, w->n);
}

void node_request_send(struct node_request *x, struct tunnels *t, struct loop *l, unsigned node,
		       const struct node_request_what *w, uint32_t timeout_ms)
{
	struct upstream_link link = { .fd = -1 };
	int rc;

	x->tunnels = t;
	x->loop = l;
	x->node = node;
	x->is_active = 1;
	x->why[0] = 0;
	x->up.spare.fd = -1;
	x->ask.done = node_request_connected;
	node_request_write(x, w);
	timer_init(&x->clock, l, node_request_late);
	timer_set(&x->clock, timeout_ms);
	rc = tunnels_take(t, node, &x->ask, &link);
	if (rc > 0)
		node_request_begin(x, link, timeout_ms);
	if (rc >= 0)
		return;
	snprintf(x->why, sizeof(x->why), "%s", x->ask.why);
	timer_set(&x->clock, 1); /* done() is not called from here */
}
