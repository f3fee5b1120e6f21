/* prepare.c - see prepare.h. */
#include "checkpoint/prepare.h"
#include "base/log.h"
#include "checkpoint/internal.h"
#include "checkpoint/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After an image that the programs have outdated by themselves, the next one waits as many times as long as that one took. */
enum { PREPARE_REST = 20 };

struct checkpoint_prepare {
	struct checkpoint_prepare *next;
	struct checkpoints *all;
	char box[ID_MAX + 1];
	uint32_t generation;
	enum {
		PREPARE_WAITS, /* until the box is idle */
		PREPARE_TAKES, /* the checkpoint is being taken */
		PREPARE_SETTLES, /* processes of the capture still end: their processor time counts, too */
		PREPARE_READY,
		PREPARE_FAILED, /* until a request changes the box */
	} state;
	int known;           /* changes and cpu_us were read */
	uint64_t changes;    /* requests that may have changed the box, and programs started */
	uint64_t cpu_us;     /* of its programs */
	uint64_t not_before; /* loop_now_ms() */
	uint64_t moment_ms;  /* of the image */
	unsigned users;      /* forks that make copies of it */
	int is_uncounted;    /* the host has no counter of processor time */
	int is_stale;        /* it is dropped when the last of them has ended */
	char id[ID_MAX + 1]; /* "": no image */
	struct checkpoint_job *job;
	struct keeper_call *asking;
};

static uint64_t prepare_changes(const struct box *b)
{
	return (uint64_t)b->changes + b->starts;
}

static int prepare_is_wanted(const struct box *b)
{
	struct checkpoint_policy p;

	if (!b || !b->row.checkpoints || b->state != BOX_RUNNING || b->replacing || b->storing ||
	    !isolation_has_checkpoints(&b->row))
		return 0;
	checkpoint_policy_read(&b->row, &p);
	return p.prepare;
}

static struct checkpoint_prepare *prepare_of(const struct checkpoints *c, const char *box)
{
	struct checkpoint_prepare *p = c->prepares;

	while (p && strcmp(p->box, box) != 0)
		p = p->next;
	return p;
}

/* ---- images ---- */

static void prepare_remove(struct checkpoints *c, const char *id)
{
	struct store_checkpoint row = { 0 };
	struct err e;

	checkpoint_memory_drop(c, id);
	if (store_checkpoint_get(c->fleet->store, NULL, id, &row, &e) < 0)
		return;
	if (checkpoint_remove(c, &row, &e) < 0)
		log_warn("cannot remove a prepared checkpoint", LOG_S("checkpoint", id), LOG_E(&e));
	store_checkpoint_fini(&row);
}

/* Copies that are being made need it. */
static void prepare_drop(struct checkpoint_prepare *p)
{
	p->is_stale = p->users > 0;
	if (p->is_stale || !p->id[0])
		return;
	prepare_remove(p->all, p->id);
	p->id[0] = 0;
}

/* Those of a server that has ended, whose state is not known. */
static void prepare_remove_old(struct checkpoints *c, const char *box)
{
	struct store_checkpoints rows = { 0 };
	struct err e;

	if (store_checkpoint_of_box(c->fleet->store, box, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (!strcmp(rows.v[i].reason, CHECKPOINT_PREPARED)) {
			checkpoint_memory_release(c, rows.v[i].id);
			prepare_remove(c, rows.v[i].id);
		}
	store_checkpoints_fini(&rows);
}

static void prepare_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_prepare *p = ctx;

	p->job = NULL;
	p->known = e != NULL; /* and its changes are those of the moment */
	if (e) {              /* the event of the failed checkpoint has the reason */
		p->state = PREPARE_FAILED;
		return;
	}
	memcpy(p->id, row->id, sizeof(p->id));
	p->not_before = loop_now_ms() + PREPARE_REST * row->took_us / 1000;
	p->state = PREPARE_SETTLES;
}

static void prepare_take(struct checkpoint_prepare *p, struct box *b)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_PREPARED, .memory = 1 };
	struct err e;

	p->state = PREPARE_TAKES;
	p->moment_ms = loop_now_ms();
	if (checkpoint_take(p->all, b, &want, prepare_taken, p, &p->job, &e) < 0) {
		log_warn("no process image is prepared", LOG_S("box", p->box), LOG_E(&e));
		p->state = PREPARE_FAILED;
	}
}

