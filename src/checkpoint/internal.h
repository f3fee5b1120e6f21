/* internal.h - shared by the files of this folder only. */
#pragma once
#include "checkpoint/checkpoints.h"

struct checkpoint_merge;
struct checkpoint_orphans;
struct checkpoint_prepare;
struct checkpoint_self;
struct combine;

struct checkpoints {
	struct fleet *fleet;
	struct checkpoints_conf conf;
	struct checkpoints_figures figures;
	struct checkpoint_job *jobs;      /* oldest first */
	struct checkpoint_memory *memory; /* process images: memory.h */
	struct checkpoint_merge *merges;
	struct combine *combines;
	struct checkpoint_orphans *orphans; /* NULL: not searched yet */
	struct keeper_call *dropping;
	char dropped[ID_MAX + 1];
	struct timer clock;                  /* retention */
	struct timer interval;               /* policy.c */
	struct checkpoint_self *selves;      /* self.h */
	struct checkpoint_prepare *prepares; /* prepare.h */
	int swept;                           /* rows of servers that have ended were failed */
};

/* take.c */
int checkpoint_is_writing(const struct checkpoints *c, const char *id); /* by this server */
/* For jobs that wait for a merge of their chain. e: it failed; NULL: it is done. */
void checkpoint_merge_ended(struct checkpoints *c, const struct err *e);

/* merge.c */
enum { CHECKPOINT_MERGE_AT = 15, CHECKPOINT_MERGE_LAYERS = 12 };
/* Merges the oldest layers of this chain, unless that is in progress. */
void checkpoint_merge_chain(struct checkpoints *c, const struct store_checkpoint *x);
/* 1: a merge of this chain is in progress. */
int checkpoint_is_merging(const struct checkpoints *c, const struct store_checkpoint *x);
int checkpoint_is_merged_layer(const struct checkpoints *c, const char *id); /* being written */
void checkpoint_merges_free(struct checkpoints *c);

/* combine.c */
int checkpoint_is_combining(const struct checkpoints *c, const char *id); /* being written */
void checkpoint_combines_free(struct checkpoints *c);

/* orphans.c */
void checkpoint_orphans_due(struct checkpoints *c);
void checkpoint_orphans_free(struct checkpoints *c);

/* policy.c */
void checkpoint_interval_due(struct timer *t);

/* retention.c */
void checkpoint_retention_due(struct timer *t);
void checkpoint_collect(struct checkpoints *c); /* drops files that nothing needs */
/* Deletes automatic checkpoints, oldest first, until the team (or box) has room. 1: something was
 * deleted. */
int checkpoint_prune_for(struct checkpoints *c, const struct store_box *row, uint64_t bytes);
/* Deletes automatic ones of a box beyond those that are kept. */
void checkpoint_prune_box(struct checkpoints *c, const char *box);
