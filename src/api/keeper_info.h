/* keeper_info.h - the keeper's own figures, asked for when somebody wants them, believed for a second. */
#pragma once
#include "api/api.h"

/* then: with what the keeper said, perhaps a second ago; NULL: there is none to ask. Called before
 * this returns, or later; not at all when the client leaves. Uses c->state and c->drop. */
void keeper_info_request(struct call *c, void (*then)(struct call *c, const struct wire_about *a));
