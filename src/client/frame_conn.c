/* frame_conn.c - see frame_conn.h. */
#include "client/frame_conn.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

struct post_item {
	struct post_item *next;
	int fd;
	size_t len;
	char bytes[];
};

/* The one whose frames are being handled: a handler may close it, and free what it lives in. */
static struct post *reading;

static void arm(struct post *p)
{
	watch_want(&p->watch, (p->paused ? 0 : LOOP_READ) | (p->first ? LOOP_WRITE : 0));
}

static void drop_queue(struct post *p)
{
	while (p->first) {
		struct post_item *i = p->first;

		p->first = i->next;
		own_close_fd(&i->fd);
		free(i);
	}
	p->last = NULL;
	p->queued = 0;
}

void post_fini(struct post *p)
{
	if (p->fd < 0)
		return;
	if (reading == p)
		reading = NULL;
	watch_stop(&p->watch);
	drop_queue(p);
	own_close_fd(&p->fd);
}

static void gone(struct post *p, const struct err *why)
{
	post_fini(p);
	p->on_gone(p, why);
}

/* ---- out ---- */

static void enqueue(struct post *p, const void *body, size_t n, const void *tail, size_t tail_n,
		    int take_fd)
{
	struct post_item *i = malloc(sizeof(*i) + n + tail_n);

	if (!i)
		abort();
	*i = (struct post_item){ .fd = take_fd, .len = n + tail_n };
	memcpy(i->bytes, body, n);
	if (tail_n)
		memcpy(i->bytes + n, tail, tail_n);
	if (p->last)
		p->last->next = i;
	else
		p->first = i;
	p->last = i;
	p->queued += i->len;
	arm(p);
}

static int is_full(const struct err *e)
{
	return e->sys == EAGAIN || e->sys == ENOBUFS;
}

int post_send(struct post *p, const void *body, size_t n, const void *tail, size_t tail_n,
	      int take_fd)
{
	auto_fd int fd = take_fd;
	struct err e;

	if (p->fd < 0)
		return -1;
	if (!p->first) {
		if (sock_send(p->fd, body, n, tail, tail_n, &fd, fd >= 0, &e) == 0)
			return 0;
		if (!is_full(&e)) /* gone; what it said before it left is still to be read */
			return 0;
	}
	if (p->queued + n + tail_n > POST_QUEUE)
		shutdown(p->fd, SHUT_RDWR); /* it does not listen: end of file, told from the loop */
	else
		enqueue(p, body, n, tail, tail_n, steal_fd(&fd));
	return 0;
}

static void flush(struct post *p)
{
	struct err e;

	while (p->first) {
		struct post_item *i = p->first;

		if (sock_send(p->fd, i->bytes, i->len, NULL, 0, &i->fd, i->fd >= 0, &e) < 0 &&
		    is_full(&e))
			return;
		p->first = i->next;
		p->queued -= i->len;
		own_close_fd(&i->fd);
		free(i);
	}
	p->last = NULL;
	arm(p);
}

/* ---- in ---- */

/* 1: handled one, 0: nothing more for now, or the end. */
static int take_one(struct post *p)
{
	static char buf[WIRE_MAX + 1]; /* one loop, one thread; a handler never comes back here */
	unsigned nfds = 1;
	int n, fd = -1;
	struct err e;

	n = sock_recv(p->fd, buf, &fd, &nfds, &e);
	if (n < 0 && is_full(&e))
		return 0;
	if (n <= 0) {
		if (n == 0)
			err_set(&e, ERR_NOT_FOUND, "the other side has left");
		gone(p, &e);
		return 0;
	}
	buf[n] = 0;
	p->on_frame(p, (const struct frame *)buf, (size_t)n, &fd);
	own_close_fd(&fd);
	return 1;
}

static void ready(struct watch *w, unsigned what)
{
	struct post *p = loop_owner(w, struct post, watch);
	const struct loop *l = w->loop;

	if (what == LOOP_WRITE) {
		flush(p);
		return;
	}
	reading = p;
	for (int i = 0; i < POST_FRAMES_A_TURN && reading == p && !p->paused; i++)
		if (!take_one(p) || loop_work_is_long(l))
			break;
	reading = NULL;
}

void post_pause(struct post *p, int paused)
{
	if (p->fd < 0 || p->paused == paused)
		return;
	p->paused = paused;
	arm(p);
}

void post_init(struct post *p, struct loop *l, int take_fd)
{
	*p = (struct post){ .fd = take_fd };
	fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
	watch_init(&p->watch, l, take_fd, ready);
	arm(p);
}
