/* port_probe.c - see port_probe.h. */
#include "v1run/port_probe.h"
#include "base/cleanup.h"
#include "fleet/box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { PORT_PROBE_AGAIN_MS = 100 };

static void port_probe_hang_up(struct port_probe *p)
{
	if (p->fd < 0)
		return;
	watch_stop(&p->answer);
	own_close_fd(&p->fd);
}

void port_probe_stop(struct port_probe *p)
{
	port_conn_cancel(&p->port_conn);
	port_probe_hang_up(p);
	timer_fini(&p->again);
}

static void port_probe_readable(struct watch *w, unsigned what)
{
	struct port_probe *p = loop_owner(w, struct port_probe, answer);
	struct box *b = fleet_find(p->fleet, p->box);
	char bytes[64];
	ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	port_probe_hang_up(p);
	if (n >= 5 && !memcmp(bytes, "HTTP/", 5) && b) {
		port_probe_stop(p);
		p->answered(p, b);
	} else {
		timer_set(&p->again, PORT_PROBE_AGAIN_MS);
	}
}

static void port_probe_connected(struct port_conn *x, int take_fd, const struct err *e)
{
	struct port_probe *p = loop_owner(x, struct port_probe, port_conn);
	char ask[96];
	int n = snprintf(ask, sizeof(ask),
			 "GET / HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n\r\n",
			 p->port);

	(void)e; /* refused, or the box has ended: the caller watches the program */
	p->fd = take_fd;
	if (p->fd < 0 || send(p->fd, ask, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n) {
		own_close_fd(&p->fd);
		timer_set(&p->again, PORT_PROBE_AGAIN_MS);
		return;
	}
	watch_init(&p->answer, p->fleet->loop, p->fd, port_probe_readable);
	watch_want(&p->answer, LOOP_READ);
}

static void port_probe_try(struct timer *t)
{
	struct port_probe *p = loop_owner(t, struct port_probe, again);
	struct box *b = fleet_find(p->fleet, p->box);
	struct err e;

	p->port_conn.done = port_probe_connected;
	if (!b || port_conn_open(&p->port_conn, b, p->port, &e) < 0)
		timer_set(&p->again, PORT_PROBE_AGAIN_MS);
}

void port_probe_start(struct port_probe *p, struct fleet *f, const char *box, uint16_t port,
		      void (*answered)(struct port_probe *p, struct box *b))
{
	*p = (struct port_probe){ .fleet = f, .port = port, .answered = answered, .fd = -1 };
	snprintf(p->box, sizeof(p->box), "%s", box);
	timer_init(&p->again, f->loop, port_probe_try);
	timer_set(&p->again, 1);
}
