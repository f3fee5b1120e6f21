/* berth.c - see berth.h.
 *
 *   front                      keeper                 init
 *   CREATE               --->  makes or takes one
 *                        <---  BOX + a connection
 *   row into the store                                (would end with the connection: not claimed)
 *   FORGET (nothing)     ------------------------->   claimed: it outlives us
 *
 * The row is written before the box hears a word from us. A front that dies before that leaves a
 * box that ends by itself; one that dies after it leaves a row that names the box. */
#include "fleet/berth.h"
#include "base/own.h"
#include "fleet/context.h"
#include "fleet/past.h"
#include "fleet/reuse.h"
#include "store/runs.h"
#include "store/volumes.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	TIMER_MAX_MS = 1000 * 3600,
	AGAIN_MS = 500, /* until a box that could not be reached is asked for again */
	LOOK_MS = 5000, /* an init that does not tell what goes on in it is idle, too */
};

static const struct {
	const char *name;
	unsigned next;
} states[] = {
	[BERTH_MAKING] = { "making", 1u << BERTH_RUNNING | 1u << BERTH_KEPT | 1u << BERTH_PAUSED |
					     1u << BERTH_ENDING },
	[BERTH_RUNNING] = { "running", 1u << BERTH_KEPT | 1u << BERTH_PAUSED | 1u << BERTH_ENDING },
	[BERTH_KEPT] = { "kept", 1u << BERTH_RUNNING | 1u << BERTH_ENDING },
	[BERTH_PAUSED] = { "paused", 1u << BERTH_RUNNING | 1u << BERTH_MAKING | 1u << BERTH_ENDING },
	[BERTH_ENDING] = { "ending", 1u << BERTH_GONE },
	[BERTH_GONE] = { "gone", 0 },
};
_Static_assert(ARRAY_LEN(states) == BERTH_STATES, "a state without a row");

const char *berth_state_name(enum berth_state s)
{
	return states[s].name;
}

static void become(struct berth *b, enum berth_state next)
{
	if (!(states[b->state].next >> next & 1))
		abort(); /* our bug */
	b->state = next;
	if (next == BERTH_ENDING)
		b->fleet->ending++;
	else if (next == BERTH_GONE)
		b->fleet->ending--;
}

/* ---- waiting ---- */

static void await(struct berth *b, struct berth_wait **list, struct berth_wait *w)
{
	w->berth = b;
	w->next = *list;
	*list = w;
}

static int drop_wait(struct berth_wait **list, struct berth_wait *w)
{
	for (; *list; list = &(*list)->next)
		if (*list == w) {
			*list = w->next;
			return 1;
		}
	return 0;
}

void berth_await(struct berth *b, struct berth_wait *w)
{
	await(b, &b->made, w);
}

void berth_wait_cancel(struct berth_wait *w)
{
	if (w->berth && !drop_wait(&w->berth->made, w) && !drop_wait(&w->berth->risen, w))
		drop_wait(&w->berth->ended, w);
	w->berth = NULL;
}

static void tell(struct berth_wait **list, struct berth *b, const struct err *e)
{
	while (*list) {
		struct berth_wait *w = *list;

		*list = w->next;
		w->berth = NULL;
		w->done(w, b, e);
	}
}

/* ---- the table ---- */

static void enter(struct berth *b)
{
	struct berth **slot = &b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS];

	b->next = *slot;
	*slot = b;
	b->fleet->count++;
}

static int take_out(struct berth **at, const struct berth *b)
{
	for (; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			return 1;
		}
	return 0;
}

static void leave(struct berth *b)
{
	if (take_out(&b->fleet->making, b))
		return;
	if (take_out(&b->fleet->slots[id_hash(b->row.id) % FLEET_SLOTS], b))
		b->fleet->count--;
}

void berth_free(struct berth *b)
{
	leave(b);
	contexts_free(b);
	while (b->runs) {
		struct run *r = b->runs;

		b->runs = r->next;
		run_free(r);
	}
	past_free(b);
	office_forget(&b->fleet->office, b->asking);
	reuses_fail(b);
	/* That it has ended can be known here before its line breaks; who still asks must hear of it. */
	if (b->state == BERTH_GONE)
		line_end(&b->line);
	line_close(&b->line);
	inlets_fail(b);
	gate_drop(b);
	timer_fini(&b->clock);
	store_box_fini(&b->row);
	free(b->mounts);
	free(b->layers);
	free(b);
}

