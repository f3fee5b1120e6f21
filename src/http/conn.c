/* conn.c - the life of a connection: conn.h has its state diagram. */
#include "http/conn.h"
#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- states ---- */

static const unsigned conn_next_states[] = {
	[CONN_IDLE] = 1u << CONN_HEAD | 1u << CONN_BUSY | 1u << CONN_DEAD,
	[CONN_HEAD] = 1u << CONN_BUSY | 1u << CONN_DEAD,
	[CONN_BUSY] = 1u << CONN_IDLE | 1u << CONN_WS | 1u << CONN_LINGER | 1u << CONN_DEAD,
	[CONN_WS] = 1u << CONN_LINGER | 1u << CONN_DEAD,
	[CONN_LINGER] = 1u << CONN_DEAD,
	[CONN_DEAD] = 0,
};
_Static_assert(ARRAY_LEN(conn_next_states) == CONN_STATES, "a state without a row");

static const unsigned conn_next_replies[] = {
	[REPLY_NONE] = 1u << REPLY_STREAM | 1u << REPLY_DONE,
	[REPLY_STREAM] = 1u << REPLY_DONE,
	[REPLY_DONE] = 1u << REPLY_NONE,
};
_Static_assert(ARRAY_LEN(conn_next_replies) == REPLY_STATES, "a state without a row");

int conn_state_follows(enum conn_state now, enum conn_state next)
{
	return conn_next_states[now] >> next & 1;
}

int conn_reply_follows(enum conn_reply now, enum conn_reply next)
{
	return conn_next_replies[now] >> next & 1;
}

void conn_set_state(struct http_conn *c, enum conn_state next)
{
	assert(conn_state_follows(c->state, next));
	c->state = next;
}

void conn_set_reply(struct http_conn *c, enum conn_reply next)
{
	assert(conn_reply_follows(c->reply, next));
	c->reply = next;
}

/* ---- whose work ---- */

struct loop_budget *conn_budget(const struct http_conn *c)
{
	return c->budget ? c->budget : c->share ? &c->share->budget : NULL;
}

struct evbuffer *conn_input(const struct http_conn *c)
{
	return bufferevent_get_input(c->bev);
}

static struct evbuffer *conn_output(const struct http_conn *c)
{
	return bufferevent_get_output(c->bev);
}

size_t conn_waiting(const struct http_conn *c)
{
	return evbuffer_get_length(conn_output(c));
}

/* ---- out ---- */

void conn_cut(struct http_conn *c, int reset)
{
	c->cut = 1;
	c->reset |= reset != 0;
	conn_schedule(c);
}

static size_t iov_bytes(const struct iovec *iov, unsigned n)
{
	size_t total = 0;

	for (unsigned i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

/* Appends all but the first `skip` bytes to the waiting output. */
static void conn_append(struct http_conn *c, const struct iovec *iov, unsigned n, size_t skip)
{
	for (unsigned i = 0; i < n; i++) {
		size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= gone;
		if (gone < iov[i].iov_len &&
		    evbuffer_add(conn_output(c), (const char *)iov[i].iov_base + gone,
				 iov[i].iov_len - gone) < 0)
			abort();
	}
}

void conn_account(struct http_conn *c, size_t n)
{
	c->out_total += n;
	c->req.bytes_out += n;
	c->req.server->bytes_out += n;
}

void conn_put(struct http_conn *c, const struct iovec *iov, unsigned n)
{
	if (c->cut)
		return;
	conn_account(c, iov_bytes(iov, n));
	conn_append(c, iov, n, 0);
	conn_schedule(c);
}

/* libevent would wait until the socket is writable, which it nearly always is. So the bytes are
 * written directly, and libevent gets only the rest. */
void conn_send(struct http_conn *c, const struct iovec *iov, unsigned n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	size_t total = iov_bytes(iov, n);
	ssize_t sent = 0;

	if (c->cut)
		return;
	conn_account(c, total);
	if (!c->tls && conn_waiting(c) == 0) {
		sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN && errno != EINTR) {
			conn_cut(c, 0);
			return;
		}
		sent = sent < 0 ? 0 : sent;
	}
	if ((size_t)sent < total) {
		conn_append(c, iov, n, (size_t)sent);
		conn_flush(c);
	}
}

void conn_flush(struct http_conn *c)
{
	struct evbuffer *out = conn_output(c);
	int n;

	if (c->tls || c->armed || c->cut || evbuffer_get_length(out) == 0)
		return;
	/* libevent freezes the buffer against other code that drains it. Here the connection
	 * itself drains it. */
	evbuffer_unfreeze(out, 1);
	n = evbuffer_write(out, c->fd);
	evbuffer_freeze(out, 1);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn_cut(c, 0);
	} else if (evbuffer_get_length(out) > 0) {
		c->armed = 1;
		bufferevent_enable(c->bev, EV_WRITE);
	}
}

