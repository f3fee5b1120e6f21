/* hibernate.h - serve.on_shutdown = "hibernate": when the daemon stops, its boxes are paused to the disk; the next daemon
 * resumes them.
 * Owns:         the list of the boxes that are still to be paused or resumed, two at a time.
 * Does not own: the boxes; how they are paused (checkpoint/pause.h) and resumed (fleet/box.h). A box that cannot be paused
 *               continues to run, as without the setting. */
#pragma once
#include "fleet/box.h"

struct checkpoints;
struct hibernate;

enum { HIBERNATE_TURNS = 2 };

struct hibernate_turn { /* one box */
	struct box_wait wait;
	struct hibernate *all;
	char box[ID_MAX + 1]; /* "": none */
};

struct hibernate {
	struct fleet *fleet;
	struct checkpoints *checkpoints;
	int resumes;             /* else pauses */
	char (*ids)[ID_MAX + 1]; /* n of them, the first `next` have been dealt with */
	unsigned n, next;
	unsigned changed, failed;
	struct hibernate_turn turn[HIBERNATE_TURNS];
};

void hibernate_init(struct hibernate *h, struct fleet *f, struct checkpoints *c);
void hibernate_free(struct hibernate *h);
/* All boxes that run, except those that were created for one request. */
void hibernate_pause_all(struct hibernate *h);
/* Those that hibernate_pause_all() of an earlier daemon has paused. */
void hibernate_resume_all(struct hibernate *h);
int hibernate_is_busy(const struct hibernate *h); /* 0: each box was paused, or has failed */
