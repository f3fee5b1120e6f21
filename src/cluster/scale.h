/* scale.h - how many nodes a cluster needs: for GET /v1/scale and the autoscalers that read it.
 * Owns:         the creations and refusals of the last minute, the largest results of the last ten minutes.
 * Does not own: time (the caller passes it), the figures of nodes.
 *
 *   wanted = (reserved + refused in the last minute + creations per second x time until a new node is ready)
 *            / (0.8 x capacity of a node)
 *
 * All in bytes of memory. More nodes are wanted at once, fewer only after SCALE_HOLD_MS: a node that was drained
 * returns slowly. */
#pragma once
#include <stdint.h>

enum {
	SCALE_SECONDS = 60,
	SCALE_HOLD_SLOTS = 10,
	SCALE_HOLD_MS = SCALE_HOLD_SLOTS * 60 * 1000,
	SCALE_FULL_PERCENT = 80, /* part of a node that is planned to be in use */
	SCALE_NODES_MAX = 32767,
};

struct scale_figures {
	unsigned ready;    /* nodes that take boxes */
	uint64_t capacity; /* bytes of all of these together */
	uint64_t reserved; /* of these, in use; also of draining nodes: their boxes will end */
	unsigned least;    /* never fewer */
	uint64_t boot_ms;  /* until a new node takes boxes */
};

struct scale_second {
	uint64_t at_s, created, refused; /* bytes */
};

struct scale { /* zero is valid */
	struct scale_second seconds[SCALE_SECONDS];
	unsigned held[SCALE_HOLD_SLOTS]; /* the largest result of each minute */
	uint64_t held_min[SCALE_HOLD_SLOTS];
};

void scale_count_created(struct scale *s, uint64_t bytes, uint64_t now_ms);
void scale_count_refused(struct scale *s, uint64_t bytes, uint64_t now_ms);

struct scale_result {
	unsigned wanted;
	char reason[200]; /* a sentence with the figures */
};
/* The result of the formula, without the ten minutes. Pure. */
unsigned scale_needed(const struct scale_figures *f, uint64_t refused, uint64_t created_per_minute);
struct scale_result scale_wanted(struct scale *s, const struct scale_figures *f, uint64_t now_ms);
