/* usage_sampler.h - what boxes use: now, and for a while back.
 * Owns: the samples, the questions that are under way, the list of who watches.
 *
 * A box that somebody watches is asked once a second, the others every ten seconds; all together at
 * most USAGE_REQUESTS times a second, in turns, so that on a crowded machine samples come less often and
 * cost no more. A sample is one question to the keeper (the kernel's counters) and one to the box's
 * init (its disk, which is for show: a box can say what it likes). Neither is activity.
 *
 *   seconds        of the last 15 minutes in which somebody watched
 *   tens           every 10 s of the last 24 hours
 *
 * Samples live in memory, at most USAGE_BYTES of all boxes, and are gone after a restart. */
#pragma once
#include "fleet/box.h"

enum {
	USAGE_REQUESTS = 500,
	USAGE_BYTES = 16 << 20,
	USAGE_SECONDS = 15 * 60,
	USAGE_TENS = 24 * 360,
	USAGE_STEP_S = 10,
};

struct usage_sample {
	uint64_t cpu_us; /* ~0: this host cannot tell */
	uint32_t at_s;   /* wall clock */
	uint32_t mem_kib, disk_kib;
	uint16_t pids, running;
};

struct usage_now {
	int64_t at_ns;
	int counted, told; /* which of the two have answered */
	struct wire_counted kernel;
	struct wire_status inside;
	unsigned running; /* programs */
};

struct gauge_box;
struct usage_watch {
	struct usage_watch *next;
	struct gauge_box *of; /* NULL: watches nothing */
	int once;
	/* now NULL: the box is no more, and neither does w watch it. */
	void (*told)(struct usage_watch *w, const struct usage_now *now);
};

struct usage_sampler;
struct usage_sampler *usage_sampler_new(struct fleet *f);
void usage_sampler_free(struct usage_sampler *g); /* before the fleet is */
void usage_sampler_tick(struct usage_sampler *g);

/* once: the next sample, asked for now; else every one. */
void usage_watch(struct usage_sampler *g, const struct box *b, struct usage_watch *w, int once);
void usage_unwatch(struct usage_watch *w); /* fine on one that watches nothing */

/* Those since then, oldest first. step_s: 1 or USAGE_STEP_S. */
void usage_history(const struct usage_sampler *g, const char *box, int step_s, uint32_t since_s,
		   void (*each)(void *ctx, const struct usage_sample *s), void *ctx);
