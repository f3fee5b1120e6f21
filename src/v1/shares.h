/* shares.h - /v1/boxes/{box}/shares: links that open one box in the web UI.
 *
 * A share is a key (store/keys.h) that is bound to the box and expires. Its link is the address of
 * the workspace with the key after '#', which browsers do not send. Any number of people may open
 * the link; revoking the share ends all of their sessions within a second.
 *
 * Owns: nothing; a share is a row of keys whose name begins with SHARES_PREFIX. */
#pragma once
#include "api/api.h"

#define SHARES_PREFIX "share-"
enum { SHARES_MAX = 32 }; /* of one box */

extern const struct field shares_create_fields[];

void shares_create(struct call *c);
void shares_list(struct call *c);
void shares_delete(struct call *c);
