/* splice.c - a body that passes through a pipe and not through the server's memory.
 *
 *   request   socket ==splice==> pipe     TLS, chunks, what was read ahead: parser --write--> pipe
 *   reply     pipe ==splice==> socket     TLS: pipe --read--> what waits for the peer
 *
 * One splice per wake-up, of at most one pipe's capacity: then other connections have their
 * turn. EAGAIN does not show which of the two ends is not ready; poll() of the pipe does, and
 * the loop then waits for that end. The process at the other end of the pipe is not trusted:
 * neither of our ends blocks, the server takes exactly the announced number of bytes, and
 * missing bytes cut the connection. */
#include "http/conn.h"
#include "base/cleanup.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <poll.h>

enum { PART = 1 << 20, COPY = 64 << 10 };

struct splice {
	struct http_conn *conn;
	struct watch pipe, sock;
	struct buf rest; /* request, copied: bytes that did not fit into the pipe */
	size_t rest_at;
	int out;    /* a reply */
	int broken; /* the pipe no longer has a reader */
	int copies; /* splice(2) does not support these descriptors */
};

void splice_close(struct http_conn *c)
{
	struct splice *t = c->splice;

	if (!t)
		return;
	c->splice = NULL;
	watch_stop(&t->pipe);
	watch_stop(&t->sock);
	own_close_fd(&t->pipe.fd);
	buf_fini(&t->rest);
}

static void wait_for(struct splice *t, unsigned pipe, unsigned sock)
{
	watch_want(&t->pipe, pipe);
	watch_want(&t->sock, sock);
}

static int pipe_is_ready(const struct splice *t)
{
	struct pollfd p = { .fd = t->pipe.fd, .events = t->out ? POLLIN : POLLOUT };

	return poll(&p, 1, 0) == 1;
}

static size_t splice_part(uint64_t left, size_t most)
{
	return left < most ? (size_t)left : most;
}

/* ---- in ---- */

/* full 1: stops reading the body until the pipe accepts bytes; 0: continues. */
static void set_full(struct splice *t, unsigned full)
{
	struct http_conn *c = t->conn;

	if (c->paused == full)
		return;
	c->paused = full;
	c->stamp = 0;
	wait_for(t, full && !t->broken ? LOOP_WRITE : 0, 0);
	if (c->req.on_full)
		c->req.on_full(&c->req, (int)full);
}

/* The reader closed the pipe and reports the reason elsewhere. Until then this side waits. */
static void set_broken(struct splice *t)
{
	t->broken = 1;
	buf_cut(&t->rest, 0);
	t->rest_at = 0;
	set_full(t, 1);
	wait_for(t, 0, 0);
}

int splice_possible(const struct http_conn *c)
{
	const struct splice *t = c->splice;

	return t && !t->out && !t->copies && !c->tls && !c->stopped && !c->body_done &&
	       c->req.length != UINT64_MAX && evbuffer_get_length(conn_input(c)) == 0;
}

static int in_failed(struct splice *t, int err)
{
	struct http_conn *c = t->conn;

	if (err == EAGAIN && pipe_is_ready(t)) {
		wait_for(t, 0, LOOP_READ);
	} else if (err == EAGAIN) {
		set_full(t, 1);
	} else if (err == EPIPE) {
		set_broken(t);
	} else if (err == EINVAL) {
		t->copies = 1;
		wait_for(t, 0, 0);
		return 1;
	} else if (err != EINTR) {
		conn_cut(c, 0);
		return 1;
	}
	return 0;
}

