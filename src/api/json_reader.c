/* json_reader.c - see json_reader.h. */
#include "api/json_reader.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "loop/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct json_jobs {
	struct json_job *first, **end;
};

struct json_reader {
	struct watch ready; /* an eventfd: jobs are in `done` */
	pthread_t thread;
	int running;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t wake;
	struct json_jobs todo, done;
	int leaving;
};

static void jobs_init(struct json_jobs *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static void jobs_add(struct json_jobs *q, struct json_job *j)
{
	j->next = NULL;
	*q->end = j;
	q->end = &j->next;
}

/* A short text comes before a long one: a client that sends many large texts delays only other
 * texts of that size. */
static void jobs_insert(struct json_jobs *q, struct json_job *j)
{
	struct json_job **at = &q->first;

	while (*at && (*at)->text.len <= j->text.len)
		at = &(*at)->next;
	j->next = *at;
	*at = j;
	if (!j->next)
		q->end = &j->next;
}

static struct json_job *jobs_take(struct json_jobs *q)
{
	struct json_job *j = q->first;

	if (!j)
		return NULL;
	q->first = j->next;
	if (!q->first)
		q->end = &q->first;
	return j;
}

static void job_free(struct json_job *j)
{
	json_decref(j->doc);
	buf_fini(&j->text);
	free(j);
}

/* ---- the thread ---- */

static struct json_job *reader_next(struct json_reader *x)
{
	struct json_job *j = NULL;

	pthread_mutex_lock(&x->lock);
	while (!x->leaving && !(j = jobs_take(&x->todo)))
		pthread_cond_wait(&x->wake, &x->lock);
	if (j)
		j->is_parsed = !j->is_cancelled;
	pthread_mutex_unlock(&x->lock);
	return j;
}

static void *reader_thread(void *arg)
{
	struct json_reader *x = arg;
	uint64_t one = 1;
	struct json_job *j;

	while ((j = reader_next(x))) {
		if (j->is_parsed) /* else the client has disconnected before the job was parsed */
			j->doc = fields_parse(j->text.p, j->text.len, &j->why);
		buf_fini(&j->text);
		pthread_mutex_lock(&x->lock);
		jobs_add(&x->done, j);
		pthread_mutex_unlock(&x->lock);
		(void)!write(x->ready.fd, &one, sizeof(one)); /* cannot fail below 2^64 */
	}
	return NULL;
}

/* ---- functions of the loop's thread ---- */

static void reader_ready(struct watch *w, unsigned what)
{
	struct json_reader *x = loop_owner(w, struct json_reader, ready);
	struct json_job *j;
	uint64_t count;

	(void)what;
	(void)!read(w->fd, &count, sizeof(count));
	for (;;) {
		pthread_mutex_lock(&x->lock);
		j = jobs_take(&x->done);
		pthread_mutex_unlock(&x->lock);
		if (!j)
			return;
		if (j->done)
			j->done(j, json_incref(j->doc), &j->why);
		job_free(j);
	}
}

struct json_reader *json_reader_new(struct loop *l)
{
	struct json_reader *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	jobs_init(&x->todo);
	jobs_init(&x->done);
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->wake, NULL);
	watch_init(&x->ready, l, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), reader_ready);
	if (x->ready.fd >= 0)
		watch_want(&x->ready, LOOP_READ);
	return x;
}

/* Called at the first large body. All signals are blocked in the new thread, so that the loop's
 * thread receives them. */
static int reader_start(struct json_reader *x)
{
	sigset_t all, before;

	if (x->running)
		return 0;
	if (x->ready.fd < 0)
		return -1;
	json_decref(json_object()); /* makes jansson choose its hash seed while there is
				     * one thread */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	x->running = pthread_create(&x->thread, NULL, reader_thread, x) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return x->running ? 0 : -1;
}

int json_reader_read(struct json_reader *x, struct buf *take_text,
		     void (*done)(struct json_job *, json_t *, const struct err *), void *user,
		     struct json_job **out)
{
	struct json_job *j;

	if (reader_start(x) < 0)
		return -1;
	j = calloc(1, sizeof(*j));
	if (!j)
		abort();
	j->done = done;
	j->user = user;
	j->reader = x;
	j->text = *take_text;
	memset(take_text, 0, sizeof(*take_text));
	*out = j;
	pthread_mutex_lock(&x->lock);
	jobs_insert(&x->todo, j);
	pthread_cond_signal(&x->wake);
	pthread_mutex_unlock(&x->lock);
	return 0;
}

void json_job_cancel(struct json_job *j)
{
	j->done = NULL;
	pthread_mutex_lock(&j->reader->lock);
	j->is_cancelled = 1;
	pthread_mutex_unlock(&j->reader->lock);
}

void json_reader_free(struct json_reader *x)
{
	struct json_job *j;

	if (!x)
		return;
	pthread_mutex_lock(&x->lock);
	x->leaving = 1;
	pthread_cond_signal(&x->wake);
	pthread_mutex_unlock(&x->lock);
	if (x->running)
		pthread_join(x->thread, NULL);
	while ((j = jobs_take(&x->todo)) || (j = jobs_take(&x->done)))
		job_free(j);
	watch_stop(&x->ready);
	own_close_fd(&x->ready.fd);
	pthread_cond_destroy(&x->wake);
	pthread_mutex_destroy(&x->lock);
	free(x);
}
