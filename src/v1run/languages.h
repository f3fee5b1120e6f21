/* languages.h - GET /v1/languages: what programs may be written in, and which versions are here.
 * Owns: the versions that a box has reported, from the first request until the server exits. */
#pragma once
#include "api/api.h"

void languages_list(struct call *c);
void languages_fini(struct api *a);
