/* ws.c - a connection that has become a WebSocket. */
#include "http/conn.h"
#include "http/ws_codec.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_MS = 2000 }; /* for the peer to answer the close frame */

struct ws {
	struct http_conn *conn;
	struct ws_codec msg;
	struct ws_events on;
	void *user;
	int full, paused, received;
	uint64_t received_ms, pinged_ms, closed_ms; /* times of the sweep; 0: no sweep yet */
};

/* ---- between the conversation and the connection ---- */

static size_t ws_take(void *user, void *out, size_t n)
{
	struct ws *w = user;
	int got = evbuffer_remove(conn_input(w->conn), out, n);

	if (got <= 0)
		return 0;
	w->received = 1;
	w->conn->req.server->bytes_in += (unsigned)got;
	return (size_t)got;
}

static void ws_put(void *user, const struct iovec *iov, unsigned n)
{
	struct ws *w = user;

	conn_put(w->conn, iov, n);
}

static void ws_message(void *user, int opcode, const char *bytes, size_t n)
{
	struct ws *w = user;

	if (w->msg.close_sent) /* this side has closed; pending messages are dropped */
		return;
	if (opcode == WS_TEXT && w->on.on_text)
		w->on.on_text(w, bytes, n);
	else if (opcode == WS_BINARY && w->on.on_binary)
		w->on.on_binary(w, bytes, n);
}

static const struct ws_codec_owner owner = { .take = ws_take,
					     .put = ws_put,
					     .on_message = ws_message };

/* ---- the handshake ---- */

const char *http_ws_protocol(const struct http_req *r, const char *const *ours)
{
	for (unsigned i = 0; i < r->nheaders; i++) {
		const char *p = r->headers[i].value;

		if (strcmp(r->headers[i].name, "sec-websocket-protocol") != 0)
			continue;
		while (*(p += strspn(p, ", \t"))) {
			size_t n = strcspn(p, ", \t");

			for (const char *const *o = ours; *o; o++)
				if (strlen(*o) == n && memcmp(*o, p, n) == 0)
					return *o;
			p += n;
		}
	}
	return NULL;
}

struct ws *http_ws(struct http_req *r, const char *protocol, size_t message_max,
		   const struct ws_events *on, void *user)
{
	struct http_conn *c = r->conn;
	char accept[29];
	struct ws *w;

	if (!r->upgrade || c->reply != REPLY_NONE || c->cut)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	*w = (struct ws){ .conn = c, .on = *on, .user = user };
	ws_codec_init(&w->msg, 0, message_max, &owner, w);
	ws_accept_key(http_header(r, "sec-websocket-key"), accept);
	http_set(r, "Upgrade", "websocket");
	http_set(r, "Sec-WebSocket-Accept", "%s", accept);
	if (protocol)
		http_set(r, "Sec-WebSocket-Protocol", "%s", protocol);
	reply_switch(c, REPLY_DONE);
	c->ws = w;
	conn_set_state(c, CONN_WS);
	conn_schedule(c);
	if (r->server->draining)
		ws_close(w, 1001, "the server is leaving");
	return w;
}

/* ---- the handler's side ---- */

void *ws_user(const struct ws *w)
{
	return w->user;
}

size_t ws_waiting(const struct ws *w)
{
	return conn_waiting(w->conn);
}

static int send_message(struct ws *w, int opcode, const struct iovec *iov, unsigned n)
{
	struct http_conn *c = w->conn;

	ws_codec_send(&w->msg, opcode, iov, n);
	if (conn_waiting(c) > c->req.server->limits.out_high)
		conn_flush(c);
	w->full |= conn_waiting(c) > c->req.server->limits.out_high; /* until on_drain() */
	return w->full;
}

int ws_text(struct ws *w, const char *text, size_t n)
{
	return send_message(w, WS_TEXT, &(struct iovec){ (void *)text, n }, 1);
}

int ws_binary(struct ws *w, const void *bytes, size_t n)
{
	return send_message(w, WS_BINARY, &(struct iovec){ (void *)bytes, n }, 1);
}

int ws_binaryv(struct ws *w, const struct iovec *iov, unsigned n)
{
	return send_message(w, WS_BINARY, iov, n);
}

void ws_pause(struct ws *w)
{
	w->paused = 1;
}

void ws_resume(struct ws *w)
{
	w->paused = 0;
	conn_schedule(w->conn);
}

void ws_close(struct ws *w, uint16_t code, const char *reason)
{
	ws_codec_close(&w->msg, code, reason);
	w->paused = 0; /* its answer must be read */
	conn_schedule(w->conn);
}

/* ---- conn.c's side ---- */

int ws_go(struct http_conn *c)
{
	struct ws *w = c->ws;

	conn_flush(c);
	if (c->cut) {
		conn_set_state(c, CONN_DEAD);
		return 0;
	}
	if (ws_codec_over(&w->msg)) {
		if (conn_waiting(c) == 0)
			conn_close(c);
		return conn_waiting(c) == 0;
	}
	if (w->full && conn_waiting(c) <= c->req.server->limits.out_high / 2) {
		w->full = 0;
		if (w->on.on_drain)
			w->on.on_drain(w);
		return 1;
	}
	/* A peer that does not read the pongs may not send more pings. */
	if (w->paused || conn_waiting(c) > c->req.server->limits.out_high)
		return 0;
	if (ws_codec_read(&w->msg) || ws_codec_over(&w->msg))
		return 1;
	if (c->eof)
		conn_set_state(c, CONN_DEAD);
	return 0;
}

void ws_over(struct http_conn *c)
{
	struct ws *w = c->ws;

	if (w->on.on_close)
		w->on.on_close(w);
	c->ws = NULL;
	ws_codec_fini(&w->msg);
	free(w);
}

void ws_tick(struct http_conn *c, uint64_t now)
{
	const struct http_limits *l = &c->req.server->limits;
	struct ws *w = c->ws;

	if (w->received || !w->received_ms || w->paused)
		w->received_ms = now;
	w->received = 0;
	if (!w->pinged_ms)
		w->pinged_ms = now;
	if (w->msg.close_sent && !w->closed_ms)
		w->closed_ms = now;
	if (now - w->received_ms >= l->ws_silence_ms ||
	    (w->closed_ms && now - w->closed_ms >= CLOSE_MS)) {
		conn_cut(c, 0);
	} else if (now - w->pinged_ms >= l->ws_ping_ms) {
		w->pinged_ms = now;
		ws_codec_send(&w->msg, WS_PING, NULL, 0);
	}
}
