/* openapi.h - /openapi.json: every route with its parameters and answers.
 * Owns: nothing. Requests are described by the tables that check them (struct field), answers by
 *       answers.json, with which tests/system/daemon.lib validates every answer in a
 *       system test. */
#pragma once
#include "api/api.h"

void openapi_show(struct call *c);
/* Adds an operation to the paths of the document, for surfaces whose paths are not in a route table. */
void openapi_add(json_t *paths, const char *pattern, const struct api_route *r);
