/* warm_pool.c - see warm_pool.h. On the loop's thread. */
#include "keeper/warm_pool.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#define SECOND 1000000000ull
#define MAINTAIN_MS 5000
#define POOL_CLASS_IDLE_NS (120 * SECOND) /* then its boxes are ended, ... */
#define ZYGOTE_IDLE_NS (600 * SECOND)     /* ... and then its zygote */
#define RETRY_NS (2 * SECOND)
#define FAILED_RETRY_NS (30 * SECOND)
#define ABSENT_RETRY_NS (600 * SECOND)
#define FAILURES_MOST 8 /* failures in a row; a missing answer counts as half of them */
/* Children share one memory layout and one hash seed, so their number is limited. */
#define FORKS_MOST 10000
#define MEMORY_LOW 10 /* percent available */
/* A pool class that was not requested for this long may be reused for another group. */
#define EVICT_NS (20 * SECOND)
#define DEPTH_LEAST 2

const struct warm_kind warm_kinds[WARM_KINDS] = {
	{ .name = "",
	  .program = "",
	  .in_engine = { "/usr/bin/python3", NULL, "/opt/atoll/zygote_python.py", "small" } },
	{ .name = "python",
	  .program = "/usr/bin/python3",
	  .in_root = { "python3", NULL, "/opt/atoll/zygote_python.py", NULL },
	  .in_engine = { "/usr/bin/python3", NULL, "/opt/atoll/zygote_python.py", "cells" },
	  .depth = 8,
	  .mib = 40 },
	{ .name = "python-data",
	  .program = "/usr/bin/python3",
	  .in_engine = { "/usr/bin/python3", NULL, "/opt/atoll/zygote_python.py", "data" },
	  .depth = 4,
	  .mib = 100 },
	/* Node has threads, so it cannot be forked. */
	{ .name = "node",
	  .program = "/usr/bin/node",
	  .base = { "/usr/bin/node", "-r", "/opt/atoll/zygote_node.js", NULL },
	  .in_root = { "node", "-r", "/opt/atoll/zygote_node.js", NULL },
	  .in_engine = { "/usr/bin/node", "-r", "/opt/atoll/zygote_node.js", NULL },
	  .depth = 3 },
};

/* How init starts the interpreter of this class; NULL: a zygote forks it. */
static const struct warm_start *warm_pool_starts(const struct zygote *z)
{
	const struct warm_start *s = z->root[0] ? &z->kind->in_root : &z->kind->base;

	return s->program ? s : NULL;
}

/* ---- zygotes ---- */

int warm_pool_memory_is_low(const struct keeper *k)
{
	auto_fd int fd = openat(k->host.proc, "meminfo", O_RDONLY | O_CLOEXEC);
	unsigned long long total = 0, available = 0;
	char text[512];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at;

	if (n <= 0)
		return 0;
	text[n] = 0;
	sscanf(text, "MemTotal: %llu", &total);
	at = strstr(text, "MemAvailable:");
	if (at)
		sscanf(at, "MemAvailable: %llu", &available);
	return total && available * 100 < total * MEMORY_LOW;
}

static unsigned zygotes_mib(const struct keeper *k)
{
	unsigned sum = 0;

	for (unsigned i = 1; i < POOL_CLASSES; i++)
		sum += k->zygotes[i].kind && !k->zygotes[i].root[0] ? k->zygotes[i].kind->mib : 0;
	return sum;
}

static void make_zygote(struct keeper *k, unsigned pool_class)
{
	struct zygote *z = &k->zygotes[pool_class];
	struct build_job *j;
	struct err e;

	if (warm_pool_starts(z) || z->making || z->src.fd >= 0 || k->stopping ||
	    now_ns() < z->retry_ns)
		return;
	if (zygotes_mib(k) > z->kind->mib &&
	    warm_pool_memory_is_low(k)) { /* other classes have a zygote; this one has to wait */
		z->retry_ns = now_ns() + FAILED_RETRY_NS;
		return;
	}
	j = build_job_new(BUILD_BOX);
	j->for_pool = 1; /* after all jobs that clients wait for */
	j->make.home_of = z->kind;
	j->make.home_pool_class = pool_class;
	if (pool_begin(k, j, &k->common, 0, &e) < 0) {
		fprintf(stderr, "atoll: keeper: zygote %s: %s\n", z->kind->name, e.msg);
		z->retry_ns = now_ns() + RETRY_NS;
		free(j);
		return;
	}
	j->make.box->home = 1;
	z->making = 1;
	k->homes++;
}

