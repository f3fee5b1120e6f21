/* pause.c - see pause.h.
 *
 *   init has answered: it has handled every START before ─► programs stopped ─► files, images ─► files on the disk ─► row: paused, image ─► box of the keeper ends
 *        └── any failure: programs continue, the checkpoint is removed */
#include "checkpoint/pause.h"
#include "checkpoint/internal.h"
#include "checkpoint/memory.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint_pausing {
	struct checkpoints *all;
	struct checkpoint_job *job;
	struct init_call asked;
	const char *reason;
	int portable;
	char box[ID_MAX + 1], id[ID_MAX + 1], author[STORE_NAME + 1];
};

static void pause_undo(struct checkpoints *c, const struct store_checkpoint *row)
{
	struct err e;

	if (checkpoint_remove(c, row, &e) < 0)
		log_warn("cannot remove the checkpoint of a pause that failed",
			 LOG_S("checkpoint", row->id), LOG_E(&e));
}

/* Its box is being killed, or has ended. */
static void pause_stored(void *ctx)
{
	struct checkpoint_pausing *p = ctx;

	checkpoint_memory_release(p->all, p->id);
	free(p);
}

static void pause_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_pausing *p = ctx;
	struct checkpoints *c = p->all;
	struct box *b = fleet_find(c->fleet, p->box);
	struct err own;

	if (!b || !b->storing) { /* it has ended meanwhile */
		free(p);
		if (row) {
			checkpoint_memory_release(c, row->id);
			pause_undo(c, row);
		}
		return;
	}
	if (e) {
		free(p);
		box_store_failed(b, e);
		return;
	}
	memcpy(p->id, row->id, sizeof(p->id));
	if (box_store(b, row, pause_stored, p, &own) == 0)
		return;
	free(p);
	checkpoint_memory_release(c, row->id); /* its programs continue */
	box_store_failed(b, &own);
	pause_undo(c, row);
}

/* A program whose START is still on its way would be missing in the image. */
static void pause_settled(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct checkpoint_pausing *p = loop_owner(x, struct checkpoint_pausing, asked);
	struct checkpoint_want want = { .reason = p->reason,
					.author = p->author,
					.memory = 1,
					.stop = 1,
					.durable = 1,
					.portable = p->portable };
	struct box *b = fleet_find(p->all->fleet, p->box);
	struct err e;

	(void)f;
	(void)len;
	(void)fd;
	init_conn_remove_call(x);
	if (!b || !b->storing) {
		free(p);
	} else if (checkpoint_take(p->all, b, &want, pause_taken, p, &p->job, &e) < 0) {
		free(p);
		box_store_failed(b, &e);
	}
}

static void pause_lost(struct init_call *x)
{
	free(loop_owner(x, struct checkpoint_pausing, asked)); /* the box has ended */
}

int checkpoint_pause(struct checkpoints *c, struct box *b, const char *reason, const char *author,
		     int portable, struct box_wait *w, struct err *e)
{
	static const struct init_call_ops on = { .answer = pause_settled, .lost = pause_lost };
	struct checkpoint_pausing *p;

	if (box_store_check(b, e) < 0)
		return -1;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->all = c;
	p->reason = reason;
	p->portable = portable;
	memcpy(p->box, b->row.id, sizeof(p->box));
	snprintf(p->author, sizeof(p->author), "%s", author);
	box_store_begin(b, w);
	init_conn_request(&b->line, &p->asked, &on, WIRE_STAT, 0);
	return 0;
}
