/* socket_node.c - the WebSocket from a gateway to one node, behind the WebSocket of a client. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "gateway/socket_internal.h"
#include "http/client.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void socket_pause_nodes(struct gateway_socket *s, int paused)
{
	for (struct socket_node *n = s->nodes; n; n = n->next)
		if (n->is_ready)
			upstream_pause(&n->up, paused);
}

void socket_node_free(struct socket_node *n)
{
	struct gateway_socket *s = n->socket;
	struct socket_node **at = &s->nodes;

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	tunnels_cancel(&n->ask);
	if (n->has_link) {
		upstream_close(&n->up);
		tunnels_give(s->gateway->tunnels, n->node, (struct upstream_link){ .fd = -1 });
	}
	timer_fini(&n->end);
	ws_codec_fini(&n->codec);
	buf_fini(&n->in);
	buf_fini(&n->waiting);
	free(n);
}

static void socket_node_ended(struct timer *t)
{
	struct socket_node *n = loop_owner(t, struct socket_node, end);
	struct gateway_socket *s = n->socket;

	for (unsigned i = 0; i < s->nchannels; i++)
		if (s->channels[i].node == n->node && s->channels[i].is_open) {
			s->channels[i].is_open = 0;
			socket_complain(s, s->channels[i].number, "unreachable", n->why);
		}
	socket_node_free(n);
	ws_resume(s->ws);
}

static void socket_node_end(struct socket_node *n, const char *why)
{
	if (n->why[0])
		return;
	snprintf(n->why, sizeof(n->why), "node %u: %.120s", n->node, why);
	timer_set(&n->end, 0);
}

static size_t socket_node_take(void *user, void *out, size_t room)
{
	struct socket_node *n = user;
	size_t have = n->in.len - n->in_at, len = have < room ? have : room;

	memcpy(out, n->in.p + n->in_at, len);
	n->in_at += len;
	if (n->in_at == n->in.len) {
		buf_cut(&n->in, 0);
		n->in_at = 0;
	}
	return len;
}

static void socket_node_put(void *user, const struct iovec *iov, unsigned n)
{
	struct socket_node *x = user;
	int full = 0;

	for (unsigned i = 0; i < n; i++)
		full |= upstream_body(&x->up, iov[i].iov_base, iov[i].iov_len);
	if (full)
		ws_pause(x->socket->ws);
}

/* The node closes a channel, or rejects its open: its number is free. */
static void socket_node_text(struct socket_node *n, const char *text, size_t len)
{
	json_t *msg = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *op = json_string_value(json_object_get(msg, "op"));
	json_int_t number = json_integer_value(json_object_get(msg, "ch"));
	struct socket_channel *c =
		op && number >= 0 ? socket_channel(n->socket, (uint32_t)number) : NULL;

	if (c && c->node == n->node && (strcmp(op, "closed") == 0 || strcmp(op, "error") == 0))
		c->is_open = 0;
	json_decref(msg);
	if (!c || c->node != n->node) /* of a channel that this client does not have there */
		return;
	if (ws_text(n->socket->ws, text, len))
		socket_pause_nodes(n->socket, 1);
}

static void socket_node_message(void *user, int opcode, const char *bytes, size_t len)
{
	struct socket_node *n = user;
	const struct socket_channel *c;
	uint32_t number;

	if (opcode == WS_TEXT) {
		socket_node_text(n, bytes, len);
		return;
	}
	if (opcode != WS_BINARY || len < sizeof(number))
		return;
	memcpy(&number, bytes, sizeof(number));
	c = socket_channel(n->socket, ntohl(number));
	if (c && c->node == n->node && ws_binary(n->socket->ws, bytes, len))
		socket_pause_nodes(n->socket, 1);
}

static const struct ws_codec_owner socket_codec = { socket_node_take, socket_node_put,
						    socket_node_message };

static void socket_node_send(struct socket_node *n, int opcode, const char *bytes, size_t len)
{
	const struct iovec part = { (void *)bytes, len };

	ws_codec_send(&n->codec, opcode, &part, 1);
}

