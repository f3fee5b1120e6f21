/* box_restore.c - restores a box that another server created: from its row, the keeper and its
 * init. */
#include "fleet/box_internal.h"
#include "fleet/box_secrets.h"
#include "base/cleanup.h"
#include "fleet/exec.h"
#include "store/runs.h"

#include <errno.h>
#include <string.h>

enum {
	AGAIN_MS = 500, /* until a box that could not be reached is tried again */
};

/* One box less to wait for before the server accepts requests. */
void box_restored(struct box *b)
{
	if (!b->restoring)
		return;
	b->restoring = 0;
	fleet_restored(b->fleet);
}

static void restore_tallied(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct box *b = loop_owner(x, struct box, tally);

	(void)len;
	(void)fd;
	for (struct exec *r = f->type == WIRE_EXEC ? b->runs : NULL; r; r = r->next) {
		if (r->ref == f->ref) {
			exec_on_counters(r, (const struct wire_exec *)f);
			break; /* a waiter may have changed the list */
		}
	}
	if (f->type != WIRE_DONE)
		return;
	init_conn_remove_call(x);
	box_disk_reached(b);
	if (b->tally_again) {
		b->tally_again = 0;
		box_request_counters(b);
	}
}

void box_request_counters(struct box *b)
{
	static const struct init_call_ops on = { .answer = restore_tallied };

	/* Init sends one list at a time; the list of look_inside() ends soon. */
	if (b->tally.line)
		b->tally_again = 1;
	else if (init_conn_is_open(&b->line) && ++b->tallies)
		init_conn_request(&b->line, &b->tally, &on, WIRE_EXECS, 0);
}

/* Restores running execs that this server does not know yet. */
void box_restore_execs(struct box *b)
{
	struct store_runs rows = { 0 };
	struct err e;

	run_writer_flush(&b->fleet->run_writer);
	if (store_run_running(b->fleet->store, b->row.id, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (!exec_lookup(b, rows.v[i].id))
			exec_restore(b, &rows.v[i]);
	store_runs_fini(&rows);
	if (b->runs)
		box_request_counters(b);
}

/* Sets the idle time from the row. */
static void set_active(struct box *b)
{
	int64_t idle_ns = b->row.idle_since_ns ? fleet_now_ns() - b->row.idle_since_ns : 0;
	uint64_t now = loop_now_ms(), idle = idle_ns > 0 ? (uint64_t)idle_ns / 1000000 : 0;

	b->active_ms = idle < now ? now - idle : 0;
}

static void restore_reached(struct box *b, const struct wire_box *box)
{
	b->late = 0;
	box_take_box(b, box);
	box_claim(b);
	box_send_lease(b);
	box_set_state(b, b->row.state == STORE_BOX_STOPPED ? BOX_STOPPED : BOX_RUNNING);
	egress_client_open(b);
	set_active(b);
	box_restore_execs(b);
	fleet_call_hooks(b->fleet, restored, b);
	box_secrets_place(b, NULL); /* the other server may have ended before it has done so */
	box_set_clock(b);
	if (b->row.image[0] && !b->runs)
		box_request_counters(b); /* box_disk_reached() follows */
	b->fleet->figures.restored++;
	box_restored(b);
	box_start_pending(b);
	box_take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT && !b->rebooting) /* its end was started before */
		box_end(b, b->because, NULL);
	else
		box_end_if_done(b);
}

/* The box has ended while no server ran; the keeper may still have its final counters. */
static void not_there(struct box *b, const struct err *e)
{
	b->late = 0;
	if (b->row.image[0]) { /* its resume was not complete */
		box_disk_restored(b);
		return;
	}
	box_restore_execs(b);
	box_set_state(b, BOX_RUNNING);
	b->died = 1;
	box_notify(&b->made, b, e);
	/* The keeper ends boxes whose lifetime has ended; if it was restarted since, it has lost
	 * the reason. */
	box_end(b,
		b->row.state == STORE_BOX_RUNNING && box_left_ms(b) == 0 ? CAUSE_LIFETIME
									 : CAUSE_EXIT,
		NULL);
}

/* Init accepts no connection now, because it is frozen or overloaded. The box is not ended for
 * that, and other boxes do not wait for it. */
static void too_late(struct box *b, const struct err *e)
{
	struct err busy = { 0 };

	err_set(&busy, ERR_SYS, "box %s does not answer: %.100s", b->row.id, e ? e->msg : "");
	busy.sys = EBUSY;
	b->late = 1;
	timer_set(&b->clock, AGAIN_MS);
	box_restored(b);
	box_notify(&b->made, b, &busy);
}

static void on_opened(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;
	struct err own;

	(void)len;
	b->asking = NULL;
	if (f && *fd >= 0 && box_open_conn(b, steal_fd(fd), &own) == 0)
		restore_reached(b, (const struct wire_box *)f);
	else if (e && box_is_lost(e))
		not_there(b, e);
	else
		too_late(b, e);
}

void box_adopt_execs(struct box *b)
{
	box_restore_execs(b);
	fleet_call_hooks(b->fleet, restored, b);
}

void box_request_open(struct box *b)
{
	b->asking = keeper_client_request_box(&b->fleet->keeper, WIRE_OPEN, 0, box_keeper_id(b),
					      WIRE_BOX, on_opened, b);
}

/* Freezes a paused box again, which also shows whether it exists. */
static void on_still(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f && box_is_lost(e)) {
		not_there(b, e);
		return;
	}
	if (!f) {
		b->late = 1;
		timer_set(&b->clock, AGAIN_MS);
		box_restored(b);
		return;
	}
	b->late = 0;
	box_set_state(b, BOX_PAUSED);
	box_set_clock(b);
	b->fleet->figures.restored++;
	box_restored(b);
	box_notify(&b->made, b, NULL);
	box_take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT) /* its end was started before */
		box_end(b, b->because, NULL);
}

