/* socket.c - see socket.h. */
#include "v1/socket.h"
#include "api/auth.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { CHANNELS = 256, MESSAGE_MAX = 256 * 1024, HEAD_IN = 5, HEAD_OUT = 13 };

struct socket {
	struct api *api;
	struct principal who;
	struct ws *ws;
	struct channel *channels;
	unsigned count;
	int full;
	struct timer still; /* checks whether the key is still valid */
};

static const struct channel_kind *const kinds[] = {
	&channel_exec, &channel_pty, &channel_events, &channel_watch, &channel_stats, &channel_room,
};

/* ---- functions for channel types ---- */

struct api *channel_api(const struct channel *c)
{
	return c->socket->api;
}

const struct principal *channel_who(const struct channel *c)
{
	return &c->socket->who;
}

struct box *channel_box(const struct channel *c, const json_t *msg, struct err *e)
{
	const char *name = json_string_value(json_object_get(msg, "box"));
	const struct principal *who = channel_who(c);
	struct box *b = name ? fleet_named(&channel_api(c)->fleet, who->team, name) : NULL;

	if (b && (b->state == BOX_RUNNING || b->state == BOX_STOPPED) &&
	    (!who->box[0] || !strcmp(who->box, b->row.id)))
		return b;
	if (b && b->state == BOX_PAUSED)
		err_set(e, ERR_CONFLICT, "box %s is paused", b->row.id);
	else if (!name || !call_ended(channel_api(c), who, name, e, NULL))
		err_set(e, ERR_NOT_FOUND, "there is no such box: '%.40s'", name ? name : "");
	return NULL;
}

static void send_json(struct socket *s, json_t *take_doc)
{
	char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!text)
		abort();
	ws_text(s->ws, text, strlen(text));
	free(text);
}

void channel_say(struct channel *c, const char *op, json_t *take_rest)
{
	json_t *doc = json_pack("{s:s, s:I}", "op", op, "ch", (json_int_t)c->number);

	if (take_rest)
		json_object_update(doc, take_rest);
	json_decref(take_rest);
	send_json(c->socket, doc);
}

static void socket_request(struct socket *s, int full)
{
	s->full = full;
	for (struct channel *c = s->channels; c; c = c->next)
		if (c->kind->request)
			c->kind->request(c, full);
}

int channel_bytes(struct channel *c, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	struct {
		uint32_t channel;
		uint8_t stream;
		uint64_t offset;
	} __attribute__((packed)) head = { htonl(c->number), (uint8_t)stream, htobe64(offset) };
	struct iovec parts[2] = { { &head, HEAD_OUT }, { (void *)bytes, n } };

	if (ws_binaryv(c->socket->ws, parts, 2) && !c->socket->full)
		socket_request(c->socket, 1);
	return c->socket->full;
}

static void socket_drop(struct channel *c)
{
	struct channel **at = &c->socket->channels;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->socket->count--;
	c->kind->close(c);
	free(c);
}

static json_t *error_json(const struct err *e)
{
	return call_error_json(NULL, err_kind_name(e->kind), e->msg, NULL, NULL);
}

void channel_end(struct channel *c, const struct err *e)
{
	channel_say(c, e ? "error" : "closed", e ? error_json(e) : NULL);
	socket_drop(c);
}

/* ---- messages ---- */

static struct channel *socket_find(struct socket *s, uint32_t number)
{
	struct channel *c = s->channels;

	while (c && c->number != number)
		c = c->next;
	return c;
}

static void socket_complain(struct socket *s, int64_t number, const struct err *e)
{
	json_t *doc = error_json(e);

	json_object_set_new(doc, "op", json_string("error"));
	json_object_set_new(doc, "ch", json_integer(number));
	send_json(s, doc);
}

