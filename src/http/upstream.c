/* upstream.c - see upstream.h. */
#include "http/upstream.h"
#include "http/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t upstream_waiting(const struct upstream *u)
{
	return u->out.len - u->out_at;
}

static void set_wants(struct upstream *u)
{
	if (u->fd >= 0)
		watch_want(&u->watch, (u->paused ? 0 : LOOP_READ) |
					      (upstream_waiting(u) && !u->deaf ? LOOP_WRITE : 0));
}

static void hang_up(struct upstream *u)
{
	if (u->fd < 0)
		return;
	watch_stop(&u->watch);
	timer_fini(&u->clock);
	close(u->fd);
	u->fd = -1;
	buf_fini(&u->out);
	u->out_at = 0;
}

/* The request was sent, its answer is complete, and the server keeps the connection. */
static int upstream_is_reusable(const struct upstream *u)
{
	return u->sent && !u->raw && !u->until_close && !u->deaf && !u->shut &&
	       upstream_waiting(u) == 0 && u->answer.done && u->answer.keep_alive;
}

static void upstream_finish(struct upstream *u, const char *why)
{
	if (!why && u->fd >= 0 && upstream_is_reusable(u)) {
		u->spare = u->fd;
		watch_stop(&u->watch);
		timer_fini(&u->clock);
		u->fd = -1;
		buf_fini(&u->out);
		u->out_at = 0;
	}
	hang_up(u);
	u->on->over(u, why);
}

/* ---- the question ---- */

/* The server may have answered before it stopped reading, so the error is reported by the
 * reading side. */
static void set_deaf(struct upstream *u)
{
	u->deaf = 1;
	buf_fini(&u->out);
	u->out_at = 0;
}