static void ask_for(struct box *b)
{
	if (b->row.state == STORE_BOX_PAUSED)
		b->asking = box_request_freeze(b, 0, on_still);
	else
		box_request_open(b);
}

void box_open_again(struct box *b)
{
	/* Only the previous server knew the last use of a box with a renewed lifetime, so the box
	 * gets one more lifetime. */
	if (b->row.state == STORE_BOX_RUNNING && box_left_ms(b) == 0 && !box_renews(&b->row)) {
		box_restore_execs(b);
		box_end(b, CAUSE_LIFETIME, NULL);
		return;
	}
	if (!b->asking)
		ask_for(b);
}

void box_restore(struct fleet *f, struct store_box *take_row, struct box_wait *w)
{
	struct box *b = box_new(f);

	b->row = *take_row;
	b->told.then = WIRE_THENS;
	b->ephemeral = box_is_marked(&b->row, BOX_EPHEMERAL);
	box_read_marks(b);
	box_enter(b);
	if (w)
		box_wait_for(b, &b->made, w);
	if (b->row.image[0] &&
	    (b->row.state == STORE_BOX_PAUSED || strcmp(b->row.boot, f->boot) != 0)) {
		box_disk_restored(b);
		return;
	}
	if (strcmp(b->row.boot, f->boot) != 0) { /* the machine was rebooted */
		box_set_state(b, BOX_ENDING);
		box_restore_execs(b);
		b->because = CAUSE_HOST;
		box_finish(b, NULL);
		return;
	}
	f->restoring++;
	b->restoring = 1;
	ask_for(b);
}

void box_resync(struct box *b)
{
	if (b->state != BOX_RUNNING && !box_is_stored(b))
		return;
	box_reread(b);
	if (b->state == BOX_PAUSED) {
		box_set_clock(b);
		return;
	}
	box_restore_execs(b);
	fleet_call_hooks(b->fleet, resynced, b);
	box_set_clock(b);
	box_end_if_done(b);
}
