/* combine.c - see combine.h. */
#include "checkpoint/combine.h"
#include "checkpoint/internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COMBINE_ANCESTORS = 4096, COMBINE_LISTS = 3 };

struct combine {
	struct combine *next;
	struct checkpoints *all;
	struct store_checkpoint of[COMBINE_LISTS]; /* ancestor, ours, theirs */
	struct checkpoint_files lists[COMBINE_LISTS];
	unsigned nread;
	struct checkpoint_files_load *reading;
	struct keeper_call *asking;
	struct store_checkpoint row;
	int is_written; /* the row */
	char keeper_box[ID_MAX + 1];
	struct checkpoint_plan plan;
	enum checkpoint_conflicts how;
	combine_done *done; /* NULL: the caller has left */
	void *ctx;
};

static void combine_free(struct combine *m)
{
	struct combine **at = &m->all->combines;

	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
	checkpoint_plan_fini(&m->plan);
	for (unsigned i = 0; i < COMBINE_LISTS; i++) {
		checkpoint_files_fini(&m->lists[i]);
		store_checkpoint_fini(&m->of[i]);
	}
	store_checkpoint_fini(&m->row);
	free(m);
}

static void combine_end(struct combine *m, const struct store_checkpoint *row, const struct err *e)
{
	struct combine_result r = { .plan = &m->plan, .row = row };
	struct err own;

	if (e && m->is_written && store_checkpoint_fail(m->all->fleet->store, m->row.id, &own) < 0)
		log_warn("cannot mark a checkpoint as failed", LOG_S("checkpoint", m->row.id),
			 LOG_E(&own));
	memcpy(r.ancestor, m->of[0].id, sizeof(r.ancestor));
	if (m->done)
		m->done(m->ctx, &r, e);
	combine_free(m);
}

/* ---- the layer ---- */

static void combine_written(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	const struct wire_checkpointed *x = (const struct wire_checkpointed *)f;
	struct combine *m = ctx;
	struct store_checkpoint *row = &m->row;
	struct err own;

	(void)len;
	(void)fd;
	m->asking = NULL;
	if (!f) {
		combine_end(m, NULL, e);
		return;
	}
	row->bytes = x->bytes + x->index_bytes;
	row->files = x->files;
	row->deleted = x->deleted;
	row->took_us = x->took_us;
	if (store_checkpoint_finish(m->all->fleet->store, row, &own) < 0) {
		combine_end(m, NULL, &own);
		return;
	}
	row->state = STORE_CHECKPOINT_READY;
	m->is_written = 0; /* a failure no longer concerns the row */
	combine_end(m, row, NULL);
}

static int combine_room(const struct combine *m, uint64_t *out, struct err *e)
{
	uint64_t most = m->all->conf.team_bytes, has;

	*out = UINT64_MAX;
	if (!most)
		return 0;
	if (store_checkpoint_bytes(m->all->fleet->store, m->row.team, &has, e) < 0)
		return -1;
	if (has < most) {
		*out = most - has;
		return 0;
	}
	err_set(e, ERR_SYS,
		"the checkpoints of team %.64s have %llu bytes, the maximum is %llu "
		"(quota.checkpoint_bytes); delete some: DELETE /v1/checkpoints/ID",
		m->row.team, (unsigned long long)has, (unsigned long long)most);
	e->sys = EDQUOT;
	return -1;
}

static int combine_write_index(const struct combine *m, struct err *e)
{
	struct layer_index_head head = { .stop_ns = clock_ns(CLOCK_REALTIME) };
	auto_fd int fd = memfd_create("index", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "file for an index");
	memcpy(head.id, m->row.id, strlen(m->row.id));
	memcpy(head.box, m->keeper_box, strlen(m->keeper_box));
	if (checkpoint_plan_write(&m->plan, &m->lists[1], &m->lists[2], &head, fd, e) < 0)
		return -1;
	return steal_fd(&fd);
}

static int combine_ask(struct combine *m, struct err *e)
{
	struct wire_checkpoint_merge ask = { .head = { .version = WIRE_VERSION,
						       .type = WIRE_CHECKPOINT_MERGE },
					     .n = m->of[2].nchain,
					     .files_most = UINT64_MAX };
	int fd;

	if (combine_room(m, &ask.bytes_most, e) < 0)
		return -1;
	fd = combine_write_index(m, e);
	if (fd < 0)
		return -1;
	if (store_checkpoint_insert(m->all->fleet->store, &m->row, e) < 0) {
		close(fd);
		return -1;
	}
	m->is_written = 1;
	snprintf(ask.id, sizeof(ask.id), "%s", m->row.id);
	for (unsigned i = 0; i < ask.n; i++)
		memcpy(ask.from[i], m->of[2].chain[i], sizeof(ask.from[i]));
	m->asking = keeper_client_request_fd(&m->all->fleet->keeper, &ask, sizeof(ask), fd,
					     WIRE_CHECKPOINTED, combine_written, m);
	return 0;
}

/* ---- the lists ---- */

static void combine_plan(struct combine *m)
{
	struct err e;

	checkpoint_plan_make(&m->lists[0], &m->lists[1], &m->lists[2], m->how, &m->plan);
	if ((m->plan.nconflicts && m->how == MERGE_FAILS) || !m->plan.n)
		combine_end(m, NULL, NULL);
	else if (combine_ask(m, &e) < 0)
		combine_end(m, NULL, &e);
}

