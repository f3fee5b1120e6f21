/* netns_pool.c - see netns_pool.h. */
#include "keeper/netns_pool.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/net.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kernel sends reports for a joined multicast group some milliseconds later, perhaps after the
 * last process has ended. After ten ticks of the slowest clock they have been sent and counted. */
#define REST_NS 100000000ull
/* This long after the last create, surplus namespaces are released. */
#define RUSH_NS 10000000000ull

enum { KEPT = 8, MOST = 160 };

struct net {
	struct netns_pool *of;
	int ns;
	int is_clean; /* test builds: 0 if not verified */
	int open;     /* these files are open: */
	struct net_files files;
	uint64_t since_ns;
};

struct netns_pool {
	pthread_mutex_t lock;
	int proc;
	struct net *ready[MOST],
		*resting[MOST]; /* ready: a stack. resting: a ring, the oldest at first */
	unsigned nready, nresting, first;
	uint64_t taken_ns;
	_Atomic unsigned nopen;
	unsigned open_most;
	struct net_text clean;
};

/* Moves a descriptor to a high number: launches need the low ones. */
static int netns_lift(int *fd, struct err *e)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);

	if (high < 0)
		err_sys(e, "descriptor of a network namespace");
	own_close_fd(fd);
	*fd = high;
	return high < 0 ? -1 : 0;
}

static struct net *netns_make(struct netns_pool *n, struct err *e)
{
	int ns = net_make(n->proc, e);
	struct net *t;

	if (ns < 0 || netns_lift(&ns, e) < 0)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		abort();
	*t = (struct net){ .of = n, .ns = ns };
	return t;
}

static void close_files(struct net *t)
{
	if (!t->open)
		return;
	net_close(&t->files);
	t->open = 0;
	t->of->nopen--;
}

static int open_files(struct net *t, struct err *e)
{
	if (t->open)
		return 0;
	if (net_open(t->of->proc, t->ns, &t->files, e) < 0)
		return -1;
	t->open = 1;
	t->of->nopen++;
	for (unsigned i = 0; i < NET_ROWS; i++)
		if (netns_lift(&t->files.fd[i], e) < 0) {
			close_files(t);
			return -1;
		}
	return 0;
}

int net_ns(const struct net *t)
{
	return t->ns;
}

void netns_free(struct net *t)
{
	if (!t)
		return;
	close_files(t);
	close(t->ns);
	free(t);
}

static void own_free_net(struct net **t)
{
	netns_free(*t);
}
#define auto_net __attribute__((cleanup(own_free_net)))

struct netns_pool *netns_pool_new(int proc, unsigned open_most)
{
	struct netns_pool *n = calloc(1, sizeof(*n));
	struct net *t;
	struct err e;

	if (!n)
		abort();
	n->proc = proc;
	n->open_most = open_most;
	pthread_mutex_init(&n->lock, NULL);
	t = netns_make(n, &e);
	if (!t || net_read(proc, t->ns, &n->clean, &e) < 0) {
		/* A host without IPv6, or without one of the files: a used namespace cannot be
		 * verified. */
		fprintf(stderr, "atoll: keeper: networks are made anew for each box: %s\n", e.msg);
		netns_free(t);
		netns_pool_free(n);
		return NULL;
	}
	t->is_clean = 1;
	n->ready[n->nready++] = t;
	return n;
}

