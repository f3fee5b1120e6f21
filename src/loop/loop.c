/* loop.c - libevent, behind the small interface of loop.h. */
#include "loop/loop.h"
#include "base/clock.h"

#include <event2/event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory for an event: the loop cannot continue. */
static struct event *loop_must(struct event *ev)
{
	if (!ev)
		abort();
	return ev;
}

int loop_init(struct loop *l, struct err *e)
{
	struct event_config *cfg = event_config_new();

	memset(l, 0, sizeof(*l));
	if (!cfg)
		abort();
	/* One thread: locks would only cost. */
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!l->base)
		return err_sys(e, "make an event loop");
	if (event_base_priority_init(l->base, LOOP_CLASSES) < 0)
		abort(); /* no memory */
	return 0;
}

void loop_run(struct loop *l)
{
	while (!l->stopping)
		if (event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
			abort(); /* epoll failed: the loop cannot continue */
	l->stopping = 0;
}

void loop_stop(struct loop *l)
{
	l->stopping = 1;
	event_base_loopbreak(l->base);
}

void loop_fini(struct loop *l)
{
	if (l->base)
		event_base_free(l->base);
	l->base = NULL;
}

uint64_t loop_now_ms(void)
{
	return now_ns() / 1000000u;
}

void loop_yield(void)
{
	enum { LONG_NS = 1000000, SHY_NS = 1000000000 };
	static uint64_t shy_until;
	uint64_t began = now_ns(), took;

	if (began < shy_until)
		return;
	(void)sched_yield();
	took = now_ns() - began;
	if (took > LONG_NS)
		shy_until = began + took + SHY_NS;
}

/* ---- budgets ---- */

enum { BUDGET_PART = 8, BUDGET_MOST_NS = 2 * LOOP_BURST_NS }; /* the most that is remembered */

static uint64_t budget_used(const struct loop_budget *b, uint64_t now)
{
	uint64_t earned = now > b->at_ns ? (now - b->at_ns) / BUDGET_PART : 0;

	return b->used_ns > earned ? b->used_ns - earned : 0;
}

static void budget_charge(struct loop_budget *b, uint64_t ns, uint64_t now)
{
	uint64_t used = budget_used(b, now) + ns;

	b->used_ns = used < BUDGET_MOST_NS ? used : BUDGET_MOST_NS;
	b->at_ns = now;
}

/* Does not read the clock: a request needs the time five times. */
int loop_budget_exceeded(const struct loop *l, const struct loop_budget *b)
{
	return b && b->used_ns > LOOP_BURST_NS && budget_used(b, l->now_ns) > LOOP_BURST_NS;
}

void loop_work_begin(struct loop *l, struct loop_budget *b)
{
	l->budget = b;
	l->began_ns = l->now_ns = now_ns();
	l->late = loop_budget_exceeded(l, b);
}

void loop_work_charge(struct loop *l, struct loop_budget *b)
{
	l->budget = b;
}

void loop_work_end(struct loop *l)
{
	uint64_t took;

	l->now_ns = now_ns();
	took = l->now_ns - l->began_ns;
	if (l->budget)
		budget_charge(l->budget, took, l->now_ns);
	l->budget = NULL;
	if (!l->late)
		return;
	l->late = 0;
	l->late_ns += took;
	if (l->late_ns < LOOP_SLICE_NS)
		return;
	l->late_ns = 0;
	event_base_loopcontinue(l->base);
}

int loop_work_is_late(const struct loop *l)
{
	return l->late;
}

int loop_work_is_long(struct loop *l)
{
	l->now_ns = now_ns();
	return l->now_ns - l->began_ns >= LOOP_SLICE_NS;
}

void loop_budget_forget(struct loop *l, const struct loop_budget *b)
{
	if (l->budget == b)
		l->budget = NULL;
}

/* ---- descriptors ---- */

/* 0: its budget was exceeded since it became ready, and it is called again after all other work. */
static int watch_has_turn(const struct watch *w, struct event *ev, short what)
{
	int late = loop_budget_exceeded(w->loop, w->budget),
	    was = event_get_priority(ev) == LOOP_CLASS_LATE;

	if (late == was)
		return 1;
	event_priority_set(ev, late ? LOOP_CLASS_LATE : LOOP_CLASS_NORMAL);
	if (late)
		event_active(ev, what, 0);
	return !late;
}

/* ready() may free the watch. */
static void watch_call(struct watch *w, struct event *ev, unsigned what)
{
	struct loop *l = w->loop;

	loop_work_begin(l, w->budget);
	if (watch_has_turn(w, ev, what == LOOP_READ ? EV_READ : EV_WRITE))
		w->ready(w, what);
	loop_work_end(l);
}

static void can_read(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	(void)fd;
	(void)what;
	watch_call(w, w->in, LOOP_READ);
}

static void can_write(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	(void)fd;
	(void)what;
	watch_call(w, w->out, LOOP_WRITE);
}

void watch_init(struct watch *w, struct loop *l, int fd, void (*ready)(struct watch *, unsigned))
{
	*w = (struct watch){ .loop = l, .fd = fd, .ready = ready };
}

/* One direction. The event is created at its first use: most descriptors are only read. */
static void want_one(struct watch *w, struct event **ev, unsigned bit, unsigned wants)
{
	if (!((w->wants ^ wants) & bit))
		return;
	if (!(wants & bit)) {
		event_del(*ev);
		return;
	}
	if (!*ev)
		*ev = loop_must(event_new(w->loop->base, w->fd,
					  (bit == LOOP_READ ? EV_READ : EV_WRITE) | EV_PERSIST,
					  bit == LOOP_READ ? can_read : can_write, w));
	if (event_add(*ev, NULL) < 0)
		abort(); /* a descriptor that is not open: a bug, and its events would never arrive */
}

void watch_want(struct watch *w, unsigned wants)
{
	want_one(w, &w->in, LOOP_READ, wants);
	want_one(w, &w->out, LOOP_WRITE, wants);
	w->wants = wants;
}

void watch_stop(struct watch *w)
{
	if (w->in)
		event_free(w->in);
	if (w->out)
		event_free(w->out);
	w->in = w->out = NULL;
	w->wants = 0;
}

/* ---- time ---- */

static void is_due(evutil_socket_t fd, short what, void *arg)
{
	struct timer *t = arg;

	(void)fd;
	(void)what;
	t->due(t);
}

void timer_init(struct timer *t, struct loop *l, void (*due)(struct timer *))
{
	t->due = due;
	t->ev = loop_must(event_new(l->base, -1, 0, is_due, t));
}

void timer_init_late(struct timer *t, struct loop *l, void (*due)(struct timer *))
{
	timer_init(t, l, due);
	event_priority_set(t->ev, LOOP_CLASS_LATE);
}

void timer_set(struct timer *t, uint64_t ms)
{
	struct timeval tv = { .tv_sec = (time_t)(ms / 1000),
			      .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	if (event_add(t->ev, &tv) < 0)
		abort();
}

void timer_clear(struct timer *t)
{
	event_del(t->ev);
}

int timer_pending(const struct timer *t)
{
	return t->ev && event_pending(t->ev, EV_TIMEOUT, NULL);
}

void timer_fini(struct timer *t)
{
	if (t->ev)
		event_free(t->ev);
	t->ev = NULL;
}

/* ---- signals ---- */

static void has_come(evutil_socket_t signo, short what, void *arg)
{
	struct on_signal *s = arg;

	(void)what;
	s->came(s, (int)signo);
}

void on_signal_init(struct on_signal *s, struct loop *l, int signo,
		    void (*came)(struct on_signal *, int))
{
	s->came = came;
	s->ev = loop_must(evsignal_new(l->base, signo, has_come, s));
	if (event_add(s->ev, NULL) < 0)
		abort();
}

void on_signal_fini(struct on_signal *s)
{
	if (s->ev)
		event_free(s->ev);
	s->ev = NULL;
}