/* Does not wait: a busy zygote must not block the keeper. */
static void reap_zygotes(struct keeper *k)
{
	unsigned left = 0;

	for (unsigned i = 0; i < k->nunreaped; i++)
		if (waitpid(k->unreaped[i], NULL, WNOHANG | __WALL) == 0)
			k->unreaped[left++] = k->unreaped[i];
	k->nunreaped = left;
}

static void end_process(struct keeper *k, pid_t pid)
{
	kill(pid, SIGKILL);
	reap_zygotes(k);
	if (k->nunreaped < ARRAY_LEN(k->unreaped))
		k->unreaped[k->nunreaped++] = pid;
	else /* too many zygotes have not ended for minutes: the kernel is stuck */
		fprintf(stderr, "atoll: keeper: zygote %d is not waited for\n", (int)pid);
	keeper_wake_in(k, MAINTAIN_MS);
}

static void end_zygote(struct keeper *k, struct zygote *z, uint64_t retry_ns)
{
	if (z->src.fd < 0)
		return;
	keeper_unwatch(k, &z->src);
	end_process(k, z->pid);
	if (!z->ready)
		fprintf(stderr, "atoll: keeper: zygote %s could not be loaded\n", z->kind->name);
	z->ready = 0;
	z->pid = 0;
	z->retry_ns = now_ns() + retry_ns;
	if (z->home)
		teardown_kill(k, z->home);
}

void warm_pool_box_created(struct keeper *k, struct build_job *take_job)
{
	struct build_job *j = take_job;
	struct zygote *z = &k->zygotes[j->make.home_pool_class];
	struct err e = j->err;

	z->making = 0;
	if (!e.kind && keeper_watch(k, &j->make.box->death, &e) == 0) {
		z->home = j->make.box;
		z->pid = j->make.zygote.pid;
		z->number = ++k->last_zygote;
		z->ready = 0;
		z->forks = z->failures = 0;
		z->src = (struct source){ SRC_ZYGOTE, j->make.zygote.orders };
		if (keeper_watch(k, &z->src, &e) == 0) {
			free(j);
			return;
		}
	}
	fprintf(stderr, "atoll: keeper: %s\n", e.msg);
	z->retry_ns = now_ns() + ABSENT_RETRY_NS;
	if (j->make.zygote.pid) {
		own_close_fd(&j->make.zygote.orders);
		end_process(k, j->make.zygote.pid);
	}
	z->home = NULL;
	z->src.fd = -1;
	teardown_discard(k, j->make.box);
	free(j);
}

void warm_pool_on_message(struct keeper *k, struct zygote *z)
{
	char said;

	if (recv(z->src.fd, &said, 1, MSG_DONTWAIT) == 1) {
		z->ready = 1;
		pool_refill(k);
		return;
	}
	end_zygote(k, z, z->ready ? RETRY_NS : ABSENT_RETRY_NS);
}

void warm_pool_box_died(struct keeper *k, struct keeper_box *home)
{
	k->homes--;
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		if (k->zygotes[i].home == home) {
			k->zygotes[i].home = NULL;
			end_zygote(k, &k->zygotes[i], RETRY_NS);
		}
}

void warm_pool_end_all(struct keeper *k)
{
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		end_zygote(k, &k->zygotes[i], 0);
}

/* ---- pool classes ---- */

/* To the client of POOL_ROOT. */
static void warm_pool_answer(struct keeper *k, struct zygote *z, const struct err *e)
{
	struct frame done = sock_head(WIRE_DONE, z->filler.ref);

	if (z->filler.client && e)
		client_error(k, z->filler.client, z->filler.ref, e);
	else if (z->filler.client)
		client_send(k, z->filler.client, &done, sizeof(done), -1);
	z->filler.client = 0;
}

