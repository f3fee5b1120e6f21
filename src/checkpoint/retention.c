/* retention.c - which checkpoints are deleted without a request, and which files are removed.
 *
 *   manual, named, pinned              until they are deleted
 *   automatic                          the last 20 (`keep`), and one per hour for a day
 *   taken by programs of the box       like automatic ones, also those with a name
 *   before a rollback, fork, diff      24 hours
 *   of a box that has ended            24 hours, unless named or pinned */
#include "checkpoint/internal.h"
#include "checkpoint/memory.h"
#include "checkpoint/self.h"
#include "base/log.h"
#include "store/process_images.h"

#include <stdlib.h>
#include <string.h>

enum { RETENTION_MS = 30000 };
#define HOUR_NS (INT64_C(3600) * 1000000000)

/* ---- files ---- */

static void retention_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			      const struct err *e)
{
	struct checkpoints *c = ctx;
	struct err own;

	(void)len;
	(void)fd;
	c->dropping = NULL;
	if (!f) { /* tried again by the timer */
		log_warn("cannot remove the files of a checkpoint", LOG_S("checkpoint", c->dropped),
			 LOG_E(e));
		return;
	}
	if (store_checkpoint_dropped(c->fleet->store, c->dropped, &own) < 0)
		log_warn("cannot forget a checkpoint", LOG_S("checkpoint", c->dropped),
			 LOG_E(&own));
	else
		checkpoint_collect(c);
}

/* Of a list, the first id that this server does not write now. */
static int retention_choose(const struct checkpoints *c, const struct store_ids *ids,
			    char out[ID_MAX + 1])
{
	for (unsigned i = 0; i < ids->n; i++)
		if (!checkpoint_is_writing(c, ids->v[i]) &&
		    !checkpoint_is_merged_layer(c, ids->v[i])) {
			memcpy(out, ids->v[i], ID_MAX + 1);
			return 1;
		}
	return 0;
}

void checkpoint_collect(struct checkpoints *c)
{
	struct store_ids ids = { 0 };
	struct err e;

	/* Beside another server, files may belong to a checkpoint that it is taking. */
	if (c->dropping || !c->fleet->alone || c->merges)
		return;
	if (store_checkpoint_forget(c->fleet->store, &e) < 0 ||
	    store_checkpoint_garbage(c->fleet->store, &ids, &e) < 0) {
		log_warn("cannot look for files of checkpoints that are not needed", LOG_E(&e));
		return;
	}
	if (retention_choose(c, &ids, c->dropped))
		c->dropping = keeper_client_checkpoint_drop(&c->fleet->keeper, c->dropped, 0,
							    retention_dropped, c);
	free(ids.v);
}

/* ---- rows ---- */

int checkpoint_remove(struct checkpoints *c, const struct store_checkpoint *x, struct err *e)
{
	char box[ID_MAX + 1];

	if (store_process_image_box(c->fleet->store, x->id, box, e) == 0)
		return err_set(
			e, ERR_CONFLICT,
			"box %s is paused on the disk with this checkpoint; resume it first, "
			"or delete it",
			box);
	if (store_checkpoint_hide(c->fleet->store, x->id, e) < 0)
		return -1;
	checkpoint_memory_drop(c, x->id);
	checkpoint_collect(c);
	return 0;
}

static int retention_prune(struct checkpoints *c, const struct store_checkpoint *x)
{
	struct err e;

	if (store_checkpoint_hide(c->fleet->store, x->id, &e) < 0) {
		log_warn("cannot delete a checkpoint", LOG_S("checkpoint", x->id), LOG_E(&e));
		return 0;
	}
	c->figures.pruned++;
	checkpoint_memory_drop(c, x->id);
	fleet_emit(c->fleet, x->team, x->box, "checkpoint.pruned",
		   json_pack("{s:s, s:s}", "checkpoint", x->id, "reason", x->reason));
	return 1;
}

static void retention_expire(struct checkpoints *c)
{
	struct store_checkpoints old = { 0 };
	struct err e;

	if (store_checkpoint_expired(c->fleet->store, fleet_now_ns(), &old, &e) < 0) {
		log_warn("cannot look for expired checkpoints", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < old.n; i++)
		retention_prune(c, &old.v[i]);
	store_checkpoints_fini(&old);
}

static int retention_is_auto(const struct store_checkpoint *x)
{
	/* A program of a box must not fill the quota of its team with names. */
	int by_program = !strcmp(x->reason, CHECKPOINT_PROGRAM);

	return checkpoint_reason_is_automatic(x->reason) && (!x->name[0] || by_program) &&
	       !x->pinned;
}

void checkpoint_prune_box(struct checkpoints *c, const char *box)
{
	int64_t day_ago = fleet_now_ns() - CHECKPOINT_DAY_NS, hour = INT64_MAX;
	struct store_checkpoints all = { 0 };
	const struct box *b = fleet_find(c->fleet, box);
	struct checkpoint_policy policy = { .keep = CHECKPOINT_AUTO_LAST };
	unsigned kept = 0;
	struct err e;

	if (b)
		checkpoint_policy_read(&b->row, &policy);
	if (store_checkpoint_of_box(c->fleet->store, box, &all, &e) < 0)
		return;
	for (unsigned i = all.n; i-- > 0;) { /* newest first */
		const struct store_checkpoint *x = &all.v[i];

		if (!retention_is_auto(x))
			continue;
		if (kept++ < policy.keep) {
			hour = x->created_ns / HOUR_NS;
		} else if (x->created_ns >= day_ago && x->created_ns / HOUR_NS < hour) {
			hour = x->created_ns / HOUR_NS; /* the newest of its hour */
		} else {
			retention_prune(c, x);
		}
	}
	store_checkpoints_fini(&all);
}

int checkpoint_prune_for(struct checkpoints *c, const struct store_box *row, uint64_t bytes)
{
	struct store_checkpoints all = { 0 };
	struct err e;
	int some = 0;

	(void)bytes;
	if (store_checkpoint_of_box(c->fleet->store, row->id, &all, &e) < 0)
		return 0;
	for (unsigned i = 0; i < all.n && !some; i++)
		if (retention_is_auto(&all.v[i]))
			some = retention_prune(c, &all.v[i]);
	store_checkpoints_fini(&all);
	if (some)
		checkpoint_collect(c);
	return some;
}

/* ---- the timer ---- */

/* Rows of servers that have ended while the keeper worked for them. */
static int retention_sweep(struct checkpoints *c)
{
	struct store_ids ids = { 0 };
	struct err e;

	if (store_checkpoint_writing(c->fleet->store, &ids, &e) < 0)
		return 0;
	for (unsigned i = 0; i < ids.n; i++)
		if (!checkpoint_is_writing(c, ids.v[i]))
			(void)!store_checkpoint_fail(c->fleet->store, ids.v[i], &e);
	free(ids.v);
	return 1;
}

void checkpoint_retention_due(struct timer *t)
{
	struct checkpoints *c = loop_owner(t, struct checkpoints, clock);

	if (c->fleet->alone && c->fleet->ready) {
		if (!c->swept)
			c->swept = retention_sweep(c);
		retention_expire(c);
		checkpoint_collect(c);
		if (c->swept)
			checkpoint_orphans_due(c);
	}
	timer_set(t, c->swept ? RETENTION_MS : 1000);
}
