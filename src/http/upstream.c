/* upstream.c - see upstream.h. */
#include "http/upstream.h"
#include "http/relay.h"

#include <stdio.h>
#include <string.h>

static size_t upstream_waiting(const struct upstream *u)
{
	return u->out.len - u->out_at;
}

static int upstream_wants_write(const struct upstream *u)
{
	if (u->read_wants_write && !u->paused)
		return 1;
	return !u->deaf && !u->write_wants_read &&
	       (upstream_waiting(u) || (u->shut && !u->shut_done));
}

static void set_wants(struct upstream *u)
{
	if (u->link.fd >= 0)
		watch_want(&u->watch, (u->paused && !u->write_wants_read ? 0 : LOOP_READ) |
					      (upstream_wants_write(u) ? LOOP_WRITE : 0));
}

/* Stops all events of the connection, and returns it. */
static struct upstream_link upstream_detach(struct upstream *u)
{
	struct upstream_link link = u->link;

	watch_stop(&u->watch);
	timer_fini(&u->clock);
	u->link = upstream_link_plain(-1);
	buf_fini(&u->out);
	u->out_at = 0;
	return link;
}

static void hang_up(struct upstream *u)
{
	struct upstream_link link;

	if (u->link.fd < 0)
		return;
	link = upstream_detach(u);
	upstream_link_close(&link);
}

/* The request was sent, its answer is complete, and the server keeps the connection. */
static int upstream_is_reusable(const struct upstream *u)
{
	return u->sent && !u->raw && !u->until_close && !u->deaf && !u->shut &&
	       upstream_waiting(u) == 0 && u->answer.done && u->answer.keep_alive &&
	       u->ended == LINK_OK && !u->more;
}

static void upstream_finish(struct upstream *u, const char *why)
{
	if (!why && u->link.fd >= 0 && upstream_is_reusable(u))
		u->spare = upstream_detach(u);
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
	size_t sent;
	enum link_result result = upstream_link_write(&u->link, iov, n, &sent);

	if (result == LINK_BROKEN || result == LINK_END)
		set_deaf(u);
	u->write_wants_read = result == LINK_WANTS_READ;
	if (sent > 0)
		u->moved_ms = loop_now_ms();
	return sent;
}

static void shut_if_done(struct upstream *u)
{
	enum link_result result;

	if (!u->shut || u->shut_done || upstream_waiting(u) > 0 || u->link.fd < 0)
		return;
	result = upstream_link_shut(&u->link); /* fails only if the connection is already broken */
	u->shut_done = result != LINK_WANTS_WRITE && result != LINK_WANTS_READ;
}

static int upstream_put(struct upstream *u, const struct iovec *iov, unsigned n)
{
	size_t skip;

	if (u->link.fd < 0 || u->deaf || u->shut)
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
	set_wants(u);
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

/* What the descriptor does not show is read after other work, by the timer. */
static void upstream_read_more(struct upstream *u)
{
	if (u->more && !u->paused && u->link.fd >= 0)
		timer_set(&u->clock, 0);
}

/* Keeps a result that comes with bytes for the next call: the bytes are passed on first. */
static enum link_result upstream_read(struct upstream *u, char *bytes, size_t n, size_t *out_got)
{
	enum link_result result = u->ended;

	*out_got = 0;
	if (result == LINK_OK)
		result = upstream_link_read(&u->link, bytes, n, out_got);
	if (*out_got > 0 && (result == LINK_END || result == LINK_BROKEN))
		u->ended = result;
	u->read_wants_write = result == LINK_WANTS_WRITE;
	u->more = result == LINK_OK || u->ended != LINK_OK;
	return *out_got > 0 ? LINK_OK : result;
}

static void upstream_readable(struct upstream *u)
{
	static char piece
		[UPSTREAM_PIECE]; /* shared by all connections: the bytes are passed on at once */
	size_t n;
	enum link_result result = upstream_read(u, piece, sizeof(piece), &n);

	set_wants(u);
	if (result == LINK_BROKEN) {
		upstream_finish(u, "the connection broke");
	} else if (result == LINK_END) {
		upstream_ended(u);
	} else if (result == LINK_OK) {
		upstream_read_more(u);
		if (u->raw)
			u->on->body(u, piece, n);
		else
			upstream_feed(u, piece, n);
	}
}

static void upstream_ready(struct watch *w, unsigned what)
{
	struct upstream *u = loop_owner(w, struct upstream, watch);

	if (what == LOOP_READ && u->write_wants_read) {
		u->write_wants_read = 0;
		upstream_writable(u);
	}
	if (what == LOOP_READ || (u->read_wants_write && !u->paused)) {
		if (!u->paused)
			upstream_readable(u);
	} else {
		upstream_writable(u);
	}
}

/* A server that sends its head byte by byte gets no more time for it than a silent one. */
static int upstream_is_late(struct upstream *u)
{
	uint64_t now = loop_now_ms(), end = u->moved_ms + u->head_ms;

	if (u->answer.head_done || u->raw)
		return 0;
	if (now < end)
		timer_set(&u->clock, end - now);
	return now >= end;
}

static void upstream_look(struct timer *t)
{
	struct upstream *u = loop_owner(t, struct upstream, clock);

	if (upstream_is_late(u))
		upstream_finish(u, RELAY_LATE);
	else if (u->more && !u->paused)
		upstream_readable(u);
}

/* ---- life ---- */

void upstream_init(struct upstream *u, struct loop *l, struct upstream_link take_link,
		   uint32_t head_ms, const struct upstream_events *on)
{
	memset(u, 0, sizeof(*u));
	u->link = take_link;
	u->spare = upstream_link_plain(-1);
	upstream_link_init(&u->link);
	u->on = on;
	u->head_ms = head_ms;
	u->moved_ms = loop_now_ms();
	response_init(&u->answer, &u->got);
	u->answer.on_head = saw_head;
	u->answer.on_body = saw_body;
	u->answer.user = u;
	watch_init(&u->watch, l, take_link.fd, upstream_ready);
	timer_init(&u->clock, l, upstream_look);
	u->more = upstream_link_has_buffered(&u->link);
	timer_set(&u->clock, u->more ? 0 : head_ms);
	set_wants(u);
}

void upstream_init_raw(struct upstream *u, struct loop *l, struct upstream_link take_link,
		       const struct upstream_events *on)
{
	upstream_init(u, l, take_link, 0, on);
	u->raw = 1;
	if (!u->more)
		timer_clear(&u->clock);
}

void upstream_pause(struct upstream *u, int paused)
{
	u->paused = paused != 0;
	set_wants(u);
	upstream_read_more(u);
}

void upstream_close(struct upstream *u)
{
	if (!u->on)
		return;
	hang_up(u);
	upstream_link_close(&u->spare);
	buf_fini(&u->out);
	response_fini(&u->answer);
	http_answer_fini(&u->got);
	u->on = NULL;
}
