/* search_protocol.h - parses the output of a search box: one line of JSON at a time, untrusted.
 * Owns: nothing; a parsed edit belongs to the caller. */
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
	SEARCH_MSG_AT,         /* n: all edits before this rank were tried */
	SEARCH_MSG_FOUND,      /* n: its rank; edit, if the box generated it */
	SEARCH_MSG_OVER,
};

struct search_msg {
	enum search_msg_kind kind;
	unsigned n, tried; /* tried: AT and OVER */
	int cut;           /* OVER: some candidates were not tried */
	int has_edit;
	struct edit edit;
	char acts[SEARCH_MSG_ACTS +
		  1]; /* FOUND: its results for other inputs, SEARCH_MSG_ACT letters each */
};

/* One line without its newline. -1: an invalid message. source: the given program. */
must_check int search_msg_parse(struct search_msg *x, const char *line, size_t n,
				const char *source, size_t source_len, struct err *e);
/* Do two edits have different results for an input for which both have one? */
int search_msg_differ(const char *acts, const char *other);
