/* verify.h - checks a file of receipts, one per line, with the public key of their node. Needs no server.
 * Owns: nothing but what it knows of the line before. */
#pragma once
#include "receipt/receipts.h"

enum { VERIFY_LINE = 256 << 10 }; /* bytes of a line, at most */

struct verify {
	const struct node_key *key;
	uint64_t first, last, count; /* numbers; 0: none yet */
	uint64_t withheld;           /* of them: links without content */
	char hash[RECEIPT_HASH + 1]; /* of the last one */
};

/* The next line, without its newline. ERR_INVALID: it is no receipt, or not canonical; ERR_DENIED: its signature is
 * wrong, so that its content was changed; ERR_CONFLICT: it does not follow the one before. The message has the number
 * of the receipt where one is known. */
must_check int verify_line(struct verify *v, const char *line, size_t n, struct err *e);
