/* automatic.h - checkpoints before the steps of a client: programs, cells, calls of tools.
 * Owns:         the wait of a request for the checkpoint before its step, and the field `checkpoints` of a box.
 * Does not own: the checkpoint (checkpoint/checkpoints.h), its mention in the record (fleet/exec.h). */
#pragma once
#include "api/api.h"
#include "checkpoint/policy.h"

extern const struct field automatic_fields[];

/* Before a step in a box that the call holds. 0: the step starts at once. 1: then(c) is called when the
 * checkpoint exists or the time for it has passed, unless the client disconnects before; the box may have
 * ended. Not while another step of the box is in progress. c->before is the result, for the record. */
int automatic_before(struct call *c, struct box *b, enum checkpoint_step step,
		     void (*then)(struct call *c));

/* The text of the row after this field `checkpoints` of a body, for free(); had: as it is, or NULL. Members that are
 * not given stay. */
must_check int automatic_read(const json_t *field, const char *had, char **out, struct err *e);
