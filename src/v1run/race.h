/* race.h - POST /v1/boxes/{box}/race: attempts in copies of a box, a check in each, the winner's files for the box.
 * Owns:         itself, the copies, the time limit of the whole; all of it ends with the request.
 * Does not own: the programs (run_request.h), the checkpoints (checkpoint/). */
#pragma once
#include "api/api.h"

extern const struct field race_fields[], race_program_fields[], race_budget_fields[];

enum { RACE_ATTEMPTS = 32 };

void race_start(struct call *c);
