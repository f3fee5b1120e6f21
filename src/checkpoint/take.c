/* take.c - takes a checkpoint: see checkpoints.h. */
#include "checkpoint/internal.h"
#include "checkpoint/memory.h"
#include "checkpoint/prepare.h"
#include "checkpoint/self.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "wire/image_flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAKE_IMPORT_FILES = 1000000 };

struct checkpoint_job {
	struct checkpoint_job *next;
	struct checkpoints *all;
	struct store_checkpoint row;
	struct keeper_call *asking;
	struct watch rows; /* fd -1: the row is not being written to the disk */
	enum { JOB_WAITS, JOB_CAPTURES, JOB_SYNCS } state;
	int durable, unless_same, memory, stop, must_save, portable;
	int archive;                       /* of an import, until the keeper has it; -1: none */
	struct wire_checkpoint ask;        /* memory: sent when the programs are stopped */
	struct wire_checkpointed captured; /* memory: until the image is complete */
	struct err unsaved;                /* why the image has no file */
	enum { MERGE_NONE, MERGE_AWAITED, MERGE_ENDED } merge; /* of the chain it continues */
	checkpoint_done *done;                                 /* NULL: the caller has left */
	void *ctx;
};

static void take_start(struct checkpoint_job *j);

/* ---- end ---- */

static void take_unlink(struct checkpoint_job *j)
{
	struct checkpoint_job **at = &j->all->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
}

static void take_end_rows(struct checkpoint_job *j)
{
	if (j->rows.fd < 0)
		return;
	watch_stop(&j->rows);
	close(j->rows.fd);
	j->rows.fd = -1;
}

static void take_free(struct checkpoint_job *j)
{
	own_close_fd(&j->archive);
	take_end_rows(j);
	store_checkpoint_fini(&j->row);
	free(j);
}

/* The next capture of the same box. */
static void take_next(struct checkpoints *c, const char *box)
{
	struct checkpoint_job *j = c->jobs;

	while (j && (strcmp(j->row.box, box) != 0 || j->state == JOB_SYNCS))
		j = j->next;
	if (j && j->state == JOB_WAITS)
		take_start(j);
}

static void take_finish(struct checkpoint_job *j, const struct err *e)
{
	checkpoint_done *done = j->done;
	struct checkpoints *c = j->all;
	char box[ID_MAX + 1];

	memcpy(box, j->row.box, sizeof(box));
	take_unlink(j);
	if (done)
		done(j->ctx, e ? NULL : &j->row, e);
	take_free(j);
	take_next(c, box);
}

static void take_failed(struct checkpoint_job *j, const struct err *e)
{
	struct checkpoints *c = j->all;
	struct err own;

	c->figures.failed++;
	if (j->stop)
		checkpoint_memory_release(c, j->row.id); /* they continue */
	if (store_checkpoint_fail(c->fleet->store, j->row.id, &own) < 0)
		log_warn("cannot mark a checkpoint as failed", LOG_S("checkpoint", j->row.id),
			 LOG_E(&own));
	fleet_emit(c->fleet, j->row.team, j->row.box, "checkpoint.failed",
		   json_pack("{s:s, s:s, s:s}", "checkpoint", j->row.id, "reason", j->row.reason,
			     "message", e->msg));
	take_finish(j, e);
	checkpoint_collect(c);
}

/* ---- durable ---- */

static void take_remove(struct checkpoint_job *j)
{
	struct err e;

	if (checkpoint_remove(j->all, &j->row, &e) < 0)
		log_warn("cannot remove a checkpoint whose image could not be saved",
			 LOG_S("checkpoint", j->row.id), LOG_E(&e));
}

