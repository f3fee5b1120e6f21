/* socket.c - see socket.h. */
#include "gateway/socket.h"
#include "gateway/moved.h"
#include "api/auth.h"
#include "base/cleanup.h"
#include "gateway/socket_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to the client ---- */

int socket_say(struct gateway_socket *s, int64_t number, const char *op, json_t *take_doc)
{
	char *text;
	int full;

	json_object_set_new(take_doc, "op", json_string(op));
	json_object_set_new(take_doc, "ch", json_integer(number));
	text = json_dumps(take_doc, JSON_COMPACT);
	json_decref(take_doc);
	if (!text)
		abort();
	full = ws_text(s->ws, text, strlen(text));
	free(text);
	return full;
}

void socket_complain(struct gateway_socket *s, int64_t number, const char *code, const char *what)
{
	socket_say(s, number, "error", call_error_json(NULL, code, what, NULL, NULL));
}

struct socket_channel *socket_channel(struct gateway_socket *s, uint32_t number)
{
	for (unsigned i = 0; i < s->nchannels; i++)
		if (s->channels[i].number == number)
			return &s->channels[i];
	return NULL;
}

/* ---- from the client ---- */

/* The place of a new channel; NULL: the client got an error. A node rejects a second open itself. */
static struct socket_channel *socket_channel_new(struct gateway_socket *s, uint32_t number,
						 unsigned node)
{
	struct socket_channel *c = socket_channel(s, number);

	if (c && c->is_open && (c->node != node || node == SOCKET_HERE)) {
		socket_complain(s, number, "conflict", "this channel is open already");
		return NULL;
	}
	for (unsigned i = 0; !c && s->nchannels == SOCKET_CHANNELS && i < s->nchannels; i++)
		if (!s->channels[i].is_open)
			c = &s->channels[i];
	if (!c && s->nchannels == SOCKET_CHANNELS) {
		socket_complain(s, number, "limit", "more than 256 channels on one socket");
		return NULL;
	}
	if (!c)
		c = &s->channels[s->nchannels++];
	*c = (struct socket_channel){ .number = number, .node = node, .is_open = 1 };
	return c;
}

static void socket_open_at(struct gateway_socket *s, uint32_t number, unsigned node,
			   const char *text, size_t len)
{
	if (socket_channel_new(s, number, node))
		socket_pass(s, node, WS_TEXT, text, len);
}

static void socket_open_here(struct gateway_socket *s, uint32_t number, const json_t *msg)
{
	struct socket_channel *c = socket_channel_new(s, number, SOCKET_HERE);

	if (c && !socket_events_open(s, number, msg))
		c->is_open = 0;
}

static void socket_find_free(struct socket_find *f)
{
	struct socket_find **at = &f->socket->finds;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	fanout_free(&f->fanout);
	free(f->text);
	free(f->path);
	free(f);
}

static const char *socket_find_target(void *user, unsigned node)
{
	(void)node;
	return ((struct socket_find *)user)->path;
}

static void socket_found(struct fanout *fanout)
{
	struct socket_find *f = fanout->user;
	int node = find_oldest(fanout);

	if (node >= 0)
		socket_open_at(f->socket, f->number, (unsigned)node, f->text, f->len);
	else
		socket_complain(f->socket, f->number, "not_found", "there is no such box");
	socket_find_free(f);
}

static void socket_find(struct gateway_socket *s, uint32_t number, const char *box,
			const char *text, size_t len)
{
	struct socket_find *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->socket = s;
	f->number = number;
	f->len = len;
	f->text = buf_text("%.*s", (int)len, text);
	f->path = buf_text("/v1/boxes/%s", box);
	f->next = s->finds;
	s->finds = f;
	f->fanout = (struct fanout){ .done = socket_found, .user = f };
	fanout_begin(&f->fanout, s->gateway->tunnels, s->gateway->api->loop, socket_find_target,
		     s->identity);
}

