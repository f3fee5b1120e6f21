/* cgroup_cache.c - cgroups that are created in advance, and reused if they are verified clean
 * (cgroup v1).
 *
 * Creating three of them and writing their limits is a fifth of the cost of a pooled create. A
 * cached cgroup has the common limits, no process, and open files: `tasks`, and those with
 * counters. They stay open while a box is in it, so that assigning it, reading counters at the end
 * and verifying it opens no file:
 *
 *           take                        the box has ended             a moment later, clean
 *   cached ────────►  used by a box ────────────────────────►  ended  ──────────────────────►  cached
 *                                                                └─ not clean: removed
 *
 * A keeper that dies leaves its cached cgroups; the next one removes every cgroup below its parent
 * that no record names.
 *
 * A cached cgroup has a name of its own, never the id of a box: a box can read the name of its
 * cgroup, and must not learn which box used it before.
 *
 * The peak number of processes cannot be reset, and is reported for every box. So a cgroup is only
 * reused for a box that itself reaches this peak before a client gets it: there are two kinds of
 * cached cgroups. */
#include "base/id.h"
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"

#include <stdio.h>
#include <string.h>

#define CGROUP_CACHE_SIZE 8  /* created in advance */
#define CGROUP_CACHE_MOST 32 /* of each kind, at most, of returned ones */
#define LOOK_MS 3

struct cached_cgroup {
	char name[WIRE_ID];
	int open; /* these files are open: */
	struct cgroup_files files;
	int used;    /* a box has used it */
	int counted; /* after the end of that box it was empty, and had these counters: */
	struct cgroup_counts last;
	struct cached_cgroup *next;
};

/* Peak number of processes that every box of a kind has when a client gets it. */
static const uint64_t least_peak[CACHED_CGROUP_KINDS] = {
	[CACHED_CGROUP_ANY] = 2,  /* init and the first program */
	[CACHED_CGROUP_WARM] = 3, /* init, the interpreter, and the process that forked it
		    * (src/zygote/fork_server.c) */
};

static struct box_limits cache_common(const struct keeper *k)
{
	const struct keeper_box like = { .meta.about.limits = k->common };

	return keeper_box_limits(&like);
}

