/* seed.c - see seed.h. On the loop's thread. */
#include "keeper/seed.h"
#include "base/clock.h"
#include "base/own.h"
#include "keeper/state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SECOND 1000000000ull
#define TEND_MS 5000
#define LANE_IDLE_NS (120 * SECOND)    /* then its boxes go, ... */
#define ZYGOTE_IDLE_NS (600 * SECOND)  /* ... and then what they come from */
#define RETRY_NS (2 * SECOND)
#define FAILED_RETRY_NS (30 * SECOND)
#define ABSENT_RETRY_NS (600 * SECOND)
#define FORKS_MOST 10000 /* children share one layout of memory and one hash seed: not for ever */
#define MEMORY_LOW 10    /* percent available */

const struct seed_kind seed_kinds[SEED_LANES] = {
	{ "", "", NULL, 0 },
	{ "python", "/usr/bin/python3", NULL, 8 },
	{ "python-data", "/usr/bin/python3", NULL, 4 },
	/* It has threads, so it cannot be forked. */
	{ "node", "/usr/bin/node", "/opt/atoll/seed_node.js", 3 },
};

unsigned seed_lane(const char *name)
{
	for (unsigned i = 1; i < SEED_LANES; i++)
		if (strncmp(seed_kinds[i].name, name, WIRE_SEED_NAME) == 0)
			return i;
	return 0;
}

/* ---- zygotes ---- */

static void make_zygote(struct keeper *k, unsigned lane)
{
	struct zygote *z = &k->zygotes[lane];
	struct job *j;
	struct err e;

	if (seed_kinds[lane].script || z->making || z->src.fd >= 0 || k->stopping || now_ns() < z->retry_ns)
		return;
	j = job_new();
	j->for_pool = 1; /* behind whatever a client waits for */
	j->home_of = &seed_kinds[lane];
	if (pool_begin(k, j, &k->common, 0, &e) < 0) {
		fprintf(stderr, "atoll: keeper: zygote %s: %s\n", seed_kinds[lane].name, e.msg);
		z->retry_ns = now_ns() + RETRY_NS;
		free(j);
		return;
	}
	j->box->home = 1;
	z->making = 1;
	k->homes++;
}

static struct zygote *zygote_of(struct keeper *k, const struct seed_kind *kind)
{
	return &k->zygotes[kind - seed_kinds];
}

void seed_home_made(struct keeper *k, struct job *take_job)
{
	struct job *j = take_job;
	struct zygote *z = zygote_of(k, j->home_of);
	struct err e = j->err;

	z->making = 0;
	if (!e.kind && keeper_watch(k, &j->box->death, &e) == 0) {
		z->home = j->box;
		z->pid = j->zygote.pid;
		z->ready = 0;
		z->forks = 0;
		z->src = (struct source){ SRC_ZYGOTE, j->zygote.orders };
		if (keeper_watch(k, &z->src, &e) == 0) {
			free(j);
			return;
		}
	}
	fprintf(stderr, "atoll: keeper: %s\n", e.msg);
	z->retry_ns = now_ns() + ABSENT_RETRY_NS;
	death_kill(k, j->box);
	if (!z->home)
		death_seen(k, j->box);
	free(j);
}

/* Without waiting: whatever it is busy with, we are not to be. */
static void reap_zygotes(struct keeper *k)
{
	unsigned left = 0;

	for (unsigned i = 0; i < k->ncorpses; i++)
		if (waitpid(k->corpses[i], NULL, WNOHANG | __WALL) == 0)
			k->corpses[left++] = k->corpses[i];
	k->ncorpses = left;
}

static void end_zygote(struct keeper *k, struct zygote *z, uint64_t retry_ns)
{
	if (z->src.fd < 0)
		return;
	keeper_unwatch(k, &z->src);
	kill(z->pid, SIGKILL);
	reap_zygotes(k);
	if (k->ncorpses < ARRAY_LEN(k->corpses))
		k->corpses[k->ncorpses++] = z->pid;
	if (!z->ready)
		fprintf(stderr, "atoll: keeper: zygote %s could not be loaded\n",
			seed_kinds[z - k->zygotes].name);
	z->ready = 0;
	z->pid = 0;
	z->retry_ns = now_ns() + retry_ns;
	if (z->home)
		death_kill(k, z->home);
}

