/* receipts.h - the chain of receipts of this node: one row for each run that ended.
 *
 * Numbers have no gap: the number of a new row is that of the last one and one more, read in the transaction
 * that inserts it. Rows are removed from the beginning only, and the last one is never removed, so no number is
 * used twice. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"

struct store_receipt {
	uint64_t number; /* from 1 */
	char run[ID_MAX + 1];
	char team[STORE_NAME + 1];
	int64_t at_ns;
	uint8_t hash[SHA256_BYTES]; /* of body */
	char *body;                 /* canonical JSON; contains the hash of the row before */
};
void store_receipt_fini(struct store_receipt *r);

struct store_receipts {
	struct store_receipt *v;
	unsigned n;
	int more;
};
void store_receipts_fini(struct store_receipts *l);

/* The last one: number 0 and a hash of zeros if there is none. */
must_check int store_receipt_last(struct store *s, uint64_t *out_number,
				  uint8_t out_hash[SHA256_BYTES], struct err *e);
/* ERR_CONFLICT: the number exists. Call it in the transaction that has read the last one. */
must_check int store_receipt_add(struct store *s, const struct store_receipt *r, struct err *e);
/* ERR_NOT_FOUND: the run has none, or it was removed. */
must_check int store_receipt_of_run(struct store *s, const char *run, struct store_receipt *out,
				    struct err *e);
/* By number, from this one on; limit 0: STORE_PAGE. */
must_check int store_receipt_list(struct store *s, uint64_t from, unsigned limit,
				  struct store_receipts *out, struct err *e);
/* Removes up to `rows` receipts from the beginning: those before cut_ns, and those of which `most` newer ones
 * exist (0: any number). The last one stays. */
must_check int store_receipt_purge(struct store *s, int64_t cut_ns, uint64_t most, unsigned rows,
				   unsigned *out_removed, struct err *e);
