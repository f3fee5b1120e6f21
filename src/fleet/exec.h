/* exec.h - one program in a box, from START to its record.
 * Owns:         the ear on the box's line, input that waits for room, the record once it is over.
 * Does not own: output; that is in init's log, read through taps.
 * Lives until it is over and told; then the store has it, and init its output for a while. */
#pragma once
#include "base/buf.h"
#include "fleet/box.h"
#include "store/runs.h"

enum { RUN_MAX = 128 }; /* at once in a box: what an init takes beside those that are over */
enum { RUN_INPUT = 256 * 1024 }; /* bytes of stdin that may wait here before run_input() says full */

struct lang;
struct tap;

struct run;
struct run_want { /* borrowed for the call */
	const char *const *argv, *const *env; /* env: on top of the box's own */
	const char *const *usual; /* variables below both; NULL: box_default_env */
	const char *cwd;
	const char *tag;
	enum store_run_kind kind;
	uint32_t wall_ms;
	uint16_t rows, cols; /* pty */
	int pty, stdin_open, root;
	int channel; /* its descriptor 3 is ours to speak to: run_say(); stream 2 is what it answers */
	int seed;    /* an interpreter that waits in the box may become it */
	int helper;  /* ours, not a client's: in no list, and in no count of programs */
	const struct lang *lang; /* NULL, or: whose program it is */
	int compiled_before; /* no compiler ran for it: its record says so */
	int lone;    /* signals and wall time are its own, not its group's: WIRE_START_LONE */
	uint64_t log_bytes;
	json_t *request;       /* NULL, or what would repeat it; kept in its row, told to nobody */
	const char *replay_of; /* "", or the run that it repeats */
	/* NULL, or: its row is being written and it is about to start. What this writes into the store is
	 * of the same transaction. */
	void (*note)(const struct run *r, void *user);
	void *user;
};

struct run_wait {
	struct run_wait *next;
	struct run *run; /* NULL: waits for nothing */
	/* record: borrowed; kept by json_incref() */
	void (*done)(struct run_wait *w, json_t *record);
};
void run_wait_cancel(struct run_wait *w);

struct run {
	struct run *next; /* of its berth */
	struct berth *berth;
	char id[ID_LEN + 1];
	uint32_t ref;
	enum store_run_kind kind;
	char tag[STORE_NAME + 1];
	int pid, tty, stdin_open;
	int input_noted; /* that somebody sends input is in the audit log */
	int compiled_before;
	const struct lang *lang; /* NULL: a command, or not known since a restart */
	int restored;
	unsigned tries;     /* restored: asked for, and not known there */
	struct timer again;
	int over; /* EXIT was seen, or the box is gone; the record may still be waited for */
	json_t *command;
	char *cwd;
	json_t *request;
	char replay_of[ID_LEN + 1];
	int64_t started_ns;
	uint64_t began_ms, wall_ms;
	int begun; /* init has heard of it; before that, nobody can read it */
	struct tap *early; /* who came before that */
	struct init_call ear;
	struct tap *tap; /* reads over the ear; others have lines of their own */
	struct wire_exit exit;
	int exited;
	struct wire_counted seen; /* the box's figures, as they were known when it began */
	int has_base;  /* seen.cpu_us is the box's CPU time when it began */
	int is_shared; /* another program ran beside it: whose CPU time it was nobody can tell */
	struct keeper_call *asking, *asking_base;
	struct buf input;
	size_t input_taken; /* of input, sent */
	int input_end;
	uint64_t room, sent;
	int input_unknown; /* since a restart: init has not said yet how much it has */
	int input_sure;    /* it was asked when input was first wanted: another front may have sent some */
	struct run_input_wait *input_waiters;
	struct buf words;   /* for its channel */
	size_t words_taken; /* of words, sent */
	uint64_t words_room, words_sent;
	void (*on_told)(struct run *r); /* after a restart: init has said how much it has */
	void *user;
	struct run_wait *waiters;
	json_t *record;
};

/* Starts it. tap may be NULL: nobody reads for now. */
must_check int run_start(struct berth *b, const struct run_want *want, struct tap *tap,
			 struct run **out, struct err *e);
/* After a restart: it runs (or ended meanwhile); waits for its EXIT. */
void run_restore(struct berth *b, struct store_run *take_row);
struct run *run_find(const struct berth *b, const char *id);
struct run *run_by_tag(const struct berth *b, const char *tag);
void run_await(struct run *r, struct run_wait *w);
void run_signal(struct run *r, int signo);
void run_resize(struct run *r, uint16_t rows, uint16_t cols);

/* Bytes for its stdin; they wait here for room. 1: that is a lot already, wait for w->low. */
struct run_input_wait {
	struct run_input_wait *next;
	struct run *run;
	void (*low)(struct run_input_wait *w, int closed); /* closed: it reads no more */
};
int run_input(struct run *r, const void *bytes, size_t n);
void run_input_close(struct run *r);
void run_input_await(struct run *r, struct run_input_wait *w);
void run_input_cancel(struct run_input_wait *w);
/* Before the first input to a run from before a restart: the box is asked how much it has. Until it
 * has said so, input_unknown is set and input waits; low() is called then. */
void run_input_check(struct run *r);
uint64_t run_input_has(const struct run *r); /* bytes that it has or will get, if we live */
void run_told(struct run *r, const struct wire_exec *about); /* from berth.c */
/* Bytes for its channel; they wait here for room, so their number is for the caller to bound. Returns
 * the offset behind them. */
uint64_t run_say(struct run *r, const void *bytes, size_t n);
uint64_t run_said(const struct run *r);

/* From berth.c: the box is gone, with these last figures (or none). */
void run_box_gone(struct run *r, const struct wire_counted *figures);
int run_is_helper(const struct run *r);
void run_free(struct run *r);
json_t *run_json(const struct run *r); /* what is known of it while it runs */
json_t *run_row_json(const struct store_run *row);
json_t *run_row_request(const struct store_run *row); /* the caller's; NULL: there is none */
