/* route.h - selects the handler of a request: one const table, matched segment by segment.
 * Segments are split at '/' first and decoded then, so that "%2F" is a character and never a
 * separator; a segment that decodes to "", ".", ".." or contains NUL matches nothing: 400. */
#pragma once
#include "base/err.h"

enum { ROUTE_PARAMS = 4, ROUTE_TEXT = 256 };

struct route {
	const char *method;
	const char *pattern; /* "/v1/boxes/{box}/execs/{exec}" */
	const void *target;  /* the owner's row */
};

struct route_match {
	const struct route *route;
	unsigned nparams;
	char params[ROUTE_PARAMS][ROUTE_TEXT]; /* decoded, in the order of the pattern */
	const char *allow;                     /* on 405: "GET, DELETE" */
	char allow_text[64];
};

/* 0, or the HTTP status of the error: 400, 404, 405 (allow is set), 414. */
int route_find(const struct route *table, unsigned count, const char *method, const char *path,
	       struct route_match *out);
