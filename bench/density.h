/* density.h - the cost of many boxes at the same time: memory of each, and how much slower the
 * next one is created. */
#pragma once
#include "memory.h"
#include "sample.h"

enum density_kind {
	DENSITY_IDLE,    /* as pooled boxes are: waiting, no limits of their own yet */
	DENSITY_LIMITED, /* in use: with limits, and one program has run in each */
};

struct density_point {
	enum density_kind kind;
	unsigned boxes;
	int measured;
	struct memory before;           /* of the first point: memory was not fragmented then */
	struct memory at, back;         /* with all of them, and after they were ended */
	double create_rate;             /* per second, of further boxes while these exist */
	double fill_rate, destroy_rate; /* of all of them */
	struct samples exec;            /* /bin/true in a random one */
	struct samples fork; /* measured in between: shows whether the machine itself was slower */
	char missing[200];
};

struct density {
	struct density_point points[4];
	unsigned npoints;
	double rate_at_10;
	double fork_at_10_ms;
};

/* Points at 1,000 and at `most` idle boxes, and at 1,000 taken ones; fewer if `most` is less. */
void density_measure(struct density *d, unsigned most);
/* KiB per box; NAN if not measured. */
double density_used_each(const struct density_point *p);
double density_parts_each(const struct density_point *p);
const char *density_kind_name(enum density_kind kind);
void density_fini(struct density *d);