/* ---- time ---- */

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
static int is_stored(const struct berth *b)
{
	return b->state == BERTH_KEPT || b->state == BERTH_PAUSED;
}

static void set_clock(struct berth *b)
{
	uint64_t ms, idle, mark;

	if (b->state != BERTH_RUNNING && !is_stored(b))
		return;
	ms = is_stored(b) ? kept_left_ms(b) : berth_left_ms(b);
	idle = is_stored(b) ? UINT64_MAX : idle_left_ms(b);
	mark = is_stored(b) ? UINT64_MAX : mark_left_ms(b);
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
		set_clock(b);
}

/* Output that nobody reads is activity, too: the ends of the logs tell. */
static void looked(struct berth *b)
{
	line_unlisten(&b->look);
	if (b->look_tip != b->output_tip || b->busy) {
		b->output_tip = b->look_tip;
		berth_touch(b);
		set_clock(b);
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

static void open_again(struct berth *b);
static void restore_runs(struct berth *b);

/* Another front may have changed it, or ended it. */
static void reread(struct berth *b)
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
		become(b, BERTH_KEPT);
	else if (b->state == BERTH_RUNNING && row.state == STORE_BOX_PAUSED)
		become(b, BERTH_PAUSED);
	else if (is_stored(b) && !b->moving && row.state == STORE_BOX_RUNNING) {
		become(b, line_is_open(&b->line) ? BERTH_RUNNING : BERTH_MAKING);
		if (b->state == BERTH_MAKING)
			open_again(b);
	}
}


static void clock_due(struct timer *t)
{
	struct berth *b = loop_owner(t, struct berth, clock);

	if (!b->fleet->alone) {
		reread(b);
		berth_touch(b); /* who knows what goes on there */
	}
	if (b->late)
		open_again(b);
	else if (is_stored(b) && kept_left_ms(b) == 0)
		berth_end(b, b->because ? b->because : CAUSE_IDLE, NULL);
	else if (b->state == BERTH_RUNNING && berth_left_ms(b) == 0)
		berth_time_out(b, CAUSE_LIFETIME, b->row.lifetime_ms);
	else if (b->state == BERTH_RUNNING && idle_left_ms(b) == 0)
		look_inside(b);
	else {
		if (b->state == BERTH_RUNNING && mark_left_ms(b) == 0)
			mark_idle(b, fleet_now_ns() -
					     (int64_t)(loop_now_ms() - b->active_ms) * 1000000);
		set_clock(b);
	}
}

int berth_changed(struct berth *b, struct err *e)
{
	if (store_box_update(b->fleet->store, &b->row, e) < 0)
		return err_in(e, "box %s", b->row.id);
	set_clock(b);
	return 0;
}

/* ---- the end ---- */

/* Written before the kill: a front that dies in between leaves the reason to the next. */
void berth_intend(struct berth *b, enum cause because)
{
	struct store *s = b->fleet->store;
	struct err e;
	int grouped;

	if (b->intended)
		return;
	b->intended = 1;
	grouped = store_begin(s, &e) == 0;
	ledger_settle(&b->fleet->ledger); /* init, who could say it again, goes with the box */
	if (because != CAUSE_EXIT) {
		snprintf(b->row.cause, sizeof(b->row.cause), "%s", cause_name(because));
		/* A full disk must not keep a box alive. */
		(void)!store_box_intend(s, b->row.id, b->row.cause, &e);
	}
	if (grouped)
		(void)!store_commit(s, &e);
}

static void take_cause(struct berth *b, const char *name)
{
	if (b->because != CAUSE_EXIT || cause_parse(name, &b->because) < 0)
		return;
	b->because_ms = b->because == CAUSE_LIFETIME ? b->row.lifetime_ms :
			b->because == CAUSE_IDLE     ? b->row.idle_ms :
						       0;
}

/* Whoever began its end wrote why, and it may have been another front. 1: that one was first. */
static int is_buried(struct berth *b)
{
	struct store_box row = { 0 };
	struct err e;
	int gone;

	if (b->because != CAUSE_EXIT)
		return 0; /* we know why, and bury() finds out the rest */
	if (store_box_get(b->fleet->store, b->row.id, &row, &e) < 0)
		return 0;
	take_cause(b, row.cause);
	gone = row.state == STORE_BOX_GONE;
	store_box_fini(&row);
	return gone;
}

/* It ended, and nobody had asked for it; kills for memory that some program died of before do not count. */
static enum cause own_end(const struct berth *b, const struct wire_counted *figures)
{
	if (!figures)
		return CAUSE_HOST;
	if (figures->by_operator == 1)
		return CAUSE_OPERATOR;
	if (figures->over_cpu == 1)
		return CAUSE_CPU;
	return figures->oom_kills != UINT64_MAX && figures->oom_kills > b->seen.oom_kills ?
		       CAUSE_MEMORY :
		       CAUSE_HOST;
}

static int write_end(struct berth *b, enum cause cause, struct fleet_news *news)
{
	struct fleet *f = b->fleet;
	struct err e;

	/* A full disk must not keep a dead box: its row is looked at again after a restart. */
	if (store_box_bury(f->store, b->row.id, cause_name(cause), fleet_now_ns(), &e) < 0 &&
	    e.kind == ERR_NOT_FOUND)
		return -1; /* the other front was faster */
	(void)!store_volume_detach(f->store, b->row.id, &e);
	(void)!store_context_drop(f->store, b->row.id, &e);
	fleet_write(f, b->row.team, b->row.id, "box.ended",
		    json_pack("{s:s}", "cause", cause_name(cause)), news);
	return 0;
}

static void bury(struct berth *b, enum cause cause)
{
	struct fleet *f = b->fleet;
	struct fleet_news news;
	struct err e;
	int grouped = store_begin(f->store, &e) == 0;
	int first = write_end(b, cause, &news) == 0;

	if (grouped)
		(void)!store_commit(f->store, &e);
	if (!first)
		return;
	f->figures.boxes_ended[cause]++;
	fleet_spread(f, &news);
}

static void finish(struct berth *b, const struct wire_counted *figures)
{
	int buried = is_buried(b);
	/* Nobody misses the box of a run that is over. */
	int missed = b->died && !(b->ephemeral && !b->runs);

	become(b, BERTH_GONE);
	gate_close(b);
	timer_clear(&b->clock);
	if (b->made || b->risen) {
		struct err gone;

		err_set(&gone, ERR_NOT_FOUND, "box %s has ended", b->row.id);
		tell(&b->made, b, &gone);
		tell(&b->risen, b, &gone);
	}
	for (struct run *r = b->runs, *next; r; r = next) {
		next = r->next;
		run_box_gone(r, figures);
	}
	if (!buried)
		bury(b, b->because == CAUSE_EXIT && missed ? own_end(b, figures) : b->because);
	leave(b);
	tell(&b->ended, b, NULL);
	berth_free(b);
}

/* One less to wait for before we serve. */
static void restored(struct berth *b)
{
	if (!b->restoring)
		return;
	b->restoring = 0;
	fleet_restored(b->fleet);
}

static void on_end(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	(void)e; /* it is gone already, which is what we want */
	b->asking = NULL;
	finish(b, f ? (const struct wire_counted *)f : NULL);
}

void berth_end(struct berth *b, enum cause because, struct berth_wait *w)
{
	if (w)
		await(b, &b->ended, w);
	if (b->state >= BERTH_ENDING)
		return;
	if (b->state == BERTH_MAKING && !b->late) { /* on_made() looks at this */
		b->because = because;
		return;
	}
	if (b->state == BERTH_PAUSED && !line_is_open(&b->line))
		restore_runs(b); /* those of it that nobody asked for yet end, too */
	become(b, BERTH_ENDING);
	b->because = because;
	berth_intend(b, because);
	restored(b);
	timer_clear(&b->clock);
	office_forget(&b->fleet->office, b->asking);
	/* The last figures explain how programs ended that end with it, or why it did. */
	b->asking = office_ask_box(&b->fleet->office, WIRE_KILL,
				   b->runs || because == CAUSE_EXIT ? WIRE_KILL_FIGURES : 0,
				   b->row.id, WIRE_GONE, on_end, b);
}

/* Its init hung up: it died, and the box with it. */
static void line_gone(struct line *l, const struct err *why)
{
	struct berth *b = l->user;

	(void)why;
	inlets_fail(b);
	if (b->state != BERTH_RUNNING && !is_stored(b))
		return;
	b->died = 1;
	berth_end(b, CAUSE_EXIT, NULL);
}

static void kept(struct listener *x, const struct frame *f, size_t len, int *fd)
{
	struct berth *b = loop_owner(x, struct berth, look);

	(void)f;
	(void)len;
	(void)fd;
	line_unlisten(x);
	if (b->rebooting)
		berth_wake(b);
	b->rebooting = 0;
	set_clock(b);
	tell(&b->made, b, NULL);
}

static void store_for(struct berth *b, enum store_box_state as)
{
	b->row.state = as;
	b->row.kept_until_ns = b->row.retention_ms == STORE_FOREVER ?
				       0 :
				       fleet_now_ns() + (int64_t)b->row.retention_ms * 1000000;
}

static void keep(struct berth *b, enum cause because)
{
	static const struct listen_events on = { .answer = kept };
	struct err e;

	become(b, BERTH_KEPT);
	b->because = because;
	store_for(b, STORE_BOX_KEPT);
	if (berth_changed(b, &e) < 0) { /* what cannot be remembered cannot be kept */
		berth_end(b, because, NULL);
		return;
	}
	line_unlisten(&b->look);
	line_ask(&b->line, &b->look, &on, WIRE_STOP, 0);
	fleet_tell(b->fleet, b->row.team, b->row.id, "box.kept",
		   json_pack("{s:s}", "cause", cause_name(because)));
}

/* ---- standing still ----
 *
 *   front                        keeper                    the row
 *                                                          paused
 *   FREEZE                 --->  its cgroups are frozen
 *   ...
 *   FREEZE_OFF             --->  and thawed
 *                                                          running
 *
 * The row is the first to say so and the last to take it back: a front that dies in between leaves a
 * row that says "paused", and the next one asks the keeper for that once more. */

static struct office_ask *ask_freeze(struct berth *b, uint16_t flags,
				     void (*done)(void *, const struct frame *, size_t, int *,
						  const struct err *))
{
	return office_ask_box(&b->fleet->office, WIRE_FREEZE, flags, b->row.id, WIRE_DONE, done, b);
}

static int is_gone(const struct err *e)
{
	return e->kind == ERR_NOT_FOUND || e->sys == ENOENT || e->sys == ECONNREFUSED;
}

/* It runs, and its time begins again. */
static void set_going(struct berth *b)
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
	(void)!berth_changed(b, &e); /* worst case it is stored again after a restart */
}