/* e: NULL if files and row survive a power failure. */
static void take_is_durable(struct checkpoint_job *j, const struct err *e)
{
	struct err own;

	if (!e && store_checkpoint_set_durable(j->all->fleet->store, j->row.id, &own) < 0)
		e = &own;
	j->row.durable = !e;
	if (e)
		log_warn("a checkpoint does not survive a power failure yet",
			 LOG_S("checkpoint", j->row.id), LOG_E(e));
	/* Ready in any case: the answer states which. */
	if ((!j->stop && !j->must_save) || (j->row.durable && !j->unsaved.kind)) {
		take_finish(j, NULL);
		return;
	}
	own = j->unsaved.kind ? j->unsaved : *e;
	if (j->stop)
		checkpoint_memory_drop(j->all, j->row.id); /* the programs continue */
	else
		take_remove(j);
	take_finish(j, &own);
}

static void take_row_synced(struct watch *w, unsigned what)
{
	struct checkpoint_job *j = loop_owner(w, struct checkpoint_job, rows);
	char code = EIO;
	struct err e;

	(void)what;
	(void)!read(w->fd, &code, 1);
	take_end_rows(j);
	errno = code;
	if (code)
		err_sys(&e, "write the database to the disk");
	take_is_durable(j, code ? &e : NULL);
}

/* The files are on the disk; a checkpoint without its row would be removed as one without an owner. */
static void take_synced(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct checkpoint_job *j = ctx;
	struct err own;
	int rows;

	(void)len;
	(void)fd;
	j->asking = NULL;
	if (!f) {
		take_is_durable(j, e);
		return;
	}
	rows = store_sync(j->all->fleet->store, &own);
	if (rows < 0) {
		take_is_durable(j, &own);
		return;
	}
	watch_init(&j->rows, j->all->fleet->loop, rows, take_row_synced);
	watch_want(&j->rows, LOOP_READ);
}

static void take_sync_files(struct checkpoint_job *j)
{
	j->asking =
		keeper_client_checkpoint_sync(&j->all->fleet->keeper, j->row.id, take_synced, j);
}

static void take_image_saved(void *ctx, const struct frame *f, size_t len, int *fd,
			     const struct err *e)
{
	struct checkpoint_job *j = ctx;
	struct err own;

	(void)len;
	(void)fd;
	j->asking = NULL;
	if (f && checkpoint_memory_keep(j->all, j->row.id,
					((const struct wire_image_about *)f)->bytes, &own) < 0)
		e = &own;
	if (e)
		log_warn("a process image has no file: it ends with its keeper",
			 LOG_S("checkpoint", j->row.id), LOG_E(e));
	if (e)
		j->unsaved = *e;
	take_sync_files(j);
}

/* The image of a fork ends with the answer, and a prepared one with its server. */
static void take_sync(struct checkpoint_job *j)
{
	struct wire_image_file ask = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_SAVE };

	j->state = JOB_SYNCS;
	if (!j->memory || !strcmp(j->row.reason, CHECKPOINT_FORK) ||
	    !strcmp(j->row.reason, CHECKPOINT_PREPARED)) {
		take_sync_files(j);
		return;
	}
	ask.head.flags = j->portable ? WIRE_IMAGE_PORTABLE : 0;
	snprintf(ask.id, sizeof(ask.id), "%s", j->row.id);
	snprintf(ask.team, sizeof(ask.team), "%s", j->row.team);
	j->asking = keeper_client_request(&j->all->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE,
					  take_image_saved, j);
}

/* ---- capture ---- */

static void take_observe(struct checkpoints *c, const struct wire_checkpointed *x)
{
	c->figures.taken++;
	c->figures.same += x->same == 1;
	fleet_observe(&c->figures.frozen, x->frozen_us);
	fleet_observe(&c->figures.took, x->took_us);
}

/* A checkpoint without a layer has the chain of its parent. */
static void take_set_chain(struct checkpoint_job *j, const struct wire_checkpointed *x)
{
	struct store_checkpoint *row = &j->row;

	if (x->same || !x->bytes) {
		memcpy(row->same_as, row->parent, sizeof(row->same_as));
		return;
	}
	memmove(row->chain[1], row->chain[0], row->nchain * sizeof(row->chain[0]));
	memcpy(row->chain[0], row->id, sizeof(row->chain[0]));
	row->nchain++;
}

