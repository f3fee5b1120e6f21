/* network_answer.h - answers a request that has changed rules of egress, when egress has applied them:
 * the next connection of the box is judged by the new rules.
 * Owns: nothing; the wait is memory of the request. */
#pragma once
#include "api/api.h"

/* b NULL: no box is concerned. take_doc NULL: an answer without a body. */
void network_answer(struct call *c, struct box *b, int status, json_t *take_doc);
