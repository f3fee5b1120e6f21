/* fake_fleet.h - a fleet whose keeper and inits are played by the test, over socket pairs, in one thread.
 * The fleet, the store and the loop are real. */
#pragma once
#include "fleet/box.h"
#include "fleet/exec.h"
#include "fleet/exec_reader.h"
#include "store_dir.h"
#include "store/teams.h"
#include "wire/sock.h"

#include <event2/event.h>
#include <poll.h>
#include <unistd.h>

#define FAKE __attribute__((unused)) static

enum { FAKE_LIMIT_MS = 20000 };

#define FAKE_BOOT "boot-of-the-test"

/* The peer of one connection of the fleet, and the last frame that it has received. */
struct fake_peer {
	int fd;
	char id[ID_MAX + 1]; /* of an init: its box */
	union {
		struct frame head;
		struct wire_create create;
		struct wire_id id;
		struct wire_start start;
		struct wire_signal signal;
		struct wire_output_window window;
		char bytes[WIRE_MAX];
	} got;
};

static struct fake {
	char dir[128];
	struct store *store;
	struct loop *loop, own_loop;
	struct fleet *fleet, own_fleet;
	struct fake_peer keeper;
	unsigned keepers_needed; /* calls of need_keeper() */
	unsigned made;           /* boxes: numbers their ids */
} fake;

FAKE void fake_nothing_due(struct timer *t)
{
	(void)t;
}

/* One turn of the loop: handles ready events, or waits 5 ms. */
FAKE void fake_turn(void)
{
	struct timer t;

	timer_init(&t, fake.loop, fake_nothing_due);
	timer_set(&t, 5);
	event_base_loop(fake.loop->base, EVLOOP_ONCE);
	timer_fini(&t);
}

#define FAKE_UNTIL(condition)                                                                      \
	({                                                                                         \
		uint64_t end_ = loop_now_ms() + FAKE_LIMIT_MS;                                     \
		while (!(condition) && loop_now_ms() < end_)                                       \
			fake_turn();                                                               \
		(condition);                                                                       \
	})

/* ---- frames ---- */

FAKE int fake_is_readable(const struct fake_peer *p)
{
	struct pollfd at = { .fd = p->fd, .events = POLLIN };

	return p->fd >= 0 && poll(&at, 1, 0) > 0;
}

FAKE int fake_send(struct fake_peer *p, const void *frame, size_t n, const void *tail,
		   size_t tail_n)
{
	struct err e;

	return sock_send(p->fd, frame, n, tail, tail_n, NULL, 0, &e);
}

/* Reads one frame; returns its type, 0 at the end of the connection, -1 if there is none. */
FAKE int fake_read(struct fake_peer *p)
{
	unsigned nfds = 0;
	struct err e;
	int n;

	if (!fake_is_readable(p))
		return -1;
	memset(&p->got, 0, sizeof(p->got.head));
	n = sock_recv(p->fd, p->got.bytes, NULL, &nfds, &e);
	return n > 0 ? p->got.head.type : 0;
}

enum { FAKE_ANSWERED = 256 }; /* instead of a type */

/* Reads one frame as fake_read(), and answers it if it is a deadline, which is for the time without a
 * server and is sent during any test on a slow machine, or the request for the facts about tiers. */
FAKE int fake_read_other(struct fake_peer *p)
{
	int type = fake_read(p);
	struct frame done =
		sock_head(type == WIRE_TIERS ? WIRE_TIERS_REPLY : WIRE_DONE, p->got.head.ref);

	if (type != WIRE_DEADLINE && type != WIRE_TIERS)
		return type;
	(void)!fake_send(p, &done, sizeof(done), NULL, 0);
	return FAKE_ANSWERED;
}

/* Runs the loop until a frame arrives; returns its type, 0 at the end of the connection, -1 if none
 * arrives within the limit. */
FAKE int fake_next(struct fake_peer *p)
{
	int type = -1;

	while (FAKE_UNTIL(fake_is_readable(p)) && (type = fake_read_other(p)) == FAKE_ANSWERED)
		;
	return type;
}

/* 1: no frame arrives in a moment. Frames of earlier events have been sent by then. */
FAKE int fake_is_silent(struct fake_peer *p)
{
	for (int i = 0; i < 10; i++)
		fake_turn();
	while (fake_is_readable(p))
		if (fake_read_other(p) != FAKE_ANSWERED)
			return 0;
	return 1;
}

FAKE int fake_reply(struct fake_peer *p, uint8_t type)
{
	struct frame f = sock_head(type, p->got.head.ref);

	return fake_send(p, &f, sizeof(f), NULL, 0);
}

FAKE int fake_reply_error(struct fake_peer *p, enum err_kind kind, int sys, const char *msg)
{
	struct wire_error f = { .head = sock_head(WIRE_ERROR, p->got.head.ref),
				.kind = kind,
				.sys = sys };

	snprintf(f.msg, sizeof(f.msg), "%s", msg);
	return fake_send(p, &f, sizeof(f), NULL, 0);
}

/* Counters of the kernel: COUNTERS_REPLY, or DESTROYED. */
FAKE struct wire_counters fake_counters(uint8_t type, uint32_t ref)
{
	return (struct wire_counters){ .head = sock_head(type, ref),
				       .mem_now = 1 << 20,
				       .mem_peak = 2 << 20,
				       .cpu_us = 1000,
				       .pids_now = 1,
				       .pids_peak = 2 };
}