/* What cannot stand still runs on; if its time was over, only its files are kept. */
static void not_frozen(struct berth *b, const struct err *e)
{
	enum cause because = b->because;
	struct err own;

	become(b, BERTH_RUNNING);
	if (is_gone(e)) {
		b->died = 1;
		tell(&b->made, b, e);
		berth_end(b, CAUSE_EXIT, NULL);
		return;
	}
	b->because = CAUSE_EXIT;
	b->row.state = STORE_BOX_RUNNING;
	b->row.kept_until_ns = b->row.idle_since_ns = 0;
	if (because != CAUSE_EXIT) {
		tell(&b->made, b, e);
		tell(&b->risen, b, e);
		keep(b, because);
		return;
	}
	(void)!berth_changed(b, &own);
	tell(&b->made, b, e);
	tell(&b->risen, b, NULL); /* which is all that they wanted */
}

/* Somebody came while it was being paused. */
static void rise(struct berth *b)
{
	struct berth_wait *w;
	struct err e;

	if (!b->rising)
		return;
	b->rising = 0;
	while ((w = b->risen)) {
		b->risen = w->next;
		await(b, &b->made, w);
	}
	if (berth_resume(b, b->rising_reboot, NULL, &e) < 0)
		tell(&b->made, b, &e);
}

