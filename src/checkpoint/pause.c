/* pause.c - see pause.h.
 *
 *   programs stopped ─► files, images ─► files on the disk ─► row: paused, image ─► box of the keeper ends
 *        └── any failure: programs continue, the checkpoint is removed */
#include "checkpoint/pause.h"
#include "checkpoint/internal.h"
#include "checkpoint/memory.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct checkpoint_pausing {
	struct checkpoints *all;
	struct checkpoint_job *job;
	char box[ID_MAX + 1];
};

static void pause_undo(struct checkpoints *c, const struct store_checkpoint *row)
{
	struct err e;

	if (checkpoint_remove(c, row, &e) < 0)
		log_warn("cannot remove the checkpoint of a pause that failed",
			 LOG_S("checkpoint", row->id), LOG_E(&e));
}

static void pause_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_pausing *p = ctx;
	struct checkpoints *c = p->all;
	struct box *b = fleet_find(c->fleet, p->box);
	struct err own;
	int rc;

	free(p);
	if (!b || !b->storing) { /* it has ended meanwhile */
		if (row) {
			checkpoint_memory_release(c, row->id);
			pause_undo(c, row);
		}
		return;
	}
	if (e) {
		box_store_failed(b, e);
		return;
	}
	rc = box_store(b, row, &own);
	checkpoint_memory_release(c,
				  row->id); /* its box is being killed, or its programs continue */
	if (rc == 0)
		return;
	box_store_failed(b, &own);
	pause_undo(c, row);
}

int checkpoint_pause(struct checkpoints *c, struct box *b, const char *author, struct box_wait *w,
		     struct err *e)
{
	const struct checkpoint_want want = {
		.reason = CHECKPOINT_PAUSE, .author = author, .memory = 1, .stop = 1, .durable = 1
	};
	struct checkpoint_pausing *p;

	if (box_store_check(b, e) < 0)
		return -1;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->all = c;
	memcpy(p->box, b->row.id, sizeof(p->box));
	if (checkpoint_take(c, b, &want, pause_taken, p, &p->job, e) < 0) {
		free(p);
		return -1;
	}
	box_store_begin(b, w);
	return 0;
}
