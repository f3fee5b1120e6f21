/* orphans.c - removes files of checkpoints that have no row: of a server that died between the creation of a file by the
 * keeper and its row, or of a database that was restored.
 *
 * Once after the start, and then every hour: all files of the keeper, page by page. A file of the last hour stays, because
 * another server, or a restore that is in progress, may be about to write its row. */
#include "checkpoint/internal.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { ORPHAN_AGE_S = 3600 };
#define ORPHAN_EVERY_NS (INT64_C(3600) * 1000000000)

struct checkpoint_orphans {
	struct keeper_call *asking;
	int64_t next_ns; /* of the next search */
	char after[ID_MAX + 1];
	char (*v)[ID_MAX + 1]; /* of this page */
	size_t n;
};

static void orphans_list(struct checkpoints *c);

static void orphans_end(struct checkpoints *c)
{
	free(c->orphans->v);
	*c->orphans = (struct checkpoint_orphans){ .next_ns = fleet_now_ns() + ORPHAN_EVERY_NS };
}

static void orphans_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e);

static void orphans_drop_next(struct checkpoints *c)
{
	struct checkpoint_orphans *o = c->orphans;

	if (!o->n) {
		orphans_list(c);
		return;
	}
	log_info("removing a file of a checkpoint that has no row",
		 LOG_S("checkpoint", o->v[o->n - 1]));
	o->asking = keeper_client_checkpoint_drop(&c->fleet->keeper, o->v[--o->n], 0,
						  orphans_dropped, c);
}

static void orphans_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct checkpoints *c = ctx;

	(void)len;
	(void)fd;
	c->orphans->asking = NULL;
	if (!f) { /* the next search tries again */
		log_warn("cannot remove a file of a checkpoint", LOG_E(e));
		orphans_end(c);
		return;
	}
	orphans_drop_next(c);
}

static int orphans_add(struct checkpoints *c, const struct wire_checkpoint_item *x)
{
	struct checkpoint_orphans *o = c->orphans;
	struct err e;
	int has_row = store_checkpoint_has_row(c->fleet->store, x->id, &e);

	if (has_row < 0)
		log_warn("cannot look for files without rows", LOG_E(&e));
	if (has_row || (int64_t)x->modified_s + ORPHAN_AGE_S > fleet_now_ns() / 1000000000)
		return has_row < 0 ? -1 : 0;
	memcpy(o->v[o->n++], x->id, ID_MAX + 1);
	return 0;
}

static void orphans_listed(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct checkpoints *c = ctx;
	struct checkpoint_orphans *o = c->orphans;
	const struct wire_checkpoint_item *x =
		f ? (const struct wire_checkpoint_item *)(f + 1) : NULL;
	size_t n = f ? (len - sizeof(*f)) / sizeof(*x) : 0;

	(void)fd;
	o->asking = NULL;
	if (!f)
		log_warn("cannot list the files of checkpoints", LOG_E(e));
	if (!n || !c->fleet->alone) {
		orphans_end(c);
		return;
	}
	free(o->v);
	o->n = 0;
	o->v = calloc(n, sizeof(*o->v));
	if (!o->v)
		abort();
	memcpy(o->after, x[n - 1].id, sizeof(o->after));
	for (size_t i = 0; i < n; i++)
		if (memchr(x[i].id, 0, sizeof(o->after)) && orphans_add(c, &x[i]) < 0) {
			orphans_end(c);
			return;
		}
	orphans_drop_next(c);
}

static void orphans_list(struct checkpoints *c)
{
	c->orphans->asking = keeper_client_checkpoint_list(&c->fleet->keeper, c->orphans->after,
							   orphans_listed, c);
}

void checkpoint_orphans_due(struct checkpoints *c)
{
	if (!c->orphans)
		c->orphans = calloc(1, sizeof(*c->orphans));
	if (!c->orphans)
		abort();
	if (!c->orphans->asking && fleet_now_ns() >= c->orphans->next_ns)
		orphans_list(c);
}

void checkpoint_orphans_free(struct checkpoints *c)
{
	if (!c->orphans)
		return;
	keeper_client_cancel(&c->fleet->keeper, c->orphans->asking);
	free(c->orphans->v);
	free(c->orphans);
}
