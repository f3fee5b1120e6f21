/* runs.h - every exec that was started, and how it ended. */
#pragma once
#include "store/store.h"

enum store_run_kind { STORE_RUN_EXEC, STORE_RUN_PTY, STORE_RUN_ONCE, STORE_RUN_KINDS };
const char *store_run_kind_name(enum store_run_kind kind); /* "exec", "pty", "run" */

/* Tag of an exec that Atoll started for itself: the tar of an archive, the packer of a snapshot.
 * Clients cannot set it, for it is not a valid name; lists leave it out unless a request names
 * it. */
#define STORE_RUN_HELPER ":helper"

struct store_run {
	char id[ID_MAX + 1];
	char box[ID_MAX + 1];
	char team[STORE_NAME + 1];
	uint32_t ref; /* init's number of it */
	enum store_run_kind kind;
	char tag[STORE_NAME + 1];
	int64_t started_ns;
	int64_t ended_ns;           /* 0: running */
	char cause[STORE_WORD + 1]; /* "" while running */
	int status;
	uint64_t output_bytes;
	char key[STORE_NAME + 1];     /* id of the key that started it; "": not known */
	char runtime[STORE_WORD + 1]; /* its language; "": a command */
	uint64_t receipt; /* written with its end, not read: its number in receipts.h; 0: none */
	char *command;    /* JSON; NULL is [] */
	char *record; /* JSON: data of its owner; the complete run record after the end; NULL is {} */
};
void store_run_fini(struct store_run *r); /* frees its texts; fine on a zeroed one */

struct store_runs {
	struct store_run *v;
	unsigned n;
	int more; /* next page: store_run_cursor() of the last one */
};
void store_runs_fini(struct store_runs *l);

/* Inserts it as running; the fields of an end (ended_ns, cause, status, output_bytes) are
 * ignored. */
must_check int store_run_begin(struct store *s, const struct store_run *r, struct err *e);
/* By r->id: ended_ns (not 0), cause, status, output_bytes, record, receipt. ERR_CONFLICT: it has ended
 * before, and the first end is kept. */
must_check int store_run_end(struct store *s, const struct store_run *r, struct err *e);
/* How many runs have ended, by language ("": a command) and outcome. Counted in the transaction of the end: the sum
 * is the number of ends, also after kill -9. Rows of runs that are deleted stay counted. */
struct store_run_count {
	char language[STORE_WORD + 1];
	char outcome[STORE_WORD + 1];
	uint64_t n;
};
enum { STORE_RUN_COUNTS = 1000 };
must_check int store_run_count_end(struct store *s, const char *id, const char *outcome,
				   struct err *e);
/* out: STORE_RUN_COUNTS rows. */
must_check int store_run_counts(struct store *s, struct store_run_count *out, unsigned *out_n,
				struct err *e);
must_check int store_run_get(struct store *s, const char *id, struct store_run *out, struct err *e);

struct store_run_filter { /* zero: everything */
	const char *team; /* NULL: any, as below */
	const char *box;
	const char *cause;
	const char *tag;
	int64_t since_ns; /* started then or later */
	int64_t until_ns; /* started before; 0: whenever */
	int running;      /* only those */
	int brief; /* without command and record: both are NULL; else the record has no "request" */
	struct store_cursor after;
	unsigned limit; /* 0: STORE_PAGE */
};
/* Newest first. */
must_check int store_run_list(struct store *s, const struct store_run_filter *f,
			      struct store_runs *out, struct err *e);
struct store_cursor store_run_cursor(const struct store_run *r);
/* All running execs of a box, oldest first: a restarted server looks them up in init. Not paged;
 * box NULL: of every box. */
must_check int store_run_running(struct store *s, const char *box, struct store_runs *out,
				 struct err *e);
