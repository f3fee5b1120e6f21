/* keeper_info.h - the figures of the keeper, requested when a caller needs them and cached for a
 * second. */
#pragma once
#include "api/api.h"

/* then: receives the figures, which may be a second old; NULL: no keeper is connected. It is called
 * before this function returns, or later; it is not called if the client disconnects. Uses c->state
 * and c->drop. */
void keeper_info_request(struct call *c, void (*then)(struct call *c, const struct wire_info *a));
