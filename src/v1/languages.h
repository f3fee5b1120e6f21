/* languages.h - GET /v1/languages: what programs may be written in, and which versions are here.
 * Owns: what a box said about its versions, from the first question until the daemon ends. */
#pragma once
#include "api/api.h"

void languages_list(struct call *c);
void languages_fini(struct api *a);
