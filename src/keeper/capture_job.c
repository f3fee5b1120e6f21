/* capture_job.c - directs the outbound connections of a box to sockets for egress.
 *
 * A builder thread enters the network namespace of the box, opens the sockets there and attaches
 * the program (jail/capture.h). The keeper keeps none of them: they are sent to the client in a
 * socket, and end with the process that holds them (egress). Then the client may request new ones.
 *
 * The namespace has a route from now on, so it is never reused for another box. */
#include "base/cleanup.h"
#include "jail/capture.h"
#include "jail/feature.h"
#include "jail/launch.h"
#include "keeper/keeper_internal.h"
#include "keeper/netns_pool.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <string.h>

/* A frame can be forwarded with one descriptor. So all are in a socket, as the only frame in it. */
static int capture_wrap(const struct net_capture *c, int *out, struct err *e)
{
	struct frame head = sock_head(WIRE_FD, 0);
	unsigned n = c->fd[CAPTURE_TCP6] < 0 ? CAPTURE_TCP6 : CAPTURE_FDS;
	int pair[2], sent;

	if (sock_pair(pair, e) < 0)
		return -1;
	sent = sock_send(pair[0], &head, sizeof(head), NULL, 0, c->fd, n, e);
	close(pair[0]);
	if (sent < 0)
		close(pair[1]);
	else
		*out = pair[1];
	return sent;
}

int capture_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	struct net_capture c;
	int done = capture_open(h->proc, j->capture.ns, &c, e);

	own_close_fd(&j->capture.ns);
	if (done < 0)
		return -1;
	done = capture_wrap(&c, &j->capture.sockets, e);
	capture_close(&c);
	return done < 0 ? -1 : keeper_box_lift(&j->capture.sockets, e);
}

void capture_back(struct keeper *k, struct build_job *take_job)
{
	auto_free struct build_job *j = take_job;
	auto_fd int sockets = j->capture.sockets;
	struct keeper_box *b = keeper_box_find(&k->boxes, j->capture.id);
	struct frame out = sock_head(WIRE_FD, j->ref);
	struct err e = j->err;

	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		err_set(&e, ERR_NOT_FOUND, "box %s has ended meanwhile", j->capture.id);
	if (e.kind)
		client_error(k, j->client, j->ref, &e);
	else
		client_send(k, j->client, &out, sizeof(out), sockets);
}

/* Without root, the network namespace belongs to a user namespace of the box. */
static int capture_possible(const struct keeper *k, const struct keeper_box *b, struct err *e)
{
	if (b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "box %s is ending", b->meta.about.id);
	if (tier_box_supports(k, b, WIRE_NEED_CAPTURE, e) < 0)
		return -1;
	if (k->host.rootless)
		return err_set(e, ERR_DENIED, "the keeper does not run as root");
	if (!(b->meta.about.layers & FEATURE_BIT(FEATURE_NET)))
		return err_set(e, ERR_DENIED, "box %s has no network of its own", b->meta.about.id);
	return 0;
}

void capture_request(struct keeper *k, struct client *c, const struct frame *f)
{
	struct keeper_box *b = request_named(k, c, f);
	struct build_job *j;
	struct err e;
	int ns;

	if (!b || request_too_many(k, c, f))
		return;
	if (capture_possible(k, b, &e) < 0) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	/* Of a box of an earlier keeper, only the pidfd is known. */
	ns = fcntl(b->net ? net_ns(b->net) : b->death.fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);
	if (ns < 0) {
		err_sys(&e, "network namespace of box %s", b->meta.about.id);
		client_error(k, c->number, f->ref, &e);
		return;
	}
	b->captured = 1;
	j = build_job_new(BUILD_CAPTURE);
	j->client = c->number;
	j->ref = f->ref;
	j->capture.ns = ns;
	j->capture.sockets = -1;
	memcpy(j->capture.id, b->meta.about.id, sizeof(j->capture.id));
	builder_submit(k->builder, j);
}