/* ---- what the box does ---- */

static void prepare_restart(struct checkpoint_prepare *p, struct box *b)
{
	b->is_prepared = 0;
	if (p->changes != prepare_changes(b))
		p->not_before = 0;
	prepare_drop(p);
	if (p->is_stale)
		return; /* the next turn tries again */
	p->state = PREPARE_WAITS;
	p->known = 0;
}

static void prepare_look(struct checkpoint_prepare *p, struct box *b, uint64_t cpu_us)
{
	int changed = p->changes != prepare_changes(b),
	    same = p->known && !changed && p->cpu_us == cpu_us;

	p->is_uncounted = cpu_us == UINT64_MAX;
	if ((p->state == PREPARE_READY || p->state == PREPARE_SETTLES) && same) {
		p->state = PREPARE_READY;
		b->is_prepared = 1;
	} else if (p->state == PREPARE_READY || (p->state == PREPARE_SETTLES && changed)) {
		prepare_restart(p, b);
	} else if (p->state == PREPARE_WAITS && same) {
		if (b->nruns && loop_now_ms() >= p->not_before)
			prepare_take(p, b);
	} else if (!p->is_uncounted) {
		p->known = 1;
		p->cpu_us = cpu_us;
		p->changes = prepare_changes(b);
	}
}

static void prepare_counted(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct checkpoint_prepare *p = ctx;
	struct box *b = fleet_find(p->all->fleet, p->box);

	(void)len;
	(void)fd;
	(void)e; /* the next turn asks again */
	p->asking = NULL;
	if (f && b)
		prepare_look(p, b, ((const struct wire_counters *)f)->cpu_us);
}

static void prepare_ask(struct checkpoint_prepare *p, struct box *b)
{
	if (p->asking || p->state == PREPARE_TAKES)
		return;
	if (p->state == PREPARE_FAILED && p->changes != prepare_changes(b))
		prepare_restart(p, b);
	if (p->state != PREPARE_FAILED)
		p->asking = keeper_client_request_box(&p->all->fleet->keeper, WIRE_COUNTERS, 0,
						      box_keeper_id(b), WIRE_COUNTERS_REPLY,
						      prepare_counted, p);
}

static void prepare_forget(struct checkpoint_prepare *p)
{
	keeper_client_cancel(&p->all->fleet->keeper, p->asking);
	checkpoint_leave(p->job);
	free(p);
}

static void prepare_sweep(struct checkpoints *c)
{
	for (struct checkpoint_prepare **at = &c->prepares, *p; (p = *at) != NULL;) {
		struct box *b = fleet_find(c->fleet, p->box);

		if (p->state == PREPARE_TAKES || p->users ||
		    (prepare_is_wanted(b) && b->row.generation == p->generation)) {
			at = &p->next;
			continue;
		}
		if (b)
			b->is_prepared = 0;
		prepare_drop(p);
		*at = p->next;
		prepare_forget(p);
	}
}

void checkpoint_prepare_turn(struct checkpoints *c)
{
	prepare_sweep(c);
	for (struct box *b = fleet_next(c->fleet, NULL); b; b = fleet_next(c->fleet, b)) {
		struct checkpoint_prepare *p;

		if (!prepare_is_wanted(b))
			continue;
		p = prepare_of(c, b->row.id);
		if (!p) {
			prepare_remove_old(c, b->row.id);
			p = calloc(1, sizeof(*p));
			if (!p)
				abort();
			*p = (struct checkpoint_prepare){ .next = c->prepares,
							  .all = c,
							  .generation = b->row.generation };
			memcpy(p->box, b->row.id, sizeof(p->box));
			c->prepares = p;
		}
		prepare_ask(p, b);
	}
}