void seed_news(struct keeper *k, struct zygote *z)
{
	char said;

	if (recv(z->src.fd, &said, 1, MSG_DONTWAIT) == 1) {
		z->ready = 1;
		pool_refill(k);
		return;
	}
	end_zygote(k, z, z->ready ? RETRY_NS : ABSENT_RETRY_NS);
}

void seed_home_died(struct keeper *k, struct kbox *home)
{
	k->homes--;
	for (unsigned i = 1; i < SEED_LANES; i++)
		if (k->zygotes[i].home == home) {
			k->zygotes[i].home = NULL;
			end_zygote(k, &k->zygotes[i], RETRY_NS);
		}
}

void seed_end_all(struct keeper *k)
{
	for (unsigned i = 1; i < SEED_LANES; i++)
		end_zygote(k, &k->zygotes[i], 0);
}

/* ---- lanes ---- */

static int memory_is_low(const struct keeper *k)
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

int seed_wanted(struct keeper *k, unsigned lane)
{
	struct zygote *z = &k->zygotes[lane];

	z->asked_ns = now_ns();
	if (z->forks >= FORKS_MOST)
		end_zygote(k, z, 0);
	make_zygote(k, lane);
	if (k->pool_depth && now_ns() >= z->retry_ns) /* a keeper without a pool forks on demand only */
		k->lanes[lane].depth = seed_kinds[lane].depth;
	keeper_wake_in(k, TEND_MS);
	return seed_ready(k, lane);
}

int seed_ready(const struct keeper *k, unsigned lane)
{
	const struct zygote *z = &k->zygotes[lane];

	return seed_kinds[lane].script ? now_ns() >= z->retry_ns : z->ready;
}

void seed_for_job(struct keeper *k, struct job *j, unsigned lane)
{
	struct zygote *z = &k->zygotes[lane];

	j->lane = lane;
	if (!lane)
		return;
	z->forks++;
	if (seed_kinds[lane].script)
		j->starts = &seed_kinds[lane];
	else
		j->orders = fcntl(z->src.fd, F_DUPFD_CLOEXEC, 3);
}

void seed_failed(struct keeper *k, unsigned lane)
{
	struct zygote *z = &k->zygotes[lane];

	if (!seed_kinds[lane].script && z->src.fd < 0)
		return; /* its zygote had died, and that is known */
	k->lanes[lane].depth = 0;
	/* One that does not answer is as good as dead; and if it was the box's fault, little is lost. */
	end_zygote(k, z, FAILED_RETRY_NS);
	z->retry_ns = now_ns() + FAILED_RETRY_NS;
}

static void empty_lane(struct keeper *k, unsigned lane)
{
	struct kbox *b;

	k->lanes[lane].depth = 0;
	while ((b = pool_take(k, lane)) != NULL)
		death_kill(k, b);
}

/* A lane that is not filled and has no zygote needs no care. */
static int needs_care(const struct keeper *k, unsigned lane)
{
	return k->zygotes[lane].src.fd >= 0 || k->lanes[lane].depth || k->ncorpses;
}

void seed_tend(struct keeper *k)
{
	uint64_t now = now_ns();
	int low = -1;

	for (unsigned i = 1; i < SEED_LANES; i++) {
		struct zygote *z = &k->zygotes[i];

		if (!needs_care(k, i))
			continue;
		keeper_wake_in(k, TEND_MS);
		if (now < k->tend_ns)
			return;
		reap_zygotes(k);
		low = low < 0 ? memory_is_low(k) : low;
		if (low || now - z->asked_ns > LANE_IDLE_NS)
			empty_lane(k, i);
		if (now - z->asked_ns > ZYGOTE_IDLE_NS)
			end_zygote(k, z, 0);
	}
	k->tend_ns = now + TEND_MS * 1000000ull;
}
