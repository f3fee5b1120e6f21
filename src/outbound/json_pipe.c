/* json_pipe.c - see json_pipe.h. */
#include "outbound/json_pipe.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD = 4, A_TURN = 256 << 10, BODY_MARK = 0x80 };

static void pipe_breaks(struct json_pipe *p)
{
	if (p->broken)
		return;
	p->broken = 1;
	watch_want(&p->watch, 0);
	timer_set(&p->gone_soon, 0); /* never from within a call by the owner */
}

static void gone_now(struct timer *t)
{
	struct json_pipe *p = loop_owner(t, struct json_pipe, gone_soon);

	p->gone(p);
}

static void write_some(struct json_pipe *p)
{
	while (p->out_at < p->out.len) {
		ssize_t n = send(p->fd, p->out.p + p->out_at, p->out.len - p->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			pipe_breaks(p);
		if (n < 0)
			break;
		p->out_at += (size_t)n;
	}
	if (p->out_at == p->out.len) {
		buf_cut(&p->out, 0);
		p->out_at = 0;
	}
	if (!p->broken)
		watch_want(&p->watch, LOOP_READ | (p->out.len ? LOOP_WRITE : 0));
}

static void pipe_add(struct json_pipe *p, const char *text, size_t n, uint8_t mark)
{
	uint8_t head[HEAD] = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
			       (uint8_t)(n >> 24) | mark };

	buf_add(&p->out, head, sizeof(head));
	buf_add(&p->out, text, n);
}

void json_pipe_send_body(struct json_pipe *p, json_t *take_message, const char *body, size_t n)
{
	char *text = json_dumps(take_message, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	json_decref(take_message);
	if (!text || len > PIPE_MESSAGE || n > PIPE_MESSAGE ||
	    p->out.len - p->out_at > PIPE_WAITING) {
		pipe_breaks(p);
	} else if (!p->broken) {
		pipe_add(p, text, len, body ? BODY_MARK : 0);
		if (body)
			pipe_add(p, body, n, 0);
		/* All messages of one turn of the loop are written together, and wake the peer once. */
		if (!timer_pending(&p->write_soon))
			timer_set(&p->write_soon, 0);
	}
	free(text);
}

void json_pipe_send(struct json_pipe *p, json_t *take_message)
{
	json_pipe_send_body(p, take_message, NULL, 0);
}

/* One part of a message at *at: 1 and *at is after it; 0: not complete. */
static int pipe_part(struct json_pipe *p, size_t *at, const char **text, size_t *n, int *mark)
{
	const uint8_t *b = (const uint8_t *)p->in.p + *at;

	if (p->in.len - *at < HEAD)
		return 0;
	*n = (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 |
	     (size_t)(b[3] & ~BODY_MARK) << 24;
	*mark = b[3] & BODY_MARK;
	if (*n > PIPE_MESSAGE) {
		pipe_breaks(p);
		return 0;
	}
	if (p->in.len - *at - HEAD < *n)
		return 0;
	*text = (const char *)b + HEAD;
	*at += HEAD + *n;
	return 1;
}

/* Bytes taken. */
static size_t take_messages(struct json_pipe *p)
{
	size_t taken = 0;

	while (!p->broken) {
		const char *text, *body = NULL;
		size_t at = taken, n, body_n = 0;
		int mark, more;
		json_t *m;

		if (!pipe_part(p, &at, &text, &n, &mark) ||
		    (mark && !pipe_part(p, &at, &body, &body_n, &more)))
			break;
		taken = at;
		m = json_loadb(text, n, 0, NULL);
		if (json_is_object(m) &&
		    (!body || json_object_set_new(m, "body", json_stringn(body, body_n)) == 0))
			p->message(p, m);
		else
			pipe_breaks(p);
		json_decref(m);
	}
	return taken;
}

static void read_some(struct json_pipe *p)
{
	ssize_t n = recv(p->fd, buf_space(&p->in, A_TURN), A_TURN, MSG_DONTWAIT);
	size_t taken;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		pipe_breaks(p);
		return;
	}
	buf_grew(&p->in, (size_t)n);
	taken = take_messages(p);
	if (taken) {
		memmove(p->in.p, p->in.p + taken, p->in.len - taken);
		buf_cut(&p->in, p->in.len - taken);
	}
	if (!p->in.len && p->in.room > 2 * A_TURN)
		buf_fini(&p->in); /* a large buffer is freed after use */
}

static void pipe_ready(struct watch *w, unsigned what)
{
	struct json_pipe *p = loop_owner(w, struct json_pipe, watch);

	if (what == LOOP_WRITE)
		write_some(p);
	else
		read_some(p);
}

static void write_now(struct timer *t)
{
	struct json_pipe *p = loop_owner(t, struct json_pipe, write_soon);

	if (!p->broken)
		write_some(p);
}

void json_pipe_init(struct json_pipe *p, struct loop *l, int take_fd)
{
	*p = (struct json_pipe){ .fd = take_fd, .message = p->message, .gone = p->gone };
	watch_init(&p->watch, l, take_fd, pipe_ready);
	timer_init(&p->gone_soon, l, gone_now);
	timer_init(&p->write_soon, l, write_now);
	watch_want(&p->watch, LOOP_READ);
}

void json_pipe_fini(struct json_pipe *p)
{
	watch_stop(&p->watch);
	timer_fini(&p->gone_soon);
	timer_fini(&p->write_soon);
	own_close_fd(&p->fd);
	buf_fini(&p->in);
	buf_fini(&p->out);
}
