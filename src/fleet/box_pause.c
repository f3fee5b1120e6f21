/* box_pause.c - stops a box (its programs end, its files are kept), pauses and resumes it.
 *
 *   server                       keeper                    the row
 *                                                          paused
 *   FREEZE                 --->  its cgroups are frozen
 *   ...
 *   FREEZE_OFF             --->  and thawed
 *                                                          running
 *
 * The row is set to "paused" before the freeze and to "running" after the thaw: if the server dies
 * in between, the row is "paused", and the next server sends FREEZE again. */
#include "fleet/box_internal.h"
#include "fleet/box_secrets.h"
#include "fleet/charge.h"

#include <errno.h>

/* ---- stopped ---- */

static void pause_kept(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct box *b = loop_owner(x, struct box, look);

	(void)f;
	(void)len;
	(void)fd;
	init_conn_remove_call(x);
	if (b->rebooting)
		box_wake(b);
	b->rebooting = 0;
	box_set_clock(b);
	box_notify(&b->made, b, NULL);
}

void box_store_for(struct box *b, enum store_box_state as)
{
	b->row.state = as;
	b->row.stored_ns = fleet_now_ns();
	b->row.kept_until_ns = b->row.retention_ms == STORE_FOREVER
				       ? 0
				       : b->row.stored_ns + (int64_t)b->row.retention_ms * 1000000;
}

static void pause_keep(struct box *b, enum cause because)
{
	static const struct init_call_ops on = { .answer = pause_kept };
	struct err e;

	box_set_state(b, BOX_STOPPED);
	b->because = because;
	box_store_for(b, STORE_BOX_STOPPED);
	if (box_changed(b, &e) < 0) { /* a box whose row cannot be written cannot be kept */
		box_end(b, because, NULL);
		return;
	}
	init_conn_remove_call(&b->look);
	init_conn_request(&b->line, &b->look, &on, WIRE_STOP, 0);
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.stopped",
		   json_pack("{s:s}", "cause", cause_name(because)));
}

/* ---- paused ---- */

struct keeper_call *box_request_freeze(struct box *b, uint16_t flags,
				       void (*done)(void *, const struct frame *, size_t, int *,
						    const struct err *))
{
	return keeper_client_request_box(&b->fleet->keeper, WIRE_FREEZE, flags, box_keeper_id(b),
					 WIRE_DONE, done, b);
}

int box_is_lost(const struct err *e)
{
	return e->kind == ERR_NOT_FOUND || e->sys == ENOENT || e->sys == ECONNREFUSED;
}

/* The box runs again, and its lifetime starts again. */
void box_set_going(struct box *b)
{
	struct err e;

	b->because = CAUSE_EXIT;
	b->row.started_ns = fleet_now_ns();
	if (b->row.state == STORE_BOX_PAUSED && b->row.idle_since_ns)
		b->paused_ns = b->row.started_ns - b->row.idle_since_ns;
	b->row.state = STORE_BOX_RUNNING;
	b->row.kept_until_ns = b->row.idle_since_ns = 0;
	if (b->row.lifetime_ms)
		b->row.ends_ns = b->row.started_ns + (int64_t)b->row.lifetime_ms * 1000000;
	/* On failure the box is paused again after a restart, and charged then. */
	if (box_changed(b, &e) == 0)
		charge_stored(b);
}

/* If freezing failed, the box keeps running; if its lifetime has ended, it is stopped and only its
 * files are kept. */
static void not_frozen(struct box *b, const struct err *e)
{
	enum cause because = b->because;
	struct err own;

	box_set_state(b, BOX_RUNNING);
	if (box_is_lost(e)) {
		b->died = 1;
		box_notify(&b->made, b, e);
		box_end(b, CAUSE_EXIT, NULL);
		return;
	}
	b->because = CAUSE_EXIT;
	b->row.state = STORE_BOX_RUNNING;
	b->row.kept_until_ns = b->row.idle_since_ns = 0;
	if (because != CAUSE_EXIT) {
		box_notify(&b->made, b, e);
		box_notify(&b->risen, b, e);
		pause_keep(b, because);
		return;
	}
	(void)!box_changed(b, &own);
	box_notify(&b->made, b, e);
	box_notify(&b->risen, b, NULL); /* the waiters needed a running box */
}

/* A resume was requested while the box was being paused. */
void box_pause_rise(struct box *b)
{
	struct box_wait *w;
	struct err e;

	if (!b->rising)
		return;
	b->rising = 0;
	while ((w = b->risen)) {
		b->risen = w->next;
		box_wait_for(b, &b->made, w);
	}
	if (box_resume(b, b->rising_reboot, NULL, &e) < 0)
		box_notify(&b->made, b, &e);
}

static void on_frozen(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	b->moving = STILL;
	if (!f) {
		not_frozen(b, e);
		return;
	}
	box_set_clock(b);
	if (b->fleet->on_pause)
		b->fleet->on_pause(b->fleet, b);
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.paused",
		   b->because == CAUSE_EXIT ? NULL
					    : json_pack("{s:s}", "cause", cause_name(b->because)));
	box_notify(&b->made, b, NULL);
	box_pause_rise(b);
}

