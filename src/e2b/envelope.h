/* envelope.h - the Connect protocol's envelope: a byte of flags, four bytes of length, then the
 * JSON.
 * Owns: the envelope that is being read, of limited size. */
#pragma once
#include "base/buf.h"
#include <stdint.h>

enum { ENVELOPE = 5, ENVELOPE_COMPRESSED = 1, ENVELOPE_END = 2 };

struct envelope { /* zero is a valid one: nothing was read */
	uint8_t head[ENVELOPE];
	unsigned have; /* bytes of head */
	struct buf body;
	int whole; /* body is complete; the next call starts another one */
};

/* Takes bytes up to the end of one envelope of up to `most` bytes. 1: body is complete; 0: all
 * were taken, and more must follow; -1: the stream is invalid, and *why has the reason. */
int envelope_take(struct envelope *v, const char **bytes, size_t *n, size_t most, const char **why);
int envelope_is_open(const struct envelope *v); /* in the middle of one */
void envelope_fini(struct envelope *v);

void envelope_head(uint8_t out[ENVELOPE], uint8_t flags, size_t n);