static void on_frozen(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	b->moving = STILL;
	if (!f) {
		not_frozen(b, e);
		return;
	}
	set_clock(b);
	if (b->fleet->on_pause)
		b->fleet->on_pause(b->fleet, b);
	fleet_tell(b->fleet, b->row.team, b->row.id, "box.paused",
		   b->because == CAUSE_EXIT ? NULL : json_pack("{s:s}", "cause", cause_name(b->because)));
	tell(&b->made, b, NULL);
	rise(b);
}

static int freeze(struct berth *b, enum cause because, struct err *e)
{
	store_for(b, STORE_BOX_PAUSED);
	b->row.idle_since_ns = fleet_now_ns();
	if (berth_changed(b, e) < 0) {
		b->row.state = STORE_BOX_RUNNING;
		b->row.kept_until_ns = b->row.idle_since_ns = 0;
		return -1;
	}
	line_unlisten(&b->look); /* no answer comes */
	become(b, BERTH_PAUSED);
	timer_clear(&b->clock);
	b->because = because;
	b->moving = PAUSING;
	b->rising = 0;
	b->asking = ask_freeze(b, 0, on_frozen);
	return 0;
}

int berth_pause(struct berth *b, int memory, struct berth_wait *w, struct err *e)
{
	if (b->state != BERTH_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id, berth_state_name(b->state));
	if (!b->row.retention_ms)
		b->row.retention_ms = STORE_FOREVER; /* who pauses means to come back */
	if (memory && freeze(b, CAUSE_EXIT, e) < 0)
		return -1;
	if (w)
		await(b, &b->made, w);
	if (!memory)
		keep(b, CAUSE_IDLE);
	return 0;
}