static void take_set_figures(struct checkpoint_job *j, const struct wire_checkpointed *x)
{
	j->row.bytes = x->bytes + x->index_bytes;
	j->row.files = x->files;
	j->row.deleted = x->deleted;
	j->row.frozen_us = x->frozen_us;
	j->row.took_us = x->took_us;
	j->row.tracked = x->tracked;
}

static int take_store(struct checkpoint_job *j, struct err *e)
{
	struct fleet *f = j->all->fleet;
	const struct store_checkpoint *x = &j->row;
	struct fleet_event news;
	struct box *b = fleet_find(f, x->box);

	if (store_begin(f->store, e) < 0)
		return -1;
	if (store_checkpoint_finish(f->store, x, e) < 0)
		return store_rollback(f->store);
	fleet_write(f, x->team, x->box, "checkpoint.created",
		    json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "checkpoint", x->id,
			      "parent", x->parent, "name", x->name, "reason", x->reason, "files",
			      (json_int_t)x->files, "deleted", (json_int_t)x->deleted, "bytes",
			      (json_int_t)x->bytes, "frozen_us", (json_int_t)x->frozen_us),
		    &news);
	if (store_commit(f->store, e) < 0) {
		fleet_event_drop(&news);
		return -1;
	}
	fleet_publish(f, &news);
	if (b && b->row.generation == x->generation)
		memcpy(b->row.head, x->id, sizeof(b->row.head));
	return 0;
}

/* Done with the last checkpoint, which has the same files. The new one had only an index, which
 * nothing needs: its parent stays the head of the box. 0: clients have deleted the last one. */
static int take_unchanged(struct checkpoint_job *j)
{
	struct checkpoints *c = j->all;
	struct store_checkpoint same = { 0 };
	struct err e;

	if (!j->unless_same || j->memory || !j->row.same_as[0] ||
	    store_checkpoint_get(c->fleet->store, j->row.team, j->row.same_as, &same, &e) < 0)
		return 0;
	if (store_checkpoint_fail(c->fleet->store, j->row.id, &e) < 0)
		log_warn("cannot drop a checkpoint without changes", LOG_S("checkpoint", j->row.id),
			 LOG_E(&e));
	if (j->done)
		j->done(j->ctx, &same, NULL);
	j->done = NULL;
	store_checkpoint_fini(&same);
	take_finish(j, NULL);
	checkpoint_collect(c);
	return 1;
}

static void take_complete(struct checkpoint_job *j, const struct wire_checkpointed *x)
{
	struct checkpoints *c = j->all;
	struct err own;

	take_set_chain(j, x);
	take_set_figures(j, x);
	if (take_unchanged(j))
		return;
	if (take_store(j, &own) < 0) {
		take_failed(j, &own);
		return;
	}
	take_observe(c, x);
	if (j->row.nchain >= CHECKPOINT_MERGE_AT)
		checkpoint_merge_chain(c, &j->row);
	if (checkpoint_reason_is_automatic(j->row.reason))
		checkpoint_prune_box(c, j->row.box);
	if (!j->durable && j->done) { /* the caller does not wait for the disk */
		j->row.state = STORE_CHECKPOINT_READY;
		j->done(j->ctx, &j->row, NULL);
		j->done = NULL;
	}
	take_sync(j);
	take_next(c, j->row.box);
}

static struct keeper_call *take_ask_image(struct checkpoint_job *j, uint8_t type, const char *box,
					  keeper_done *done)
{
	struct wire_image ask = { .head = { .version = WIRE_VERSION, .type = type } };

	if (type == WIRE_IMAGE_TAKE && j->stop)
		ask.head.flags = WIRE_IMAGE_STOP;
	snprintf(ask.id, sizeof(ask.id), "%s", j->row.id);
	snprintf(ask.box, sizeof(ask.box), "%s", box);
	return keeper_client_request(&j->all->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE, done,
				     j);
}