static const struct channel_kind *kind_of(const json_t *msg, struct err *e)
{
	const char *name = json_string_value(json_object_get(msg, "kind"));

	for (unsigned i = 0; name && i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	err_set(e, ERR_INVALID, "kind: '%.20s' is not exec, pty, events, fs, stats or room",
		name ? name : "");
	return NULL;
}

static int open_channel(struct socket *s, uint32_t number, const json_t *msg, struct err *e)
{
	const struct channel_kind *kind = kind_of(msg, e);
	struct channel *c;

	if (!kind)
		return -1;
	if (socket_find(s, number))
		return err_set(e, ERR_CONFLICT, "channel %u is open already", number);
	if (s->count == CHANNELS)
		return err_set(e, ERR_LIMIT, "more than %d channels on one socket", CHANNELS);
	c = calloc(1, kind->size);
	if (!c)
		abort();
	c->socket = s;
	c->number = number;
	c->kind = kind;
	if (kind->open(c, msg, e) < 0) {
		free(c);
		return -1;
	}
	c->next = s->channels;
	s->channels = c;
	s->count++;
	return 0;
}

static int about_channel(struct socket *s, uint32_t number, const char *op, const json_t *msg,
			 struct err *e)
{
	struct channel *c = socket_find(s, number);

	if (!c)
		return err_set(e, ERR_NOT_FOUND, "channel %u is not open", number);
	if (!strcmp(op, "close")) {
		channel_end(c, NULL);
		return 0;
	}
	if (!c->kind->message)
		return err_set(e, ERR_INVALID, "a channel of kind %s has no '%.20s'", c->kind->name,
			       op);
	return c->kind->message(c, op, msg, e);
}

static int socket_handle(struct socket *s, const json_t *msg, struct err *e)
{
	const char *op = json_string_value(json_object_get(msg, "op"));
	const json_t *number = json_object_get(msg, "ch");

	if (!op)
		return err_set(e, ERR_INVALID, "a message needs an op");
	if (!strcmp(op, "ping")) {
		send_json(s, json_pack("{s:s}", "op", "pong"));
		return 0;
	}
	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
	    json_integer_value(number) > UINT32_MAX)
		return err_set(e, ERR_INVALID, "ch: must be a number from 0 to 4294967295");
	if (!strcmp(op, "open"))
		return open_channel(s, (uint32_t)json_integer_value(number), msg, e);
	return about_channel(s, (uint32_t)json_integer_value(number), op, msg, e);
}

static void on_text(struct ws *w, const char *text, size_t n)
{
	struct socket *s = ws_user(w);
	json_error_t why;
	json_t *msg = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	struct err e;

	if (!json_is_object(msg))
		err_set(&e, ERR_INVALID, "not a JSON object: %.100s", msg ? "" : why.text);
	if (!json_is_object(msg) || socket_handle(s, msg, &e) < 0)
		socket_complain(s,
				json_is_integer(json_object_get(msg, "ch"))
					? json_integer_value(json_object_get(msg, "ch"))
					: -1,
				&e);
	json_decref(msg);
}

static void on_binary(struct ws *w, const void *bytes, size_t n)
{
	struct socket *s = ws_user(w);
	struct channel *c;
	uint32_t number = 0;
	struct err e;

	if (n >= HEAD_IN)
		memcpy(&number, bytes, sizeof(number));
	number = ntohl(number);
	c = n >= HEAD_IN ? socket_find(s, number) : NULL;
	if (c && c->kind->bytes && s->who.role >= c->kind->bytes_role) {
		c->kind->bytes(c, ((const uint8_t *)bytes)[HEAD_IN - 1],
			       (const char *)bytes + HEAD_IN, n - HEAD_IN);
		return;
	}
	err_set(&e, c ? ERR_DENIED : ERR_NOT_FOUND,
		c ? "channel %u accepts no bytes from a client"
		  : "bytes for channel %u, which is not open",
		number);
	socket_complain(s, number, &e);
}

static void on_drain(struct ws *w)
{
	socket_request(ws_user(w), 0);
}

static void on_close(struct ws *w)
{
	struct socket *s = ws_user(w);

	while (s->channels)
		socket_drop(s->channels);
	timer_fini(&s->still);
	free(s);
}

static void look_at_key(struct timer *t)
{
	struct socket *s = loop_owner(t, struct socket, still);

	if (!auth_still(s->api, &s->who))
		ws_close(s->ws, 4401, "this key is no longer valid");
	else
		timer_set(&s->still, 1000);
}

void socket_open(struct call *c)
{
	static const struct ws_events on = { on_text, on_binary, on_drain, on_close };
	static const char *const protocols[] = { "atoll.v1", NULL };
	struct socket *s;

	if (!c->req->upgrade) {
		http_set(c->req, "Upgrade", "websocket");
		call_error(c, 426, "upgrade", "this path is a WebSocket", NULL, "docs/socket.md");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->api = c->api;
	s->who = c->who;
	timer_init(&s->still, c->api->loop, look_at_key);
	timer_set(&s->still, 1000);
	s->ws = http_ws(c->req, http_ws_protocol(c->req, protocols), MESSAGE_MAX, &on, s);
	if (!s->ws) {
		timer_fini(&s->still);
		free(s);
	}
}
