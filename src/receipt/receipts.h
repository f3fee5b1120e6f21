/* receipts.h - receipts of runs: what was run, in which limits and isolation, and what came out.
 * Owns: the key of the node. The rows are in the store (store/receipts.h).
 *
 *   body       canonical JSON with the number of the receipt and the hash of the one before
 *   hash       SHA-256 of body
 *   signature  Ed25519 of "atoll receipt 1", number, previous hash and hash, one per line
 *
 * The body is written in the transaction that ends the run, and costs one hash. The signature is computed when a
 * receipt is requested: Ed25519 has one signature for a message, so it need not be stored. Because the signature covers
 * the hash, the link of a receipt in the chain can be shown without its content: to other teams of the same node. */
#pragma once
#include "fleet/fleet.h"
#include "receipt/node_key.h"
#include "store/receipts.h"

enum { RECEIPT_VERSION = 1, RECEIPT_HASH = 2 * SHA256_BYTES };

struct receipts {
	struct store *store;
	struct node_key key;
	/* Between fleet_receipts.next and .add: */
	uint64_t number;
	uint8_t previous[SHA256_BYTES];
};

/* From here on every end of a run has a receipt. The key was opened before. */
void receipts_init(struct receipts *r, struct fleet *f);
void receipts_fini(struct receipts *r);

/* The body of a receipt, and its hash. Exposed for tests. */
void receipts_body(struct buf *out, const struct receipts *r, const struct store_run *row,
		   const json_t *record, const struct run_facts *facts);
void receipts_hash(const struct buf *body, uint8_t out[SHA256_BYTES]);
/* Hash of the request that started a run, without its code: canonical JSON. */
void receipts_hash_inputs(const json_t *request, char out[RECEIPT_HASH + 1]);
/* The hashes of a request that is not stored, for the record ("inputs"); owned by the caller. */
json_t *receipts_inputs(const json_t *request);
/* The bytes that are signed. */
void receipts_message(struct buf *out, uint64_t number, const char *previous, const char *hash);

/* Appends one line of an export, without a newline: {"receipt":...,"signature":...}, or, withheld, the link without
 * the content: {"hash":...,"number":...,"previous":...,"signature":...}. ERR_CONFLICT: the stored row was changed. */
must_check int receipts_line(const struct receipts *r, const struct store_receipt *row,
			     int withheld, struct buf *out, struct err *e);