int splice_read(struct http_conn *c)
{
	struct splice *t = c->splice;
	ssize_t n = splice(c->fd, NULL, t->pipe.fd, NULL,
			   splice_part(c->req.length - c->body_got, PART),
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return in_failed(t, errno);
	if (n == 0) {
		c->eof = 1;
		reply_error(c, 400, "the body ended before its announced end");
		return 1;
	}
	c->stamp = 0;
	c->body_got += (size_t)n;
	c->req.server->bytes_in += (size_t)n;
	c->body_done = c->body_got == c->req.length;
	wait_for(t, 0, LOOP_READ);
	return c->body_done;
}

int splice_holds(const struct http_conn *c)
{
	return c->splice && c->splice->rest_at < c->splice->rest.len;
}

/* Returns how many bytes the pipe accepted. */
static size_t splice_give(struct splice *t, const char *bytes, size_t n)
{
	ssize_t w = write(t->pipe.fd, bytes, n);

	if (w < 0 && errno != EAGAIN && errno != EINTR)
		set_broken(t);
	return w < 0 ? 0 : (size_t)w;
}

void splice_take(struct http_conn *c, const char *bytes, size_t n)
{
	struct splice *t = c->splice;
	size_t taken = t->broken || splice_holds(c) ? 0 : splice_give(t, bytes, n);

	if (taken == n || t->broken)
		return;
	buf_add(&t->rest, bytes + taken, n - taken);
	set_full(t, 1);
}

static void flush_rest(struct splice *t)
{
	t->rest_at += splice_give(t, t->rest.p + t->rest_at, t->rest.len - t->rest_at);
	if (t->rest_at < t->rest.len)
		return;
	t->rest_at = 0;
	buf_cut(&t->rest, 0);
}

/* ---- out ---- */

int splice_is_stuck(const struct http_conn *c)
{
	return c->splice && c->splice->out && c->splice->sock.wants;
}

/* Copies through memory, for TLS; splice_write() waits while the peer has unsent bytes. */
static ssize_t copy_out(struct splice *t, size_t most)
{
	static char bytes[COPY];
	ssize_t n = read(t->pipe.fd, bytes, most);

	if (n > 0)
		conn_send(t->conn, &(struct iovec){ bytes, (size_t)n }, 1);
	return n;
}

static ssize_t splice_out(struct splice *t, size_t most)
{
	ssize_t n = splice(t->pipe.fd, NULL, t->conn->fd, NULL, most,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n > 0)
		conn_account(t->conn, (size_t)n);
	return n;
}

static int out_failed(struct splice *t, int err)
{
	if (err == EAGAIN && !t->copies && pipe_is_ready(t)) {
		wait_for(t, 0, LOOP_WRITE);
	} else if (err == EAGAIN || err == EINTR) {
		wait_for(t, LOOP_READ, 0);
	} else if (err == EINVAL && !t->copies) {
		t->copies = 1;
		return 1;
	} else {
		conn_cut(t->conn, 0);
		return 1;
	}
	return 0;
}

int splice_write(struct http_conn *c)
{
	struct splice *t = c->splice;
	uint32_t high = c->req.server->limits.out_high;
	ssize_t n;

	if (!t || !t->out)
		return 0;
	if (conn_waiting(c) > (t->copies ? high / 2 : 0)) {
		wait_for(t, 0, 0);
		return 0;
	}
	n = t->copies ? copy_out(t, splice_part(c->reply_left, COPY))
		      : splice_out(t, splice_part(c->reply_left, PART));
	if (n < 0)
		return out_failed(t, errno);
	if (n == 0) {
		conn_cut(c, 1); /* the pipe ended before the announced length */
		return 1;
	}
	c->reply_left -= (size_t)n;
	if (c->reply_left == 0) {
		http_end(&c->req);
		return 1;
	}
	wait_for(t, LOOP_READ, 0);
	return 0;
}

/* ---- the loop's side ---- */

static void pipe_ready(struct watch *w, unsigned what)
{
	struct splice *t = loop_owner(w, struct splice, pipe);
	struct http_conn *c = t->conn;

	(void)what;
	if (!t->out) {
		if (splice_holds(c))
			flush_rest(t);
		if (!splice_holds(c) && !t->broken)
			set_full(t, 0);
	}
	conn_advance(c);
}

static void sock_ready(struct watch *w, unsigned what)
{
	(void)what;
	conn_advance(loop_owner(w, struct splice, sock)->conn);
}

static void open_splice(struct http_conn *c, int take_fd, int out)
{
	struct splice *t = arena_alloc(&c->arena, sizeof(*t));

	*t = (struct splice){ .conn = c, .out = out, .copies = out && c->tls };
	watch_init(&t->pipe, c->req.server->loop, take_fd, pipe_ready);
	watch_init(&t->sock, c->req.server->loop, c->fd, sock_ready);
	t->pipe.budget = t->sock.budget = conn_budget(c);
	(void)!fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
	c->splice = t;
	conn_schedule(c);
}

void http_stream_pipe(struct http_req *r, int take_fd)
{
	struct http_conn *c = r->conn;
	auto_fd int fd = take_fd;

	if (c->reply != REPLY_STREAM || c->cut || c->bodyless || c->splice || c->chunked ||
	    c->reply_left == UINT64_MAX)
		return;
	if (c->reply_left == 0)
		http_end(r);
	else
		open_splice(c, steal_fd(&fd), 1);
}

void http_body_pipe(struct http_req *r, int take_fd, uint64_t max)
{
	struct http_conn *c = r->conn;
	auto_fd int fd = take_fd;

	if (c->reply != REPLY_NONE || c->cut || c->splice)
		return;
	open_splice(c, steal_fd(&fd), 0);
	http_want_body(r, HTTP_BODY_STREAM, max);
}