/* ---- ends ---- */

static void tell_over(struct http_conn *c)
{
	if (!c->handled)
		return;
	c->handled = 0;
	if (c->req.on_over)
		c->req.on_over(&c->req);
}

static void drop_request(struct http_conn *c)
{
	splice_close(c);
	if (c->ws)
		ws_over(c);
	tell_over(c);
	c->then = NULL;
	buf_fini(&c->req.body);
	arena_reset(&c->arena);
}

void conn_free(struct http_conn *c)
{
	struct http_server *s = c->req.server;
	SSL *ssl = c->tls ? bufferevent_openssl_get_ssl(c->bev) : NULL;

	assert(!c->kicked);
	/* A handler that ends may resume its own request: nothing may schedule this connection
	 * again. */
	c->running = 1;
	drop_request(c);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->open--;
	share_leave(c);
	/* The process that opened the tunnel may still have a copy of its descriptor, and then a
	 * close does not remove it from the loop. */
	if (c->served)
		bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	conn_set_link(c, HTTP_LINK_CLOSED);
	s->core->refusing -= c->refused;
	s->core->evicting -= c->evicted;
	if (c->reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
			   sizeof(struct linger));
	else if (ssl && !c->handshake && !c->cut)
		SSL_shutdown(
			ssl); /* proves to the peer that the stream is complete and was not cut */
	bufferevent_free(c->bev); /* closes a socket without TLS, too */
	if (c->tls && !c->detached) {
		SSL_free(ssl);
		close(c->fd);
	}
	free(c);
}

/* The last reply has been sent. A close() now would answer bytes that are still on their way to
 * the server with a reset, and the reset can overtake the reply. So the server waits for the
 * peer to close first, up to LINGER_MS. */
void conn_close(struct http_conn *c)
{
	drop_request(c);
	c->stamp = 0;
	if (c->eof) {
		conn_set_state(c, CONN_DEAD);
		return;
	}
	conn_set_state(c, CONN_LINGER);
	if (c->tls)
		SSL_shutdown(bufferevent_openssl_get_ssl(c->bev));
	shutdown(c->fd, SHUT_WR);
}

static void conn_finish(struct http_conn *c)
{
	if (!c->req.keep_alive || c->eof || c->req.server->draining) {
		conn_close(c);
		return;
	}
	drop_request(c);
	c->stamp = 0;
	conn_set_state(c, CONN_IDLE);
	share_idle(&c->req.server->core->shares, c);
	conn_set_link(c, HTTP_LINK_IDLE);
}

/* ---- along ---- */

