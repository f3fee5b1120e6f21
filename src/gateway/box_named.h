/* box_named.h - api->box_of_cluster of a gateway: which box a request names that the gateway itself answers, such as a new
 * key for one box. Owns: the requests to nodes. */
#pragma once
#include "api/api.h"

void gateway_box_named(struct call *c, const char *name, call_box_found *done);
