/* json_pipe.c - see json_pipe.h. */
#include "outbound/json_pipe.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD = 4, A_TURN = 256 << 10 };

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

void json_pipe_send(struct json_pipe *p, json_t *take_message)
{
	char *text = json_dumps(take_message, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;
	uint8_t head[HEAD] = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
			       (uint8_t)(n >> 24) };

	json_decref(take_message);
	if (!text || n > PIPE_MESSAGE || p->out.len - p->out_at > PIPE_WAITING) {
		pipe_breaks(p);
	} else if (!p->broken) {
		buf_add(&p->out, head, sizeof(head));
		buf_add(&p->out, text, n);
		write_some(p);
	}
	free(text);
}

static size_t length_at(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

/* Bytes taken. */
static size_t take_messages(struct json_pipe *p)
{
	size_t at = 0;

	while (!p->broken && p->in.len - at >= HEAD) {
		size_t n = length_at(p->in.p + at);
		json_t *m;

		if (n > PIPE_MESSAGE) {
			pipe_breaks(p);
			break;
		}
		if (p->in.len - at - HEAD < n)
			break;
		m = json_loadb(p->in.p + at + HEAD, n, 0, NULL);
		at += HEAD + n;
		if (json_is_object(m))
			p->message(p, m);
		else
			pipe_breaks(p);
		json_decref(m);
	}
	return at;
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

void json_pipe_init(struct json_pipe *p, struct loop *l, int take_fd)
{
	*p = (struct json_pipe){ .fd = take_fd, .message = p->message, .gone = p->gone };
	watch_init(&p->watch, l, take_fd, pipe_ready);
	timer_init(&p->gone_soon, l, gone_now);
	watch_want(&p->watch, LOOP_READ);
}

void json_pipe_fini(struct json_pipe *p)
{
	watch_stop(&p->watch);
	timer_fini(&p->gone_soon);
	own_close_fd(&p->fd);
	buf_fini(&p->in);
	buf_fini(&p->out);
}
