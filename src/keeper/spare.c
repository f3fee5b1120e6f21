/* spare.c - cgroups made before they are asked for, and used again when they are as new (cgroup v1).
 *
 * Making three of them and writing their limits is a fifth of a pooled create. A spare has the
 * common limits, no process, and its `tasks` files open. A keeper that dies leaves its spares;
 * the next one removes every cgroup below its own parent that no record names.
 *
 * A spare is named by a number of its own, never by a box's: a box reads the name of its cgroup, and
 * is not to learn who had it before.
 *
 * The highest number of processes cannot be set back, and is told of every box. So a cgroup is only given
 * to one that will have had as many itself before anybody is given it: spares are of two kinds. */
#include "base/id.h"
#include "base/own.h"
#include "keeper/state.h"

#include <stdio.h>
#include <string.h>

#define SPARES 8       /* made ahead */
#define SPARES_MOST 32 /* of each kind, kept of those that come back */
#define LOOK_MS 3

struct spare {
	char name[WIRE_ID];
	int fds[CG_NCTL];
	int n;
	int used; /* a box has been in it */
	struct spare *next;
};

/* What every box of a kind has had when it is given away. */
static const uint64_t least_peak[SPARE_KINDS] = {
	[SPARE_ANY] = 2,    /* init, and the program that it is for */
	[SPARE_SEEDED] = 3, /* init, the seed, and who brought it (src/seed/plant.c) */
};

static struct box_limits common(const struct keeper *k)
{
	const struct kbox like = { .meta.about.limits = k->common };

	return kbox_limits(&like);
}

/* Of a cgroup that is there. */
static struct spare *spare_new(struct keeper *k, const char *name, struct err *e)
{
	auto_free struct spare *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->n = cgroup_tasks(&k->host.cgroups, s->name, s->fds, e);
	for (int i = 0; i < s->n; i++)
		if (kbox_lift(&s->fds[i], e) < 0)
			fprintf(stderr, "atoll: keeper: spare cgroup: %s\n", e->msg); /* stays where it is */
	return s->n < 0 ? NULL : steal(&s);
}

static struct spare *make(struct keeper *k, struct err *e)
{
	struct box_limits lim = common(k);
	struct err ignored;
	char id[ID_LEN + 1];
	struct spare *s;

	if (id_new(id, e) < 0 || cgroup_make(&k->host.cgroups, id, &lim, e) < 0)
		return NULL;
	s = spare_new(k, id, e);
	if (!s)
		(void)!cgroup_remove(&k->host.cgroups, id, &ignored); /* the first failure is the news */
	return s;
}

static void push(struct spares *of, struct spare *s)
{
	s->next = of->first;
	of->first = s;
	of->n++;
}

static struct spare *pop(struct spares *of)
{
	struct spare *s = of->first;

	if (s) {
		of->first = s->next;
		of->n--;
	}
	return s;
}

/* Of its own kind first, for the others may be anybody's. */
static struct spare *pop_for(struct keeper *k, enum spare_kind kind)
{
	struct spare *s = pop(&k->spares[kind]);

	return s || kind == SPARE_ANY ? s : pop(&k->spares[SPARE_ANY]);
}