/* The next server removes the images. */
void checkpoint_prepare_free(struct checkpoints *c)
{
	while (c->prepares) {
		struct checkpoint_prepare *p = c->prepares;

		c->prepares = p->next;
		prepare_forget(p);
	}
}

/* ---- use ---- */

static const char prepare_busy[] =
	"the image is being prepared: requests have changed the box, or its programs run";

static void prepared_end(struct checkpoint_prepared *x, const char *why)
{
	checkpoint_prepared_leave(x->all, x->id);
	x->done(x, NULL, why);
}

/* The keeper still has the image: it ends the oldest ones when memory is needed. */
static void prepared_exists(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct checkpoint_prepared *x = ctx;
	struct checkpoint_prepare *p = prepare_of(x->all, x->box);

	(void)len;
	(void)fd;
	(void)e;
	x->asking = NULL;
	if (f) {
		x->done(x, x->id, NULL);
		return;
	}
	if (p) {
		p->state = PREPARE_WAITS;
		p->known = 0;
	}
	prepared_end(x, "the memory of the prepared image was needed for others");
}

static void prepared_counted(void *ctx, const struct frame *f, size_t len, int *fd,
			     const struct err *e)
{
	struct checkpoint_prepared *x = ctx;
	struct checkpoint_prepare *p = prepare_of(x->all, x->box);
	struct wire_image ask = { .head = { .version = WIRE_VERSION, .type = WIRE_IMAGE_WAIT } };
	const struct wire_counters *now = (const struct wire_counters *)f;

	(void)len;
	(void)fd;
	(void)e;
	x->asking = NULL;
	if (!f || !p || p->state != PREPARE_READY || strcmp(p->id, x->id) != 0) {
		prepared_end(x, prepare_busy);
	} else if (now->cpu_us != p->cpu_us) {
		prepared_end(x, "programs of the box have run since the image was prepared");
	} else {
		snprintf(ask.id, sizeof(ask.id), "%s", x->id);
		x->age_ms = loop_now_ms() - p->moment_ms;
		x->asking = keeper_client_request(&x->all->fleet->keeper, &ask, sizeof(ask),
						  WIRE_IMAGE, prepared_exists, x);
	}
}

int checkpoint_prepared_find(struct checkpoint_prepared *x, struct checkpoints *c,
			     const struct box *b, const char **out_why)
{
	struct checkpoint_prepare *p = prepare_of(c, b->row.id);

	*out_why = prepare_is_wanted(b) ? prepare_busy : "";
	if (!p)
		return 0;
	p->changes++; /* the request of this fork, which changes nothing */
	if (p->is_uncounted)
		*out_why =
			"this host does not count the processor time of boxes, so that changes by programs would not be noticed";
	if (p->state == PREPARE_FAILED)
		*out_why =
			"the image could not be prepared: the last event checkpoint.failed of the box has the reason";
	if (p->state != PREPARE_READY || p->is_stale || p->generation != b->row.generation ||
	    p->changes != prepare_changes(b))
		return 0;
	p->users++;
	x->all = c;
	memcpy(x->box, p->box, sizeof(x->box));
	memcpy(x->id, p->id, sizeof(x->id));
	x->asking = keeper_client_request_box(&c->fleet->keeper, WIRE_COUNTERS, 0, box_keeper_id(b),
					      WIRE_COUNTERS_REPLY, prepared_counted, x);
	return 1;
}

void checkpoint_prepared_cancel(struct checkpoint_prepared *x)
{
	if (!x->asking)
		return;
	keeper_client_cancel(&x->all->fleet->keeper, x->asking);
	x->asking = NULL;
	checkpoint_prepared_leave(x->all, x->id);
}

void checkpoint_prepared_leave(struct checkpoints *c, const char *id)
{
	for (struct checkpoint_prepare *p = c->prepares; p; p = p->next)
		if (p->users && !strcmp(p->id, id)) {
			p->users--;
			return;
		}
}
