/* builder.c - see builder.h. */
#include "keeper/builder.h"
#include "base/clock.h"
#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUILDERS_MAX 16

struct queue {
	struct build_job *first, **end;
};

struct builder {
	const struct host_state *host;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct queue todo, later, done; /* later: jobs for the pool */
	int back;
	unsigned busy, waiting; /* used by the loop's thread only */
	int stop;
	pthread_t thread[BUILDERS_MAX];
	pid_t tid[BUILDERS_MAX];
	unsigned nthreads, ntids;
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static void builder_push(struct queue *q, struct build_job *j)
{
	j->next = NULL;
	*q->end = j;
	q->end = &j->next;
}

static struct build_job *builder_pop(struct queue *q)
{
	struct build_job *j = q->first;

	if (j)
		q->first = j->next;
	if (!q->first)
		q->end = &q->first;
	return j;
}

/* ---- jobs ---- */

static const struct {
	int (*work)(const struct host_state *h, struct build_job *j, struct err *e);
	void (*back)(struct keeper *k, struct build_job *take_job);
} builder_kinds[] = {
	[BUILD_BOX] = { build_box, request_made },
	[BUILD_LIMIT] = { limit_work, limit_back },
	[BUILD_FREEZE] = { freeze_work, freeze_back },
	[BUILD_VOLUME] = { volume_work, volume_back },
	[BUILD_CAPTURE] = { capture_work, capture_back },
	[BUILD_NETNS] = { netns_work, netns_back },
};
_Static_assert(ARRAY_LEN(builder_kinds) == BUILD_KINDS, "a kind of job without a row");

void build_job_finish(struct keeper *k, struct build_job *take_job)
{
	builder_kinds[take_job->kind].back(k, take_job);
}

static void do_job(const struct host_state *h, struct build_job *j)
{
	j->began_ns = now_ns();
	if (builder_kinds[j->kind].work(h, j, &j->err) == 0)
		j->err.kind = ERR_NONE;
	if (j->kind != BUILD_BOX)
		return;
	late_cgroup_end(j->make.cgroup);
	free(steal(&j->make.facts));
	own_close_fd(&j->make.orders);
	j->make.box->meta.about.make_us = (uint32_t)((now_ns() - j->began_ns) / 1000);
}

static void *builder_work(void *arg)
{
	struct builder *m = arg;
	struct err e = { 0 };
	uint64_t one = 1;

	pthread_mutex_lock(&m->lock);
	m->tid[m->ntids++] = gettid();
	pthread_mutex_unlock(&m->lock);
	/* Boxes that get their cgroups later stay in the parent cgroup, where this thread is. */
	if (cgroups_enter(&m->host->cgroups, &e) < 0) {
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
		abort(); /* a builder outside would create boxes outside */
	}
	for (;;) {
		struct build_job *j;

		pthread_mutex_lock(&m->lock);
		while (!m->todo.first && !m->later.first && !m->stop)
			pthread_cond_wait(&m->work, &m->lock);
		j = builder_pop(m->todo.first ? &m->todo : &m->later);
		pthread_mutex_unlock(&m->lock);
		if (!j)
			return NULL;

		do_job(m->host, j);

		pthread_mutex_lock(&m->lock);
		builder_push(&m->done, j);
		pthread_mutex_unlock(&m->lock);
		while (write(m->back, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
}

int builder_start(struct builder **out, const struct host_state *h, unsigned threads, struct err *e)
{
	struct builder *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->host = h;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	queue_init(&m->todo);
	queue_init(&m->later);
	queue_init(&m->done);
	m->back = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->back < 0)
		return err_sys(e, "eventfd");
	for (; m->nthreads < threads && m->nthreads < BUILDERS_MAX; m->nthreads++)
		if (pthread_create(&m->thread[m->nthreads], NULL, builder_work, m) != 0)
			return err_set(e, ERR_SYS, "cannot start builder thread %u", m->nthreads);
	*out = m;
	return 0;
}

/* A joined thread may still be in its cgroup for a moment, and the cgroup is removed next. */
static void wait_for_end(pid_t tid)
{
	while (tgkill(getpid(), tid, 0) == 0)
		usleep(1000);
}

void builder_stop(struct builder *m)
{
	pthread_mutex_lock(&m->lock);
	m->stop = 1;
	pthread_cond_broadcast(&m->work);
	pthread_mutex_unlock(&m->lock);
	for (unsigned i = 0; i < m->nthreads; i++)
		pthread_join(m->thread[i], NULL);
	for (unsigned i = 0; i < m->ntids; i++)
		wait_for_end(m->tid[i]);
	close(m->back);
	free(m);
}

int builder_fd(const struct builder *m)
{
	return m->back;
}

struct build_job *build_job_new(enum build_kind kind)
{
	struct build_job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	j->kind = kind;
	if (kind == BUILD_BOX)
		j->make.orders = -1;
	return j;
}

void builder_submit(struct builder *m, struct build_job *take_job)
{
	struct make_job *make = take_job->kind == BUILD_BOX ? &take_job->make : NULL;
	struct late_cgroup *late = NULL;
	struct box_limits lim = { 0 };
	char name[WIRE_ID] = "";

	if (make) {
		lim = keeper_box_limits(make->box);
		memcpy(name, make->box->meta.cgroup, sizeof(name));
	}
	/* Only for a job that starts immediately: it holds descriptors with low numbers, because a
	 * box being created closes those above JAIL_FD_HIGH. */
	if (m->host->cgroups.version == 1 && name[0] && !make->ntasks && m->busy < m->nthreads)
		make->cgroup = late = late_cgroup_new();
	m->busy++;
	m->waiting += !take_job->for_pool;
	pthread_mutex_lock(&m->lock);
	builder_push(take_job->for_pool ? &m->later : &m->todo, take_job);
	pthread_mutex_unlock(&m->lock);
	pthread_cond_signal(&m->work); /* after the unlock, so that the woken thread does not wait
				        * for the lock */
	/* From here on the job belongs to the builder, which waits for the cgroup. */
	if (late)
		late_cgroup_make(m->host, name, lim, late);
}

struct build_job *builder_collect(struct builder *m)
{
	struct build_job *j;

	pthread_mutex_lock(&m->lock);
	j = builder_pop(&m->done);
	pthread_mutex_unlock(&m->lock);
	if (j) {
		m->busy--;
		m->waiting -= !j->for_pool;
	}
	return j;
}

unsigned builder_busy(const struct builder *m)
{
	return m->busy;
}

unsigned builder_waiting(const struct builder *m)
{
	return m->waiting;
}
