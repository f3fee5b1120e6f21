/* loop.h - the event loop: one thread, descriptors, timers, signals, with libevent.
 * Owns: the event base.
 * Does not own: descriptors. The caller that registered one closes it, after watch_stop(). */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct event;
struct event_base;

struct loop_budget;
struct loop {
	struct event_base *base;
	int stopping;
	/* the callback in progress */
	struct loop_budget *budget; /* it is charged to; NULL: to none */
	uint64_t began_ns, now_ns;  /* the latter: when the clock was last read for it */
	int late;                   /* its budget was exceeded when it began */
	uint64_t late_ns; /* time that such callbacks have used since the loop last ran others */
};
must_check int loop_init(struct loop *l, struct err *e);
void loop_run(struct loop *l);  /* until loop_stop() */
void loop_stop(struct loop *l); /* after the callback that calls it */
void loop_fini(struct loop *l);
uint64_t loop_now_ms(void); /* monotonic */
/* Yields the CPU to a process that was just woken, before work that no client waits for. If that
 * takes long, it does nothing for a second. */
void loop_yield(void);

/* ---- the loop's time, divided among clients ----
 * A budget belongs to one client: a team, an address. It may use an eighth of the loop's time, and
 * LOOP_BURST_NS at once. Work of a client that has used more runs after all other work that is
 * ready, LOOP_SLICE_NS of it at a time: then the loop looks for other work again. Without other work
 * an exceeded budget delays nothing. */
enum { LOOP_SLICE_NS = 500000, LOOP_BURST_NS = 10000000 };
struct loop_budget {      /* zeroed: nothing used */
	uint64_t used_ns; /* at at_ns; decreases by an eighth of the time that passes */
	uint64_t at_ns;
};
int loop_budget_exceeded(const struct loop *l, const struct loop_budget *b); /* NULL: never */
/* Around a callback that libevent makes without a watch or a timer of ours. b may be NULL. */
void loop_work_begin(struct loop *l, struct loop_budget *b);
void loop_work_end(struct loop *l);
void loop_work_charge(struct loop *l,
		      struct loop_budget *b); /* the work in progress is that client's */
int loop_work_is_late(const struct loop *l);  /* the work in progress began after all other work */
int loop_work_is_long(struct loop *l); /* it has used its slice: return, and continue later */
void loop_budget_forget(struct loop *l, const struct loop_budget *b); /* before it is freed */
/* Priorities of libevent's events. */
enum { LOOP_CLASS_NORMAL = 1, LOOP_CLASS_LATE = 2, LOOP_CLASSES = 3 };

/* Readiness of a descriptor. Level-triggered; lives inside the object it serves. */
enum { LOOP_READ = 1 << 0, LOOP_WRITE = 1 << 1 };
struct watch {
	struct loop *loop;
	struct event *in, *out;
	int fd;
	unsigned wants;
	struct loop_budget *budget; /* ready() is charged to this budget; NULL: none */
	void (*ready)(struct watch *w, unsigned what); /* LOOP_READ or LOOP_WRITE, one at a time */
};
void watch_init(struct watch *w, struct loop *l, int fd, void (*ready)(struct watch *, unsigned));
void watch_want(struct watch *w, unsigned wants);
void watch_stop(struct watch *w); /* allowed on a zeroed one, and from ready() */

struct timer {
	struct event *ev;
	void (*due)(struct timer *t);
};
void timer_init(struct timer *t, struct loop *l, void (*due)(struct timer *));
void timer_init_late(struct timer *t, struct loop *l,
		     void (*due)(struct timer *)); /* after other work */
void timer_set(struct timer *t, uint64_t ms);      /* from now; replaces an earlier setting */
void timer_clear(struct timer *t);
int timer_pending(const struct timer *t);
void timer_fini(struct timer *t); /* allowed on a zeroed one, and from due() */

/* A signal, delivered on the loop. */
struct on_signal {
	struct event *ev;
	void (*came)(struct on_signal *s, int signo);
};
void on_signal_init(struct on_signal *s, struct loop *l, int signo,
		    void (*came)(struct on_signal *, int));
void on_signal_fini(struct on_signal *s);

/* The object that a watch or a timer lives in. */
#define loop_owner(ptr, type, member) ((type *)((char *)(ptr) - __builtin_offsetof(type, member)))
