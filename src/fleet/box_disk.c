/* box_disk.c - a box that is paused to the disk, and resumed from there.
 *
 *   server                        keeper                        the row
 *   (programs are stopped, captured and saved: checkpoint/pause.c)
 *                                                               paused, image; the old box is in replaced_boxes
 *   (the disk has the row)
 *   KILL                     ---> the old box and its programs end
 *   ...
 *   CREATE with the chain    ---> new box                       it is in replaced_boxes
 *   IMAGE_START              ---> unknown: IMAGE_LOAD, from the file; then its programs run
 *                                                               running, keeper, generation + 1
 *   first answer of its init                                    no image: it is claimed
 *
 * A server that dies before the last transaction but one leaves a paused box, and the next one ends the new box. As long as
 * the row has the image, a box whose keeper box is missing is paused, not lost. Execs and contexts of this server stay as
 * they are while the box is on the disk, with the requests that wait for them. */
#include "fleet/box_internal.h"
#include "fleet/box_secrets.h"
#include "fleet/charge.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pause ---- */

int box_store_check(const struct box *b, struct err *e)
{
	if (b->state != BOX_RUNNING || b->row.image[0])
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       b->storing        ? "being paused"
			       : b->row.image[0] ? "being resumed"
						 : box_state_name(b->state));
	if (b->replacing)
		return err_set(e, ERR_CONFLICT, "box %s is being rolled back by another request",
			       b->row.id);
	return 0;
}

void box_store_begin(struct box *b, struct box_wait *w)
{
	if (w)
		box_wait_for(b, &b->made, w);
	init_conn_remove_call(&b->look); /* its init answers afterwards */
	box_set_state(b, BOX_PAUSED);
	timer_clear(&b->clock);
	b->storing = 1;
	b->moving = PAUSING;
	b->rising = 0;
}

void box_store_failed(struct box *b, const struct err *e)
{
	b->storing = 0;
	if (b->state != BOX_PAUSED)
		return;
	b->moving = STILL;
	b->rising = 0;
	b->because = CAUSE_EXIT;
	box_set_state(b, BOX_RUNNING);
	box_touch(b);
	box_set_clock(b);
	box_notify(&b->made, b, e);
	box_notify(&b->risen, b, NULL); /* they needed a running box */
}

static int disk_write_paused(struct box *b, const struct store_checkpoint *in, struct err *e)
{
	struct store *s = b->fleet->store;
	const struct store_box before = b->row; /* its texts are borrowed */
	struct fleet_event news;

	if (!b->row.retention_ms)
		b->row.retention_ms = STORE_FOREVER; /* a client that pauses a box will resume it */
	box_store_for(b, STORE_BOX_PAUSED);
	b->row.idle_since_ns = fleet_now_ns();
	b->row.cpu_before_us = b->charged.known ? b->charged.cpu_us : b->row.cpu_before_us;
	memcpy(b->row.image, in->id, sizeof(b->row.image));
	if (store_begin(s, e) < 0) {
		b->row = before;
		return -1;
	}
	if (store_replaced_add(s, box_keeper_id(b), e) < 0 || store_box_update(s, &b->row, e) < 0) {
		b->row = before;
		return store_rollback(s);
	}
	fleet_write(b->fleet, b->row.team, b->row.id, "box.paused",
		    json_pack("{s:s, s:s, s:s*}", "to", "disk", "checkpoint", in->id, "cause",
			      b->because == CAUSE_EXIT ? NULL : cause_name(b->because)),
		    &news);
	if (store_commit(s, e) < 0) {
		fleet_event_drop(&news);
		b->row = before;
		return -1;
	}
	fleet_publish(b->fleet, &news);
	return 0;
}

struct box_store_wait {
	struct watch rows; /* fd -1: none */
	struct box *box;
	uint64_t before_us;
	void (*done)(void *ctx);
	void *ctx;
};