/* The programs have continued; their image is complete. */
static void take_image_ready(void *ctx, const struct frame *f, size_t len, int *fd,
			     const struct err *e)
{
	struct checkpoint_job *j = ctx;
	const struct wire_image_about *a = (const struct wire_image_about *)f;
	const struct box *b = fleet_find(j->all->fleet, j->row.box);
	struct err own;

	(void)fd;
	j->asking = NULL;
	if (f && !b)
		e = (err_set(&own, ERR_NOT_FOUND, "box %s has ended", j->row.box), &own);
	else if (f && checkpoint_memory_add(j->all, j->row.id, b, a, len, &own) < 0)
		e = &own;
	if (e) {
		take_failed(j, e);
		return;
	}
	j->captured.frozen_us = a->frozen_us;
	j->captured.took_us = a->took_us;
	take_complete(j, &j->captured);
}

/* The layer has become larger than the rest of the quota: bytes_most of the request. */
static const struct err *take_explain(const struct checkpoint_job *j, const struct err *e,
				      struct err *room)
{
	if (e->kind != ERR_LIMIT || e->sys != EDQUOT)
		return e;
	err_set(room, ERR_SYS,
		"the files that have changed do not fit in the rest of the quota of team %.64s "
		"(quota.checkpoint_bytes, %llu bytes); delete some: DELETE /v1/checkpoints/ID",
		j->row.team, (unsigned long long)j->all->conf.team_bytes);
	room->sys = EDQUOT;
	return room;
}

static void take_captured(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	struct checkpoint_job *j = ctx;
	struct err own;

	(void)len;
	(void)fd;
	j->asking = NULL;
	if (!f) {
		take_failed(j, take_explain(j, e, &own));
	} else if (j->memory) {
		j->captured = *(const struct wire_checkpointed *)f;
		j->asking = take_ask_image(j, WIRE_IMAGE_WAIT, "", take_image_ready);
	} else {
		take_complete(j, (const struct wire_checkpointed *)f);
	}
}

static void take_image_stopped(void *ctx, const struct frame *f, size_t len, int *fd,
			       const struct err *e)
{
	struct checkpoint_job *j = ctx;

	(void)len;
	(void)fd;
	j->asking = NULL;
	if (f)
		j->asking =
			keeper_client_checkpoint(&j->all->fleet->keeper, &j->ask, take_captured, j);
	else
		take_failed(j, e);
}

/* ---- start ---- */

/* What the checkpoint continues from: the last one of this generation, or the one with whose files
 * the generation began. Its row stays while it is the head of a box. 1: wait for a merge. */
static int take_continue_from(struct checkpoint_job *j, const struct box *b, char base[ID_MAX + 1],
			      struct err *e)
{
	struct store_checkpoint head = { 0 };
	int full;

	base[0] = 0;
	j->row.generation = b->row.generation;
	memcpy(j->row.origin, b->row.origin, sizeof(j->row.origin));
	if (!b->row.head[0])
		return 0;
	if (store_checkpoint_any(j->all->fleet->store, b->row.head, &head, e) < 0)
		return err_in(e, "box %s", b->row.id);
	full = head.nchain >= STORE_CHAIN;
	if (strcmp(b->row.head, b->row.origin) != 0)
		memcpy(base, head.id, sizeof(head.id));
	snprintf(j->row.parent, sizeof(j->row.parent), "%s",
		 head.state == STORE_CHECKPOINT_READY ? head.id : head.parent);
	memcpy(j->row.chain, head.chain, sizeof(j->row.chain));
	j->row.nchain = head.nchain;
	if (full)
		checkpoint_merge_chain(j->all, &head);
	store_checkpoint_fini(&head);
	return full;
}

