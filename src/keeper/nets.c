/* nets.c - see nets.h. */
#include "keeper/nets.h"
#include "base/clock.h"
#include "base/own.h"
#include "jail/launch.h"
#include "jail/net.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kernel tells of a multicast group that was joined some milliseconds later, when nobody may be
 * left in it. Ten ticks of the slowest clock: then it has been told, and counted. */
#define REST_NS 100000000ull
#define RUSH_NS 10000000000ull /* so long after the last one, what was a rush is over */

enum { KEPT = 8, MOST = 160 };

struct net {
	int ns; /* JAIL_FD_HIGH or above */
	int as_new; /* test builds: 0 if nobody has looked */
	uint64_t since_ns;
};

struct nets {
	pthread_mutex_t lock;
	int proc;
	struct net ready[MOST], resting[MOST]; /* ready: a stack. resting: a ring, the oldest at first */
	unsigned nready, nresting, first;
	uint64_t taken_ns;
	struct net_text as_new;
};

/* Where launches do not look; low numbers are few. */
static int lift(int *ns, struct err *e)
{
	int high = fcntl(*ns, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);

	if (high < 0)
		err_sys(e, "descriptor of a network namespace");
	own_close_fd(ns);
	*ns = high;
	return high < 0 ? -1 : 0;
}

static int make(int proc, struct err *e)
{
	int ns = net_make(proc, e);

	return ns < 0 || lift(&ns, e) < 0 ? -1 : ns;
}

struct nets *nets_new(int proc)
{
	struct nets *n = calloc(1, sizeof(*n));
	struct err e;
	int ns;

	if (!n)
		abort();
	n->proc = proc;
	pthread_mutex_init(&n->lock, NULL);
	ns = make(proc, &e);
	if (ns < 0 || net_read(proc, ns, &n->as_new, &e) < 0) {
		/* A host without IPv6, or without one of the files: no way to see what was left. */
		fprintf(stderr, "atoll: keeper: networks are made anew for each box: %s\n", e.msg);
		own_close_fd(&ns);
		nets_free(n);
		return NULL;
	}
	n->ready[n->nready++] = (struct net){ ns, 1, now_ns() };
	return n;
}

void nets_free(struct nets *n)
{
	if (!n)
		return;
	while (n->nready > 0)
		close(n->ready[--n->nready].ns);
	for (; n->nresting > 0; n->nresting--, n->first = (n->first + 1) % MOST)
		close(n->resting[n->first].ns);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* ---- under the lock ---- */

static int pop_ready(struct nets *n, int *out_as_new)
{
	if (!n->nready)
		return -1;
	*out_as_new = n->ready[--n->nready].as_new;
	return n->ready[n->nready].ns;
}

static int pop_rested(struct nets *n, uint64_t now)
{
	int ns;

	if (!n->nresting || now - n->resting[n->first].since_ns < REST_NS)
		return -1;
	ns = n->resting[n->first].ns;
	n->first = (n->first + 1) % MOST;
	n->nresting--;
	return ns;
}

/* Takes it, unless there are too many. */
static void push_ready(struct nets *n, int *ns, int seen)
{
	if (n->nready < MOST)
		n->ready[n->nready++] = (struct net){ steal_fd(ns), seen, now_ns() };
}

static void push_resting(struct nets *n, int *ns)
{
	if (n->nresting < MOST)
		n->resting[(n->first + n->nresting++) % MOST] = (struct net){ steal_fd(ns), 0, now_ns() };
}

/* ---- */

/* A box has been in it: is there anything to see? Slow, so without the lock. */
static int as_new(const struct nets *n, int ns)
{
	struct net_text now;
	struct err ignored; /* what cannot be read is not as new */

	return net_read(n->proc, ns, &now, &ignored) == 0 && net_same(&now, &n->as_new);
}

static int take_rested(struct nets *n)
{
	for (;;) {
		auto_fd int ns = -1;

		pthread_mutex_lock(&n->lock);
		ns = pop_rested(n, now_ns());
		pthread_mutex_unlock(&n->lock);
		if (ns < 0 || as_new(n, ns))
			return steal_fd(&ns);
	}
}

int nets_take(struct nets *n, int *out_as_new, struct err *e)
{
	int ns;

	*out_as_new = 1;
	pthread_mutex_lock(&n->lock);
	n->taken_ns = now_ns();
	ns = pop_ready(n, out_as_new);
	pthread_mutex_unlock(&n->lock);
	if (ns < 0)
		ns = take_rested(n);
	return ns < 0 ? make(n->proc, e) : ns;
}

void nets_give(struct nets *n, int take_ns, int unchecked)
{
	auto_fd int ns = take_ns;

	if (ns < 0 || !n)
		return;
	pthread_mutex_lock(&n->lock);
	if (unchecked)
		push_ready(n, &ns, 0);
	else
		push_resting(n, &ns);
	pthread_mutex_unlock(&n->lock);
}

static int want_more(const struct nets *n)
{
	return n->nready + n->nresting < KEPT;
}

static int too_many(const struct nets *n, uint64_t now)
{
	return n->nready > KEPT && now - n->taken_ns > RUSH_NS;
}

static void keep(struct nets *n, int take_ns)
{
	auto_fd int ns = take_ns;

	pthread_mutex_lock(&n->lock);
	push_ready(n, &ns, 1);
	pthread_mutex_unlock(&n->lock);
}

static int pop_surplus(struct nets *n)
{
	int ns, ignored;

	pthread_mutex_lock(&n->lock);
	ns = too_many(n, now_ns()) ? pop_ready(n, &ignored) : -1;
	pthread_mutex_unlock(&n->lock);
	return ns;
}

static int lacks(struct nets *n)
{
	int more;

	pthread_mutex_lock(&n->lock);
	more = want_more(n);
	pthread_mutex_unlock(&n->lock);
	return more;
}

void nets_tend(struct nets *n)
{
	struct err e;
	int ns;

	while ((ns = take_rested(n)) >= 0)
		keep(n, ns);
	while ((ns = pop_surplus(n)) >= 0)
		close(ns);
	while (lacks(n)) {
		ns = make(n->proc, &e);
		if (ns < 0)
			return; /* whoever needs one will be told */
		keep(n, ns);
	}
}

int nets_due(struct nets *n)
{
	uint64_t now = now_ns(), rested;
	int due = -1;

	pthread_mutex_lock(&n->lock);
	rested = n->nresting ? n->resting[n->first].since_ns + REST_NS : 0;
	if (want_more(n) || too_many(n, now))
		due = 0;
	else if (n->nresting)
		due = now >= rested ? 0 : (int)((rested - now) / 1000000 + 1);
	else if (n->nready > KEPT)
		due = (int)(RUSH_NS / 1000000 + 1);
	pthread_mutex_unlock(&n->lock);
	return due;
}
