/* port_conn.c - see port_conn.h. */
#include "fleet/port_conn.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 10000 }; /* init itself waits 5 s for a server whose queue is full */

/* Together about a second: the time that a server needs from its start to listen(). */
static const uint16_t rests_ms[] = { 30, 70, 150, 300, 450 };
static_assert(ARRAY_LEN(rests_ms) == PORT_CONN_TRIES - 1, "a rest between two tries");

static void next_one(struct box *b);

void port_conns_init(struct port_conns *all)
{
	*all = (struct port_conns){ .end = &all->first };
}

static void port_append(struct port_conns *all, struct port_conn *x)
{
	x->next = NULL;
	x->at = all->end;
	*all->end = x;
	all->end = &x->next;
	all->n++;
}

static void take_out(struct port_conns *all, struct port_conn *x)
{
	*x->at = x->next;
	if (x->next)
		x->next->at = x->at;
	else
		all->end = x->at;
	x->at = NULL;
	all->n--;
}

static void stop_asking(struct port_conn *x)
{
	if (x->state != PORT_CONN_ASKS)
		return;
	init_conn_remove_call(&x->ask);
	x->box->port_conns.asking--;
	x->state = PORT_CONN_WAITS;
}

static void port_leave(struct port_conn *x)
{
	stop_asking(x);
	take_out(&x->box->port_conns, x);
	timer_fini(&x->clock);
}

static void port_finish(struct port_conn *x, int take_fd, const struct err *e)
{
	struct box *b = x->box;

	port_leave(x);
	next_one(b);
	x->done(x, take_fd, e);
}

static void port_fail(struct port_conn *x, enum err_kind kind, const char *why)
{
	struct err e;

	err_set(&e, kind, "%s", why);
	port_finish(x, -1, &e);
}

/* ---- answers of init ---- */

static void port_connected(struct init_call *l, const struct frame *f, size_t len, int *fd)
{
	struct port_conn *x = loop_owner(l, struct port_conn, ask);

	(void)len;
	if (f->type == WIRE_FD && *fd >= 0)
		port_finish(x, steal_fd(fd), NULL);
	else
		port_fail(x, ERR_INVALID, "the box sent an unexpected answer");
}

static void port_refused(struct init_call *l, const struct err *e)
{
	struct port_conn *x = loop_owner(l, struct port_conn, ask);
	struct box *b = x->box;
	/* Init is busy with connections of other clients: this does not count as an attempt. */
	int busy = e->kind == ERR_LIMIT;

	if ((e->sys != ECONNREFUSED && !busy) || (!busy && x->tries + 1 >= PORT_CONN_TRIES)) {
		port_finish(x, -1, e);
		return;
	}
	stop_asking(x);
	x->state = PORT_CONN_RESTS;
	timer_set(&x->clock, busy ? rests_ms[0] : rests_ms[x->tries++]);
	next_one(b);
}

static void port_lost(struct init_call *l)
{
	port_fail(loop_owner(l, struct port_conn, ask), ERR_NOT_FOUND, "the box has ended");
}

/* ---- queue ---- */

static void port_ask(struct port_conn *x)
{
	static const struct init_call_ops on = { .answer = port_connected,
						 .refused = port_refused,
						 .lost = port_lost };

	x->state = PORT_CONN_ASKS;
	x->box->port_conns.asking++;
	timer_set(&x->clock, ANSWER_MS);
	init_conn_request_port(&x->box->line, &x->ask, &on, WIRE_CONNECT, x->port);
}

static void next_one(struct box *b)
{
	struct port_conns *all = &b->port_conns;

	for (struct port_conn *x = all->first; x && all->asking < PORT_CONN_ASKING; x = x->next)
		if (x->state == PORT_CONN_WAITS && init_conn_is_open(&b->line))
			port_ask(x);
}

static void port_due(struct timer *t)
{
	struct port_conn *x = loop_owner(t, struct port_conn, clock);
	struct box *b = x->box;

	if (b->state != BOX_RUNNING || !init_conn_is_open(&b->line)) {
		port_fail(x, ERR_NOT_FOUND, "the box has ended");
	} else if (x->state == PORT_CONN_RESTS) {
		take_out(&b->port_conns, x);
		port_append(&b->port_conns, x);
		x->state = PORT_CONN_WAITS;
		timer_set(&x->clock, ANSWER_MS);
		next_one(b);
	} else {
		port_fail(x, ERR_LIMIT, "the box does not answer");
	}
}

int port_conn_open(struct port_conn *x, struct box *b, uint16_t port, struct err *e)
{
	if (b->port_conns.n >= PORT_CONN_MOST)
		return err_set(e, ERR_LIMIT, "%u connections to this box are being made",
			       b->port_conns.n);
	if (!init_conn_is_open(&b->line))
		return err_set(e, ERR_NOT_FOUND, "the box cannot be reached");
	*x = (struct port_conn){ .box = b, .port = port, .done = x->done };
	timer_init(&x->clock, b->fleet->loop, port_due);
	timer_set(&x->clock, ANSWER_MS);
	port_append(&b->port_conns, x);
	next_one(b);
	return 0;
}

void port_conn_cancel(struct port_conn *x)
{
	struct box *b = x->box;

	if (!x->at)
		return;
	port_leave(x);
	next_one(b);
}

/* ---- connections without a request ---- */

struct port_idle {
	struct port_idle *next;
	struct box *box;
	struct timer clock;
	uint16_t port;
	int fd;
};

/* Frees it; returns its descriptor. */
static int port_idle_take(struct port_idle *x)
{
	struct port_conns *all = &x->box->port_conns;
	struct port_idle **at = &all->idle;
	int fd = x->fd;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	all->nidle--;
	x->box->fleet->idle_ports--;
	timer_fini(&x->clock);
	free(x);
	return fd;
}

static void port_idle_due(struct timer *t)
{
	close(port_idle_take(loop_owner(t, struct port_idle, clock)));
}

/* 0: the server has closed it, or has sent bytes without a request. It is not watched meanwhile:
 * that would cost two system calls for each request, and it does not wait for long. */
static int port_idle_is_silent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int port_conn_take_idle(struct box *b, uint16_t port)
{
	for (struct port_idle *x = b->port_conns.idle, *next; x; x = next) {
		int fd;

		next = x->next;
		if (x->port != port)
			continue;
		fd = port_idle_take(x);
		if (port_idle_is_silent(fd))
			return fd;
		close(fd);
	}
	return -1;
}

void port_conn_keep_idle(struct box *b, uint16_t port, int take_fd)
{
	struct port_conns *all = &b->port_conns;
	struct port_idle *x;

	if (all->nidle >= PORT_IDLE_MOST || b->fleet->idle_ports >= PORT_IDLE_ALL) {
		close(take_fd);
		return;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct port_idle){ .next = all->idle, .box = b, .port = port, .fd = take_fd };
	all->idle = x;
	all->nidle++;
	b->fleet->idle_ports++;
	timer_init(&x->clock, b->fleet->loop, port_idle_due);
	timer_set(&x->clock, PORT_IDLE_MS);
}

void port_conns_drop_idle(struct box *b)
{
	while (b->port_conns.idle)
		close(port_idle_take(b->port_conns.idle));
}

void port_conns_fail(struct box *b)
{
	port_conns_drop_idle(b);
	while (b->port_conns.first)
		port_fail(b->port_conns.first, ERR_NOT_FOUND, "the box has ended");
}