/* A request has arrived that libevent has not read yet. */
static int is_asked(const struct http_conn *c)
{
	char first;

	return (!c->tls || c->served) && recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int idle_step(struct http_conn *c)
{
	if (evbuffer_get_length(conn_input(c)) > 0) {
		parse_begin(c);
		conn_set_state(c, CONN_HEAD);
		return 1;
	}
	/* A client that has received a reply knows that a kept connection may close, and
	 * connects again. A client that has just connected would take a close for a refusal. */
	if (c->eof || c->cut ||
	    (c->req.server->draining && (c->asked || c->served) && !is_asked(c)))
		conn_set_state(c, CONN_DEAD);
	return 0;
}

/* After a switch of protocols: passes bytes on until the peer has sent all. */
static int raw_step(struct http_conn *c)
{
	struct evbuffer *in = conn_input(c);
	struct http_req *r = &c->req;
	struct evbuffer_iovec v;

	if (evbuffer_peek(in, -1, NULL, &v, 1) < 1 || v.iov_len == 0) {
		c->body_done = c->eof;
		return c->eof;
	}
	if (r->on_body)
		r->on_body(r, v.iov_base, v.iov_len);
	evbuffer_drain(in, v.iov_len);
	r->server->bytes_in += v.iov_len;
	return 1;
}

/* Passes body bytes to the handler that requested them, and drops them while the reply is being
 * discarded. */
static int body_step(struct http_conn *c)
{
	struct http_req *r = &c->req;

	if (c->body_done) {
		if (c->end_told || c->how == HTTP_BODY_NONE || splice_holds(c))
			return 0;
		c->end_told = 1;
		splice_close(c);
		if (r->on_body_end)
			r->on_body_end(r);
		return 1;
	}
	if (c->paused || (c->how == HTTP_BODY_NONE && !c->discard))
		return 0;
	if (c->expect && c->reply == REPLY_NONE && evbuffer_get_length(conn_input(c)) == 0)
		conn_send(c, &(struct iovec){ "HTTP/1.1 100 Continue\r\n\r\n", 25 }, 1);
	c->expect = 0;
	if (c->raw)
		return raw_step(c);
	return splice_possible(c) ? splice_read(c) : parse_body(c);
}

static int drain_step(struct http_conn *c)
{
	if (!c->full || conn_waiting(c) > c->req.server->limits.out_high / 2)
		return 0;
	c->full = 0;
	if (c->req.on_drain)
		c->req.on_drain(&c->req);
	return 1;
}

/* Calls the handler's continuation, before any other callback. */
static int then_step(struct http_conn *c)
{
	void (*then)(struct http_req * r) = c->then;

	c->then = NULL;
	then(&c->req);
	return 1;
}

static int busy_step(struct http_conn *c)
{
	conn_flush(c);
	if (c->cut) {
		conn_set_state(c, CONN_DEAD);
		return 0;
	}
	if (c->then)
		return then_step(c);
	if (c->reply == REPLY_DONE) {
		if (conn_waiting(c) > 0)
			return 0;
		tell_over(c);
		if (c->discard && !c->body_done && !c->eof)
			return body_step(c);
		conn_finish(c);
		return 1;
	}
	if (c->eof && !c->eof_told) {
		c->eof_told = 1;
		if (c->req.on_eof)
			c->req.on_eof(&c->req);
		return 1;
	}
	return splice_write(c) || body_step(c) || drain_step(c);
}

static int linger_step(struct http_conn *c)
{
	struct evbuffer *in = conn_input(c);

	evbuffer_drain(in, evbuffer_get_length(in));
	if (c->eof || c->cut)
		conn_set_state(c, CONN_DEAD);
	return 0;
}

static int conn_step(struct http_conn *c)
{
	switch (c->state) {
	case CONN_IDLE:
		return idle_step(c);
	case CONN_HEAD:
		return parse_head(c);
	case CONN_BUSY:
		return busy_step(c);
	case CONN_WS:
		return ws_go(c);
	case CONN_LINGER:
		return linger_step(c);
	case CONN_DEAD:
		break;
	}
	return 0;
}

/* Reads while there is room. libevent's own high watermark stops reading, too, but then it calls
 * back again and again until the waiting bytes are taken. */
static void set_reading(struct http_conn *c)
{
	int want = !c->eof && evbuffer_get_length(conn_input(c)) < IN_HIGH && !splice_possible(c);

	if (want == c->reading)
		return;
	c->reading = want;
	if (want)
		bufferevent_enable(c->bev, EV_READ);
	else
		bufferevent_disable(c->bev, EV_READ);
}

/* 0: other connections get their turn: after the limit of steps or of time, or because the
 * handler requested it. */
static int has_turn(const struct http_conn *c, unsigned steps)
{
	return steps < STEPS_PER_WAKE && !c->then &&
	       (steps % STEPS_PER_LOOK || !loop_work_is_long(c->req.server->loop));
}

void conn_advance(struct http_conn *c)
{
	unsigned steps = 0;
	int more;

	if (c->running)
		return;
	c->running = 1;
	if (c->cut && c->state != CONN_BUSY && c->state != CONN_WS && c->state != CONN_DEAD)
		conn_set_state(c, CONN_DEAD);
	do
		more = conn_step(c);
	while (more && has_turn(c, ++steps));
	c->running = 0;
	if (c->state != CONN_DEAD && (more || c->then))
		conn_schedule(c);
	if (c->state != CONN_DEAD)
		set_reading(c);
	else if (!c->kicked)
		conn_free(c);
}

void conn_schedule(struct http_conn *c)
{
	struct kicks *k;

	if (c->kicked || c->running) /* conn_advance() is running or scheduled and checks again
				      * by itself */
		return;
	k = &c->req.server->core->kicks[loop_budget_exceeded(c->req.server->loop, conn_budget(c))];
	c->kicked = 1;
	c->next_kicked = NULL;
	if (!k->first)
		timer_set(&k->timer, 0);
	*k->end = c;
	k->end = &c->next_kicked;
}

/* Runs conn_advance() now, or after all other work if its budget is exceeded. libevent could serve
 * the socket itself at a lower priority, but bufferevent_priority_set() changes the priority of
 * callbacks that are queued already, which loses events and makes the loop spin. */
static void conn_wake(struct http_conn *c)
{
	struct loop *l = c->req.server->loop;

	if (c->running)
		return;
	loop_work_begin(l, conn_budget(c));
	if (loop_work_is_late(l)) {
		/* No more is read until conn_advance() has run: a client that sends without end
		 * would fill the memory, and its reads would delay that run without limit. */
		c->reading = 0;
		bufferevent_disable(c->bev, EV_READ);
		conn_schedule(c);
	} else {
		conn_advance(c);
	}
	loop_work_end(l);
}

/* ---- libevent's side ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	conn_wake(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
	struct http_conn *c = arg;

	if (c->armed && conn_waiting(c) == 0) {
		c->armed = 0;
		bufferevent_disable(bev, EV_WRITE);
	}
	conn_wake(c);
}

/* The peer has ended its direction of a connection without HTTP, by a close_notify. */
static int conn_is_half_closed(const struct http_conn *c)
{
	return c->raw &&
	       SSL_get_shutdown(bufferevent_openssl_get_ssl(c->bev)) & SSL_RECEIVED_SHUTDOWN;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *c = arg;

	(void)bev;
	if (what & BEV_EVENT_CONNECTED) {
		c->handshake = 0;
		c->stamp = 0;
		return;
	}
	/* An end of file alone may come from a peer that has sent its whole request and still
	 * reads. Under TLS that is so only after a switch of protocols. */
	if (!(what & BEV_EVENT_EOF) || (c->tls && !conn_is_half_closed(c)))
		c->cut = 1;
	c->eof = 1;
	c->reading = 0; /* libevent has stopped reading ... */
	if (c->tls && !c->cut)
		bufferevent_enable(bev, EV_WRITE); /* ... and, under TLS, writing */
	conn_wake(c);
}

void conn_watch(struct http_conn *c)
{
	bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, IN_HIGH);
	bufferevent_setwatermark(c->bev, EV_WRITE, c->req.server->limits.out_high / 2, 0);
	/* libevent moves 16 KiB per wake-up by default, which halves the rate of a stream. With TLS it must write no
	 * more than one record at a time: it takes a write of a part for one of the whole. */
	bufferevent_set_max_single_read(c->bev, IN_HIGH);
	if (!c->tls)
		bufferevent_set_max_single_write(c->bev, OUT_SINGLE);
	if (c->tls)
		bufferevent_openssl_set_allow_dirty_shutdown(c->bev, 1);
	else
		bufferevent_disable(c->bev, EV_WRITE); /* conn_flush() enables it */
	set_reading(c);
}
