/* history.h - removes rows that are too old or too many: ended runs, ended boxes, answers to
 * idempotency keys, sessions of MCP, audit rows, receipts; and returns the freed pages to the
 * filesystem.
 * Owns: nothing but the position of a sweep, which the caller keeps.
 *
 * A sweep is many small steps, each of a bounded number of rows or pages and a transaction of
 * its own, so that the caller can serve requests between two steps. A sweep that is abandoned or
 * interrupted by kill -9 leaves a consistent database, and the next sweep starts from the
 * beginning.
 *
 * Rows of teams that no longer exist are removed like all others. Running programs, boxes that
 * are not gone and idempotency keys of the last IDEM_KEEP_NS that fit into team_bytes are never
 * touched. */
#pragma once
#include "store/store.h"
#include <stddef.h>

struct store_history {
	/* Set by the caller: */
	int64_t now_ns;
	uint64_t keep_ns; /* age at which a row is removed; 0: age removes nothing */
	/* NULL, or the same for runs and boxes of one team. */
	uint64_t (*keep_of)(void *ctx, const char *team, uint64_t keep_ns);
	void *ctx;
	uint64_t team_bytes; /* of each kind (runs, boxes, keys), for each team; 0: no bound */

	/* What was removed so far: */
	uint64_t runs, boxes, keys, sessions, audit_rows, receipts, pages;

	/* The position; zero: at the beginning. */
	unsigned stage;
	char team[STORE_NAME + 1];
	int in_team, measured;
	uint64_t sum;
	int64_t cut_ns;                    /* rows of the team older than that are removed */
	int64_t at_ns, at_bytes, at_rowid; /* of the last row that was measured */
};

/* One step. 1: call again; 0: the sweep is complete; -1: it failed, and the next step tries the same
 * again. Not inside store_begin(). */
must_check int store_history_step(struct store *s, struct store_history *h, struct err *e);

/* Bytes of texts that this process has added to the tables above since the last call. */
uint64_t store_history_added(struct store *s);

/* Pages of the database file, and how many of them are free. */
must_check int store_history_pages(struct store *s, uint64_t *out_all, uint64_t *out_free,
				   struct err *e);
