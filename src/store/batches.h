/* batches.h - many programs in one request: one row per batch, whatever the number of programs.
 * The request and the results are in files beside the database (batch/spool.h). */
#pragma once
#include "store/store.h"

enum store_batch_state {
	STORE_BATCH_RECEIVING, /* the client still sends items; they are run meanwhile */
	STORE_BATCH_RUNNING,   /* all items are there */
	STORE_BATCH_FINISHED,
	STORE_BATCH_CANCELLED,
	STORE_BATCH_STATES,
};
const char *store_batch_state_name(enum store_batch_state state);

struct store_batch {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char who[STORE_NAME + 1]; /* the key that requested it */
	enum store_batch_state state;
	int64_t created_ns, ended_ns; /* ended 0: not yet */
	uint64_t items;               /* 0 while they come */
	uint64_t passed, failed, errors;
	uint64_t bytes; /* of its files, when it was last written down */
	int whole;      /* 0: the client left before all items were sent */
	char *options;  /* options for all its items: a JSON object */
};
struct store_batches {
	struct store_batch *v;
	unsigned n;
	int more; /* next page: the cursor of the last one */
};
void store_batch_fini(struct store_batch *b);
void store_batches_fini(struct store_batches *l);

must_check int store_batch_insert(struct store *s, const struct store_batch *b, struct err *e);
/* State, end, numbers. */
must_check int store_batch_update(struct store *s, const struct store_batch *b, struct err *e);
must_check int store_batch_get(struct store *s, const char *id, struct store_batch *out,
			       struct err *e);
/* Newest first; after NULL: from the start. */
must_check int store_batch_list(struct store *s, const char *team, const struct store_cursor *after,
				unsigned limit, struct store_batches *out, struct err *e);
/* Of all teams, oldest first: those that have not ended. */
must_check int store_batch_live(struct store *s, struct store_batches *out, struct err *e);
/* Of all teams: those that ended before then; a page of them. */
must_check int store_batch_old(struct store *s, const char *team, int64_t before_ns,
			       struct store_batches *out, struct err *e);
/* The first team with batches after this name. 1: there is one; 0: none; -1. */
must_check int store_batch_next_team(struct store *s, const char *after, char out[STORE_NAME + 1],
				     struct err *e);
must_check int store_batch_remove(struct store *s, const char *id, struct err *e);
/* Bytes of the files of all batches of a team, as they were last written down. */
must_check int store_batch_bytes(struct store *s, const char *team, uint64_t *out, struct err *e);