static void on_opened(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e);

/* It runs again, all of it or soon its files alone. */
static void going(struct berth *b)
{
	if (b->rebooting)
		keep(b, CAUSE_IDLE); /* kept() goes on */
	else
		tell(&b->made, b, NULL);
}

static void on_thawed(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	b->moving = STILL;
	if (!f && is_gone(e)) {
		b->died = 1;
		tell(&b->made, b, e);
		berth_end(b, CAUSE_EXIT, NULL);
		return;
	}
	if (!f) {
		set_clock(b);
		tell(&b->made, b, e);
		return;
	}
	set_going(b);
	fleet_tell(b->fleet, b->row.team, b->row.id, "box.resumed", NULL);
	if (!line_is_open(&b->line)) { /* paused since before our time: as after a restart */
		become(b, BERTH_MAKING);
		b->asking = office_ask_box(&b->fleet->office, WIRE_OPEN, 0, b->row.id, WIRE_BOX,
					   on_opened, b);
		return;
	}
	become(b, BERTH_RUNNING);
	contexts_resume(b);
	berth_touch(b);
	set_clock(b);
	going(b);
}

int berth_resume(struct berth *b, int reboot, struct berth_wait *w, struct err *e)
{
	if (b->state == BERTH_KEPT) {
		berth_wake(b);
		if (w)
			w->done(w, b, NULL);
		return 0;
	}
	if (b->state == BERTH_PAUSED && b->moving == PAUSING) {
		b->rising = 1;
		b->rising_reboot = reboot;
		if (w)
			await(b, &b->risen, w);
		return 0;
	}
	if (b->state != BERTH_PAUSED)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id, berth_state_name(b->state));
	if (w)
		await(b, &b->made, w);
	if (b->moving == RESUMING) /* somebody asked already: one answer for all */
		return 0;
	b->moving = RESUMING;
	b->rebooting = reboot;
	timer_clear(&b->clock);
	b->asking = ask_freeze(b, WIRE_FREEZE_OFF, on_thawed);
	return 0;
}

void berth_time_out(struct berth *b, enum cause because, uint64_t ms)
{
	struct err e;

	if (b->state != BERTH_RUNNING)
		return;
	b->because_ms = ms;
	if (b->row.on_timeout == STORE_TIMEOUT_PAUSE && freeze(b, because, &e) == 0)
		return;
	if (b->row.on_timeout == STORE_TIMEOUT_KILL)
		berth_end(b, because, NULL);
	else
		keep(b, because);
}

void berth_wake(struct berth *b)
{
	berth_touch(b);
	if (b->state != BERTH_KEPT)
		return;
	become(b, BERTH_RUNNING);
	set_going(b);
	fleet_tell(b->fleet, b->row.team, b->row.id, "box.woken", NULL);
}

/* ---- the beginning ---- */

static void never_made(struct berth *b, const struct err *e)
{
	b->fleet->figures.create_failed++;
	tell(&b->made, b, e);
	tell(&b->ended, b, e);
	berth_free(b);
}

