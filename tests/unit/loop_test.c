/* loop_test.c - descriptors, timers and signals, each on a separate loop. */
#include "loop/loop.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;
static struct err e;
static unsigned reads, writes, dues, signals;

struct pair {
	int fds[2];
	struct watch watch;
	struct timer timer;
	struct on_signal on_signal;
};

static int setup(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	reads = writes = dues = signals = 0;
	return loop_init(&loop, &e) == 0 &&
	       socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fds) == 0;
}

static void teardown(struct pair *p)
{
	watch_stop(&p->watch);
	timer_fini(&p->timer);
	on_signal_fini(&p->on_signal);
	loop_fini(&loop);
	close(p->fds[0]);
	close(p->fds[1]);
}

static void stop_when_due(struct timer *t)
{
	(void)t;
	dues++;
	loop_stop(&loop);
}

static void count(struct watch *w, unsigned what)
{
	char byte;

	reads += what == LOOP_READ;
	writes += what == LOOP_WRITE;
	if (what == LOOP_READ && read(w->fd, &byte, 1) == 1 && byte == 'q')
		loop_stop(&loop);
	if (what == LOOP_WRITE)
		watch_want(w, w->wants & ~(unsigned)LOOP_WRITE);
}

TEST(a_readable_descriptor_is_reported_until_it_is_empty)
{
	struct pair p;

	CHECK(setup(&p));
	watch_init(&p.watch, &loop, p.fds[0], count);
	watch_want(&p.watch, LOOP_READ);
	CHECK_INT(write(p.fds[1], "abq", 3), 3);
	loop_run(&loop);
	CHECK_INT(reads, 3);
	CHECK_INT(writes, 0);
	teardown(&p);
}

TEST(reading_and_writing_are_reported_separately)
{
	struct pair p;

	CHECK(setup(&p));
	watch_init(&p.watch, &loop, p.fds[0], count);
	watch_want(&p.watch, LOOP_READ | LOOP_WRITE);
	CHECK_INT(write(p.fds[1], "aq", 2), 2);
	loop_run(&loop);
	CHECK_INT(reads, 2);
	CHECK_INT(writes, 1);
	CHECK_INT(p.watch.wants, LOOP_READ);
	teardown(&p);
}

TEST(events_that_are_not_requested_are_not_reported)
{
	struct pair p;

	CHECK(setup(&p));
	watch_init(&p.watch, &loop, p.fds[0], count);
	watch_want(&p.watch, LOOP_READ);
	watch_want(&p.watch, 0);
	CHECK_INT(write(p.fds[1], "a", 1), 1);
	close(p.fds[1]); /* a hang-up cannot be masked, only unregistered */
	timer_init(&p.timer, &loop, stop_when_due);
	timer_set(&p.timer, 20);
	loop_run(&loop);
	CHECK_INT(reads, 0);
	CHECK_INT(dues, 1);
	p.fds[1] = dup(p.fds[0]);
	teardown(&p);
}

static void stop_itself(struct watch *w, unsigned what)
{
	(void)what;
	reads++;
	watch_stop(w);
	loop_stop(&loop);
}

TEST(a_watch_may_stop_itself_and_be_started_again)
{
	struct pair p;

	CHECK(setup(&p));
	CHECK_INT(write(p.fds[1], "a", 1), 1);
	for (unsigned i = 1; i <= 2; i++) {
		watch_init(&p.watch, &loop, p.fds[0], stop_itself);
		watch_want(&p.watch, LOOP_READ | LOOP_WRITE);
		loop_run(&loop);
		CHECK_INT(reads, i);
	}
	teardown(&p);
}

TEST(a_timer_fires_once_and_not_early)
{
	struct pair p;
	uint64_t begin = loop_now_ms();

	CHECK(setup(&p));
	timer_init(&p.timer, &loop, stop_when_due);
	CHECK(!timer_pending(&p.timer));
	timer_set(&p.timer, 5000);
	CHECK(timer_pending(&p.timer));
	timer_set(&p.timer, 30); /* replaces */
	loop_run(&loop);
	CHECK_INT(dues, 1);
	CHECK(!timer_pending(&p.timer));
	CHECK(loop_now_ms() - begin >= 29 && loop_now_ms() - begin < 4000);
	teardown(&p);
}

static void end_itself(struct timer *t)
{
	dues++;
	timer_fini(t);
	loop_stop(&loop);
}

TEST(a_timer_may_be_cleared_in_its_callback)
{
	struct pair p;

	CHECK(setup(&p));
	timer_init(&p.timer, &loop, end_itself);
	timer_set(&p.timer, 0);
	loop_run(&loop);
	CHECK_INT(dues, 1);
	CHECK(!timer_pending(&p.timer));
	teardown(&p);
}

TEST(a_cleared_timer_does_not_fire)
{
	struct pair p;
	struct timer late;

	CHECK(setup(&p));
	timer_init(&p.timer, &loop, stop_when_due);
	timer_init(&late, &loop, stop_when_due);
	timer_set(&p.timer, 1);
	timer_set(&late, 20);
	timer_clear(&p.timer);
	loop_run(&loop);
	CHECK_INT(dues, 1);
	timer_fini(&late);
	teardown(&p);
}

static void signalled(struct on_signal *s, int signo)
{
	(void)s;
	signals += signo == SIGUSR1;
	loop_stop(&loop);
}

TEST(a_signal_is_delivered_on_the_loop)
{
	struct pair p;

	CHECK(setup(&p));
	on_signal_init(&p.on_signal, &loop, SIGUSR1, signalled);
	raise(SIGUSR1);
	CHECK_INT(signals, 0);
	loop_run(&loop);
	CHECK_INT(signals, 1);
	teardown(&p);
}

TEST(a_stop_before_the_run_is_remembered)
{
	struct pair p;

	CHECK(setup(&p));
	loop_stop(&loop);
	loop_run(&loop);
	CHECK_INT(dues, 0);
	teardown(&p);
}

TEST(zeroed_watches_and_timers_may_be_stopped)
{
	struct watch w = { 0 };
	struct timer t = { 0 };
	struct on_signal s = { 0 };
	struct loop l = { 0 };

	watch_stop(&w);
	timer_fini(&t);
	CHECK(!timer_pending(&t));
	on_signal_fini(&s);
	loop_fini(&l);
}
