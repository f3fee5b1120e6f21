/* search_protocol.h - what a box that searches says: a line of JSON at a time, believed in nothing.
 * Owns: nothing; an edit that was read is the caller's. */
#pragma once
#include "repair/edit.h"

enum {
	SEARCH_MSG_LINE = 32 * 1024,
	SEARCH_MSG_MOST = 1000000,
	SEARCH_MSG_ACTS = 192,
	SEARCH_MSG_ACT = 4
};
enum search_msg_kind {
	SEARCH_MSG_NOTHING,    /* of no interest */
	SEARCH_MSG_CANDIDATES, /* n: how many there are */
	SEARCH_MSG_AT,         /* n: everything before this rank was tried */
	SEARCH_MSG_FOUND,      /* n: its rank; edit, when the box has thought of it */
	SEARCH_MSG_OVER,
};

struct search_msg {
	enum search_msg_kind kind;
	unsigned n, tried; /* tried: AT and OVER */
	int cut;           /* OVER: there are candidates that it did not try */
	int has_edit;
	struct edit edit;
	char acts[SEARCH_MSG_ACTS +
		  1]; /* FOUND: what it does with other inputs, SEARCH_MSG_ACT letters each */
};

/* One line without its newline. -1: no search says such a thing. source: what it was given. */
must_check int search_msg_parse(struct search_msg *x, const char *line, size_t n,
				const char *source, size_t source_len, struct err *e);
/* Do two that were found answer differently where both have an answer? */
int search_msg_differ(const char *acts, const char *other);
