/* connector.c - see connector.h. */
#include "coordinator/connector.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "client/frame_conn.h"
#include "egress/net_rule.h"
#include "egress/resolver.h"
#include "http/object_store.h"
#include "wire/sock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct connector {
	struct loop loop;
	struct resolver names;
	struct watch supervisor;
	const char *const *gateways;
	unsigned ngateways;
	struct object_store objects;
	int has_objects;
	struct connector_server *servers;
};

struct connector_server {
	struct frame_conn conn;
	struct connector *connector;
	struct connector_dial *dials;
	struct connector_server *next, **link;
};

struct connector_dial {
	struct connector_server *server;
	struct connector_dial *next, **link;
	unsigned gateway;
	struct resolver_request *request;
	struct name_address addresses[RESOLVER_ADDRESSES];
	unsigned n, at;
	int fd; /* -1: none */
	struct watch watch;
	struct timer clock;
	char why[120];
};

static void dial_drop(struct connector_dial *d)
{
	resolver_cancel(d->request);
	watch_stop(&d->watch);
	timer_fini(&d->clock);
	own_close_fd(&d->fd);
	*d->link = d->next;
	if (d->next)
		d->next->link = d->link;
	free(d);
}

/* take_fd -1: it failed. */
static void dial_answer(struct connector_dial *d, int take_fd)
{
	struct frame head = sock_head(WIRE_CLUSTER_DIAL, 0);

	head.flags = (uint16_t)d->gateway;
	frame_conn_send(&d->server->conn, &head, sizeof(head), d->why,
			take_fd < 0 ? strlen(d->why) : 0, take_fd);
	dial_drop(d);
}

static void dial_next(struct connector_dial *d);

static void dial_writable(struct watch *w, unsigned what)
{
	struct connector_dial *d = loop_owner(w, struct connector_dial, watch);
	int why = 0;
	socklen_t len = sizeof(why);

	(void)what;
	watch_stop(w);
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &why, &len) == 0 && why == 0) {
		dial_answer(d, steal_fd(&d->fd));
		return;
	}
	snprintf(d->why, sizeof(d->why), "%s", strerror(why));
	own_close_fd(&d->fd);
	dial_next(d);
}

/* The addresses of the name, one after the other. */
static void dial_next(struct connector_dial *d)
{
	while (d->at < d->n) {
		const struct name_address *a = &d->addresses[d->at++];

		d->fd = socket(a->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (d->fd >= 0 && (connect(d->fd, (const struct sockaddr *)&a->to, a->len) == 0 ||
				   errno == EINPROGRESS)) {
			watch_init(&d->watch, &d->server->connector->loop, d->fd, dial_writable);
			watch_want(&d->watch, LOOP_WRITE);
			return;
		}
		snprintf(d->why, sizeof(d->why), "%s", strerror(errno));
		own_close_fd(&d->fd);
	}
	dial_answer(d, -1);
}

static void dial_resolved(void *ctx, const struct name_address *v, unsigned n, const char *why)
{
	struct connector_dial *d = ctx;

	d->request = NULL;
	if (n == 0)
		snprintf(d->why, sizeof(d->why), "%s", why ? why : "the name has no address");
	memcpy(d->addresses, v, n * sizeof(*v));
	d->n = n;
	dial_next(d);
}

static void dial_late(struct timer *t)
{
	struct connector_dial *d = loop_owner(t, struct connector_dial, clock);

	snprintf(d->why, sizeof(d->why), "no connection within %d s", CONNECTOR_TIME_MS / 1000);
	dial_answer(d, -1);
}

/* Where to connect; -1: the settings have no such address. */
static int connector_address(const struct connector *x, unsigned gateway, char host[RULE_HOST],
			     uint16_t *out_port)
{
	const char *why = NULL;

	if (gateway == CONNECTOR_OBJECTS) {
		*out_port = x->objects.port;
		return x->has_objects && (size_t)snprintf(host, RULE_HOST, "%s", x->objects.host) <
						 RULE_HOST
			       ? 0
			       : -1;
	}
	if (gateway >= x->ngateways)
		return -1;
	return net_authority_parse(x->gateways[gateway], strlen(x->gateways[gateway]), host,
				   out_port, &why);
}

static void connector_dial(struct connector_server *s, unsigned gateway)
{
	struct connector *x = s->connector;
	struct connector_dial *d = calloc(1, sizeof(*d));
	char host[RULE_HOST];
	uint16_t port = 0;

	if (!d)
		abort();
	d->server = s;
	d->gateway = gateway;
	d->fd = -1;
	d->next = s->dials;
	d->link = &s->dials;
	if (d->next)
		d->next->link = &d->next;
	s->dials = d;
	timer_init(&d->clock, &x->loop, dial_late);
	if (connector_address(x, gateway, host, &port) < 0) {
		snprintf(d->why, sizeof(d->why), "the settings have no such address (%u)", gateway);
		dial_answer(d, -1);
		return;
	}
	timer_set(&d->clock, CONNECTOR_TIME_MS);
	d->request = resolver_request(&x->names, &x->loop, host, port, dial_resolved, d);
}

/* ---- servers ---- */

static void connector_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	(void)len;
	(void)fd;
	if (f->type == WIRE_CLUSTER_DIAL)
		connector_dial(loop_owner(p, struct connector_server, conn), f->flags);
}

static void connector_gone(struct frame_conn *p, const struct err *why)
{
	struct connector_server *s = loop_owner(p, struct connector_server, conn);

	(void)why;
	while (s->dials)
		dial_drop(s->dials);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	free(s);
}

static void connector_add(struct connector *x, int take_fd)
{
	struct connector_server *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->connector = x;
	s->next = x->servers;
	s->link = &x->servers;
	if (s->next)
		s->next->link = &s->next;
	x->servers = s;
	frame_conn_init(&s->conn, &x->loop, take_fd);
	s->conn.on_frame = connector_frame;
	s->conn.on_gone = connector_gone;
}

static void connector_supervisor(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct connector *x = loop_owner(w, struct connector, supervisor);
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0) /* another process replaces this one; servers ask that one */
		loop_stop(&x->loop);
	else if (((const struct frame *)buf)->type == WIRE_CLUSTER_CONNECT && nfds)
		connector_add(x, steal_fd(&fd));
}

int connector_main(const struct connector_conf *conf, int supervisor,
		   int (*walls)(void *ctx, struct err *e), void *ctx)
{
	static struct connector x;
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	x.gateways = conf->gateways;
	while (x.gateways[x.ngateways])
		x.ngateways++;
	x.has_objects = conf->objects && object_store_parse(&x.objects, conf->objects, &e) == 0;
	if (loop_init(&x.loop, &e) < 0 || resolver_init(&x.names, &x.loop, conf->dns, &e) < 0 ||
	    walls(ctx, &e) < 0) {
		log_error("no connections to gateways", LOG_E(&e));
		return 1;
	}
	watch_init(&x.supervisor, &x.loop, supervisor, connector_supervisor);
	watch_want(&x.supervisor, LOOP_READ);
	loop_run(&x.loop);
	return 0;
}
