/* box_timers.c - the one timer of a box, set to the next of its lifetime, idle timeout and
 * retention. Another server may have changed these; the row has the present values. */
#include "fleet/box_internal.h"
#include "base/clock.h"
#include "wire/sock.h"

#include <stdio.h>

#include <string.h>

enum {
	TIMER_MAX_MS = 1000 * 3600,
	LOOK_MS = 5000, /* a box whose init does not answer in this time counts as idle */
	TELL_MS = 1000, /* the deadline of a box that ends earlier is not sent to the keeper */
};

static uint64_t timers_until(int64_t deadline_ns)
{
	int64_t left = deadline_ns - fleet_now_ns();

	return left > 0 ? (uint64_t)left / 1000000 + 1 : 0;
}

uint64_t box_left_ms(const struct box *b)
{
	return b->row.ends_ns ? timers_until(b->row.ends_ns) : UINT64_MAX;
}

int box_renews(const struct store_box *row)
{
	json_t *surface = row->surface ? json_loads(row->surface, 0, NULL) : NULL;
	const char *from = json_string_value(json_object_get(surface, "lifetime_from"));
	int renews = from && !strcmp(from, "use");

	json_decref(surface);
	return renews;
}

int64_t box_ends_ns(const struct box *b)
{
	uint64_t since = b->busy ? 0 : loop_now_ms() - b->active_ms;
	int64_t renewed = fleet_now_ns() + ((int64_t)b->row.lifetime_ms - (int64_t)since) * 1000000;

	if (b->state != BOX_RUNNING || !b->row.ends_ns || renewed <= b->row.ends_ns)
		return b->row.ends_ns;
	return box_renews(&b->row) ? renewed : b->row.ends_ns;
}

/* 1: the box was used since ends_ns was set, and ends_ns is set again. 0: its lifetime
 * has ended. */
static int box_renew(struct box *b)
{
	int64_t ends_ns = box_ends_ns(b);
	struct err e;

	if (ends_ns <= b->row.ends_ns || !timers_until(ends_ns))
		return 0;
	b->row.ends_ns = ends_ns;
	/* If the write fails, the next server finds a lifetime that has ended, and renews it,
	 * because it does not know the last use. */
	(void)!store_box_set_times(b->fleet->store, b->row.id, ends_ns, b->row.idle_since_ns,
				   b->row.kept_until_ns, &e);
	return 1;
}

static uint64_t idle_left_ms(const struct box *b)
{
	uint64_t since = loop_now_ms() - b->active_ms;

	if (!b->row.idle_ms || b->busy)
		return UINT64_MAX;
	return since >= b->row.idle_ms ? 0 : b->row.idle_ms - since;
}

/* The start of the idle time is written after a quarter of the timeout: so a restart prolongs it by
 * a quarter at most, and a box in use costs no writes. */
static uint64_t mark_left_ms(const struct box *b)
{
	uint64_t since = loop_now_ms() - b->active_ms;

	if (!b->row.idle_ms || b->busy || b->row.idle_since_ns)
		return UINT64_MAX;
	return since >= b->row.idle_ms / 4 ? 0 : b->row.idle_ms / 4 - since;
}

static void mark_idle(struct box *b, int64_t since_ns)
{
	struct err e;

	b->row.idle_since_ns = since_ns;
	/* If the write fails, the box only lives longer after a restart. */
	(void)!store_box_set_times(b->fleet->store, b->row.id, b->row.ends_ns, since_ns,
				   b->row.kept_until_ns, &e);
}

static uint64_t kept_left_ms(const struct box *b)
{
	return b->row.kept_until_ns ? timers_until(b->row.kept_until_ns) : UINT64_MAX;
}

/* Its lifetime does not elapse; only its retention does. */
int box_is_stored(const struct box *b)
{
	return b->state == BOX_STOPPED || b->state == BOX_PAUSED;
}

/* The action of the keeper at the deadline if no server has acted. */
static struct wire_then deadline_of(const struct box *b)
{
	static const uint32_t then[] = { [STORE_TIMEOUT_KILL] = WIRE_THEN_END,
					 [STORE_TIMEOUT_KEEP] = WIRE_THEN_STOP,
					 [STORE_TIMEOUT_PAUSE] = WIRE_THEN_FREEZE };
	int stored = box_is_stored(b);
	int64_t ends_ns = stored ? b->row.kept_until_ns : b->row.ends_ns;
	int64_t left_ns = ends_ns - fleet_now_ns();

	if (!ends_ns)
		return (struct wire_then){ 0 };
	return (struct wire_then){
		.at_ns = clock_ns(CLOCK_BOOTTIME) + (left_ns > 0 ? (uint64_t)left_ns : 0),
		.keep_ms = b->row.retention_ms == STORE_FOREVER ? UINT64_MAX : b->row.retention_ms,
		.then = stored ? WIRE_THEN_END : then[b->row.on_timeout]
	};
}

static int deadline_is_sent(const struct box *b, const struct wire_then *now)
{
	int64_t apart = (int64_t)(now->at_ns - b->told.at_ns), second = 1000000000;

	return b->told.then == now->then && b->told.keep_ms == now->keep_ms &&
	       !b->told.at_ns == !now->at_ns && apart < second && apart > -second;
}

/* Time until the deadline is sent to the keeper: most boxes are for one run, and end
 * before that. */
static uint64_t tell_left_ms(struct box *b)
{
	uint64_t age = loop_now_ms() - b->asked_ms;

	return b->asked_ms && age < TELL_MS ? TELL_MS - age : 0;
}