static size_t try_send(struct upstream *u, const struct iovec *iov, unsigned n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t sent = sendmsg(u->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		set_deaf(u);
	if (sent <= 0)
		return 0;
	u->moved_ms = loop_now_ms();
	return (size_t)sent;
}

static void shut_if_done(struct upstream *u)
{
	if (u->shut && upstream_waiting(u) == 0 && u->fd >= 0)
		(void)shutdown(u->fd, SHUT_WR); /* fails only if the connection is already broken */
}

static int upstream_put(struct upstream *u, const struct iovec *iov, unsigned n)
{
	size_t skip;

	if (u->fd < 0 || u->deaf || u->shut)
		return 0;
	skip = upstream_waiting(u) ? 0 : try_send(u, iov, n);
	for (unsigned i = 0; i < n && !u->deaf; i++) {
		size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= gone;
		buf_add(&u->out, (const char *)iov[i].iov_base + gone, iov[i].iov_len - gone);
	}
	u->full |= upstream_waiting(u) > UPSTREAM_HIGH; /* until drain() */
	set_wants(u);
	return u->full;
}

/* The rest is moved to the start of the buffer only when it is the smaller part. */
static void upstream_took(struct upstream *u, size_t n)
{
	u->out_at += n;
	if (upstream_waiting(u) == 0) {
		buf_fini(&u->out);
		u->out_at = 0;
	} else if (u->out_at > u->out.len / 2) {
		memmove(u->out.p, u->out.p + u->out_at, upstream_waiting(u));
		buf_cut(&u->out, upstream_waiting(u));
		u->out_at = 0;
	}
}

static void upstream_writable(struct upstream *u)
{
	struct iovec rest = { u->out.p + u->out_at, upstream_waiting(u) };
	size_t sent = rest.iov_len ? try_send(u, &rest, 1) : 0;

	if (!u->deaf)
		upstream_took(u, sent);
	shut_if_done(u);
	set_wants(u);
	if (u->full && !u->deaf && upstream_waiting(u) <= UPSTREAM_HIGH / 2) {
		u->full = 0;
		u->on->drain(u);
	}
}

void upstream_ask(struct upstream *u, const struct upstream_question *q)
{
	u->chunked = q->chunked != 0;
	u->upgrade = q->upgrade != 0;
	u->answer.head_only = q->no_body;
	upstream_put(u, &(struct iovec){ (void *)q->head, q->len }, 1);
}

int upstream_body(struct upstream *u, const char *bytes, size_t n)
{
	char size[24];
	struct iovec out[3] = { { size, 0 }, { (void *)bytes, n }, { "\r\n", 2 } };

	if (n == 0) /* an empty chunk would be the last one */
		return u->full;
	if (!u->chunked || u->raw)
		return upstream_put(u, out + 1, 1);
	out[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", n);
	return upstream_put(u, out, 3);
}

void upstream_body_end(struct upstream *u)
{
	u->sent = 1;
	if (u->chunked && !u->raw)
		upstream_put(u, &(struct iovec){ "0\r\n\r\n", 5 }, 1);
}

void upstream_shut(struct upstream *u)
{
	u->shut = 1;
	shut_if_done(u);
}

/* ---- the answer ---- */

static int saw_head(void *user, const struct http_answer *a)
{
	struct upstream *u = user;

	if (a->status == 101 && !u->upgrade)
		u->not_taken = "it changes the protocol without a request for it";
	else
		u->not_taken = u->on->head(u, a);
	return u->not_taken != NULL;
}

static int saw_body(void *user, const char *bytes, size_t n)
{
	struct upstream *u = user;

	u->on->body(u, bytes, n);
	return 0;
}

static const char *why_not(const struct upstream *u)
{
	return u->not_taken ? u->not_taken : u->answer.why ? u->answer.why : "it is not an answer";
}

static void upstream_feed(struct upstream *u, const char *bytes, size_t n)
{
	ssize_t used = response_feed(&u->answer, bytes, n);

	if (used < 0) {
		upstream_finish(u, why_not(u));
		return;
	}
	if (u->answer.head_done && u->answer.text.p)
		buf_fini(&u->answer.text); /* passed on; a stream may last for days */
	if (!u->answer.done)
		return;
	if (u->got.status != 101) {
		u->shut |= (size_t)used < n; /* bytes after the answer belong to no request */
		upstream_finish(u, NULL);
		return;
	}
	u->raw = 1;
	if ((size_t)used < n)
		u->on->body(u, bytes + used, n - (size_t)used);
}

static void upstream_ended(struct upstream *u)
{
	if (u->raw) {
		upstream_finish(u, NULL);
	} else if (response_end(&u->answer) < 0) {
		upstream_finish(u, why_not(u));
	} else {
		u->until_close = 1;
		upstream_finish(u, NULL);
	}
}

static void upstream_readable(struct upstream *u)
{
	static char piece
		[UPSTREAM_PIECE]; /* shared by all connections: the bytes are passed on at once */
	ssize_t n = recv(u->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		upstream_finish(u, "the connection broke");
	else if (n == 0)
		upstream_ended(u);
	else if (u->raw)
		u->on->body(u, piece, (size_t)n);
	else
		upstream_feed(u, piece, (size_t)n);
}

static void upstream_ready(struct watch *w, unsigned what)
{
	struct upstream *u = loop_owner(w, struct upstream, watch);

	if (what == LOOP_READ)
		upstream_readable(u);
	else
		upstream_writable(u);
}

/* A server that sends its head byte by byte gets no more time for it than a silent one. */
static void upstream_look(struct timer *t)
{
	struct upstream *u = loop_owner(t, struct upstream, clock);
	uint64_t now = loop_now_ms(), end = u->moved_ms + u->head_ms;

	if (u->answer.head_done)
		return;
	if (now >= end)
		upstream_finish(u, RELAY_LATE);
	else
		timer_set(&u->clock, end - now);
}

/* ---- life ---- */

void upstream_init(struct upstream *u, struct loop *l, int take_fd, uint32_t head_ms,
		   const struct upstream_events *on)
{
	memset(u, 0, sizeof(*u));
	u->fd = take_fd;
	u->spare = -1;
	u->on = on;
	u->head_ms = head_ms;
	u->moved_ms = loop_now_ms();
	response_init(&u->answer, &u->got);
	u->answer.on_head = saw_head;
	u->answer.on_body = saw_body;
	u->answer.user = u;
	watch_init(&u->watch, l, take_fd, upstream_ready);
	timer_init(&u->clock, l, upstream_look);
	timer_set(&u->clock, head_ms);
	set_wants(u);
}

void upstream_init_raw(struct upstream *u, struct loop *l, int take_fd,
		       const struct upstream_events *on)
{
	upstream_init(u, l, take_fd, 0, on);
	u->raw = 1;
	timer_clear(&u->clock);
}

void upstream_pause(struct upstream *u, int paused)
{
	u->paused = paused != 0;
	set_wants(u);
}

void upstream_close(struct upstream *u)
{
	if (!u->on)
		return;
	hang_up(u);
	if (u->spare >= 0)
		close(u->spare);
	u->spare = -1;
	buf_fini(&u->out);
	response_fini(&u->answer);
	http_answer_fini(&u->got);
	u->on = NULL;
}
