/* box_restore.c - a berth that another front began: from its row, and from what the keeper and its
 * init say of it. */
#include "fleet/box_internal.h"
#include "base/cleanup.h"
#include "fleet/exec.h"
#include "store/runs.h"

#include <errno.h>
#include <string.h>

enum {
	AGAIN_MS = 500, /* until a box that could not be reached is asked for again */
};

/* One less to wait for before we serve. */
void berth_restored(struct berth *b)
{
	if (!b->restoring)
		return;
	b->restoring = 0;
	fleet_restored(b->fleet);
}

static void tallied(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct berth *b = loop_owner(x, struct berth, tally);

	(void)len;
	(void)fd;
	for (struct run *r = f->type == WIRE_EXEC ? b->runs : NULL; r; r = r->next) {
		if (r->ref == f->ref) {
			run_told(r, (const struct wire_exec *)f);
			break; /* whoever was waiting may have changed the list */
		}
	}
	if (f->type != WIRE_DONE)
		return;
	init_conn_remove_call(x);
	if (b->tally_again) {
		b->tally_again = 0;
		berth_tally(b);
	}
}

void berth_tally(struct berth *b)
{
	static const struct init_call_ops on = { .answer = tallied };

	/* One list at a time is told; that of look_inside() is soon over. */
	if (b->tally.line)
		b->tally_again = 1;
	else if (init_conn_is_open(&b->line))
		init_conn_request(&b->line, &b->tally, &on, WIRE_EXECS, 0);
}

/* Those that run, and that we do not know of. */
void berth_restore_runs(struct berth *b)
{
	struct store_runs rows = { 0 };
	struct err e;

	ledger_settle(&b->fleet->ledger);
	if (store_run_running(b->fleet->store, b->row.id, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++)
		if (!run_find(b, rows.v[i].id))
			run_restore(b, &rows.v[i]);
	store_runs_fini(&rows);
	if (b->runs)
		berth_tally(b);
}

/* How long it has been idle, as far as that was written down. */
static void set_active(struct berth *b)
{
	int64_t idle_ns = b->row.idle_since_ns ? fleet_now_ns() - b->row.idle_since_ns : 0;
	uint64_t now = loop_now_ms(), idle = idle_ns > 0 ? (uint64_t)idle_ns / 1000000 : 0;

	b->active_ms = idle < now ? now - idle : 0;
}

static void reached(struct berth *b, const struct wire_box *box)
{
	b->late = 0;
	berth_take_box(b, box);
	berth_claim(b);
	berth_become(b, b->row.state == STORE_BOX_KEPT ? BERTH_KEPT : BERTH_RUNNING);
	gate_open(b);
	set_active(b);
	berth_restore_runs(b);
	fleet_call_hooks(b->fleet, restored, b);
	berth_set_clock(b);
	b->fleet->figures.restored++;
	berth_restored(b);
	berth_going(b);
	berth_take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT && !b->rebooting) /* its end had begun */
		berth_end(b, b->because, NULL);
	else
		berth_end_if_done(b);
}

/* It ended while nobody looked; the keeper may still know how. */
static void not_there(struct berth *b, const struct err *e)
{
	b->late = 0;
	berth_restore_runs(b);
	berth_become(b, BERTH_RUNNING);
	b->died = 1;
	berth_tell(&b->made, b, e);
	/* The keeper ends boxes whose time is over, and one that has been started since does not know why. */
	berth_end(b, b->row.state == STORE_BOX_RUNNING && berth_left_ms(b) == 0 ? CAUSE_LIFETIME : CAUSE_EXIT, NULL);
}

/* Its init takes no connection now, because it is frozen or flooded. That is no reason to end it,
 * nor one for everybody else to wait. */
static void too_late(struct berth *b, const struct err *e)
{
	struct err busy = { 0 };

	err_set(&busy, ERR_SYS, "box %s does not answer: %.100s", b->row.id, e ? e->msg : "");
	busy.sys = EBUSY;
	b->late = 1;
	timer_set(&b->clock, AGAIN_MS);
	berth_restored(b);
	berth_tell(&b->made, b, &busy);
}

static void on_opened(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;
	struct err own;

	(void)len;
	b->asking = NULL;
	if (f && *fd >= 0 && berth_open_line(b, steal_fd(fd), &own) == 0)
		reached(b, (const struct wire_box *)f);
	else if (e && berth_is_lost(e))
		not_there(b, e);
	else
		too_late(b, e);
}

void berth_ask_to_open(struct berth *b)
{
	b->asking = keeper_client_request_box(&b->fleet->office, WIRE_OPEN, 0, b->row.id, WIRE_BOX, on_opened, b);
}

/* One that was paused is asked to be so again: that also tells whether it is there. */
static void on_still(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f && berth_is_lost(e)) {
		not_there(b, e);
		return;
	}
	if (!f) {
		b->late = 1;
		timer_set(&b->clock, AGAIN_MS);
		berth_restored(b);
		return;
	}
	b->late = 0;
	berth_become(b, BERTH_PAUSED);
	berth_set_clock(b);
	b->fleet->figures.restored++;
	berth_restored(b);
	berth_tell(&b->made, b, NULL);
	berth_take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT) /* its end had begun */
		berth_end(b, b->because, NULL);
}

static void ask_for(struct berth *b)
{
	if (b->row.state == STORE_BOX_PAUSED)
		b->asking = berth_ask_freeze(b, 0, on_still);
	else
		berth_ask_to_open(b);
}

void berth_open_again(struct berth *b)
{
	/* When a renewed one was used last, the front before us knew: it gets its time once more. */
	if (b->row.state == STORE_BOX_RUNNING && berth_left_ms(b) == 0 && !berth_renews(&b->row)) {
		berth_restore_runs(b);
		berth_end(b, CAUSE_LIFETIME, NULL);
		return;
	}
	if (!b->asking)
		ask_for(b);
}

void berth_restore(struct fleet *f, struct store_box *take_row, struct berth_wait *w)
{
	struct berth *b = berth_new(f);

	b->row = *take_row;
	b->told.then = WIRE_THENS;
	b->ephemeral = berth_is_marked(&b->row, BERTH_EPHEMERAL);
	b->nobodys = berth_is_marked(&b->row, BERTH_INSTALL);
	berth_enter(b);
	if (w)
		berth_wait_for(b, &b->made, w);
	if (strcmp(b->row.boot, f->boot) != 0) { /* the machine was started anew */
		b->state = BERTH_ENDING;
		b->fleet->ending++;
		berth_restore_runs(b);
		b->because = CAUSE_HOST;
		berth_finish(b, NULL);
		return;
	}
	f->restoring++;
	b->restoring = 1;
	ask_for(b);
}

void berth_catch_up(struct berth *b)
{
	if (b->state != BERTH_RUNNING && !berth_is_stored(b))
		return;
	berth_reread(b);
	if (b->state == BERTH_PAUSED) {
		berth_set_clock(b);
		return;
	}
	berth_restore_runs(b);
	fleet_call_hooks(b->fleet, resynced, b);
	berth_set_clock(b);
	berth_end_if_done(b);
}
