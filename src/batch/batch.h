/* batch.h - thousands of small programs, each in a fresh box, results in the order they end.
 * Owns:         every batch that runs or is being read, the programs in flight, the scheduling.
 * Does not own: clients (v1run/batch.c), boxes beyond their jobs (job.h), the format of files
 * (spool.h).
 *
 *   client --> ID.in --> [scheduling] --> job, job, job ... --> ID.out --> clients
 *                          fewest in flight first: teams, then their batches
 *
 * The state of a batch is in its row and its files: when a server ends, the next one runs the
 * items without a result. An item may then be run twice; it has one result. */
#pragma once
#include "batch/job.h"
#include "batch/spool.h"
#include "store/batches.h"

enum {
	BATCH_ITEMS = 1000000,
	BATCH_LIVE = 1000,    /* batches at once */
	BATCH_LEAD = 8 << 20, /* bytes of results that may wait for a client that reads */
};

struct batch_conf {
	const char *state;              /* the folder above theirs */
	unsigned jobs;                  /* parallel programs; 0: depends on the machine */
	uint64_t max_bytes, team_bytes; /* of one upload; of all files of a team */
	uint64_t keep_ms;               /* retention of files and row after the end */
};

/* The accounting of usage. May be NULL. */
struct batch_hooks {
	void *ctx;
	/* 0: no more for this team today, and out has the reason. Counts one. */
	int (*may_run)(void *ctx, const char *team, struct err *out);
	unsigned (*may_have)(void *ctx, const char *team); /* boxes at once */
	void (*used)(void *ctx, const char *team, uint64_t cpu_us, uint64_t output_bytes);
};

struct batches;
must_check int batches_new(struct batches **out, struct fleet *f, const struct batch_conf *conf,
			   const struct batch_hooks *hooks, struct err *e);
void batches_free(struct batches *a); /* the next server runs unfinished items again */
/* This server is now the only one with this store, or no longer: takes over batches of others,
 * or starts no more items. */
void batches_alone(struct batches *a);
/* Removes results that are older than the plan of their team, or batch.keep, allows. The server does it every 30 s. */
void batches_purge(struct batches *a);
struct batch_figures {
	uint64_t verdicts[VERDICT_COUNT];
	unsigned live, flying, jobs;
};
struct batch_figures batches_figures(const struct batches *a);

struct batch_options {
	const char *id; /* NULL, or the id that it gets */
	struct batch_item_defaults defaults;
	unsigned jobs; /* parallel items of this batch; 0: as many as allowed */
	int record;    /* a row of `runs` for each program, too */
	struct choose_request isolation;
	int attached; /* ends when the client that sent it disconnects */
};

struct batch;
/* A reader of the results. */
struct batch_watch {
	struct batch_watch *next;
	struct batch *batch; /* NULL: none */
	void (*news)(struct batch_watch *w);
	uint64_t at; /* offset in the results: all bytes before it were read */
};

must_check int batch_new(struct batches *a, const char *team, const char *who,
			 const struct batch_options *o, struct batch_watch *w, struct err *e);
/* Of this team, running or ended. ERR_NOT_FOUND; EBUSY: another server runs it. */
must_check int batch_watch(struct batches *a, const char *team, const char *id, uint32_t after,
			   struct batch_watch *w, struct err *e);
void batch_unwatch(struct batch_watch *w); /* allowed on one that watches nothing */

/* Items as they arrive, in pieces of any size. */
must_check int batch_add(struct batch *b, const char *bytes, size_t n, struct err *e);
void batch_received(struct batch *b,
		    int whole); /* end of the items; 0: the client has disconnected */
void batch_cancel(struct batch *b);
void batch_forget(struct batch *b); /* of a batch that has ended: removes its files and its row */

const struct store_batch *batch_row(const struct batch *b);
int batch_is_complete(const struct batch *b); /* and its results are complete */
/* Reads up to n bytes of results from w->at on; returns how many. The caller moves w->at. */
must_check int batch_read(const struct batch_watch *w, void *to, size_t n, struct err *e);
uint64_t batch_results(const struct batch *b); /* bytes of them so far */
json_t *batch_json(const struct batch *b);     /* state, numbers, causes */
/* The same for a row, whose batch may be running. */
json_t *batches_json(const struct batches *a, const struct store_batch *row);
