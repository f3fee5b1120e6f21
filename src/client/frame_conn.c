/* frame_conn.c - see frame_conn.h. */
#include "client/frame_conn.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

struct frame_conn_item {
	struct frame_conn_item *next;
	int fd;
	size_t len;
	char bytes[];
};

/* The connection whose frames are being handled: a handler may close it, and free the struct that
 * contains it. */
static struct frame_conn *reading;

static void frame_arm(struct frame_conn *p)
{
	watch_want(&p->watch, (p->paused ? 0 : LOOP_READ) | (p->first ? LOOP_WRITE : 0));
}

static void drop_queue(struct frame_conn *p)
{
	while (p->first) {
		struct frame_conn_item *i = p->first;

		p->first = i->next;
		own_close_fd(&i->fd);
		free(i);
	}
	p->last = NULL;
	p->queued = 0;
}

void frame_conn_fini(struct frame_conn *p)
{
	if (p->fd < 0)
		return;
	if (reading == p)
		reading = NULL;
	watch_stop(&p->watch);
	drop_queue(p);
	own_close_fd(&p->fd);
}

static void frame_gone(struct frame_conn *p, const struct err *why)
{
	frame_conn_fini(p);
	p->on_gone(p, why);
}

/* ---- out ---- */

static void frame_enqueue(struct frame_conn *p, const void *body, size_t n, const void *tail,
			  size_t tail_n, int take_fd)
{
	struct frame_conn_item *i = malloc(sizeof(*i) + n + tail_n);

	if (!i)
		abort();
	*i = (struct frame_conn_item){ .fd = take_fd, .len = n + tail_n };
	memcpy(i->bytes, body, n);
	if (tail_n)
		memcpy(i->bytes + n, tail, tail_n);
	if (p->last)
		p->last->next = i;
	else
		p->first = i;
	p->last = i;
	p->queued += i->len;
	frame_arm(p);
}

static int is_full(const struct err *e)
{
	return e->sys == EAGAIN || e->sys == ENOBUFS;
}

int frame_conn_send(struct frame_conn *p, const void *body, size_t n, const void *tail,
		    size_t tail_n, int take_fd)
{
	auto_fd int fd = take_fd;
	struct err e;

	if (p->fd < 0)
		return -1;
	if (!p->first) {
		if (sock_send(p->fd, body, n, tail, tail_n, &fd, fd >= 0, &e) == 0)
			return 0;
		if (!is_full(&e)) /* the peer has closed; frames that it sent before can still be
				   * read */
			return 0;
	}
	if (p->queued + n + tail_n > FRAME_CONN_QUEUE)
		shutdown(p->fd,
			 SHUT_RDWR); /* the peer does not read: makes an end of file, which the loop
				      * reports */
	else
		frame_enqueue(p, body, n, tail, tail_n, steal_fd(&fd));
	return 0;
}

static void frame_flush(struct frame_conn *p)
{
	struct err e;

	while (p->first) {
		struct frame_conn_item *i = p->first;

		if (sock_send(p->fd, i->bytes, i->len, NULL, 0, &i->fd, i->fd >= 0, &e) < 0 &&
		    is_full(&e))
			return;
		p->first = i->next;
		p->queued -= i->len;
		own_close_fd(&i->fd);
		free(i);
	}
	p->last = NULL;
	frame_arm(p);
}

/* ---- in ---- */

/* 1: handled one frame, 0: no more frames now, or the connection has ended. */
static int take_one(struct frame_conn *p)
{
	static char buf[WIRE_MAX + 1]; /* static: one thread, and handlers never call
				        * this function */
	unsigned nfds = 1;
	int n, fd = -1;
	struct err e;

	n = sock_recv(p->fd, buf, &fd, &nfds, &e);
	if (n < 0 && is_full(&e))
		return 0;
	if (n <= 0) {
		if (n == 0)
			err_set(&e, ERR_NOT_FOUND, "the peer has disconnected");
		frame_gone(p, &e);
		return 0;
	}
	buf[n] = 0;
	p->on_frame(p, (const struct frame *)buf, (size_t)n, &fd);
	own_close_fd(&fd);
	return 1;
}

static void frame_ready(struct watch *w, unsigned what)
{
	struct frame_conn *p = loop_owner(w, struct frame_conn, watch);
	struct loop *l = w->loop;

	if (what == LOOP_WRITE) {
		frame_flush(p);
		return;
	}
	reading = p;
	for (int i = 0; i < FRAME_CONN_FRAMES_A_TURN && reading == p && !p->paused; i++)
		if (!take_one(p) || loop_work_is_long(l))
			break;
	reading = NULL;
}

void frame_conn_pause(struct frame_conn *p, int paused)
{
	if (p->fd < 0 || p->paused == paused)
		return;
	p->paused = paused;
	frame_arm(p);
}

void frame_conn_init(struct frame_conn *p, struct loop *l, int take_fd)
{
	*p = (struct frame_conn){ .fd = take_fd };
	fcntl(take_fd, F_SETFL, fcntl(take_fd, F_GETFL) | O_NONBLOCK);
	watch_init(&p->watch, l, take_fd, frame_ready);
	frame_arm(p);
}
