/* wallclock.c - see wallclock.h. */
#include "fleet/wallclock.h"
#include "base/clock.h"
#include "base/log.h"
#include "fleet/box.h"
#include "store/clock_offset.h"

#define LEAST_NS INT64_C(1000000000)

static int64_t offset_ns; /* wall clock minus time since boot; 0: not measured yet */

/* Measures again if the process was preempted in between: a preemption would look like a small
 * clock step. */
static int64_t wallclock_measure(void)
{
	uint64_t before, wall, after;
	int tries = 3;

	do {
		before = clock_ns(CLOCK_BOOTTIME);
		wall = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
	} while (after - before > 1000000 && --tries);
	return (int64_t)(wall - before);
}

int64_t fleet_now_ns(void)
{
	if (!offset_ns)
		offset_ns = wallclock_measure();
	return (int64_t)clock_ns(CLOCK_BOOTTIME) + offset_ns;
}

static void wallclock_move(struct box *b, int64_t by_ns)
{
	int64_t *const times[] = { &b->row.ends_ns, &b->row.idle_since_ns, &b->row.kept_until_ns,
				   &b->row.stored_ns };

	for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (*times[i])
			*times[i] += by_ns;
	fleet_call_hooks(b->fleet, clock_moved, b, by_ns);
}

void fleet_check_clock(struct fleet *f)
{
	int64_t now = wallclock_measure(), by_ns = offset_ns ? now - offset_ns : 0, stored = 0;
	int first = !f->looked_at_clock, jumped = by_ns >= LEAST_NS || by_ns <= -LEAST_NS;
	struct err e;

	if (!jumped && !first)
		return;
	f->looked_at_clock = 1;
	offset_ns = now;
	for (struct box *b = fleet_next(f, NULL); b && jumped; b = fleet_next(f, b))
		wallclock_move(b, by_ns);
	for (struct box *b = f->making; b && jumped; b = b->next)
		wallclock_move(b, by_ns);
	if (store_clocks(f->store, f->boot, now, &stored, &e) < 0)
		log_error("the clock was set, and deadlines could not be moved",
			  LOG_S("error", e.msg));
	else if (jumped || stored)
		log_warn("the clock was set; deadlines move with it",
			 LOG_I("seconds", (jumped ? by_ns : stored) / 1000000000));
}
