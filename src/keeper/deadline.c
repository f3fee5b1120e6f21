/* deadline.c - ends the lifetime of a box when no server does it.
 *
 * The server acts first: it has the box's row and the events. The keeper acts some seconds later,
 * if the box still runs with the same deadline. So a box ends, stops or freezes at the end of its
 * lifetime also after the server was stopped or killed. Deadlines use CLOCK_BOOTTIME, which cannot
 * be set, and are stored next to the record of the box, for the next keeper. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

#define GRACE_NS 10000000000ull /* if the server that set it is connected: it may be busy */
/* If it is not; the server reports no change of less than a second. */
#define ALONE_NS 2000000000ull
#define RETRY_NS 1000000000ull /* if init accepts no connection now */
#define SLEEP_MS 60000u        /* at most: the clock of the timer stops while the host sleeps */

static uint64_t due_ns(const struct keeper *k, const struct keeper_box *b)
{
	uint64_t grace = client_find((struct keeper *)k, b->deadline_client) ? GRACE_NS : ALONE_NS;
	uint64_t at = b->deadline.at_ns + grace, first = k->deadline_from_ns;

	return at < first ? first : at;
}

/* Sets the timer for the earliest deadline. */
static void wake_for(struct keeper *k, uint64_t at_ns, uint64_t now)
{
	uint64_t ms = at_ns > now ? (at_ns - now) / 1000000 + 1 : 0;

	if (!k->deadline_ns || at_ns < k->deadline_ns)
		k->deadline_ns = at_ns;
	keeper_wake_in(k, ms < SLEEP_MS ? (unsigned)ms : SLEEP_MS);
}

static void deadline_record_box(struct keeper *k, const struct keeper_box *b)
{
	struct err e;

	if (record_file_write_deadline(k->records.fd, b->place, b->meta.about.id, &b->deadline,
				       &e) < 0)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
}

void deadline_adopt(struct keeper *k, struct keeper_box *b)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME);

	if (!k->deadline_from_ns) /* a running server is about to connect, and may have a later
				   * deadline */
		k->deadline_from_ns = now + ALONE_NS;
	record_file_read_deadline(k->records.fd, b->place, b->meta.about.id, &b->deadline);
	if (b->deadline.at_ns)
		wake_for(k, due_ns(k, b), now);
}

/* Ends all programs and keeps the files, as a server does. Returns -1 if init accepts no connection
 * now. */
static int stop_programs(const struct keeper_box *b)
{
	struct frame stop = sock_head(WIRE_STOP, 1);
	char path[KEEPER_BOX_SOCKET];
	auto_fd int fd = -1;
	struct err e;

	keeper_box_socket(b, path);
	fd = sock_connect_now(path, &e);
	return fd < 0 ? -1 : sock_send(fd, &stop, sizeof(stop), NULL, 0, NULL, 0, &e);
}

static void deadline_act_on_box(struct keeper *k, struct keeper_box *b, uint64_t now)
{
	uint32_t then = b->deadline.then;

	if (then == WIRE_THEN_FREEZE && freeze_box(k, b) < 0)
		then = b->changing ? WIRE_THENS : WIRE_THEN_STOP;
	if (then == WIRE_THENS || (then == WIRE_THEN_STOP && stop_programs(b) < 0)) {
		b->deadline.at_ns = now + RETRY_NS - ALONE_NS; /* again in a moment */
		return;
	}
	fprintf(stderr,
		"atoll: keeper: box %s: its lifetime has expired and no server has acted: %s\n",
		b->meta.about.id,
		then == WIRE_THEN_END    ? "ended"
		: then == WIRE_THEN_STOP ? "programs ended"
					 : "frozen");
	if (then == WIRE_THEN_END) {
		b->by_operator = WIRE_ENDED_BY_DEADLINE;
		teardown_kill(k, b);
		return;
	}
	/* From here on the box is stored, and ends when its retention has elapsed. */
	b->deadline = (struct wire_then){ .at_ns = b->deadline.keep_ms == UINT64_MAX
							   ? 0
							   : now + b->deadline.keep_ms * 1000000,
					  .then = WIRE_THEN_END };
	deadline_record_box(k, b);
}

void deadline_look(struct keeper *k)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME), next = 0;
	struct keeper_box *b, *after;

	if (!k->deadline_ns)
		return;
	if (k->deadline_ns > now) {
		wake_for(k, k->deadline_ns, now);
		return;
	}
	for (b = keeper_box_after(&k->boxes, ""); b; b = after) {
		after = keeper_box_after(&k->boxes, b->meta.about.id);
		if (!b->deadline.at_ns || b->meta.about.state != WIRE_BOX_TAKEN)
			continue;
		if (due_ns(k, b) <= now)
			deadline_act_on_box(k, b, now);
		if (b->deadline.at_ns && b->meta.about.state == WIRE_BOX_TAKEN &&
		    (!next || due_ns(k, b) < next))
			next = due_ns(k, b);
	}
	k->deadline_ns = 0;
	if (next)
		wake_for(k, next, now);
}

void deadline_server_gone(struct keeper *k)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME);

	/* Deadlines of this server may be due sooner now. */
	if (k->deadline_ns)
		wake_for(k, now, now);
}

void deadline_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_deadline *w = (const struct wire_deadline *)f;
	struct frame done = sock_head(WIRE_DONE, f->ref);
	struct keeper_box *b = request_named(k, c, f);
	struct err e;

	if (!b)
		return;
	if (w->what.then >= WIRE_THENS || w->what.at_ns > UINT64_MAX / 2 ||
	    (w->what.keep_ms != UINT64_MAX && w->what.keep_ms > UINT64_MAX / 4000000)) {
		err_set(&e, ERR_INVALID, "not a deadline");
		client_error(k, c->number, f->ref, &e);
		return;
	}
	b->deadline = w->what;
	b->deadline_client = c->number;
	c->is_server = 1;
	deadline_record_box(k, b);
	if (b->deadline.at_ns)
		wake_for(k, due_ns(k, b), clock_ns(CLOCK_BOOTTIME));
	client_send(k, c->number, &done, sizeof(done), -1);
}