static struct box_store_wait *disk_take_wait(struct box *b)
{
	struct box_store_wait *w = b->store_wait;

	b->store_wait = NULL;
	if (w && w->rows.fd >= 0) {
		watch_stop(&w->rows);
		close(w->rows.fd);
	}
	return w;
}

void box_store_ended(struct box *b)
{
	struct box_store_wait *w = disk_take_wait(b);

	if (w)
		w->done(w->ctx);
	free(w);
}

void box_store_free(struct box *b)
{
	free(disk_take_wait(b));
}

/* After a power failure the box would be lost without its row. Its programs are not continued for an error here: every
 * other client sees it paused. */
static void disk_stored(struct box *b, const struct err *e)
{
	struct box_store_wait *w = disk_take_wait(b);

	if (e)
		log_warn("a paused box does not survive a power failure yet",
			 LOG_S("box", b->row.id), LOG_E(e));
	b->storing = 0;
	box_leave_init(b);
	box_replace_end_old(b->fleet, b, box_keeper_id(b), w->before_us);
	b->moving = STILL;
	box_set_clock(b);
	if (b->fleet->on_pause)
		b->fleet->on_pause(b->fleet, b);
	box_notify(&b->made, b, NULL);
	box_pause_rise(b);
	w->done(w->ctx);
	free(w);
}

static void disk_row_synced(struct watch *x, unsigned what)
{
	struct box_store_wait *w = loop_owner(x, struct box_store_wait, rows);
	char code = EIO;
	struct err e;

	(void)what;
	(void)!read(x->fd, &code, 1);
	errno = code;
	if (code)
		err_sys(&e, "write the database to the disk");
	disk_stored(w->box, code ? &e : NULL);
}

int box_store(struct box *b, const struct store_checkpoint *in, void (*done)(void *ctx), void *ctx,
	      struct err *e)
{
	struct box_store_wait *w;
	struct err own;
	int rows;

	if (b->state != BOX_PAUSED || in->generation != b->row.generation)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       box_state_name(b->state));
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	*w = (struct box_store_wait){
		.rows.fd = -1, .box = b, .before_us = b->row.cpu_before_us, .done = done, .ctx = ctx
	};
	run_writer_flush(&b->fleet->run_writer);
	if (disk_write_paused(b, in, e) < 0) {
		free(w);
		return -1;
	}
	b->store_wait = w;
	rows = store_sync(b->fleet->store, &own);
	if (rows < 0) {
		disk_stored(b, &own);
		return 0;
	}
	watch_init(&w->rows, b->fleet->loop, rows, disk_row_synced);
	watch_want(&w->rows, LOOP_READ);
	return 0;
}

/* ---- resume ---- */

/* The new box, which is not claimed, ends with the connection; if it was, the next sweep ends it. */
static void disk_failed(struct box *b, const struct err *e)
{
	struct err own = *e;

	b->loading = 0;
	b->moving = STILL;
	box_leave_init(b);
	err_in(&own, "box %s stays on the disk", b->row.id);
	box_set_clock(b);
	box_notify(&b->made, b, &own);
}