static int pause_freeze(struct box *b, enum cause because, struct err *e)
{
	box_store_for(b, STORE_BOX_PAUSED);
	b->row.idle_since_ns = fleet_now_ns();
	if (box_changed(b, e) < 0) {
		b->row.state = STORE_BOX_RUNNING;
		b->row.kept_until_ns = b->row.idle_since_ns = 0;
		return -1;
	}
	init_conn_remove_call(&b->look); /* a frozen init does not answer */
	box_set_state(b, BOX_PAUSED);
	timer_clear(&b->clock);
	b->because = because;
	b->moving = PAUSING;
	b->rising = 0;
	b->asking = box_request_freeze(b, 0, on_frozen);
	return 0;
}

int box_pause(struct box *b, int memory, struct box_wait *w, struct err *e)
{
	if (b->state != BOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       box_state_name(b->state));
	if (!b->row.retention_ms)
		/* A client that pauses a box will resume it later. */
		b->row.retention_ms = STORE_FOREVER;
	if (memory && pause_freeze(b, CAUSE_EXIT, e) < 0)
		return -1;
	if (w)
		box_wait_for(b, &b->made, w);
	if (!memory)
		pause_keep(b, CAUSE_IDLE);
	return 0;
}

/* The box is thawed: resumes everything, or its files only. */
void box_start_pending(struct box *b)
{
	if (b->rebooting)
		pause_keep(b, CAUSE_IDLE); /* pause_kept() continues */
	else
		box_notify(&b->made, b, NULL);
}

static void on_thawed(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	b->moving = STILL;
	if (!f && box_is_lost(e)) {
		b->died = 1;
		box_notify(&b->made, b, e);
		box_end(b, CAUSE_EXIT, NULL);
		return;
	}
	if (!f) {
		box_set_clock(b);
		box_notify(&b->made, b, e);
		return;
	}
	box_set_going(b);
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.resumed", NULL);
	if (!init_conn_is_open(&b->line)) { /* paused by an earlier server: restore it as after a
					     * restart */
		box_set_state(b, BOX_MAKING);
		box_request_open(b);
		return;
	}
	box_set_state(b, BOX_RUNNING);
	fleet_call_hooks(b->fleet, resumed, b);
	box_secrets_place(b, NULL); /* one may have changed meanwhile */
	box_touch(b);
	box_set_clock(b);
	box_start_pending(b);
}

static int resume_disk(struct box *b, struct box_wait *w, struct err *e)
{
	if (box_disk_resume(b, e) == 0)
		return 0;
	b->moving = STILL;
	if (w)
		box_wait_cancel(w);
	box_set_clock(b);
	return -1;
}

int box_resume(struct box *b, int reboot, struct box_wait *w, struct err *e)
{
	if (b->state == BOX_STOPPED) {
		box_wake(b);
		if (w)
			w->done(w, b, NULL);
		return 0;
	}
	if (b->state == BOX_PAUSED && b->moving == PAUSING) {
		b->rising = 1;
		b->rising_reboot = reboot;
		if (w)
			box_wait_for(b, &b->risen, w);
		return 0;
	}
	if (b->state != BOX_PAUSED)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       box_state_name(b->state));
	if (w)
		box_wait_for(b, &b->made, w);
	if (b->moving == RESUMING) /* already requested: one answer for all */
		return 0;
	b->moving = RESUMING;
	b->rebooting = reboot;
	timer_clear(&b->clock);
	if (b->row.image[0])
		return resume_disk(b, w, e);
	b->asking = box_request_freeze(b, WIRE_FREEZE_OFF, on_thawed);
	return 0;
}

void box_on_timeout(struct box *b, enum cause because, uint64_t ms)
{
	struct fleet *f = b->fleet;

	if (b->state != BOX_RUNNING || b->row.on_timeout != STORE_TIMEOUT_PAUSE ||
	    !f->pause_at_timeout || !f->pause_at_timeout(f, b, because, ms))
		box_freeze_at_timeout(b, because, ms);
}

void box_freeze_at_timeout(struct box *b, enum cause because, uint64_t ms)
{
	struct err e;

	if (b->state != BOX_RUNNING)
		return;
	b->because_ms = ms;
	if (b->row.on_timeout == STORE_TIMEOUT_PAUSE && pause_freeze(b, because, &e) == 0)
		return;
	if (b->row.on_timeout == STORE_TIMEOUT_KILL)
		box_end(b, because, NULL);
	else
		pause_keep(b, because);
}

void box_wake(struct box *b)
{
	box_touch(b);
	if (b->state != BOX_STOPPED)
		return;
	box_set_state(b, BOX_RUNNING);
	box_set_going(b);
	fleet_emit(b->fleet, b->row.team, b->row.id, "box.woken", NULL);
}
