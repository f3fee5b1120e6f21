/* replay.h - POST /v1/runs/{run}/replay: runs the same program again, in a new box. The row of a
 * run contains its request, up to REPLAY_BYTES of JSON. Other files of the box (of earlier
 * programs) are not part of it. */
#pragma once
#include "api/api.h"

enum { REPLAY_BYTES = 64 * 1024 };

/* The request to store, owned by the caller; NULL: too large, and *out_inputs has its hashes for a receipt; or its
 * input was streamed and not stored, and *out_inputs is NULL. out_inputs may be NULL. box: the box of the run, whose limits and variables are
 * included; NULL: the request contains everything. */
json_t *replay_request(const json_t *body, const struct box *box, json_t **out_inputs);

void replay_run(struct call *c);
