/* spare.c - cgroups made before they are asked for, and used again when they are as new (cgroup v1).
 *
 * Making three of them and writing their limits is a fifth of a pooled create. A spare has the
 * common limits, no process, and its `tasks` files open. A keeper that dies leaves its spares;
 * the next one removes every cgroup below its own parent that no record names.
 *
 * A spare is named by a number of its own, never by a box's: a box reads the name of its cgroup, and
 * is not to learn who had it before. */
#include "base/id.h"
#include "base/own.h"
#include "keeper/state.h"

#include <stdio.h>
#include <string.h>

#define SPARES 8       /* made ahead */
#define SPARES_MOST 32 /* kept of those that come back */

struct spare {
	char name[WIRE_ID];
	int fds[CG_NCTL];
	int n;
	int used; /* a box has been in it */
	struct spare *next;
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

static void push(struct keeper *k, struct spare *s)
{
	s->next = k->spares;
	k->spares = s;
	k->nspares++;
}

static struct spare *pop(struct keeper *k)
{
	struct spare *s = k->spares;

	if (s) {
		k->spares = s->next;
		k->nspares--;
	}
	return s;
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
static struct spare *pop_fresh(struct keeper *k)
{
	struct spare *s = pop(k);
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
	auto_free struct spare *s = want.cpu_ms ? NULL : pop_fresh(k);

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
	auto_free struct spare *s = memcmp(&want, &have, sizeof(want)) == 0 ? pop_fresh(k) : NULL;

	if (!s)
		return;
	memcpy(j->box->meta.cgroup, s->name, sizeof(s->name));
	memcpy(j->tasks, s->fds, sizeof(s->fds));
	j->ntasks = s->n;
}

int spare_may_keep(struct keeper *k, const struct kbox *b)
{
	struct box_limits its = kbox_limits(b), want = common(k);

	return k->host.cgroups.version == 1 && !k->stopping && k->nspares < SPARES_MOST && b->meta.cgroup[0] &&
	       !b->changed && !b->meta.about.frozen && memcmp(&its, &want, sizeof(its)) == 0 &&
	       strcmp(b->meta.cgroup, b->meta.about.id) != 0 &&
	       cgroup_is_empty(&k->host.cgroups, b->meta.cgroup);
}

void spare_keep(struct keeper *k, const char *cgroup)
{
	struct spare *s = NULL;
	struct err e;

	if (cgroup_as_new(&k->host.cgroups, cgroup))
		s = spare_new(k, cgroup, &e);
	if (s) {
		s->used = 1;
		push(k, s);
		return;
	}
	if (cgroup_remove(&k->host.cgroups, cgroup, &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg); /* the next keeper will */
}

void spare_refill(struct keeper *k)
{
	unsigned want = k->pool_depth < SPARES ? k->pool_depth : SPARES;
	struct err e;

	if (k->host.cgroups.version != 1 || k->stopping)
		return;
	while (k->nspares < want) {
		struct spare *s = make(k, &e);

		if (!s) {
			fprintf(stderr, "atoll: keeper: spare cgroup: %s\n", e.msg);
			return;
		}
		push(k, s);
	}
}

void spare_drop_all(struct keeper *k)
{
	for (struct spare *s = pop(k); s; s = pop(k))
		drop(k, s);
}
