/* merge.c - replaces the oldest layers of a chain by one layer.
 *
 *   row of the new layer ─► CHECKPOINT_MERGE ─► one transaction: chains, bytes
 *
 * The old layers stay while a checkpoint needs one of them alone. */
#include "checkpoint/internal.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint_merge {
	struct checkpoint_merge *next;
	struct checkpoints *all;
	struct store_checkpoint of; /* without its spec */
	struct keeper_call *asking;
	char layer[ID_MAX + 1];
};

/* The same layers are merged if the lowest one is the same: chains of a tree share their end. */
static const char *merge_lowest(const struct store_checkpoint *x)
{
	return x->chain[x->nchain - 1];
}

int checkpoint_is_merging(const struct checkpoints *c, const struct store_checkpoint *x)
{
	for (const struct checkpoint_merge *m = c->merges; m; m = m->next)
		if (!strcmp(merge_lowest(&m->of), merge_lowest(x)))
			return 1;
	return 0;
}

int checkpoint_is_merged_layer(const struct checkpoints *c, const char *id)
{
	for (const struct checkpoint_merge *m = c->merges; m; m = m->next)
		if (!strcmp(m->layer, id))
			return 1;
	return 0;
}

static void merge_unlink(struct checkpoint_merge *m)
{
	struct checkpoint_merge **at = &m->all->merges;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

static void merge_written(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	const struct wire_checkpointed *x = (const struct wire_checkpointed *)f;
	struct checkpoint_merge *m = ctx;
	struct checkpoints *c = m->all;
	struct err own = e ? *e : (struct err){ 0 };

	(void)len;
	(void)fd;
	merge_unlink(m);
	if (f && store_checkpoint_merged(c->fleet->store, &m->of, CHECKPOINT_MERGE_LAYERS, m->layer,
					 x->bytes, &own) == 0) {
		c->figures.merged++;
		own.kind = ERR_NONE;
	} else {
		log_warn("layers of a checkpoint were not merged", LOG_S("checkpoint", m->of.id),
			 LOG_E(&own));
		err_in(&own, "merge of the layers of checkpoint %s", m->of.id);
	}
	free(m);
	checkpoint_merge_ended(c, own.kind ? &own : NULL);
	checkpoint_collect(c);
}

void checkpoint_merge_chain(struct checkpoints *c, const struct store_checkpoint *x)
{
	struct wire_checkpoint_merge ask = { .n = CHECKPOINT_MERGE_LAYERS,
					     .bytes_most = UINT64_MAX,
					     .files_most = UINT64_MAX };
	struct checkpoint_merge *m;
	struct err e;

	if (x->nchain < CHECKPOINT_MERGE_LAYERS || checkpoint_is_merging(c, x))
		return;
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	m->all = c;
	m->of = *x;
	m->of.spec = NULL;
	if (id_new(m->layer, &e) < 0 ||
	    store_checkpoint_layer_add(c->fleet->store, x->team, m->layer, 0, fleet_now_ns(), &e) <
		    0) {
		log_warn("layers of a checkpoint were not merged", LOG_S("checkpoint", x->id),
			 LOG_E(&e));
		free(m);
		return;
	}
	snprintf(ask.id, sizeof(ask.id), "%s", m->layer);
	for (unsigned i = 0; i < ask.n; i++)
		memcpy(ask.from[i], x->chain[x->nchain - ask.n + i], sizeof(ask.from[i]));
	m->next = c->merges;
	c->merges = m;
	m->asking = keeper_client_checkpoint_merge(&c->fleet->keeper, &ask, merge_written, m);
}

void checkpoint_merges_free(struct checkpoints *c)
{
	while (c->merges) {
		struct checkpoint_merge *m = c->merges;

		c->merges = m->next;
		keeper_client_cancel(&c->fleet->keeper, m->asking);
		free(m);
	}
}