static void empty_pool_class(struct keeper *k, unsigned pool_class)
{
	struct keeper_box *b;

	k->pool_classes[pool_class].depth = 0;
	while ((b = pool_take(k, pool_class)) != NULL)
		teardown_kill(k, b);
}

static void free_pool_class(struct keeper *k, unsigned pool_class)
{
	struct zygote *z = &k->zygotes[pool_class];

	empty_pool_class(k, pool_class);
	end_zygote(k, z, 0);
	*z = (struct zygote){ .src = { SRC_ZYGOTE, -1 } };
}

/* The pool class with the oldest request, if that was long ago and no box is being created
 * for it. */
static unsigned unused_pool_class(const struct keeper *k)
{
	uint64_t before = now_ns() - EVICT_NS;
	unsigned found = 0;

	for (unsigned i = 1; i < POOL_CLASSES; i++) {
		const struct zygote *z = &k->zygotes[i];

		if (z->kind && !z->making && !z->pinned && !z->filler.client &&
		    !k->pool_classes[i].making && z->asked_ns < before) {
			before = z->asked_ns;
			found = i;
		}
	}
	return found;
}

/* All zygotes together have an eighth of the memory; one of each kind is always allowed. */
static unsigned zygotes_mib_most(void)
{
	struct sysinfo s;
	unsigned most = 0, least = 0;

	for (unsigned i = 1; i < WARM_KINDS; i++)
		least += warm_kinds[i].mib;
	if (sysinfo(&s) == 0)
		most = (unsigned)((uint64_t)s.totalram * s.mem_unit / 8 >> 20);
	return most > least ? most : least;
}

static unsigned new_pool_class(struct keeper *k, const struct warm_kind *kind, uint32_t group,
			       const char *root, const struct wire_limits *limits)
{
	unsigned most = zygotes_mib_most(), mib = *root ? 0 : kind->mib, pool_class, old;

	for (;;) {
		for (pool_class = 1; pool_class < POOL_CLASSES && k->zygotes[pool_class].kind;
		     pool_class++)
			;
		if (pool_class < POOL_CLASSES && zygotes_mib(k) + mib <= most)
			break;
		old = unused_pool_class(k);
		if (!old)
			return 0;
		free_pool_class(k, old);
	}
	k->zygotes[pool_class].kind = kind;
	k->zygotes[pool_class].group = group;
	k->zygotes[pool_class].limits = *limits;
	snprintf(k->zygotes[pool_class].root, sizeof(k->zygotes[pool_class].root), "%s", root);
	return pool_class;
}

unsigned warm_pool_class(struct keeper *k, const char *name, uint32_t group, const char *root,
			 const struct wire_limits *limits)
{
	const struct warm_kind *kind = NULL;

	for (unsigned i = 1; i < WARM_KINDS; i++)
		if (strncmp(warm_kinds[i].name, name, WIRE_WARM_NAME) == 0)
			kind = &warm_kinds[i];
	if (!kind || (*root && !kind->in_root.program))
		return 0;
	if (*root || kind->base.program)
		group = 0; /* each is started in its own box, so boxes share nothing */
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		if (k->zygotes[i].kind == kind && k->zygotes[i].group == group &&
		    !k->zygotes[i].closing && strcmp(k->zygotes[i].root, root) == 0) {
			if (!k->pool_classes[i].pooled && !k->pool_classes[i].making)
				k->zygotes[i].limits = *limits;
			return i;
		}
	return new_pool_class(k, kind, group, root, limits);
}

int warm_pool_fits(const struct keeper *k, unsigned pool_class, const struct wire_limits *want)
{
	const struct zygote *z = &k->zygotes[pool_class];

	if (!z->root[0])
		return pool_fits(k, want);
	return want->disk_bytes == z->limits.disk_bytes &&
	       want->disk_files == z->limits.disk_files &&
	       keeper_box_disk_in_memory(want) == keeper_box_disk_in_memory(&z->limits);
}

