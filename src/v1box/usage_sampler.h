/* usage_sampler.h - samples what boxes use, and keeps a history.
 * Owns: the samples, the requests in progress, the list of watchers.
 *
 * A box with a watcher is sampled once a second, the others every ten seconds; all together at most
 * USAGE_REQUESTS times a second, in turns, so that samples are less frequent on a crowded machine
 * and do not cost more. A sample is one request to the keeper (counters of the kernel) and one to
 * init of the box (its disk usage, which is untrusted and only displayed). Neither counts as
 * activity.
 *
 *   seconds        of the last 15 minutes in which there was a watcher
 *   tens           every 10 s of the last 24 hours
 *
 * Samples are in memory only, at most USAGE_BYTES for all boxes, and are lost at a restart. */
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
	uint64_t cpu_us; /* ~0: not available on this host */
	uint32_t at_s;   /* wall clock */
	uint32_t mem_kib, disk_kib;
	uint32_t in_kib, out_kib; /* received, sent so far; rounded up */
	uint16_t pids, running;
};

struct usage_now {
	int64_t at_ns;
	int counted, told; /* the keeper, init has answered */
	struct wire_counters kernel;
	struct wire_status inside;
	unsigned running;             /* programs */
	uint64_t bytes_in, bytes_out; /* received and sent through egress */
};

struct gauge_box;
struct usage_watch {
	struct usage_watch *next;
	struct gauge_box *of; /* NULL: not watching */
	int once;
	/* now NULL: the box was deleted, and w is no longer watching. */
	void (*told)(struct usage_watch *w, const struct usage_now *now);
};

struct usage_sampler;
struct usage_sampler *usage_sampler_new(struct fleet *f);
void usage_sampler_free(struct usage_sampler *g); /* before the fleet is freed */
void usage_sampler_tick(struct usage_sampler *g);

/* once: only the next sample, requested now; else every sample. */
void usage_watch(struct usage_sampler *g, const struct box *b, struct usage_watch *w, int once);
void usage_unwatch(struct usage_watch *w); /* fine if w is not watching */

/* Samples since then, oldest first. step_s: 1 or USAGE_STEP_S. */
void usage_history(const struct usage_sampler *g, const char *box, int step_s, uint32_t since_s,
		   void (*each)(void *ctx, const struct usage_sample *s), void *ctx);