static struct store_limits row_limits(const struct wire_limits *l)
{
	return (struct store_limits){ .mem_bytes = l->mem_bytes,
				      .disk_bytes = l->disk_bytes,
				      .disk_files = l->disk_files,
				      .cpu_ms = l->cpu_ms,
				      .cpu_milli = l->cpu_milli,
				      .pids = l->pids };
}

static void take_box(struct berth *b, const struct wire_box *box)
{
	b->about = *box;
	b->about.id[sizeof(b->about.id) - 1] = 0;
	b->row.layers = box->layers;
	b->row.limits = row_limits(&box->limits);
}

static int open_line(struct berth *b, int take_fd, struct err *e)
{
	b->line.on_gone = line_gone;
	b->line.user = b;
	if (line_open(&b->line, b->fleet->loop, take_fd, b->row.id, e) < 0)
		return -1;
	b->active_ms = loop_now_ms();
	return 0;
}

static const struct listen_events ignored = { 0 };

/* The first frame: from here on the box outlives us. One that asks for nothing, and is not answered. */
static void claim(struct berth *b)
{
	line_ask(&b->line, &b->look, &ignored, WIRE_FORGET, 0);
	line_unlisten(&b->look);
}

/* Which volumes it has is told by the store after a restart, too. */
static int attach(const struct berth *b, struct err *e)
{
	struct store_attachment a[WIRE_MOUNTS] = { 0 };

	for (unsigned i = 0; i < b->nmounts; i++) {
		snprintf(a[i].volume, sizeof(a[i].volume), "%.*s", ID_LEN, b->mounts[i].id);
		snprintf(a[i].box, sizeof(a[i].box), "%s", b->row.id);
		snprintf(a[i].path, sizeof(a[i].path), "%s", b->mounts[i].path);
		a[i].writable = !(b->mounts[i].flags & WIRE_MOUNT_RO);
	}
	return b->nmounts ? store_volume_attach(b->fleet->store, a, b->nmounts, e) : 0;
}

static int write_rows(struct berth *b, struct err *e)
{
	struct store *s = b->fleet->store;

	for (struct berth_wait *w = b->made; w; w = w->next)
		if (w->named && w->named(w, b->row.id, e) < 0)
			return -1;
	return store_box_insert(s, &b->row, e) < 0 ? -1 : attach(b, e);
}

/* The row, what whoever asked for the box wants to have written with it, and the news of it: one
 * transaction, for each costs as much as all the rest of a create. */
static int write_row(struct berth *b, struct err *e)
{
	struct store *s = b->fleet->store;
	struct fleet_news news;

	if (store_begin(s, e) < 0)
		return -1;
	if (write_rows(b, e) < 0)
		return store_rollback(s);
	fleet_write(b->fleet, b->row.team, b->row.id, "box.created",
		    json_pack("{s:s}", "template", b->row.template), &news);
	if (store_commit(s, e) < 0) {
		fleet_withhold(&news);
		return -1;
	}
	fleet_spread(b->fleet, &news);
	return 0;
}

static int settle(struct berth *b, const struct wire_box *box, int take_fd, struct err *e)
{
	auto_fd int fd = take_fd;

	take_box(b, box);
	snprintf(b->row.id, sizeof(b->row.id), "%.*s", ID_LEN, b->about.id);
	b->row.state = STORE_BOX_RUNNING;
	b->row.created_ns = b->row.started_ns = fleet_now_ns();
	if (b->row.lifetime_ms)
		b->row.ends_ns = b->row.created_ns + (int64_t)b->row.lifetime_ms * 1000000;
	if (write_row(b, e) < 0)
		return -1; /* closing the connection unclaimed ends the box */
	return open_line(b, steal_fd(&fd), e);
}

static void count_template(struct fleet_figures *f, const char *name)
{
	unsigned i = 0;

	while (i < FLEET_TEMPLATES - 1 && f->templates[i].name[0] &&
	       strcmp(f->templates[i].name, name) != 0)
		i++;
	if (!f->templates[i].name[0])
		snprintf(f->templates[i].name, sizeof(f->templates[i].name), "%s",
			 i < FLEET_TEMPLATES - 1 ? name : "other");
	f->templates[i].created++;
}

