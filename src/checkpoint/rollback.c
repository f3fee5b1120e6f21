/* rollback.c - see rollback.h. */
#include "checkpoint/rollback.h"
#include "checkpoint/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rollback {
	struct checkpoints *all;
	struct fleet *fleet;
	struct checkpoint_job *saving;
	struct box_wait wait;
	struct checkpoint_start start;
	int memory;
	struct store_checkpoint to; /* without its spec */
	char box[ID_MAX + 1], safety[ID_MAX + 1], event[STORE_WORD + 1];
	rollback_done *done; /* NULL: the caller has left */
	void *ctx;
};

static void rollback_finish(struct rollback *r, struct box *b, const struct err *e)
{
	if (r->done)
		r->done(r->ctx, b, r->safety, e);
	free(r);
}

static void rollback_continued(struct checkpoint_start *s, const struct err *e)
{
	struct rollback *r = loop_owner(s, struct rollback, start);
	struct err own;

	if (e) {
		own = *e;
		err_in(&own, "the box has the files of the checkpoint, and its programs did not "
			     "continue");
	}
	rollback_finish(r, e ? NULL : fleet_find(r->fleet, r->box), e ? &own : NULL);
}

static void rollback_replaced(struct box_wait *w, struct box *b, const struct err *e)
{
	struct rollback *r = loop_owner(w, struct rollback, wait);

	if (!e && r->memory)
		checkpoint_memory_start(&r->start, r->all, r->to.id, b);
	else
		rollback_finish(r, b, e);
}

/* The chain may have been merged since the request, and the checkpoint deleted. */
static int rollback_replace(struct rollback *r, struct err *e)
{
	struct box *b = fleet_find(r->fleet, r->box);
	struct store_checkpoint to = { 0 };
	int rc;

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "box %s has ended", r->box);
	if (store_checkpoint_get(r->fleet->store, r->to.team, r->to.id, &to, e) < 0)
		return -1;
	r->wait.done = rollback_replaced;
	b->continues_programs = r->memory; /* else the start command of its template runs */
	rc = box_replace(b, &to, r->event,
			 json_pack("{s:s, s:s}", "to", r->to.id, "safety", r->safety), &r->wait, e);
	store_checkpoint_fini(&to);
	return rc;
}

static void rollback_saved(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct rollback *r = ctx;
	struct err own;

	r->saving = NULL;
	if (!e)
		memcpy(r->safety, row->id, sizeof(r->safety));
	if (e)
		rollback_finish(r, NULL, e);
	else if (rollback_replace(r, &own) < 0)
		rollback_finish(r, NULL, &own);
}

int rollback_start(struct checkpoints *c, struct box *b, const struct store_checkpoint *to,
		   unsigned how, const char *event, const char *author, rollback_done *done,
		   void *ctx, struct rollback **out, struct err *e)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_SAFETY, .author = author };
	struct rollback *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		abort();
	*r = (struct rollback){ .all = c, .fleet = b->fleet, .to = *to, .done = done, .ctx = ctx };
	r->memory = (how & ROLLBACK_MEMORY) != 0;
	r->start.done = rollback_continued;
	r->to.spec = NULL;
	memcpy(r->box, b->row.id, sizeof(r->box));
	snprintf(r->event, sizeof(r->event), "%s", event);
	rc = r->memory ? checkpoint_memory_check(c, to->id, e) : 0;
	if (rc == 0)
		rc = how & ROLLBACK_SAVE
			     ? checkpoint_take(c, b, &want, rollback_saved, r, &r->saving, e)
			     : rollback_replace(r, e);
	if (rc < 0) {
		free(r);
		return -1;
	}
	*out = r;
	return 0;
}

void rollback_leave(struct rollback *r)
{
	if (r)
		r->done = NULL;
}