static void socket_node_flush(struct socket_node *n)
{
	size_t at = 0;

	while (at < n->waiting.len) {
		uint32_t len;

		memcpy(&len, n->waiting.p + at + 1, sizeof(len));
		socket_node_send(n, n->waiting.p[at], n->waiting.p + at + 5, len);
		at += 5 + len;
	}
	buf_fini(&n->waiting);
}

static const char *socket_node_head(struct upstream *u, const struct http_answer *a)
{
	struct socket_node *n = loop_owner(u, struct socket_node, up);
	const char *proof = http_answer_header(a, "sec-websocket-accept");

	if (a->status != 101 || !proof || strcmp(proof, n->accept) != 0)
		return "it does not accept the WebSocket";
	n->is_ready = 1;
	socket_node_flush(n);
	return NULL;
}

static void socket_node_body(struct upstream *u, const char *bytes, size_t len)
{
	struct socket_node *n = loop_owner(u, struct socket_node, up);

	buf_add(&n->in, bytes, len);
	while (ws_codec_read(&n->codec))
		;
	if (ws_codec_over(&n->codec))
		socket_node_end(n, "it closed the WebSocket");
}

static void socket_node_over(struct upstream *u, const char *why)
{
	socket_node_end(loop_owner(u, struct socket_node, up),
			why ? why : "it closed the connection");
}

static void socket_node_drain(struct upstream *u)
{
	ws_resume(loop_owner(u, struct socket_node, up)->socket->ws);
}

static const struct upstream_events socket_node_events = { .head = socket_node_head,
							   .body = socket_node_body,
							   .drain = socket_node_drain,
							   .over = socket_node_over };

static void socket_node_begin(struct socket_node *n, struct upstream_link take_link)
{
	auto_buf struct buf head = { 0 }, key = { 0 };
	uint8_t bytes[16];
	struct err e;

	n->has_link = 1;
	upstream_init(&n->up, n->socket->gateway->api->loop, take_link, 10000, &socket_node_events);
	if (id_random(bytes, sizeof(bytes), &e) < 0) {
		socket_node_end(n, e.msg);
		return;
	}
	base64_encode(&key, bytes, sizeof(bytes));
	ws_accept_key(key.p, n->accept);
	buf_printf(
		&head,
		"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: atoll.v1\r\n"
		"Atoll-Identity: %s\r\n\r\n",
		key.p, n->socket->identity);
	upstream_ask(&n->up,
		     &(struct upstream_question){ .head = head.p, .len = head.len, .upgrade = 1 });
}

static void socket_node_connected(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	struct socket_node *n = loop_owner(a, struct socket_node, ask);

	if (take_link)
		socket_node_begin(n, *take_link);
	else
		socket_node_end(n, a->why);
}

static struct socket_node *socket_node_get(struct gateway_socket *s, unsigned node)
{
	struct upstream_link link = { .fd = -1 };
	struct socket_node *n = s->nodes;
	int rc;

	while (n && (n->node != node || n->why[0]))
		n = n->next;
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	n->socket = s;
	n->node = node;
	n->next = s->nodes;
	s->nodes = n;
	n->ask.done = socket_node_connected;
	timer_init(&n->end, s->gateway->api->loop, socket_node_ended);
	ws_codec_init(&n->codec, 1, SOCKET_ANSWER, &socket_codec, n);
	rc = tunnels_take(s->gateway->tunnels, node, &n->ask, &link);
	if (rc > 0)
		socket_node_begin(n, link);
	else if (rc < 0)
		socket_node_end(n, n->ask.why);
	return n;
}

void socket_pass(struct gateway_socket *s, unsigned node, int opcode, const char *bytes, size_t len)
{
	struct socket_node *n = socket_node_get(s, node);
	uint32_t size = (uint32_t)len;

	if (n->why[0])
		return; /* its channels get an error */
	if (n->is_ready) {
		socket_node_send(n, opcode, bytes, len);
		return;
	}
	if (++n->nwaiting > SOCKET_WAITING) {
		socket_node_end(n, "it is too slow for these messages");
		return;
	}
	buf_putc(&n->waiting, (char)opcode);
	buf_add(&n->waiting, &size, sizeof(size));
	buf_add(&n->waiting, bytes, len);
}