void netns_pool_free(struct netns_pool *n)
{
	if (!n)
		return;
	while (n->nready > 0)
		netns_free(n->ready[--n->nready]);
	for (; n->nresting > 0; n->nresting--, n->first = (n->first + 1) % MOST)
		netns_free(n->resting[n->first]);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* ---- under the lock ---- */

static struct net *pop_ready(struct netns_pool *n)
{
	return n->nready ? n->ready[--n->nready] : NULL;
}

static struct net *pop_rested(struct netns_pool *n, uint64_t now)
{
	struct net *t = n->resting[n->first];

	if (!n->nresting || now - t->since_ns < REST_NS)
		return NULL;
	n->first = (n->first + 1) % MOST;
	n->nresting--;
	return t;
}

/* Adds it, unless there are too many. */
static void push_ready(struct netns_pool *n, struct net **t, int seen)
{
	if (n->nready == MOST)
		return;
	(*t)->is_clean = seen;
	n->ready[n->nready++] = steal(t);
}

static void push_resting(struct netns_pool *n, struct net **t)
{
	if (n->nresting == MOST)
		return;
	(*t)->since_ns = now_ns();
	n->resting[(n->first + n->nresting++) % MOST] = steal(t);
}

/* ---- */

/* Verifies a namespace that a box has used. Slow, so without the lock. */
static int netns_is_clean(const struct netns_pool *n, struct net *t)
{
	struct net_text now;
	struct err ignored; /* a namespace that cannot be read is not clean */
	int same = open_files(t, &ignored) == 0 && net_look(&t->files, &now, &ignored) == 0 &&
		   net_same(&now, &n->clean);

	if (n->nopen > n->open_most)
		close_files(t);
	return same;
}

static struct net *take_rested(struct netns_pool *n)
{
	for (;;) {
		auto_net struct net *t = NULL;

		pthread_mutex_lock(&n->lock);
		t = pop_rested(n, now_ns());
		pthread_mutex_unlock(&n->lock);
		if (!t || netns_is_clean(n, t))
			return steal(&t);
	}
}

struct net *netns_pool_take(struct netns_pool *n, int unchecked, int *out_clean, struct err *e)
{
	struct net *t;

	pthread_mutex_lock(&n->lock);
	n->taken_ns = now_ns();
	while ((t = pop_ready(n)) != NULL && !t->is_clean && !unchecked)
		netns_free(t);
	pthread_mutex_unlock(&n->lock);
	*out_clean = !t || t->is_clean;
	if (!t)
		t = take_rested(n);
	return t ? t : netns_make(n, e);
}

void netns_pool_put(struct netns_pool *n, struct net *take_t, int unchecked)
{
	auto_net struct net *t = take_t;

	if (!t)
		return;
	pthread_mutex_lock(&n->lock);
	if (unchecked)
		push_ready(n, &t, 0);
	else
		push_resting(n, &t);
	pthread_mutex_unlock(&n->lock);
}

static int want_more(const struct netns_pool *n)
{
	return n->nready + n->nresting < KEPT;
}

static int too_many(const struct netns_pool *n, uint64_t now)
{
	return n->nready > KEPT && now - n->taken_ns > RUSH_NS;
}

static void netns_keep(struct netns_pool *n, struct net *take_t)
{
	auto_net struct net *t = take_t;

	pthread_mutex_lock(&n->lock);
	push_ready(n, &t, 1);
	pthread_mutex_unlock(&n->lock);
}

static struct net *pop_surplus(struct netns_pool *n)
{
	struct net *t;

	pthread_mutex_lock(&n->lock);
	t = too_many(n, now_ns()) ? pop_ready(n) : NULL;
	pthread_mutex_unlock(&n->lock);
	return t;
}

static int netns_lacks(struct netns_pool *n)
{
	int more;

	pthread_mutex_lock(&n->lock);
	more = want_more(n);
	pthread_mutex_unlock(&n->lock);
	return more;
}

void netns_pool_maintain(struct netns_pool *n)
{
	struct net *t;
	struct err e;

	while ((t = take_rested(n)) != NULL)
		netns_keep(n, t);
	while ((t = pop_surplus(n)) != NULL)
		netns_free(t);
	while (netns_lacks(n)) {
		t = netns_make(n, &e);
		if (!t)
			return; /* the next box that needs one gets the error */
		netns_keep(n, t);
	}
}

int netns_pool_next_ms(struct netns_pool *n)
{
	uint64_t now = now_ns(), rested;
	int due = -1;

	pthread_mutex_lock(&n->lock);
	rested = n->nresting ? n->resting[n->first]->since_ns + REST_NS : 0;
	if (want_more(n) || too_many(n, now))
		due = 0;
	else if (n->nresting)
		due = now >= rested ? 0 : (int)((rested - now) / 1000000 + 1);
	else if (n->nready > KEPT)
		due = (int)(RUSH_NS / 1000000 + 1);
	pthread_mutex_unlock(&n->lock);
	return due;
}