static uint64_t tell_keeper(struct box *b)
{
	struct wire_deadline ask = { .head = sock_head(WIRE_DEADLINE, 0), .what = deadline_of(b) };
	uint64_t left = deadline_is_sent(b, &ask.what) ? UINT64_MAX : tell_left_ms(b);

	if (left)
		return left;
	b->told = ask.what;
	/* The keeper does not see what renews a lifetime. A use just before the end would extend it
	 * by a whole lifetime; so the deadline of the keeper is that much later: without a server
	 * the box may live too long, but never ends too early. */
	if (ask.what.at_ns && !box_is_stored(b) && box_renews(&b->row))
		ask.what.at_ns += b->row.lifetime_ms * UINT64_C(1000000);
	snprintf(ask.id, sizeof(ask.id), "%s", box_keeper_id(b));
	keeper_client_request(&b->fleet->keeper, &ask, sizeof(ask), WIRE_DONE, NULL, NULL);
	return UINT64_MAX;
}

void box_set_clock(struct box *b)
{
	uint64_t ms, idle, mark, tell;

	if (b->state != BOX_RUNNING && !box_is_stored(b))
		return;
	ms = box_is_stored(b) ? kept_left_ms(b) : box_left_ms(b);
	idle = box_is_stored(b) ? UINT64_MAX : idle_left_ms(b);
	mark = box_is_stored(b) ? UINT64_MAX : mark_left_ms(b);
	idle = mark < idle ? mark : idle;
	if (idle < ms)
		ms = idle;
	tell = tell_keeper(b);
	if (tell < ms)
		ms = tell;
	if (ms == UINT64_MAX)
		timer_clear(&b->clock);
	else
		timer_set(&b->clock, ms < TIMER_MAX_MS ? ms : TIMER_MAX_MS);
}

void box_touch(struct box *b)
{
	b->active_ms = loop_now_ms();
	if (b->row.idle_since_ns)
		mark_idle(b, 0);
}

void box_hold(struct box *b)
{
	b->busy++;
	b->holds++;
	box_touch(b);
}

void box_release(struct box *b)
{
	b->busy--;
	box_touch(b);
	if (b->row.idle_ms && !b->busy)
		box_set_clock(b);
}

/* Output counts as activity even without a reader: compares the ends of the logs. */
static void timers_looked(struct box *b)
{
	init_conn_remove_call(&b->look);
	if (b->look_tip != b->output_tip || b->busy) {
		b->output_tip = b->look_tip;
		box_touch(b);
		box_set_clock(b);
	} else {
		box_on_timeout(b, CAUSE_IDLE, b->row.idle_ms);
	}
}

static void look_each(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct box *b = loop_owner(x, struct box, look);
	const struct wire_exec *exec = (const struct wire_exec *)f;

	(void)len;
	(void)fd;
	if (f->type == WIRE_EXEC)
		b->look_tip += exec->tip[0] + exec->tip[1];
	else if (f->type == WIRE_DONE)
		timers_looked(b);
}

static void look_inside(struct box *b)
{
	static const struct init_call_ops on = { .answer = look_each };

	if (b->look.line) { /* the request was not answered in time */
		init_conn_remove_call(&b->look);
		box_on_timeout(b, CAUSE_IDLE, b->row.idle_ms);
		return;
	}
	b->look_tip = 0;
	init_conn_request(&b->line, &b->look, &on, WIRE_EXECS, 0);
	timer_set(&b->clock, LOOK_MS);
}

/* Another server may have changed or ended the box. */
void box_reread(struct box *b)
{
	struct store_box row = { 0 };
	struct err e;

	if (store_box_get(b->fleet->store, b->row.id, &row, &e) < 0)
		return;
	if (row.state == STORE_BOX_DELETED) { /* the keeper will report its end here, too */
		store_box_fini(&row);
		return;
	}
	store_box_fini(&b->row);
	b->row = row;
	box_read_marks(b);
	if (b->state == BOX_RUNNING && row.state == STORE_BOX_STOPPED)
		box_set_state(b, BOX_STOPPED);
	else if (b->state == BOX_RUNNING && row.state == STORE_BOX_PAUSED)
		box_set_state(b, BOX_PAUSED);
	else if (box_is_stored(b) && !b->moving && row.state == STORE_BOX_RUNNING) {
		box_set_state(b, init_conn_is_open(&b->line) ? BOX_RUNNING : BOX_MAKING);
		if (b->state == BOX_MAKING)
			box_open_again(b);
	}
}

void box_clock_due(struct timer *t)
{
	struct box *b = loop_owner(t, struct box, clock);

	if (!b->fleet->alone) {
		box_reread(b);
		box_touch(b); /* activity is unknown: assume there was some */
	}
	if (b->late)
		box_open_again(b);
	else if (box_is_stored(b) && kept_left_ms(b) == 0)
		box_end(b, b->because ? b->because : CAUSE_IDLE, NULL);
	else if (b->state == BOX_RUNNING && box_left_ms(b) == 0 && box_renew(b))
		box_set_clock(b);
	else if (b->state == BOX_RUNNING && box_left_ms(b) == 0)
		box_on_timeout(b, CAUSE_LIFETIME, b->row.lifetime_ms);
	else if (b->state == BOX_RUNNING && idle_left_ms(b) == 0)
		look_inside(b);
	else {
		if (b->state == BOX_RUNNING && mark_left_ms(b) == 0)
			mark_idle(b, fleet_now_ns() -
					     (int64_t)(loop_now_ms() - b->active_ms) * 1000000);
		box_set_clock(b);
	}
}

int box_changed(struct box *b, struct err *e)
{
	if (store_box_update(b->fleet->store, &b->row, e) < 0)
		return err_in(e, "box %s", b->row.id);
	box_set_clock(b);
	return 0;
}
