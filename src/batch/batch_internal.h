/* batch_internal.h - what the files of a batch have in common; no other file includes this.
 *   batch.c      all of them, and those of another server    run.c      lines to programs to results
 *   receive.c    a batch is uploaded                         result.c   the result of an item
 *   results.c    a batch is read */
#pragma once
#include "batch/batch.h"

struct team {
	struct team *next;
	char name[STORE_NAME + 1];
	unsigned flying, batches;
};

struct work { /* an item in flight, or one whose result could not be written yet */
	struct batch_job job;
	struct work *next;
	struct batch *batch;
	uint32_t item;
	unsigned line, tries;
	json_t *result; /* waits for the disk */
	struct spool_row row;
};

struct batch {
	struct batch *next;
	struct batches *all;
	struct team *team;
	struct store_batch row;
	struct spool spool;
	struct batch_options options;
	uint64_t counts[VERDICT_COUNT][WHY_COUNT];
	struct batch_watch *watches;
	/* receiving */
	size_t line_len; /* of the line that is being received */
	uint32_t lines;
	/* reading */
	struct buf text; /* read, but not parsed before text_at */
	size_t text_at;
	uint64_t read_to; /* offset in the items of the end of text */
	int more;         /* another line may follow */
	unsigned line;
	uint32_t next_item;
	unsigned char *done; /* after a restart: items that have a result, a bit each */
	uint32_t ndone;
	/* running */
	struct work *works;
	unsigned flying;
	uint64_t turn; /* when it was last served */
	int full;      /* the disk is */
	int unwritten; /* its row in the store is outdated */
};

struct batches {
	struct fleet *fleet;
	struct batch_conf conf;
	struct batch_hooks hooks;
	int folder;
	struct compile_caches compile_caches; /* the fleet's */
	unsigned jobs, flying, live;
	uint64_t turn, verdicts[VERDICT_COUNT];
	struct batch *first;
	struct team *teams;
	struct timer tick, again;
	unsigned ticks;
	int restored;
};

/* batch.c */
struct batch *batch_enter(struct batches *a, struct store_batch *take_row);
void batch_free(struct batch *b);
void batch_free_work(struct work *w);
int batch_has_ended(const struct batch *b);
void batch_write_row(struct batch *b); /* results that a full disk refused are written later */
void batch_tell(struct batch *b);      /* notifies its readers of new results */
void batch_end(struct batch *b, enum store_batch_state state);
void batch_free_if_idle(struct batch *b); /* frees a batch that has ended and has no reader */
void batch_count(struct batch *b, unsigned verdict, unsigned why);
struct batch *batches_find(const struct batches *a, const char *id);
struct batch *batches_take_up(struct batches *a, struct store_batch *take_row, struct err *e);

/* batch_run.c */
void batches_pump(struct batches *a); /* starts the items that may start now */
void batch_check_over(struct batch *b);
void batch_write_again(struct batch *b); /* results that could not be written to the disk */

/* batch_result.c */
json_t *batch_result(struct work *w, const struct batch_job_end *end);
/* Charges the team for an item that was run; if requested, with a row like that of any other run. */
void batch_account(struct work *w, const struct batch_job_end *end);