static int take_room(struct checkpoint_job *j, const struct box *b, uint64_t *out_bytes,
		     struct err *e)
{
	const struct checkpoints_conf *conf = &j->all->conf;
	struct store *s = j->all->fleet->store;
	uint64_t n, has;

	if (store_checkpoint_count(s, b->row.id, &n, e) < 0)
		return -1;
	if (conf->per_box && n >= conf->per_box &&
	    (!checkpoint_prune_for(j->all, &b->row, 0) ||
	     store_checkpoint_count(s, b->row.id, &n, e) < 0 || n >= conf->per_box))
		return err_set(
			e, ERR_LIMIT,
			"box %s has %llu checkpoints, the maximum (limits.checkpoints_per_box"
			"); delete some: DELETE /v1/checkpoints/ID",
			b->row.id, (unsigned long long)n);
	*out_bytes = UINT64_MAX;
	if (!conf->team_bytes)
		return 0;
	if (store_checkpoint_bytes(s, b->row.team, &has, e) < 0)
		return -1;
	if (has >= conf->team_bytes && checkpoint_prune_for(j->all, &b->row, has) &&
	    store_checkpoint_bytes(s, b->row.team, &has, e) < 0)
		return -1;
	if (has >= conf->team_bytes) {
		err_set(e, ERR_SYS,
			"the checkpoints of team %.64s have %llu bytes, the maximum is %llu "
			"(quota.checkpoint_bytes); delete some: DELETE /v1/checkpoints/ID",
			b->row.team, (unsigned long long)has, (unsigned long long)conf->team_bytes);
		e->sys = EDQUOT;
		return -1;
	}
	*out_bytes = conf->team_bytes - has;
	return 0;
}

static char *take_spec(const struct box *b)
{
	json_t *doc = json_object();
	struct {
		const char *name, *text;
	} parts[] = { { "made", b->row.made }, { "root", b->row.root }, { "env", b->row.env } };
	char *text;

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		json_t *part = parts[i].text ? json_loads(parts[i].text, 0, NULL) : NULL;

		if (json_object_size(part))
			json_object_set(doc, parts[i].name, part);
		json_decref(part);
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

static int take_allowed(const struct box *b, struct err *e)
{
	if (b->state != BOX_RUNNING && b->state != BOX_STOPPED && !b->storing)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       box_state_name(b->state));
	if (b->row.made && strstr(b->row.made, "\"unknown\""))
		return err_set(e, ERR_CONFLICT,
			       "box %s was created by an earlier version of Atoll, which did not "
			       "store its packages; create a new box",
			       b->row.id);
	return 0;
}

static int take_try_import(struct checkpoint_job *j, const struct box *b, struct err *e)
{
	struct fleet *f = j->all->fleet;
	struct wire_checkpoint ask = { .head = { .version = WIRE_VERSION,
						 .type = WIRE_CHECKPOINT_IMPORT },
				       .files_most = TAKE_IMPORT_FILES };

	/* Not of the running generation, whose head stays. */
	j->row.generation = b->row.generation + 1;
	if (take_room(j, b, &ask.bytes_most, e) < 0)
		return -1;
	free(j->row.spec);
	j->row.spec = take_spec(b);
	if (store_checkpoint_insert(f->store, &j->row, e) < 0)
		return -1;
	snprintf(ask.box, sizeof(ask.box), "%s", box_keeper_id(b));
	snprintf(ask.id, sizeof(ask.id), "%s", j->row.id);
	j->state = JOB_CAPTURES;
	j->asking = keeper_client_request_fd(&f->keeper, &ask, sizeof(ask), steal_fd(&j->archive),
					     WIRE_CHECKPOINTED, take_captured, j);
	return 0;
}

