/* usage_sampler.h - what boxes use: now, and for a while back.
 * Owns: the samples, the questions that are under way, the list of who watches.
 *
 * A box that somebody watches is asked once a second, the others every ten seconds; all together at
 * most GAUGE_ASKS times a second, in turns, so that on a crowded machine samples come less often and
 * cost no more. A sample is one question to the keeper (the kernel's counters) and one to the box's
 * init (its disk, which is for show: a box can say what it likes). Neither is activity.
 *
 *   seconds        of the last 15 minutes in which somebody watched
 *   tens           every 10 s of the last 24 hours
 *
 * Samples live in memory, at most GAUGE_BYTES of all boxes, and are gone after a restart. */
#pragma once
#include "fleet/box.h"

enum {
	GAUGE_ASKS = 500,
	GAUGE_BYTES = 16 << 20,
	GAUGE_SECONDS = 15 * 60,
	GAUGE_TENS = 24 * 360,
	GAUGE_STEP_S = 10,
};

struct gauge_sample {
	uint64_t cpu_us; /* ~0: this host cannot tell */
	uint32_t at_s;   /* wall clock */
	uint32_t mem_kib, disk_kib;
	uint16_t pids, running;
};

struct gauge_now {
	int64_t at_ns;
	int counted, told; /* which of the two have answered */
	struct wire_counted kernel;
	struct wire_status inside;
	unsigned running; /* programs */
};

struct gauge_box;
struct gauge_watch {
	struct gauge_watch *next;
	struct gauge_box *of; /* NULL: watches nothing */
	int once;
	/* now NULL: the box is no more, and neither does w watch it. */
	void (*told)(struct gauge_watch *w, const struct gauge_now *now);
};

struct gauges;
struct gauges *gauges_new(struct fleet *f);
void gauges_free(struct gauges *g); /* before the fleet is */
void gauges_second(struct gauges *g);

/* once: the next sample, asked for now; else every one. */
void gauge_watch(struct gauges *g, const struct box *b, struct gauge_watch *w, int once);
void gauge_unwatch(struct gauge_watch *w); /* fine on one that watches nothing */

/* Those since then, oldest first. step_s: 1 or GAUGE_STEP_S. */
void gauge_history(const struct gauges *g, const char *box, int step_s, uint32_t since_s,
		   void (*each)(void *ctx, const struct gauge_sample *s), void *ctx);
