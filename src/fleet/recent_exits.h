/* recent_exits.h - programs of a box that ended a moment ago, by the number they had inside.
 * Who comes to follow one by its pid may come late; for a while it is told how that ended.
 * Owns: a short list in its berth. The record is the store's. */
#pragma once
#include "fleet/exec.h"

enum { RECENT_EXITS_MS = 30000, RECENT_EXITS_MOST = 128 };

struct recent_exit {
	struct recent_exit *next; /* the one that ended before it */
	int pid;
	char run[ID_LEN + 1];
	char tag[STORE_NAME + 1];
	uint64_t ended_ms;
};

void recent_exits_add(struct box *b, const struct exec *r); /* nothing, if nobody knows its pid */
/* By its pid, or if that is 0 by its tag; NULL: none, or too long ago. */
const struct recent_exit *recent_exits_find(const struct box *b, int pid, const char *tag);
void recent_exits_free(struct box *b);
