/* isolation.h - the members `isolation` and `trust` of requests that start programs.
 * Owns: nothing. fleet/isolation.h chooses the tier. */
#pragma once
#include "api/api.h"

#define ISOLATION_HELP                                                                             \
	"isolation tier: auto, a tier, or a tier and + for this one or a stronger one"
#define TRUST_HELP "how far the code is trusted: trusted, generated (default), untrusted, hostile"

#define ISOLATION_FIELDS                                                                           \
	{ "isolation", FIELD_ANY, 0, 0, 0, ISOLATION_HELP "; or {\"at_least\": tier}", NULL },     \
	{                                                                                          \
		"trust", FIELD_ANY, 0, 0, 0, TRUST_HELP, NULL                                      \
	}
/* The same as texts: for queries, and for tools, whose schemas have one type for each member. */
#define ISOLATION_QUERY                                                                            \
	{ "isolation", FIELD_TEXT, 0, 0, 40, ISOLATION_HELP, NULL },                               \
	{                                                                                          \
		"trust", FIELD_TEXT, 0, 0, 20, TRUST_HELP, NULL                                    \
	}

/* Of the body, else of the query. */
must_check int isolation_of_call(struct call *c, struct choose_request *out, struct err *e);
/* The same for a request whose boxes are created later: checks that a tier fits now, and writes the members into the
 * body as texts. modules: its programs may be modules, which is checked for each of them later. 0: rejected, and that was
 * answered. */
int isolation_check_call(struct call *c, int modules, struct choose_request *out);
