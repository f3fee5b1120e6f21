/* hibernate.c - see hibernate.h. A checkpoint with the reason "shutdown" marks the boxes that the next daemon resumes. */
#include "daemon/hibernate.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "checkpoint/pause.h"
#include "store/checkpoints.h"

#include <stdlib.h>
#include <string.h>

void hibernate_init(struct hibernate *h, struct fleet *f, struct checkpoints *c)
{
	*h = (struct hibernate){ .fleet = f, .checkpoints = c };
}

void hibernate_free(struct hibernate *h)
{
	for (unsigned i = 0; i < HIBERNATE_TURNS; i++)
		if (h->turn[i].box[0])
			box_wait_cancel(&h->turn[i].wait);
	free(h->ids);
	*h = (struct hibernate){ 0 };
}

int hibernate_is_busy(const struct hibernate *h)
{
	for (unsigned i = 0; i < HIBERNATE_TURNS; i++)
		if (h->turn[i].box[0])
			return 1;
	return 0;
}

/* Boxes of one request end with the server that serves it, or with their program. */
static int hibernate_wants_pause(const struct box *b)
{
	static const char *const marks[] = { BOX_EPHEMERAL, BOX_INSTALL, BOX_BUILD,
					     BOX_SPARE,     BOX_RESTART, BOX_LEAVING };

	for (unsigned i = 0; i < ARRAY_LEN(marks); i++)
		if (box_is_marked(&b->row, marks[i]))
			return 0;
	return b->state == BOX_RUNNING;
}

static int hibernate_wants_resume(const struct hibernate *h, const struct box *b)
{
	struct store_checkpoint row = { 0 };
	struct err e;
	int wants;

	if (b->state != BOX_PAUSED || b->moving || !b->row.image[0])
		return 0;
	if (store_checkpoint_any(h->fleet->store, b->row.image, &row, &e) < 0)
		return 0;
	wants = !strcmp(row.reason, CHECKPOINT_SHUTDOWN);
	store_checkpoint_fini(&row);
	return wants;
}

static void hibernate_continue(struct hibernate *h);

static void hibernate_turned(struct box_wait *w, struct box *b, const struct err *e)
{
	struct hibernate_turn *t = loop_owner(w, struct hibernate_turn, wait);
	struct hibernate *h = t->all;

	(void)b;
	if (e)
		log_warn(h->resumes ? "a box that the last shutdown has paused was not resumed"
				    : "a box was not paused to the disk: it continues to run",
			 LOG_S("box", t->box), LOG_E(e));
	h->changed += !e;
	h->failed += !!e;
	t->box[0] = 0;
	hibernate_continue(h);
}

/* 0: another one can be taken. */
static int hibernate_begin(struct hibernate *h, struct hibernate_turn *t, const char *id)
{
	struct box *b = fleet_find(h->fleet, id);
	struct err e;
	int rc;

	if (!b || !(h->resumes ? hibernate_wants_resume(h, b) : hibernate_wants_pause(b)))
		return 0;
	memcpy(t->box, b->row.id, sizeof(t->box));
	t->all = h;
	t->wait = (struct box_wait){ .done = hibernate_turned };
	rc = h->resumes ? box_resume(b, 0, &t->wait, &e)
			: checkpoint_pause(h->checkpoints, b, CHECKPOINT_SHUTDOWN, "", 0, &t->wait,
					   &e);
	if (rc == 0)
		return 1;
	log_warn(h->resumes ? "a box that the last shutdown has paused was not resumed"
			    : "a box was not paused to the disk: it continues to run",
		 LOG_S("box", t->box), LOG_E(&e));
	h->failed++;
	t->box[0] = 0;
	return 0;
}

static void hibernate_continue(struct hibernate *h)
{
	for (unsigned i = 0; i < HIBERNATE_TURNS; i++)
		while (!h->turn[i].box[0] && h->next < h->n &&
		       !hibernate_begin(h, &h->turn[i], h->ids[h->next++]))
			;
	if (hibernate_is_busy(h) || !h->n)
		return;
	if (h->changed || h->failed)
		log_info(h->resumes ? "resumed the boxes of the last shutdown"
				    : "paused the boxes to the disk",
			 LOG_U("boxes", h->changed), LOG_U("failed", h->failed));
	free(h->ids);
	h->ids = NULL;
	h->n = h->next = 0;
}

static void hibernate_all(struct hibernate *h, int resumes)
{
	free(h->ids);
	h->resumes = resumes;
	h->n = h->next = h->changed = h->failed = 0;
	h->ids = calloc(h->fleet->count + 1, sizeof(*h->ids));
	if (!h->ids)
		abort();
	for (struct box *b = fleet_next(h->fleet, NULL); b && h->n < h->fleet->count;
	     b = fleet_next(h->fleet, b))
		memcpy(h->ids[h->n++], b->row.id, sizeof(*h->ids));
	hibernate_continue(h);
}

void hibernate_pause_all(struct hibernate *h)
{
	hibernate_all(h, 0);
}

void hibernate_resume_all(struct hibernate *h)
{
	hibernate_all(h, 1);
}