static int disk_write_resumed(struct box *b, struct err *e)
{
	struct store *s = b->fleet->store;
	const struct store_box before = b->row;
	struct fleet_event news;
	int rc;

	memcpy(b->row.keeper, b->about.id, sizeof(b->row.keeper));
	snprintf(b->row.boot, sizeof(b->row.boot), "%s", b->fleet->boot);
	b->row.generation++;
	memcpy(b->row.origin, b->row.image, sizeof(b->row.origin));
	memcpy(b->row.head, b->row.image, sizeof(b->row.head));
	if (b->rebooting) /* nothing of the image is used */
		b->row.image[0] = 0;
	b->row.state = STORE_BOX_RUNNING;
	b->row.started_ns = fleet_now_ns();
	b->row.kept_until_ns = b->row.idle_since_ns = 0;
	if (b->row.lifetime_ms)
		b->row.ends_ns = b->row.started_ns + (int64_t)b->row.lifetime_ms * 1000000;
	rc = store_begin(s, e);
	if (rc == 0 && (store_replaced_remove(s, b->row.keeper, e) < 0 ||
			store_box_update(s, &b->row, e) < 0 ||
			store_box_set_head(s, b->row.id, b->row.head, e) < 0))
		rc = store_rollback(s);
	else if (rc == 0)
		fleet_write(b->fleet, b->row.team, b->row.id, "box.resumed",
			    json_pack("{s:s, s:b}", "from", "disk", "programs", !b->rebooting),
			    &news);
	if (rc == 0 && (rc = store_commit(s, e)) < 0)
		fleet_event_drop(&news);
	if (rc < 0) {
		b->row = before;
		return -1;
	}
	b->paused_ns = before.idle_since_ns ? b->row.started_ns - before.idle_since_ns : 0;
	fleet_publish(b->fleet, &news);
	return 0;
}

/* Only the files were wanted. */
static void disk_end_programs(struct box *b)
{
	box_restore_execs(b); /* those that this server has not read yet */
	b->because = CAUSE_IDLE;
	for (struct exec *r = b->runs, *next; r; r = next) {
		next = r->next;
		exec_box_gone(r, NULL);
	}
	b->because = CAUSE_EXIT;
	b->rebooting = 0;
}

/* Execs of this server read on where they were; of an earlier one they are restored. */
static void disk_attach(struct box *b)
{
	int known = b->runs != NULL;

	for (struct exec *r = b->runs; r; r = r->next)
		exec_attach_again(r);
	if (!known)
		box_adopt_execs(b);
	fleet_call_hooks(b->fleet, resumed, b);
}

static void disk_free_memory(struct box *b)
{
	struct wire_image drop = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_DROP };

	snprintf(drop.id, sizeof(drop.id), "%s", b->row.origin);
	(void)keeper_client_request(&b->fleet->keeper, &drop, sizeof(drop), WIRE_DONE, NULL, NULL);
}

static void disk_switch(struct box *b)
{
	int files_only = b->rebooting;
	struct err e;

	if (disk_write_resumed(b, &e) < 0) {
		disk_failed(b, &e);
		return;
	}
	charge_stored(b);
	b->loading = 0;
	b->moving = STILL;
	b->because = CAUSE_EXIT;
	box_set_state(b, BOX_RUNNING);
	box_claim(b);
	egress_client_open(b);
	if (files_only)
		disk_end_programs(b);
	else
		disk_attach(b);
	box_request_counters(b); /* box_disk_reached() follows */
	box_secrets_place(b, NULL);
	box_touch(b);
	box_set_clock(b);
	box_notify(&b->made, b, NULL);
	if (!files_only)
		disk_free_memory(b);
}

static void disk_ask_start(struct box *b);

static void disk_loaded(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (f)
		disk_ask_start(b);
	else
		disk_failed(b, e);
}

static void disk_ask_load(struct box *b)
{
	struct wire_image_file ask = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_LOAD };

	b->asked_load = 1;
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.image);
	snprintf(ask.team, sizeof(ask.team), "%s", b->row.team);
	b->asking = keeper_client_request(&b->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE,
					  disk_loaded, b);
}

static void disk_started(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (f)
		disk_switch(b);
	else if (e->kind == ERR_NOT_FOUND && !b->asked_load)
		disk_ask_load(b);
	else
		disk_failed(b, e);
}

static void disk_ask_start(struct box *b)
{
	struct wire_image ask = { .head.version = WIRE_VERSION, .head.type = WIRE_IMAGE_START };

	snprintf(ask.id, sizeof(ask.id), "%s", b->row.image);
	snprintf(ask.box, sizeof(ask.box), "%.*s", ID_MAX, b->about.id);
	b->asking = keeper_client_request(&b->fleet->keeper, &ask, sizeof(ask), WIRE_IMAGE,
					  disk_started, b);
}