/* The requested pool classes of a kind share its depth. */
static void deepen_pool_class(struct keeper *k, unsigned pool_class)
{
	const struct warm_kind *kind = k->zygotes[pool_class].kind;
	unsigned n = 0, depth;

	if (k->zygotes[pool_class].root[0]) {
		depth = k->zygotes[pool_class].pinned;
		k->pool_classes[pool_class].depth = depth > DEPTH_LEAST ? depth : DEPTH_LEAST;
		return;
	}
	k->pool_classes[pool_class].depth += !k->pool_classes[pool_class].depth;
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		n += k->zygotes[i].kind == kind && !k->zygotes[i].root[0] &&
		     k->pool_classes[i].depth;
	depth = kind->depth / n > DEPTH_LEAST ? kind->depth / n : DEPTH_LEAST;
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		if (k->zygotes[i].kind == kind && !k->zygotes[i].root[0] &&
		    k->pool_classes[i].depth)
			k->pool_classes[i].depth = depth;
}

int warm_pool_wanted(struct keeper *k, unsigned pool_class)
{
	struct zygote *z = &k->zygotes[pool_class];

	z->asked_ns = now_ns();
	if (z->forks >= FORKS_MOST)
		end_zygote(k, z, 0);
	make_zygote(k, pool_class);
	if (k->pool_depth &&
	    now_ns() >= z->retry_ns) /* a keeper without a pool only forks on demand */
		deepen_pool_class(k, pool_class);
	keeper_wake_in(k, MAINTAIN_MS);
	return warm_pool_is_ready(k, pool_class);
}

int warm_pool_is_ready(const struct keeper *k, unsigned pool_class)
{
	const struct zygote *z = &k->zygotes[pool_class];

	if (!z->kind || z->closing)
		return 0;
	return warm_pool_starts(z) ? now_ns() >= z->retry_ns : z->ready;
}

void warm_pool_for_job(struct keeper *k, struct build_job *j, unsigned pool_class)
{
	struct zygote *z = &k->zygotes[pool_class];

	j->make.pool_class = pool_class;
	if (!pool_class)
		return;
	z->forks++;
	j->make.kind = z->kind;
	if (warm_pool_starts(z))
		j->make.starts = warm_pool_starts(z);
	else /* moved to a high number: hundreds of jobs may wait, and launches need the
	      * low numbers */
		j->make.orders = fcntl(z->src.fd, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);
	j->make.zygote_number = z->number;
}

void warm_pool_worked(struct keeper *k, const struct build_job *j)
{
	if (k->zygotes[j->make.pool_class].number == j->make.zygote_number)
		k->zygotes[j->make.pool_class].failures = 0;
}

void warm_pool_failed(struct keeper *k, const struct build_job *j)
{
	struct zygote *z = &k->zygotes[j->make.pool_class];

	if (!z->kind || z->number != j->make.zygote_number ||
	    (!warm_pool_starts(z) && z->src.fd < 0))
		return; /* that zygote has already ended */
	z->failures += j->err.sys == ETIMEDOUT ? FAILURES_MOST / 2 : 1;
	if (z->failures < FAILURES_MOST)
		return;
	fprintf(stderr,
		"atoll: keeper: zygote %s: its children fail in set-up; no more for %llu s\n",
		z->kind->name, FAILED_RETRY_NS / SECOND);
	k->pool_classes[j->make.pool_class].depth = 0;
	z->failures = 0;
	end_zygote(k, z, FAILED_RETRY_NS);
	z->retry_ns = now_ns() + FAILED_RETRY_NS;
}