static void socket_open(struct gateway_socket *s, uint32_t number, const json_t *msg,
			const char *text, size_t len)
{
	const char *box = json_string_value(json_object_get(msg, "box")),
		   *kind = json_string_value(json_object_get(msg, "kind"));
	int node = box ? gateway_moved_node(s->gateway->moved, box, strlen(box)) : -1,
	    is_all = !box && kind && strcmp(kind, "events") == 0;

	if (is_all && !s->who.box[0])
		socket_open_here(s, number, msg);
	else if (is_all) /* the caller sees one box only */
		socket_complain(s, number, "not_found",
				"events of all boxes: this key is bound to one box");
	else if (!box)
		socket_complain(s, number, "invalid", "this channel needs a box: add its id");
	else if (node >= 0)
		socket_open_at(s, number, (unsigned)node, text, len);
	else if (!target_is_plain_name(box))
		socket_complain(s, number, "not_found", "there is no such box");
	else
		socket_find(s, number, box, text, len);
}

static void socket_on_text(struct ws *w, const char *text, size_t len)
{
	struct gateway_socket *s = ws_user(w);
	json_t *msg = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL),
	       *ch = json_object_get(msg, "ch");
	const char *op = json_string_value(json_object_get(msg, "op"));
	json_int_t number = json_is_integer(ch) ? json_integer_value(ch) : -1;
	struct socket_channel *c;

	if (!op)
		socket_complain(s, number, "invalid", "a message is a JSON object with an op");
	else if (strcmp(op, "ping") == 0)
		ws_text(w, "{\"op\":\"pong\"}", 13);
	else if (number < 0 || number > UINT32_MAX)
		socket_complain(s, number, "invalid", "ch: must be a number from 0 to 4294967295");
	else if (strcmp(op, "open") == 0)
		socket_open(s, (uint32_t)number, msg, text, len);
	else if ((c = socket_channel(s, (uint32_t)number)) && c->node != SOCKET_HERE)
		socket_pass(s, c->node, WS_TEXT, text, len);
	else if (c && c->is_open)
		socket_events_message(s, c, op);
	else
		socket_complain(s, number, "not_found", "this channel is not open");
	json_decref(msg);
}

static void socket_on_binary(struct ws *w, const void *bytes, size_t len)
{
	struct gateway_socket *s = ws_user(w);
	const struct socket_channel *c;
	uint32_t number = 0;

	if (len >= sizeof(number))
		memcpy(&number, bytes, sizeof(number));
	c = len >= sizeof(number) ? socket_channel(s, ntohl(number)) : NULL;
	if (c && c->node != SOCKET_HERE)
		socket_pass(s, c->node, WS_BINARY, bytes, len);
	else
		socket_complain(s, ntohl(number), "not_found",
				"bytes for a channel that is not open");
}

static void socket_on_drain(struct ws *w)
{
	socket_pause_nodes(ws_user(w), 0);
	socket_events_continue(ws_user(w));
}

static void socket_on_close(struct ws *w)
{
	struct gateway_socket *s = ws_user(w);

	while (s->finds)
		socket_find_free(s->finds);
	while (s->nodes)
		socket_node_free(s->nodes);
	while (s->events)
		socket_events_free(s->events);
	timer_fini(&s->still);
	free(s);
}

static void socket_check_key(struct timer *t)
{
	struct gateway_socket *s = loop_owner(t, struct gateway_socket, still);

	if (!auth_still(s->gateway->api, &s->who))
		ws_close(s->ws, 4401, "this key is no longer valid");
	else
		timer_set(&s->still, 1000);
}

void gateway_socket_open(struct gateway_call *x)
{
	static const struct ws_events on = { socket_on_text, socket_on_binary, socket_on_drain,
					     socket_on_close };
	static const char *const protocols[] = { "atoll.v1", NULL };
	struct http_req *r = x->call->req;
	struct gateway_socket *s;

	if (!r->upgrade) {
		http_set(r, "Upgrade", "websocket");
		call_error(x->call, 426, "upgrade", "this path is a WebSocket", NULL,
			   "docs/socket.md");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->gateway = x->gateway;
	s->who = x->call->who;
	memcpy(s->identity, x->identity, sizeof(s->identity));
	timer_init(&s->still, x->gateway->api->loop, socket_check_key);
	timer_set(&s->still, 1000);
	s->ws = http_ws(r, http_ws_protocol(r, protocols), SOCKET_MESSAGE, &on, s);
	if (!s->ws) {
		timer_fini(&s->still);
		free(s);
	}
}
