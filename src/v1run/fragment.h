/* fragment.h - translates the request of a chat front end into fields of /v1. Pure: JSON in, JSON
 * out. */
#pragma once
#include "api/api.h"

#define FRAGMENT_APP "app" /* tag of the server that a fragment with a port starts */

extern const struct field fragment_fields[], fragment_request_fields[];

/* body: checked against fragment_request_fields. The result has the fields of POST /v1/boxes and of
 * POST .../execs together, and belongs to the caller; NULL: e names the invalid field. */
json_t *fragment_translate(const json_t *body, struct err *e);