FAKE int fake_reply_counters(uint8_t type)
{
	struct wire_counters f = fake_counters(type, fake.keeper.got.head.ref);

	return fake_send(&fake.keeper, &f, sizeof(f), NULL, 0);
}

/* Answers CREATE or OPEN with BOX; out becomes the init of the box. */
FAKE int fake_reply_box(struct fake_peer *out, const char *id)
{
	struct wire_box f = { .head = sock_head(WIRE_BOX, fake.keeper.got.head.ref),
			      .state = WIRE_BOX_TAKEN,
			      .limits = { .mem_bytes = 64 << 20 } };
	int pair[2], sent;
	struct err e;

	if (sock_pair(pair, &e) < 0)
		return -1;
	snprintf(f.id, sizeof(f.id), "%s", id);
	snprintf(out->id, sizeof(out->id), "%s", id);
	sent = sock_send(fake.keeper.fd, &f, sizeof(f), NULL, 0, &pair[1], 1, &e);
	close(pair[1]);
	out->fd = pair[0];
	return sent;
}

FAKE int fake_say_exit(struct fake_peer *init, uint32_t ref, uint32_t why, int status)
{
	struct wire_exit f = {
		.head = sock_head(WIRE_EXIT, ref), .why = why, .status = status, .wall_us = 5000
	};

	return fake_send(init, &f, sizeof(f), NULL, 0);
}

FAKE int fake_say_started(struct fake_peer *init, uint32_t ref, int pid)
{
	struct wire_started f = { .head = sock_head(WIRE_STARTED, ref), .pid = pid };

	return fake_send(init, &f, sizeof(f), NULL, 0);
}

FAKE int fake_say_output(struct fake_peer *init, uint32_t ref, uint64_t offset, const char *text)
{
	struct wire_output f = { .head = sock_head(WIRE_OUTPUT, ref), .offset = offset };

	return fake_send(init, &f, sizeof(f), text, strlen(text));
}

/* ---- the fleet ---- */

FAKE void fake_need_keeper(struct fleet *f)
{
	(void)f;
	fake.keepers_needed++;
}

FAKE void fake_on_ready(struct fleet *f)
{
	(void)f;
}

FAKE int fake_connect_keeper(void)
{
	int pair[2];
	struct err e;

	if (sock_pair(pair, &e) < 0)
		return -1;
	fake.keeper.fd = pair[0];
	fleet_keeper(fake.fleet, pair[1]);
	return 0;
}

/* With the loop and the fleet of the caller, or (NULL) with new ones. */
FAKE int fake_begin(struct loop *loop, struct fleet *fleet)
{
	static const char *const layer_names[] = { NULL };
	struct fleet_conf conf = { .layer_names = layer_names };
	struct err e;

	memset(&fake, 0, sizeof(fake));
	fake.loop = loop ? loop : &fake.own_loop;
	fake.fleet = fleet ? fleet : &fake.own_fleet;
	dir_make(fake.dir);
	if ((!loop && loop_init(fake.loop, &e) < 0) || store_open(&fake.store, fake.dir, &e) < 0)
		return -1;
	fleet_init(fake.fleet, fake.loop, fake.store, &conf, FAKE_BOOT);
	fake.fleet->need_keeper = fake_need_keeper;
	fake.fleet->on_ready = fake_on_ready;
	return fake_connect_keeper();
}

FAKE void fake_end(void)
{
	fleet_fini(fake.fleet);
	own_close_fd(&fake.keeper.fd);
	store_close(fake.store);
	if (fake.loop == &fake.own_loop)
		loop_fini(fake.loop);
	dir_remove(fake.dir);
}

/* A waiter that counts its calls. */
struct fake_wait {
	struct box_wait wait;
	unsigned calls;
	int failed;
	struct err why;
};

FAKE void fake_done(struct box_wait *w, struct box *b, const struct err *e)
{
	struct fake_wait *x = loop_owner(w, struct fake_wait, wait);

	(void)b;
	x->calls++;
	x->failed = e != NULL;
	if (e)
		x->why = *e;
}

FAKE struct box_wait *fake_waiter(struct fake_wait *x)
{
	*x = (struct fake_wait){ .wait.done = fake_done };
	return &x->wait;
}

FAKE struct box_spec fake_spec(const char *team)
{
	struct box_spec spec = { .row = { .template = "base" } };

	snprintf(spec.row.team, sizeof(spec.row.team), "%s", team);
	return spec;
}

/* A running box of this kind, from CREATE to the first frame at its init; NULL: a step failed. */
FAKE struct box *fake_box(const struct box_spec *spec, struct fake_peer *init)
{
	struct fake_wait wait;
	struct box *b;
	struct err e;

	if (box_create(fake.fleet, spec, fake_waiter(&wait), &b, &e) < 0 ||
	    fake_next(&fake.keeper) != WIRE_CREATE ||
	    fake_reply_box(init, id_of(1000 + fake.made++)) < 0 || !FAKE_UNTIL(wait.calls) ||
	    wait.failed || fake_next(init) != WIRE_FORGET)
		return NULL;
	return fleet_find(fake.fleet, init->id);
}