/* For an existing cgroup. */
static struct cached_cgroup *cached_cgroup_new(const char *name)
{
	struct cached_cgroup *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

/* A descriptor that cannot be moved stays where it is. */
static void cache_lift(int *fd)
{
	struct err e;

	if (*fd >= 0)
		(void)!keeper_box_lift(fd, &e);
}

static int open_files(const struct keeper *k, struct cached_cgroup *s, struct err *e)
{
	if (s->open)
		return 0;
	if (cgroup_open(&k->host.cgroups, s->name, &s->files, e) < 0)
		return -1;
	for (int i = 0; i < s->files.ntasks; i++)
		cache_lift(&s->files.tasks[i]);
	for (unsigned i = 0; i < CG_FIGURES; i++)
		cache_lift(&s->files.figures[i]);
	s->open = 1;
	return 0;
}

static void close_files(struct cached_cgroup *s)
{
	if (s->open)
		cgroup_close(&s->files);
	s->open = 0;
}

static void cache_drop(struct keeper *k, struct cached_cgroup *take_s)
{
	struct err e;

	close_files(take_s);
	if (cgroup_remove(&k->host.cgroups, take_s->name, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg); /* the next keeper will remove it */
	free(take_s);
}

static struct cached_cgroup *cache_make(struct keeper *k, struct err *e)
{
	struct box_limits lim = cache_common(k);
	char id[ID_MAX + 1];
	struct cached_cgroup *s;

	if (id_new(id, e) < 0 || cgroup_make(&k->host.cgroups, id, &lim, e) < 0)
		return NULL;
	s = cached_cgroup_new(id);
	if (open_files(k, s, e) == 0)
		return s;
	cache_drop(k, s);
	return NULL;
}

static void cache_push(struct cgroup_cache *of, struct cached_cgroup *s)
{
	s->next = of->first;
	of->first = s;
	of->n++;
}

static struct cached_cgroup *cache_pop(struct cgroup_cache *of)
{
	struct cached_cgroup *s = of->first;

	if (s) {
		of->first = s->next;
		of->n--;
	}
	return s;
}

/* Takes one of its own kind first, because those of the other kind fit any box. */
static struct cached_cgroup *pop_for(struct keeper *k, enum cgroup_cache_kind kind)
{
	struct cached_cgroup *s = cache_pop(&k->cached_cgroups[kind]);

	return s || kind == CACHED_CGROUP_ANY ? s
					      : cache_pop(&k->cached_cgroups[CACHED_CGROUP_ANY]);
}

/* A cgroup that is clean now; memory that was still charged when it was returned has been
 * released since. */
static struct cached_cgroup *pop_fresh(struct keeper *k, enum cgroup_cache_kind kind)
{
	struct cached_cgroup *s = pop_for(k, kind);
	struct err e;

	if (s && s->used && cgroup_reset(&s->files, &e) < 0) {
		pool_log(k, "cached cgroup", &e);
		cache_drop(k, s);
		return NULL;
	}
	return s;
}

static void cache_give(struct keeper *k, struct keeper_box *b, struct cached_cgroup *take_s)
{
	memcpy(b->meta.cgroup, take_s->name, sizeof(take_s->name));
	take_s->counted = 0;
	b->own = take_s;
	k->held++;
}

static struct cached_cgroup *take_back(struct keeper *k, struct keeper_box *b)
{
	struct cached_cgroup *s = b->own;

	b->own = NULL;
	k->held -= s != NULL;
	return s;
}

static int take_fresh(struct keeper *k, struct keeper_box *b, int out_fds[CG_NCTL], struct err *e)
{
	struct box_limits lim = keeper_box_limits(b);

	memcpy(b->meta.cgroup, b->meta.about.id, sizeof(b->meta.cgroup));
	if (keeper_box_record(&k->host, b, e) < 0 ||
	    cgroup_make(&k->host.cgroups, b->meta.cgroup, &lim, e) < 0)
		return -1;
	return cgroup_tasks(&k->host.cgroups, b->meta.cgroup, out_fds, e);
}

int cgroup_cache_take(struct keeper *k, struct keeper_box *b, int out_fds[CG_NCTL], struct err *e)
{
	struct box_limits want = keeper_box_limits(b), have = cache_common(k);
	struct cached_cgroup *s = pop_fresh(k, CACHED_CGROUP_ANY);

	if (!s)
		return take_fresh(k, b, out_fds, e);
	cache_give(k, b, s);
	memcpy(out_fds, s->files.tasks, sizeof(s->files.tasks));
	if (memcmp(&want, &have, sizeof(want)) != 0 &&
	    cgroup_limit(&k->host.cgroups, s->name, &want, e) < 0)
		return -1;
	return s->files.ntasks;
}

void cgroup_cache_take_for_job(struct keeper *k, struct build_job *j)
{
	struct box_limits want = keeper_box_limits(j->make.box), have = cache_common(k);
	enum cgroup_cache_kind kind = j->make.orders >= 0 ? CACHED_CGROUP_WARM : CACHED_CGROUP_ANY;
	struct cached_cgroup *s =
		memcmp(&want, &have, sizeof(want)) == 0 ? pop_fresh(k, kind) : NULL;

	if (!s)
		return;
	cache_give(k, j->make.box, s);
	memcpy(j->make.tasks, s->files.tasks, sizeof(s->files.tasks));
	j->make.ntasks = s->files.ntasks;
}

void cgroup_cache_given(struct keeper *k, struct keeper_box *b, int *fds, int n)
{
	while (!b->own && n > 0)
		close(fds[--n]);
	if (k->held > k->host.open_most)
		cgroup_cache_forget(k, b);
}

void cgroup_cache_restart_cpu(const struct keeper *k, struct keeper_box *b)
{
	b->cpu_before_us = cgroup_restart_cpu(&k->host.cgroups, b->meta.cgroup,
					      b->own ? &b->own->files : NULL);
}

void cgroup_cache_forget(struct keeper *k, struct keeper_box *b)
{
	auto_free struct cached_cgroup *s = take_back(k, b);

	if (s)
		close_files(s);
}

void cgroup_cache_count(const struct keeper *k, const struct keeper_box *b,
			struct cgroup_counts *out)
{
	struct cached_cgroup *s = b->own;

	if (!s) {
		cgroup_count(&k->host.cgroups, b->meta.cgroup, out);
		return;
	}
	cgroup_count_open(&s->files, out);
	s->last = *out;
	s->counted = b->death.fd < 0 && out->pids_now == 0; /* the box has ended */
}

int cgroup_cache_may_keep(struct keeper *k, const struct keeper_box *b)
{
	struct box_limits its = keeper_box_limits(b), want = cache_common(k);

	return k->host.cgroups.version == 1 && !k->stopping && b->meta.cgroup[0] && !b->changed &&
	       !b->meta.about.tier && !b->meta.about.frozen &&
	       memcmp(&its, &want, sizeof(its)) == 0 &&
	       strcmp(b->meta.cgroup, b->meta.about.id) != 0 &&
	       ((b->own && b->own->counted) || cgroup_is_empty(&k->host.cgroups, b->meta.cgroup));
}

/* Each holds a dozen descriptors, and boxes have priority. */
static unsigned cgroup_cache_most(const struct keeper *k)
{
	unsigned room = k->host.open_most / 4 + 1;

	return room < CGROUP_CACHE_MOST ? room : CGROUP_CACHE_MOST;
}

/* The list that it can be added to, if there is space; NULL: it is removed. */
static struct cgroup_cache *place_for(struct keeper *k, struct cached_cgroup *s)
{
	unsigned kind = 0;
	struct err e;

	if (k->stopping || open_files(k, s, &e) < 0)
		return NULL;
	if (s->counted)
		s->last.mem_now = cgroup_memory_now(&s->files);
	else
		cgroup_count_open(&s->files, &s->last);
	if (!cgroup_is_clean(&k->host.cgroups, &s->last))
		return NULL;
	while (kind < CACHED_CGROUP_KINDS && s->last.pids_peak > least_peak[kind])
		kind++;
	return kind < CACHED_CGROUP_KINDS && k->cached_cgroups[kind].n < cgroup_cache_most(k)
		       ? &k->cached_cgroups[kind]
		       : NULL;
}

/* A client that ends a box often requests the next one immediately: that request comes first. */
void cgroup_cache_keep(struct keeper *k, struct keeper_box *b)
{
	struct cached_cgroup *s = b->own ? take_back(k, b) : cached_cgroup_new(b->meta.cgroup);

	if (k->nended == ARRAY_LEN(k->ended))
		cgroup_cache_inspect(k);
	s->used = 1;
	k->ended[k->nended++] = s;
	keeper_wake_in(k, LOOK_MS);
}

void cgroup_cache_inspect(struct keeper *k)
{
	while (k->nended > 0) {
		struct cached_cgroup *s = k->ended[--k->nended];
		struct cgroup_cache *place = place_for(k, s);

		if (place)
			cache_push(place, s);
		else
			cache_drop(k, s);
	}
}

void cgroup_cache_refill(struct keeper *k)
{
	unsigned most =
		cgroup_cache_most(k) < CGROUP_CACHE_SIZE ? cgroup_cache_most(k) : CGROUP_CACHE_SIZE;
	unsigned want = k->pool_depth < most ? k->pool_depth : most;
	struct err e;

	if (k->host.cgroups.version != 1 || k->stopping)
		return;
	while (k->cached_cgroups[CACHED_CGROUP_ANY].n < want) {
		struct cached_cgroup *s = cache_make(k, &e);

		if (!s) {
			pool_log(k, "cached cgroup", &e);
			return;
		}
		cache_push(&k->cached_cgroups[CACHED_CGROUP_ANY], s);
	}
}

void cgroup_cache_drop_all(struct keeper *k)
{
	cgroup_cache_inspect(k);
	for (unsigned i = 0; i < CACHED_CGROUP_KINDS; i++)
		for (struct cached_cgroup *s = cache_pop(&k->cached_cgroups[i]); s;
		     s = cache_pop(&k->cached_cgroups[i]))
			cache_drop(k, s);
}
