/* run_end.h - writes the end of a run, counts it and writes its receipt, in one transaction: all or nothing.
 * Owns: nothing. The content of receipts belongs to receipt/, which sets fleet.receipts. */
#pragma once
#include "base/sha256.h"
#include "store/runs.h"
#include <jansson.h>

struct fleet;

/* Facts for the receipt that the record does not have. Zero: nothing of it is known. */
struct run_facts {
	json_t *layers; /* ids of the layers of its box, the topmost first; NULL: not known */
	uint8_t output[2][SHA256_BYTES];
	uint8_t has_output[2]; /* the server has read all of that stream */
};
void run_facts_fini(struct run_facts *x);

/* Receipts, written by another module. All members are set, or none: then runs have no receipts. */
struct fleet_receipts {
	void *ctx;
	/* The number for the next receipt; in the open transaction. */
	int (*next)(void *ctx, uint64_t *out_number, struct err *e);
	/* Adds it: the end of this run was written with that number. record: as it is stored; may be NULL. */
	int (*add)(void *ctx, const struct store_run *row, const json_t *record,
		   const struct run_facts *facts, struct err *e);
};

/* As store_run_end(); row has team, box, kind and started_ns as well. An exec of the server itself gets no receipt. */
must_check int run_end_write(struct fleet *f, struct store_run *row, const json_t *record,
			     const struct run_facts *facts, struct err *e);
