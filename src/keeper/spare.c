/* spare.c - cgroups made before they are asked for (cgroup v1).
 *
 * Making three of them and writing their limits is a fifth of a pooled create. A spare has the
 * common limits, no process, and its `tasks` files open. A keeper that dies leaves its spares;
 * the next one removes every cgroup below its own parent that no record names. */
#include "base/id.h"
#include "base/own.h"
#include "keeper/state.h"

#include <stdio.h>
#include <string.h>

#define SPARES 8

struct spare {
	char name[WIRE_ID];
	int fds[CG_NCTL];
	int n;
	struct spare *next;
};

static struct box_limits common(const struct keeper *k)
{
	const struct kbox like = { .meta.about.limits = k->common };

	return kbox_limits(&like);
}

static struct spare *make(struct keeper *k, struct err *e)
{
	auto_free struct spare *s = calloc(1, sizeof(*s));
	struct box_limits lim = common(k);
	struct err ignored;
	char id[ID_LEN + 1];

	if (!s)
		abort();
	if (id_new(id, e) < 0 || cgroup_make(&k->host.cgroups, id, &lim, e) < 0)
		return NULL;
	memcpy(s->name, id, sizeof(id));
	s->n = cgroup_tasks(&k->host.cgroups, s->name, s->fds, e);
	for (int i = 0; i < s->n; i++)
		if (kbox_lift(&s->fds[i], e) < 0)
			fprintf(stderr, "atoll: keeper: spare cgroup: %s\n", e->msg); /* stays where it is */
	if (s->n < 0) {
		(void)!cgroup_remove(&k->host.cgroups, s->name, &ignored); /* the first failure is the news */
		return NULL;
	}
	return steal(&s);
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
	auto_free struct spare *s = want.cpu_ms ? NULL : pop(k);

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
		s->next = k->spares;
		k->spares = s;
		k->nspares++;
	}
}

void spare_drop_all(struct keeper *k)
{
	struct err e;

	for (struct spare *s = pop(k); s; s = pop(k)) {
		for (int i = 0; i < s->n; i++)
			close(s->fds[i]);
		if (cgroup_remove(&k->host.cgroups, s->name, &e) < 0)
			fprintf(stderr, "atoll: keeper: %s\n", e.msg);
		free(s);
	}
}
