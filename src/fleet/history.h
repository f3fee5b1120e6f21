/* history.h - the job that removes old rows from the store: store/history.h.
 * Owns: its timer and the position of the sweep that is under way.
 *
 * A sweep starts every hour, or every tenth of a shorter limits.history, or earlier when an eighth of
 * limits.history_size was written since the last one. It works in turns of HISTORY_TURN_US and leaves
 * HISTORY_PAUSE_MS between two of them to requests. While another server process uses the same store
 * no sweep runs. */
#pragma once
#include "loop/loop.h"
#include "store/history.h"

enum { HISTORY_TURN_US = 1500, HISTORY_PAUSE_MS = 15, HISTORY_LOOK_MS = 10000 };

struct fleet;

struct history {
	struct fleet *fleet;
	struct timer timer;
	uint64_t keep_ms, team_bytes; /* 0: no bound */
	uint64_t added;               /* bytes since the last sweep */
	uint64_t last_ms;             /* when that one began; loop_now_ms() */
	int sweeping;
	struct store_history sweep;
};

void history_init(struct history *h, struct fleet *f, uint64_t keep_ms, uint64_t team_bytes);
void history_fini(struct history *h); /* fine on a zeroed one */