/* 1: waits for a merge. */
static int take_try(struct checkpoint_job *j, struct err *e)
{
	struct fleet *f = j->all->fleet;
	struct box *b = fleet_find(f, j->row.box);
	struct wire_checkpoint ask = { .files_most = UINT64_MAX };
	struct checkpoint_policy policy;
	char base[ID_MAX + 1];
	int rc;

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "box %s has ended", j->row.box);
	if (take_allowed(b, e) < 0)
		return -1;
	if (j->archive >= 0)
		return take_try_import(j, b, e);
	rc = take_continue_from(j, b, base, e);
	j->merge = rc > 0 ? MERGE_AWAITED : MERGE_NONE;
	if (rc)
		return rc;
	if (take_room(j, b, &ask.bytes_most, e) < 0)
		return -1;
	free(j->row.spec);
	j->row.spec = take_spec(b);
	if (store_checkpoint_insert(f->store, &j->row, e) < 0)
		return -1;
	snprintf(ask.box, sizeof(ask.box), "%s", box_keeper_id(b));
	snprintf(ask.id, sizeof(ask.id), "%s", j->row.id);
	snprintf(ask.base, sizeof(ask.base), "%s", base);
	checkpoint_policy_read(&b->row, &policy);
	ask.head.flags = policy.track ? WIRE_CHECKPOINT_TRACK : 0;
	j->state = JOB_CAPTURES;
	j->ask = ask;
	j->asking = j->memory ? take_ask_image(j, WIRE_IMAGE_TAKE, ask.box, take_image_stopped)
			      : keeper_client_checkpoint(&f->keeper, &ask, take_captured, j);
	return 0;
}

static void take_start(struct checkpoint_job *j)
{
	struct err e;

	if (take_try(j, &e) < 0)
		take_finish(j, &e); /* nothing was written */
}

static int take_is_busy(const struct checkpoints *c, const char *box)
{
	for (const struct checkpoint_job *j = c->jobs; j; j = j->next)
		if (!strcmp(j->row.box, box) && j->state != JOB_SYNCS)
			return 1;
	return 0;
}

static void take_describe(struct checkpoint_job *j, const struct box *b,
			  const struct checkpoint_want *want)
{
	struct store_checkpoint *x = &j->row;
	int brief = !strcmp(want->reason, CHECKPOINT_SAFETY) ||
		    !strcmp(want->reason, CHECKPOINT_FORK) ||
		    !strcmp(want->reason, CHECKPOINT_PREPARED) ||
		    !strcmp(want->reason, CHECKPOINT_PROMOTE) ||
		    !strcmp(want->reason, CHECKPOINT_MERGED) ||
		    !strcmp(want->reason, CHECKPOINT_DIFF);

	memcpy(x->team, b->row.team, sizeof(x->team));
	memcpy(x->box, b->row.id, sizeof(x->box));
	memcpy(x->template, b->row.template, sizeof(x->template));
	snprintf(x->name, sizeof(x->name), "%s", want->name ? want->name : "");
	snprintf(x->note, sizeof(x->note), "%s", want->note ? want->note : "");
	snprintf(x->author, sizeof(x->author), "%s", want->author ? want->author : "");
	snprintf(x->reason, sizeof(x->reason), "%s", want->reason);
	x->created_ns = fleet_now_ns();
	x->pinned = want->pin;
	x->expires_ns = brief && !x->name[0] ? x->created_ns + CHECKPOINT_DAY_NS : 0;
	j->durable = want->durable;
	j->unless_same = want->unless_same;
	j->memory = want->memory;
	j->stop = want->memory && want->stop;
	j->must_save = want->memory && want->must_save;
	j->portable = want->memory && want->portable;
}

int checkpoint_take(struct checkpoints *c, struct box *b, const struct checkpoint_want *want,
		    checkpoint_done *done, void *ctx, struct checkpoint_job **out, struct err *e)
{
	return checkpoint_import(c, b, want, -1, done, ctx, out, e);
}

int checkpoint_import(struct checkpoints *c, struct box *b, const struct checkpoint_want *want,
		      int take_archive, checkpoint_done *done, void *ctx,
		      struct checkpoint_job **out, struct err *e)
{
	struct checkpoint_job *j, **at = &c->jobs;
	int busy = take_is_busy(c, b->row.id), rc;

