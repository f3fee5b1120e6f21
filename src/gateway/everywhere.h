/* everywhere.h - answers of this gateway to which its nodes add what they have: figures of webhooks.
 * Owns: the requests to nodes. */
#pragma once
#include "api/api.h"

/* api->merged of a gateway. */
void gateway_everywhere(struct call *c, int status, json_t *take_doc, call_merge *merge);
