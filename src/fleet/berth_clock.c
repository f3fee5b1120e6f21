/* berth_clock.c - a berth's one timer: what is due next of its lifetime, its idle time, the time for
 * which it is stored. Another front may have changed these; the row tells. */
#include "fleet/berth_life.h"

enum {
	TIMER_MAX_MS = 1000 * 3600,
	LOOK_MS = 5000, /* an init that does not tell what goes on in it is idle, too */
};

static uint64_t until(int64_t deadline_ns)
{
	int64_t left = deadline_ns - fleet_now_ns();

	return left > 0 ? (uint64_t)left / 1000000 + 1 : 0;
}

uint64_t berth_left_ms(const struct berth *b)
{
	return b->row.ends_ns ? until(b->row.ends_ns) : UINT64_MAX;
}

static uint64_t idle_left_ms(const struct berth *b)
{
	uint64_t since = loop_now_ms() - b->active_ms;

	if (!b->row.idle_ms || b->busy)
		return UINT64_MAX;
	return since >= b->row.idle_ms ? 0 : b->row.idle_ms - since;
}

/* That it is idle is written down after a quarter of the time: a restart then lengthens the whole by
 * no more than that, and a box in use costs no writes. */
static uint64_t mark_left_ms(const struct berth *b)
{
	uint64_t since = loop_now_ms() - b->active_ms;

	if (!b->row.idle_ms || b->busy || b->row.idle_since_ns)
		return UINT64_MAX;
	return since >= b->row.idle_ms / 4 ? 0 : b->row.idle_ms / 4 - since;
}

static void mark_idle(struct berth *b, int64_t since_ns)
{
	struct err e;

	b->row.idle_since_ns = since_ns;
	/* Unwritten it only lives longer after a restart. */
	(void)!store_box_set_times(b->fleet->store, b->row.id, b->row.ends_ns, since_ns,
				   b->row.kept_until_ns, &e);
}

static uint64_t kept_left_ms(const struct berth *b)
{
	return b->row.kept_until_ns ? until(b->row.kept_until_ns) : UINT64_MAX;
}

/* Its own time stands still; only that for which it is stored goes on. */
int berth_is_stored(const struct berth *b)
{
	return b->state == BERTH_KEPT || b->state == BERTH_PAUSED;
}

void berth_set_clock(struct berth *b)
{
	uint64_t ms, idle, mark;

	if (b->state != BERTH_RUNNING && !berth_is_stored(b))
		return;
	ms = berth_is_stored(b) ? kept_left_ms(b) : berth_left_ms(b);
	idle = berth_is_stored(b) ? UINT64_MAX : idle_left_ms(b);
	mark = berth_is_stored(b) ? UINT64_MAX : mark_left_ms(b);
	idle = mark < idle ? mark : idle;
	if (idle < ms)
		ms = idle;
	if (ms == UINT64_MAX)
		timer_clear(&b->clock);
	else
		timer_set(&b->clock, ms < TIMER_MAX_MS ? ms : TIMER_MAX_MS);
}

void berth_touch(struct berth *b)
{
	b->active_ms = loop_now_ms();
	if (b->row.idle_since_ns)
		mark_idle(b, 0);
}

void berth_hold(struct berth *b)
{
	b->busy++;
	b->holds++;
	berth_touch(b);
}

void berth_release(struct berth *b)
{
	b->busy--;
	berth_touch(b);
	if (b->row.idle_ms && !b->busy)
		berth_set_clock(b);
}

/* Output that nobody reads is activity, too: the ends of the logs tell. */
static void looked(struct berth *b)
{
	line_unlisten(&b->look);
	if (b->look_tip != b->output_tip || b->busy) {
		b->output_tip = b->look_tip;
		berth_touch(b);
		berth_set_clock(b);
	} else {
		berth_time_out(b, CAUSE_IDLE, b->row.idle_ms);
	}
}

static void look_each(struct listener *x, const struct frame *f, size_t len, int *fd)
{
	struct berth *b = loop_owner(x, struct berth, look);
	const struct wire_exec *exec = (const struct wire_exec *)f;

	(void)len;
	(void)fd;
	if (f->type == WIRE_EXEC)
		b->look_tip += exec->tip[0] + exec->tip[1];
	else if (f->type == WIRE_DONE)
		looked(b);
}

static void look_inside(struct berth *b)
{
	static const struct listen_events on = { .answer = look_each };

	if (b->look.line) { /* asked, and waited for the answer long enough */
		line_unlisten(&b->look);
		berth_time_out(b, CAUSE_IDLE, b->row.idle_ms);
		return;
	}
	b->look_tip = 0;
	line_ask(&b->line, &b->look, &on, WIRE_EXECS, 0);
	timer_set(&b->clock, LOOK_MS);
}

/* Another front may have changed it, or ended it. */
void berth_reread(struct berth *b)
{
	struct store_box row = { 0 };
	struct err e;

	if (store_box_get(b->fleet->store, b->row.id, &row, &e) < 0)
		return;
	if (row.state == STORE_BOX_GONE) { /* its end is on its way to us, too */
		store_box_fini(&row);
		return;
	}
	store_box_fini(&b->row);
	b->row = row;
	if (b->state == BERTH_RUNNING && row.state == STORE_BOX_KEPT)
		berth_become(b, BERTH_KEPT);
	else if (b->state == BERTH_RUNNING && row.state == STORE_BOX_PAUSED)
		berth_become(b, BERTH_PAUSED);
	else if (berth_is_stored(b) && !b->moving && row.state == STORE_BOX_RUNNING) {
		berth_become(b, line_is_open(&b->line) ? BERTH_RUNNING : BERTH_MAKING);
		if (b->state == BERTH_MAKING)
			berth_open_again(b);
	}
}

void berth_clock_due(struct timer *t)
{
	struct berth *b = loop_owner(t, struct berth, clock);

	if (!b->fleet->alone) {
		berth_reread(b);
		berth_touch(b); /* who knows what goes on there */
	}
	if (b->late)
		berth_open_again(b);
	else if (berth_is_stored(b) && kept_left_ms(b) == 0)
		berth_end(b, b->because ? b->because : CAUSE_IDLE, NULL);
	else if (b->state == BERTH_RUNNING && berth_left_ms(b) == 0)
		berth_time_out(b, CAUSE_LIFETIME, b->row.lifetime_ms);
	else if (b->state == BERTH_RUNNING && idle_left_ms(b) == 0)
		look_inside(b);
	else {
		if (b->state == BERTH_RUNNING && mark_left_ms(b) == 0)
			mark_idle(b, fleet_now_ns() -
					     (int64_t)(loop_now_ms() - b->active_ms) * 1000000);
		berth_set_clock(b);
	}
}

int berth_changed(struct berth *b, struct err *e)
{
	if (store_box_update(b->fleet->store, &b->row, e) < 0)
		return err_in(e, "box %s", b->row.id);
	berth_set_clock(b);
	return 0;
}