static void disk_made(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;
	char id[ID_MAX + 1];
	struct err own;

	(void)len;
	b->asking = NULL;
	if (!f) {
		disk_failed(b, e);
		return;
	}
	box_take_box(b, (const struct wire_box *)f);
	snprintf(id, sizeof(id), "%.*s", ID_MAX, b->about.id);
	if (*fd < 0)
		err_set(&own, ERR_SYS, "keeper: a box without a connection to it");
	if (*fd < 0 || store_replaced_add(b->fleet->store, id, &own) < 0 ||
	    box_open_conn(b, steal_fd(fd), &own) < 0)
		disk_failed(b, &own);
	else if (b->rebooting)
		disk_switch(b);
	else
		disk_ask_start(b);
}

int box_disk_resume(struct box *b, struct err *e)
{
	struct store_checkpoint from = { 0 };
	struct isolation_choice tier;
	struct isolation_ask ask;
	struct wire_create create;
	struct box_spec want;
	int rc;

	if (store_checkpoint_any(b->fleet->store, b->row.image, &from, e) < 0)
		return err_in(e, "box %s is paused on the disk", b->row.id);
	rc = box_replace_spec(b, &from, 1, &want, e);
	store_checkpoint_fini(&from);
	if (rc < 0)
		return -1;
	ask = box_isolation(&want);
	if (isolation_choose(b->fleet, &ask, 0, &tier, e) < 0)
		return -1;
	box_fill_create(&want, &tier, &create);
	b->loading = 1;
	b->asked_load = 0;
	b->asking = keeper_client_request(&b->fleet->keeper, &create, sizeof(create), WIRE_BOX,
					  disk_made, b);
	return 0;
}

/* ---- ends ---- */

void box_disk_lost(struct box *b, const struct err *e)
{
	struct err own;

	keeper_client_cancel(&b->fleet->keeper, b->asking);
	b->asking = NULL;
	err_set(&own, ERR_SYS, "its new box has ended early%s%.100s", e ? ": " : "",
		e ? e->msg : "");
	if (b->state == BOX_RUNNING) {
		box_store_for(b, STORE_BOX_PAUSED);
		b->row.idle_since_ns = fleet_now_ns();
		box_set_state(b, BOX_PAUSED);
		if (box_changed(b, &own) < 0)
			log_warn("cannot store that a box is on the disk", LOG_S("box", b->row.id),
				 LOG_E(&own));
	}
	disk_failed(b, &own);
}

void box_disk_restored(struct box *b)
{
	struct err e;

	if (b->row.state != STORE_BOX_PAUSED) {
		box_store_for(b, STORE_BOX_PAUSED);
		b->row.idle_since_ns = fleet_now_ns();
		(void)!box_changed(b, &e);
	}
	box_set_state(b, BOX_PAUSED);
	box_set_clock(b);
	b->fleet->figures.restored++;
	box_restored(b);
	box_notify(&b->made, b, NULL);
	box_take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT) /* its end was started before */
		box_end(b, b->because, NULL);
}

void box_disk_reached(struct box *b)
{
	struct store *s = b->fleet->store;
	char image[ID_MAX + 1];
	struct err e;

	if (!b->row.image[0] || b->loading || b->state != BOX_RUNNING)
		return;
	memcpy(image, b->row.image, sizeof(image));
	b->row.image[0] = 0;
	if (box_changed(b, &e) < 0) {
		memcpy(b->row.image, image, sizeof(image));
		log_warn("cannot store that a box has left the disk", LOG_S("box", b->row.id),
			 LOG_E(&e));
		return;
	}
	/* It stays for a while: a client may want to go back to it. */
	(void)!store_checkpoint_expire(s, image, fleet_now_ns() + STORE_CHECKPOINT_DAY_NS, &e);
}