static void on_made(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;
	struct fleet *fl = b->fleet;
	struct err own;

	(void)len;
	b->asking = NULL;
	if (!f) {
		never_made(b, e);
		return;
	}
	if (*fd < 0) {
		err_set(&own, ERR_SYS, "keeper: a box without a connection to it");
		never_made(b, &own);
		return;
	}
	if (settle(b, (const struct wire_box *)f, steal_fd(fd), &own) < 0) {
		never_made(b, &own);
		return;
	}
	leave(b); /* those that are being made */
	enter(b);
	claim(b);
	become(b, BERTH_RUNNING);
	gate_open(b);
	b->create_us = b->about.make_us;
	fl->figures.created++;
	count_template(&fl->figures, b->row.template);
	fleet_observe(&fl->figures.create, (loop_now_ms() - b->asked_ms) * 1000);
	set_clock(b);
	if (b->because != CAUSE_EXIT) { /* its end was asked for meanwhile */
		enum cause because = b->because;

		b->because = CAUSE_EXIT;
		berth_end(b, because, NULL);
		return;
	}
	tell(&b->made, b, NULL);
}

static char *copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		abort();
	return c;
}

static struct berth *new_berth(struct fleet *f)
{
	struct berth *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->fleet = f;
	b->line.post.fd = -1;
	timer_init(&b->clock, f->loop, clock_due);
	inlets_init(&b->inlets);
	return b;
}

static int is_marked(const struct store_box *row, const char *word)
{
	char quoted[32];

	snprintf(quoted, sizeof(quoted), "\"%s\":", word);
	return row->metadata && strstr(row->metadata, quoted);
}

int berth_create(struct fleet *f, const struct berth_want *want, struct berth_wait *w,
		 struct berth **out, struct err *e)
{
	struct wire_create ask = { .head = sock_head(WIRE_CREATE, 0), .limits = want->limits };
	struct berth *b;

	if (want->row.name[0] && fleet_named(f, want->row.team, want->row.name))
		return err_set(e, ERR_CONFLICT, "there is a box named '%.64s' already",
			       want->row.name);
	b = new_berth(f);
	b->row = want->row;
	b->row.metadata = copy(want->row.metadata);
	b->row.env = copy(want->row.env);
	b->nobodys = is_marked(&b->row, BERTH_INSTALL);
	b->row.volumes = copy(want->row.volumes);
	b->row.network = copy(want->row.network);
	b->row.door = copy(want->row.door);
	snprintf(b->row.boot, sizeof(b->row.boot), "%s", f->boot);
	b->asked_ms = loop_now_ms();
	ask.head.flags = want->flags;
	snprintf(ask.seed, sizeof(ask.seed), "%s", want->seed ? want->seed : "");
	if (want->nmounts) {
		b->nmounts = ask.nmounts = want->nmounts;
		b->mounts = calloc(want->nmounts, sizeof(*b->mounts));
		if (!b->mounts)
			abort();
		memcpy(b->mounts, want->mounts, want->nmounts * sizeof(*b->mounts));
		memcpy(ask.mounts, want->mounts, want->nmounts * sizeof(*b->mounts));
	}
	b->is_known = 1;
	if (want->nlayers) {
		b->nlayers = want->nlayers;
		b->layers = malloc(sizeof(want->layers));
		if (!b->layers)
			abort();
		memcpy(b->layers, want->layers, sizeof(want->layers));
	}
	ask.nlayers = want->nlayers;
	memcpy(ask.layer, want->layers, sizeof(ask.layer));
	snprintf(ask.template, sizeof(ask.template), "%s", "base");
	b->next = f->making;
	f->making = b;
	await(b, &b->made, w);
	b->asking = office_ask(&f->office, &ask, sizeof(ask), WIRE_BOX, on_made, b);
	*out = b;
	return 0;
}

/* ---- after a restart ---- */

static void tallied(struct listener *x, const struct frame *f, size_t len, int *fd)
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
	line_unlisten(x);
	if (b->tally_again) {
		b->tally_again = 0;
		berth_tally(b);
	}
}

void berth_tally(struct berth *b)
{
	static const struct listen_events on = { .answer = tallied };

	/* One list at a time is told; that of look_inside() is soon over. */
	if (b->tally.line)
		b->tally_again = 1;
	else if (line_is_open(&b->line))
		line_ask(&b->line, &b->tally, &on, WIRE_EXECS, 0);
}

