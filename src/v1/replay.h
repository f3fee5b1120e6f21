/* replay.h - POST /v1/runs/{run}/replay: the same program again, in a fresh box.
 * A run keeps what was asked for, up to REPLAY_BYTES of JSON, in its row. What a box held besides
 * (files of earlier programs) is not part of that. */
#pragma once
#include "api/api.h"

enum { REPLAY_BYTES = 64 * 1024 };

/* What another go needs, the caller's; NULL: too large, or its input came in pieces that nobody
 * kept. box: the one it runs in, whose limits and variables count; NULL: the request has all. */
json_t *replay_request(const json_t *body, const struct box *box);

void replay_run(struct call *c);
