/* recent_exits.h - execs of a box that ended recently, by their pid in the box. A client that
 * attaches to an exec by its pid may come late; for a while it still gets the result.
 * Owns: a short list in each box. The record is in the store. */
#pragma once
#include "fleet/exec.h"

enum { RECENT_EXITS_MS = 30000, RECENT_EXITS_MOST = 128 };

struct recent_exit {
	struct recent_exit *next; /* the exec that ended before this one */
	int pid;
	char run[ID_MAX + 1];
	char tag[STORE_NAME + 1];
	uint64_t ended_ms;
};

void recent_exits_add(struct box *b, const struct exec *r); /* does nothing if its pid is unknown */
/* By its pid, or if that is 0 by its tag; NULL: none, or too long ago. */
const struct recent_exit *recent_exits_find(const struct box *b, int pid, const char *tag);
void recent_exits_free(struct box *b);