	if (take_allowed(b, e) < 0) {
		own_close_fd(&take_archive);
		return -1;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		abort();
	*j = (struct checkpoint_job){
		.all = c, .done = done, .ctx = ctx, .archive = take_archive, .rows.fd = -1
	};
	take_describe(j, b, want);
	rc = id_new(j->row.id, e);
	if (rc == 0 && !busy)
		rc = take_try(j, e);
	if (rc < 0) {
		take_free(j);
		return -1;
	}
	while (*at)
		at = &(*at)->next;
	*at = j;
	*out = j;
	return 0;
}

void checkpoint_leave(struct checkpoint_job *j)
{
	if (j)
		j->done = NULL;
}

/* ---- all ---- */

int checkpoint_is_writing(const struct checkpoints *c, const char *id)
{
	for (const struct checkpoint_job *j = c->jobs; j; j = j->next)
		if (!strcmp(j->row.id, id))
			return 1;
	return checkpoint_is_combining(c, id);
}

void checkpoint_merge_ended(struct checkpoints *c, const struct err *e)
{
	struct checkpoint_job *j;

	for (j = c->jobs; j; j = j->next)
		if (j->merge == MERGE_AWAITED)
			j->merge = MERGE_ENDED;
	for (;;) {
		for (j = c->jobs; j && j->merge != MERGE_ENDED; j = j->next)
			;
		if (!j)
			return;
		j->merge = MERGE_NONE;
		if (e)
			take_finish(j, e);
		else
			take_start(j);
	}
}

struct checkpoints *checkpoints_new(struct fleet *f, const struct checkpoints_conf *conf)
{
	struct checkpoints *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->fleet = f;
	c->conf = *conf;
	timer_init(&c->clock, f->loop, checkpoint_retention_due);
	timer_set(&c->clock, 1000);
	timer_init(&c->interval, f->loop, checkpoint_interval_due);
	timer_set(&c->interval, 1000);
	return c;
}

void checkpoints_free(struct checkpoints *c)
{
	if (!c)
		return;
	timer_fini(&c->clock);
	timer_fini(&c->interval);
	checkpoint_self_free(c);
	checkpoint_prepare_free(c);
	keeper_client_cancel(&c->fleet->keeper, c->dropping);
	checkpoint_merges_free(c);
	checkpoint_combines_free(c);
	checkpoint_orphans_free(c);
	checkpoint_memory_free(c);
	while (c->jobs) {
		struct checkpoint_job *j = c->jobs;

		c->jobs = j->next;
		keeper_client_cancel(&c->fleet->keeper, j->asking);
		take_free(j);
	}
	free(c);
}

const struct checkpoints_figures *checkpoints_figures(const struct checkpoints *c)
{
	return &c->figures;
}

/* ---- use ---- */

json_t *checkpoint_read_spec(const struct store_checkpoint *x)
{
	json_t *doc = x->spec ? json_loads(x->spec, 0, NULL) : NULL;

	return doc ? doc : json_object();
}

void checkpoint_fill_spec(const struct store_checkpoint *x, const json_t *doc, struct box_spec *out)
{
	const json_t *made = json_object_get(doc, "made"), *one;
	const char *root = json_string_value(json_object_get(json_object_get(doc, "root"), "id"));
	size_t i;

	out->nchain = x->nchain;
	memcpy(out->chain, x->chain, sizeof(out->chain));
	memcpy(out->row.origin, x->id, sizeof(out->row.origin));
	memcpy(out->row.template, x->template, sizeof(out->row.template));
	snprintf(out->root, sizeof(out->root), "%s", root ? root : "");
	out->nlayers = 0;
	json_array_foreach(json_object_get(made, "layers"), i, one) if (out->nlayers < WIRE_LAYERS)
		snprintf(out->layers[out->nlayers++], WIRE_LAYER_ID, "%s", json_string_value(one));
}