void warm_pool_maintain(struct keeper *k)
{
	uint64_t now = now_ns();
	int low = -1, any = k->nunreaped != 0;
	struct err e;

	for (unsigned i = 1; i < POOL_CLASSES; i++)
		any |= k->zygotes[i].kind != NULL;
	if (any)
		keeper_wake_in(k, MAINTAIN_MS);
	if (!any || now < k->maintain_ns)
		return;
	reap_zygotes(k);
	for (unsigned i = 1; i < POOL_CLASSES; i++) {
		struct zygote *z = &k->zygotes[i];

		if (!z->kind)
			continue;
		low = low < 0 ? warm_pool_memory_is_low(k) : low;
		if (low && z->filler.client) {
			err_set(&e, ERR_LIMIT, "the host is short of memory");
			warm_pool_answer(k, z, &e);
		}
		if (low || (!z->pinned && now - z->asked_ns > POOL_CLASS_IDLE_NS))
			empty_pool_class(k, i);
		else if (k->pool_classes[i].depth < z->pinned)
			k->pool_classes[i].depth = z->pinned;
		if (!z->pinned && now - z->asked_ns > ZYGOTE_IDLE_NS && !z->making &&
		    !k->pool_classes[i].making)
			free_pool_class(k, i);
	}
	k->maintain_ns = now + MAINTAIN_MS * 1000000ull;
}

/* ---- pools of roots ---- */

int warm_pool_pin(struct keeper *k, const struct waiter *who, const struct wire_pool_root *w,
		  const struct wire_limits *limits, struct err *e)
{
	static const char *const names[WIRE_POOL_WARMS] = {
		[WIRE_POOL_PLAIN] = "", [WIRE_POOL_PYTHON] = "python", [WIRE_POOL_NODE] = "node"
	};
	unsigned depth = k->pool_depth ? w->depth : 0, pool_class;
	struct zygote *z;

	if (w->warm >= WIRE_POOL_WARMS)
		return err_set(e, ERR_INVALID, "there is no warm interpreter %u", w->warm);
	pool_class = warm_pool_class(k, names[w->warm], 0, w->root, limits);
	if (!pool_class)
		return err_set(e, ERR_LIMIT, "%d kinds of boxes with an interpreter wait already",
			       POOL_CLASSES - 1);
	z = &k->zygotes[pool_class];
	if (!warm_pool_fits(k, pool_class, limits)) {
		empty_pool_class(k, pool_class);
		z->limits = *limits;
	}
	warm_pool_answer(k, z, NULL);
	z->asked_ns = now_ns();
	z->retry_ns = 0;
	z->pinned = w->head.flags & WIRE_POOL_ONCE ? 0 : depth;
	z->filler = *who;
	if (!depth)
		empty_pool_class(k, pool_class);
	k->pool_classes[pool_class].depth = depth;
	if (k->pool_classes[pool_class].pooled >= depth)
		warm_pool_answer(k, z, NULL);
	keeper_wake_in(k, MAINTAIN_MS);
	pool_refill(k);
	return 0;
}

/* A class whose root was deleted is free when no box of it is being created. */
static void warm_pool_free_if_closed(struct keeper *k, unsigned pool_class)
{
	struct zygote *z = &k->zygotes[pool_class];
	struct err e;

	if (!z->closing || k->pool_classes[pool_class].making)
		return;
	err_set(&e, ERR_NOT_FOUND, "root %.12s was deleted", z->root);
	warm_pool_answer(k, z, &e);
	free_pool_class(k, pool_class);
}

int warm_pool_pooled(struct keeper *k, struct keeper_box *b)
{
	struct zygote *z = &k->zygotes[b->pool_class];

	if (z->closing) {
		warm_pool_free_if_closed(k, b->pool_class);
		return 0;
	}
	pool_add(k, b);
	if (k->pool_classes[b->pool_class].pooled >= k->pool_classes[b->pool_class].depth)
		warm_pool_answer(k, z, NULL);
	return 1;
}

void warm_pool_not_pooled(struct keeper *k, struct keeper_box *b, const struct err *e)
{
	struct zygote *z = &k->zygotes[b->pool_class];

	if (!z->closing)
		pool_log(k, "pool", e);
	z->retry_ns = now_ns() + FAILED_RETRY_NS;
	warm_pool_answer(k, z, e);
	warm_pool_free_if_closed(k, b->pool_class);
}

void warm_pool_close_root(struct keeper *k, const char *root)
{
	for (unsigned i = 1; i < POOL_CLASSES; i++)
		if (k->zygotes[i].kind && strcmp(k->zygotes[i].root, root) == 0) {
			empty_pool_class(k, i);
			k->zygotes[i].closing = 1;
			warm_pool_free_if_closed(k, i);
		}
}