/* Those that run, and that we do not know of. */
static void restore_runs(struct berth *b)
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

/* Whoever was to end it after its run died with the old front. */
static void end_if_done(struct berth *b)
{
	if (b->ephemeral && b->fleet->alone && b->state == BERTH_RUNNING && !b->runs)
		berth_end(b, CAUSE_EXIT, NULL);
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
	take_box(b, box);
	claim(b);
	become(b, b->row.state == STORE_BOX_KEPT ? BERTH_KEPT : BERTH_RUNNING);
	gate_open(b);
	set_active(b);
	restore_runs(b);
	contexts_restore(b);
	contexts_resume(b);
	set_clock(b);
	b->fleet->figures.restored++;
	restored(b);
	going(b);
	take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT && !b->rebooting) /* its end had begun */
		berth_end(b, b->because, NULL);
	else
		end_if_done(b);
}

/* It ended while nobody looked; the keeper may still know how. */
static void not_there(struct berth *b, const struct err *e)
{
	b->late = 0;
	restore_runs(b);
	become(b, BERTH_RUNNING);
	b->died = 1;
	tell(&b->made, b, e);
	berth_end(b, CAUSE_EXIT, NULL);
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
	restored(b);
	tell(&b->made, b, &busy);
}

static void on_opened(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;
	struct err own;

	(void)len;
	b->asking = NULL;
	if (f && *fd >= 0 && open_line(b, steal_fd(fd), &own) == 0)
		reached(b, (const struct wire_box *)f);
	else if (e && is_gone(e))
		not_there(b, e);
	else
		too_late(b, e);
}

/* One that was paused is asked to be so again: that also tells whether it is there. */
static void on_still(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct berth *b = ctx;

	(void)len;
	(void)fd;
	b->asking = NULL;
	if (!f && is_gone(e)) {
		not_there(b, e);
		return;
	}
	if (!f) {
		b->late = 1;
		timer_set(&b->clock, AGAIN_MS);
		restored(b);
		return;
	}
	b->late = 0;
	become(b, BERTH_PAUSED);
	set_clock(b);
	b->fleet->figures.restored++;
	restored(b);
	tell(&b->made, b, NULL);
	take_cause(b, b->row.cause);
	if (b->because != CAUSE_EXIT) /* its end had begun */
		berth_end(b, b->because, NULL);
}

static void ask_for(struct berth *b)
{
	if (b->row.state == STORE_BOX_PAUSED)
		b->asking = ask_freeze(b, 0, on_still);
	else
		b->asking = office_ask_box(&b->fleet->office, WIRE_OPEN, 0, b->row.id, WIRE_BOX,
					   on_opened, b);
}

static void open_again(struct berth *b)
{
	if (b->row.state == STORE_BOX_RUNNING && berth_left_ms(b) == 0) {
		restore_runs(b);
		berth_end(b, CAUSE_LIFETIME, NULL);
		return;
	}
	if (!b->asking)
		ask_for(b);
}

void berth_restore(struct fleet *f, struct store_box *take_row, struct berth_wait *w)
{
	struct berth *b = new_berth(f);

	b->row = *take_row;
	b->ephemeral = is_marked(&b->row, BERTH_EPHEMERAL);
	b->nobodys = is_marked(&b->row, BERTH_INSTALL);
	enter(b);
	if (w)
		await(b, &b->made, w);
	if (strcmp(b->row.boot, f->boot) != 0) { /* the machine was started anew */
		b->state = BERTH_ENDING;
		b->fleet->ending++;
		restore_runs(b);
		b->because = CAUSE_HOST;
		finish(b, NULL);
		return;
	}
	f->restoring++;
	b->restoring = 1;
	ask_for(b);
}

void berth_catch_up(struct berth *b)
{
	if (b->state != BERTH_RUNNING && !is_stored(b))
		return;
	reread(b);
	if (b->state == BERTH_PAUSED) {
		set_clock(b);
		return;
	}
	restore_runs(b);
	contexts_restore(b);
	set_clock(b);
	end_if_done(b);
}

void berth_run_over(struct berth *b, struct run *r)
{
	struct run **at = &b->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	b->nruns--;
	berth_touch(b);
	past_note(b, r);
	run_free(r);
	end_if_done(b);
}
