/* policy.h - the automatic checkpoints of a box: its field `checkpoints`.
 * Owns:         the meaning of the column boxes.checkpoints, and the checkpoints of an interval.
 * Does not own: those before a step of a client: v1box/automatic.h takes them. */
#pragma once
#include "store/boxes.h"
#include <jansson.h>

/* What a client starts in a box. */
enum checkpoint_step { CHECKPOINT_STEP_EXEC, CHECKPOINT_STEP_CELL, CHECKPOINT_STEP_TOOL };
/* Before which of them a checkpoint is taken. */
enum checkpoint_auto {
	CHECKPOINT_BEFORE_NONE,
	CHECKPOINT_BEFORE_ALL, /* "exec": programs, cells and calls of tools */
	CHECKPOINT_BEFORE_CELL,
	CHECKPOINT_BEFORE_TOOL,
};
enum { CHECKPOINT_AUTO_LAST = 20 }; /* automatic ones of a box that are kept, by default */

struct checkpoint_policy {
	enum checkpoint_auto before;
	uint64_t interval_ms; /* 0: none */
	unsigned keep;
	int self;    /* its programs may take checkpoints: self.h */
	int prepare; /* a process image is kept ready for forks: prepare.h */
	int track;   /* changes of files are tracked between checkpoints */
};
void checkpoint_policy_read(const struct store_box *row, struct checkpoint_policy *out);
/* As in the API: {auto, interval_ms, keep, self, prepare, track}. */
json_t *checkpoint_policy_json(const struct store_box *row);
int checkpoint_policy_covers(const struct checkpoint_policy *p, enum checkpoint_step step);

/* "exec", "cell", "tool": the reason of a checkpoint before this step. */
const char *checkpoint_step_reason(enum checkpoint_step step);
#define CHECKPOINT_INTERVAL "interval"
/* Also those that programs of a box take. */
int checkpoint_reason_is_automatic(const char *reason);