static void drop(struct keeper *k, struct spare *take_s)
{
	struct err e;

	for (int i = 0; i < take_s->n; i++)
		close(take_s->fds[i]);
	if (cgroup_remove(&k->host.cgroups, take_s->name, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
	free(take_s);
}

/* One that a box may have now; what it was charged with when it came back is gone meanwhile. */
static struct spare *pop_fresh(struct keeper *k, enum spare_kind kind)
{
	struct spare *s = pop_for(k, kind);
	struct err e;

	if (s && s->used && cgroup_forget_peak(&k->host.cgroups, s->name, &e) < 0) {
		fprintf(stderr, "atoll: keeper: spare cgroup: %s\n", e.msg);
		drop(k, s);
		return NULL;
	}
	return s;
}

/* A CPU time limit needs one more cgroup than spares have. */
static int take_fresh(struct keeper *k, struct kbox *b, int out_fds[CG_NCTL], struct err *e)
{
	struct box_limits lim = kbox_limits(b);

	memcpy(b->meta.cgroup, b->meta.about.id, sizeof(b->meta.cgroup));
	if (meta_update(k->host.run, &b->meta, e) < 0 ||
	    cgroup_make(&k->host.cgroups, b->meta.cgroup, &lim, e) < 0)
		return -1;
	return cgroup_tasks(&k->host.cgroups, b->meta.cgroup, out_fds, e);
}

int spare_take(struct keeper *k, struct kbox *b, int out_fds[CG_NCTL], struct err *e)
{
	struct box_limits want = kbox_limits(b), have = common(k);
	auto_free struct spare *s = want.cpu_ms ? NULL : pop_fresh(k, SPARE_ANY);

	if (!s)
		return take_fresh(k, b, out_fds, e);
	memcpy(b->meta.cgroup, s->name, sizeof(s->name));
	memcpy(out_fds, s->fds, sizeof(s->fds));
	if (memcmp(&want, &have, sizeof(want)) != 0 &&
	    cgroup_limit(&k->host.cgroups, s->name, &want, e) < 0) {
		for (int i = 0; i < s->n; i++)
			close(s->fds[i]);
		return -1;
	}
	return s->n;
}

void spare_take_for_job(struct keeper *k, struct job *j)
{
	struct box_limits want = kbox_limits(j->box), have = common(k);
	enum spare_kind kind = j->orders >= 0 ? SPARE_SEEDED : SPARE_ANY;
	auto_free struct spare *s = memcmp(&want, &have, sizeof(want)) == 0 ? pop_fresh(k, kind) : NULL;

	if (!s)
		return;
	memcpy(j->box->meta.cgroup, s->name, sizeof(s->name));
	memcpy(j->tasks, s->fds, sizeof(s->fds));
	j->ntasks = s->n;
}

int spare_may_keep(struct keeper *k, const struct kbox *b)
{
	struct box_limits its = kbox_limits(b), want = common(k);

	return k->host.cgroups.version == 1 && !k->stopping && b->meta.cgroup[0] &&
	       !b->changed && !b->meta.about.frozen && memcmp(&its, &want, sizeof(its)) == 0 &&
	       strcmp(b->meta.cgroup, b->meta.about.id) != 0 &&
	       cgroup_is_empty(&k->host.cgroups, b->meta.cgroup);
}

/* Whose it may be, and there is room; NULL: nobody's. */
static struct spares *place_for(struct keeper *k, const char *cgroup)
{
	unsigned kind = 0;
	uint64_t peak;

	if (k->stopping || !cgroup_as_new(&k->host.cgroups, cgroup, &peak))
		return NULL;
	while (kind < SPARE_KINDS && peak > least_peak[kind])
		kind++;
	return kind < SPARE_KINDS && k->spares[kind].n < SPARES_MOST ? &k->spares[kind] : NULL;
}

static void look_at(struct keeper *k, const char *cgroup)
{
	struct spares *place = place_for(k, cgroup);
	struct err e;
	struct spare *s = place ? spare_new(k, cgroup, &e) : NULL;

	if (s) {
		s->used = 1;
		push(place, s);
		return;
	}
	if (cgroup_remove(&k->host.cgroups, cgroup, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg); /* the next keeper will */
}

/* Who ends a box often wants the next one at once: that goes first. */
void spare_keep(struct keeper *k, const char *cgroup)
{
	if (k->nended == ARRAY_LEN(k->ended))
		spare_look(k);
	snprintf(k->ended[k->nended++], WIRE_ID, "%s", cgroup);
	keeper_wake_in(k, LOOK_MS);
}

void spare_look(struct keeper *k)
{
	while (k->nended > 0)
		look_at(k, k->ended[--k->nended]);
}

void spare_refill(struct keeper *k)
{
	unsigned want = k->pool_depth < SPARES ? k->pool_depth : SPARES;
	struct err e;

	if (k->host.cgroups.version != 1 || k->stopping)
		return;
	while (k->spares[SPARE_ANY].n < want) {
		struct spare *s = make(k, &e);

		if (!s) {
			fprintf(stderr, "atoll: keeper: spare cgroup: %s\n", e.msg);
			return;
		}
		push(&k->spares[SPARE_ANY], s);
	}
}

void spare_drop_all(struct keeper *k)
{
	spare_look(k);
	for (unsigned i = 0; i < SPARE_KINDS; i++)
		for (struct spare *s = pop(&k->spares[i]); s; s = pop(&k->spares[i]))
			drop(k, s);
}
