/* fragment.h - what a front end sends, in our own words. Pure: JSON in, JSON out. */
#pragma once
#include "api/api.h"

#define FRAGMENT_APP "app" /* tag of the server that a fragment with a port starts */

extern const struct field fragment_fields[], fragment_request_fields[];

/* body: checked against fragment_request_fields. The result has the fields of POST /v1/boxes and of
 * POST .../execs together, and is the caller's; NULL: e names the field that is wrong. */
json_t *fragment_translate(const json_t *body, struct err *e);
