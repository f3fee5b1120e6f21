/* loop.h - waiting: one thread, descriptors, timers, signals. libevent, behind one small header.
 * Owns:         the event base.
 * Does not own: descriptors. Whoever registered one closes it, after watch_stop(). */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct event;
struct event_base;

struct loop {
	struct event_base *base;
	int stopping;
};
must_check int loop_init(struct loop *l, struct err *e);
void loop_run(struct loop *l);  /* until loop_stop() */
void loop_stop(struct loop *l); /* after the callback that calls it */
void loop_fini(struct loop *l);
uint64_t loop_now_ms(void); /* monotonic */
/* Lets somebody run whom we have just woken, before we go on with what nobody waits for. Where others
 * would take long turns in our place it does nothing for a second. */
void loop_give_way(void);

/* Readiness of a descriptor. Level-triggered; lives inside the object it serves. */
enum { LOOP_READ = 1 << 0, LOOP_WRITE = 1 << 1 };
struct watch {
	struct loop *loop;
	struct event *in, *out;
	int fd;
	unsigned wants;
	void (*ready)(struct watch *w, unsigned what); /* LOOP_READ or LOOP_WRITE, one at a time */
};
void watch_init(struct watch *w, struct loop *l, int fd, void (*ready)(struct watch *, unsigned));
void watch_want(struct watch *w, unsigned wants);
void watch_stop(struct watch *w); /* fine on a zeroed one; may be called from ready() */

struct timer {
	struct event *ev;
	void (*due)(struct timer *t);
};
void timer_init(struct timer *t, struct loop *l, void (*due)(struct timer *));
void timer_set(struct timer *t, uint64_t ms); /* from now; replaces an earlier setting */
void timer_clear(struct timer *t);
int timer_pending(const struct timer *t);
void timer_fini(struct timer *t); /* fine on a zeroed one; may be called from due() */

/* A signal, delivered on the loop. */
struct on_signal {
	struct event *ev;
	void (*came)(struct on_signal *s, int signo);
};
void on_signal_init(struct on_signal *s, struct loop *l, int signo, void (*came)(struct on_signal *, int));
void on_signal_fini(struct on_signal *s);

/* The object that a watch or a timer lives in. */
#define loop_owner(ptr, type, member) ((type *)((char *)(ptr) - __builtin_offsetof(type, member)))