static void combine_read(void *ctx, struct checkpoint_files *l, const struct err *e)
{
	struct combine *m = ctx;
	struct err own;

	m->reading = NULL;
	if (e) {
		combine_end(m, NULL, e);
		return;
	}
	m->lists[m->nread++] = *l;
	*l = (struct checkpoint_files){ 0 };
	if (m->nread == COMBINE_LISTS)
		combine_plan(m);
	else if (checkpoint_files_read(m->all, &m->of[m->nread], combine_read, m, &m->reading,
				       &own) < 0)
		combine_end(m, NULL, &own);
}

/* ---- the ancestor ---- */

static int combine_is_one_of(char (*ids)[ID_MAX + 1], unsigned n, const char *id)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(ids[i], id))
			return 1;
	return 0;
}

/* The parent of a row, as clients see it. 0: it has none. */
static int combine_parent(struct store *s, char id[ID_MAX + 1])
{
	struct store_checkpoint x;
	struct err e;

	if (store_checkpoint_any(s, id, &x, &e) < 0)
		return 0;
	memcpy(id, x.parent, sizeof(x.parent));
	store_checkpoint_fini(&x);
	return id[0] != 0;
}

static int combine_find_ancestor(struct combine *m, struct err *e)
{
	struct store *s = m->all->fleet->store;
	auto_free char(*ids)[ID_MAX + 1] = calloc(COMBINE_ANCESTORS, sizeof(*ids));
	char at[ID_MAX + 1];
	unsigned n = 0;

	if (!ids)
		abort();
	memcpy(at, m->of[1].id, sizeof(at));
	do
		memcpy(ids[n++], at, sizeof(at));
	while (n < COMBINE_ANCESTORS && combine_parent(s, at));
	memcpy(at, m->of[2].id, sizeof(at));
	for (unsigned i = 0; i < COMBINE_ANCESTORS; i++) {
		if (combine_is_one_of(ids, n, at))
			return store_checkpoint_any(s, at, &m->of[0], e);
		if (!combine_parent(s, at))
			break;
	}
	return err_set(
		e, ERR_CONFLICT,
		"checkpoints %s and %s have no ancestor in common: a merge needs a fork of the box, "
		"or the box that it was forked from",
		m->of[1].id, m->of[2].id);
}

static void combine_describe(struct combine *m, const struct box *b, const char *author)
{
	const struct store_checkpoint *ours = &m->of[1];
	struct store_checkpoint *row = &m->row;
	char id[ID_MAX + 1];

	memcpy(id, row->id, sizeof(id));
	*row = *ours;
	row->spec = ours->spec ? strdup(ours->spec) : NULL;
	memcpy(row->id, id, sizeof(row->id));
	memcpy(row->parent, ours->id, sizeof(row->parent));
	memcpy(row->origin, ours->id, sizeof(row->origin));
	row->same_as[0] = row->name[0] = row->note[0] = 0;
	snprintf(row->author, sizeof(row->author), "%s", author);
	snprintf(row->reason, sizeof(row->reason), "%s", CHECKPOINT_MERGED);
	/* Of the generation that begins with it: the present one keeps its head. */
	row->generation = b->row.generation + 1;
	row->created_ns = fleet_now_ns();
	row->expires_ns = row->created_ns + CHECKPOINT_DAY_NS;
	row->frozen_us = 0;
	row->durable = row->pinned = 0;
	memmove(row->chain[1], row->chain[0], row->nchain * sizeof(row->chain[0]));
	memcpy(row->chain[0], row->id, sizeof(row->chain[0]));
	row->nchain++;
	snprintf(m->keeper_box, sizeof(m->keeper_box), "%s", box_keeper_id(b));
}

static void combine_copy_row(struct store_checkpoint *out, const struct store_checkpoint *x)
{
	*out = *x;
	out->spec = x->spec ? strdup(x->spec) : NULL;
}

int combine_start(struct checkpoints *c, const struct box *b, const struct store_checkpoint *ours,
		  const struct store_checkpoint *theirs, enum checkpoint_conflicts how,
		  const char *author, combine_done *done, void *ctx, struct combine **out,
		  struct err *e)
{
	struct combine *m;

	if (ours->nchain >= STORE_CHAIN) {
		checkpoint_merge_chain(c, ours);
		return err_set(
			e, ERR_CONFLICT,
			"the layers of box %s are being merged into fewer; repeat the request",
			b->row.id);
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	*m = (struct combine){
		.next = c->combines, .all = c, .how = how, .done = done, .ctx = ctx
	};
	c->combines = m;
	combine_copy_row(&m->of[1], ours);
	combine_copy_row(&m->of[2], theirs);
	if (id_new(m->row.id, e) < 0 || combine_find_ancestor(m, e) < 0) {
		combine_free(m);
		return -1;
	}
	combine_describe(m, b, author);
	*out = m;
	if (checkpoint_files_read(c, &m->of[0], combine_read, m, &m->reading, e) == 0)
		return 0;
	combine_free(m);
	return -1;
}

void combine_leave(struct combine *m)
{
	if (m)
		m->done = NULL;
}

int checkpoint_is_combining(const struct checkpoints *c, const char *id)
{
	for (const struct combine *m = c->combines; m; m = m->next)
		if (!strcmp(m->row.id, id))
			return 1;
	return 0;
}

void checkpoint_combines_free(struct checkpoints *c)
{
	while (c->combines) {
		struct combine *m = c->combines;

		keeper_client_cancel(&c->fleet->keeper, m->asking);
		checkpoint_files_leave(m->reading);
		combine_free(m);
	}
}
