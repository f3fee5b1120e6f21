/* search_protocol.h - what a box that searches says: a line of JSON at a time, believed in nothing.
 * Owns: nothing; an edit that was read is the caller's. */
#pragma once
#include "repair/edit.h"

enum { HEARSAY_LINE = 32 * 1024, HEARSAY_MOST = 1000000, HEARSAY_ACTS = 192, HEARSAY_ACT = 4 };
enum hearsay_kind {
	HEARSAY_NOTHING,    /* of no interest */
	HEARSAY_CANDIDATES, /* n: how many there are */
	HEARSAY_AT,         /* n: everything before this rank was tried */
	HEARSAY_FOUND,      /* n: its rank; edit, when the box has thought of it */
	HEARSAY_OVER,
};

struct hearsay {
	enum hearsay_kind kind;
	unsigned n, tried; /* tried: AT and OVER */
	int cut;	   /* OVER: there are candidates that it did not try */
	int has_edit;
	struct edit edit;
	char acts[HEARSAY_ACTS + 1]; /* FOUND: what it does with other inputs, HEARSAY_ACT letters each */
};

/* One line without its newline. -1: no search says such a thing. source: what it was given. */
must_check int hearsay_parse(struct hearsay *x, const char *line, size_t n, const char *source,
			     size_t source_len, struct err *e);
/* Do two that were found answer differently where both have an answer? */
int hearsay_differ(const char *acts, const char *other);
