/* exec.h - one program in a box, from START to its record.
 * Owns:         the ear on the box's line, input that waits for room, the record once it is over.
 * Does not own: output; that is in init's log, read through taps.
 * Lives until it is over and told; then the store has it, and init its output for a while. */
#pragma once
#include "base/buf.h"
#include "fleet/box.h"
#include "store/runs.h"

enum { EXECS_PER_BOX = 128 }; /* at once in a box: what an init takes beside those that are over */
enum {
	EXEC_INPUT = 256 * 1024
}; /* bytes of stdin that may wait here before exec_stdin() says full */

struct lang;
struct exec_reader;

struct exec;
struct exec_spec {                            /* borrowed for the call */
	const char *const *argv, *const *env; /* env: on top of the box's own */
	const char *const *usual;             /* variables below both; NULL: box_default_env */
	const char *cwd;
	const char *tag;
	enum store_run_kind kind;
	uint32_t wall_ms;
	uint16_t rows, cols; /* pty */
	int pty, stdin_open, root;
	int channel; /* its descriptor 3 is ours to speak to: exec_channel_send(); stream 2 is what it answers */
	int seed;                /* an interpreter that waits in the box may become it */
	int helper;              /* ours, not a client's: in no list, and in no count of programs */
	const struct lang *lang; /* NULL, or: whose program it is */
	int compiled_before;     /* no compiler ran for it: its record says so */
	int lone; /* signals and wall time are its own, not its group's: WIRE_START_LONE */
	uint64_t log_bytes;
	json_t *request;       /* NULL, or what would repeat it; kept in its row, told to nobody */
	const char *replay_of; /* "", or the run that it repeats */
	/* NULL, or: its row is being written and it is about to start. What this writes into the store is
	 * of the same transaction. */
	void (*note)(const struct exec *r, void *user);
	void *user;
};

struct exec_wait {
	struct exec_wait *next;
	struct exec *run; /* NULL: waits for nothing */
	/* record: borrowed; kept by json_incref() */
	void (*done)(struct exec_wait *w, json_t *record);
};
void exec_wait_cancel(struct exec_wait *w);

struct exec {
	struct exec *next; /* of its berth */
	struct box *box;
	char id[ID_LEN + 1];
	uint32_t ref;
	enum store_run_kind kind;
	char tag[STORE_NAME + 1];
	int pid, tty, stdin_open;
	int input_noted; /* that somebody sends input is in the audit log */
	int compiled_before;
	const struct lang *lang; /* NULL: a command, or not known since a restart */
	int restored;
	unsigned tries; /* restored: asked for, and not known there */
	struct timer again;
	int over; /* EXIT was seen, or the box is gone; the record may still be waited for */
	json_t *command;
	char *cwd;
	json_t *request;
	char replay_of[ID_LEN + 1];
	int64_t started_ns;
	uint64_t began_ms, wall_ms;
	int begun;                 /* init has heard of it; before that, nobody can read it */
	struct exec_reader *early; /* who came before that */
	struct init_call ear;
	struct exec_reader *reader; /* reads over the ear; others have lines of their own */
	struct wire_exit exit;
	int exited;
	struct wire_counted seen; /* the box's figures, as they were known when it began */
	int has_base;             /* seen.cpu_us is the box's CPU time when it began */
	int is_shared; /* another program ran beside it: whose CPU time it was nobody can tell */
	struct keeper_call *asking, *asking_base;
	struct buf input;
	size_t input_taken; /* of input, sent */
	int input_end;
	uint64_t room, sent;
	int input_unknown; /* since a restart: init has not said yet how much it has */
	int input_sure; /* it was asked when input was first wanted: another front may have sent some */
	struct exec_input_wait *input_waiters;
	struct buf words;   /* for its channel */
	size_t words_taken; /* of words, sent */
	uint64_t words_room, words_sent;
	void (*on_told)(struct exec *r); /* after a restart: init has said how much it has */
	void *user;
	struct exec_wait *waiters;
	json_t *record;
};

/* Starts it. tap may be NULL: nobody reads for now. */
must_check int exec_launch(struct box *b, const struct exec_spec *want, struct exec_reader *reader,
			   struct exec **out, struct err *e);
/* After a restart: it runs (or ended meanwhile); waits for its EXIT. */
void exec_restore(struct box *b, struct store_run *take_row);
struct exec *exec_lookup(const struct box *b, const char *id);
struct exec *exec_by_tag(const struct box *b, const char *tag);
void exec_await(struct exec *r, struct exec_wait *w);
void exec_send_signal(struct exec *r, int signo);
void exec_set_size(struct exec *r, uint16_t rows, uint16_t cols);

/* Bytes for its stdin; they wait here for room. 1: that is a lot already, wait for w->low. */
struct exec_input_wait {
	struct exec_input_wait *next;
	struct exec *run;
	void (*low)(struct exec_input_wait *w, int closed); /* closed: it reads no more */
};
int exec_stdin(struct exec *r, const void *bytes, size_t n);
void exec_input_close(struct exec *r);
void exec_input_await(struct exec *r, struct exec_input_wait *w);
void exec_input_cancel(struct exec_input_wait *w);
/* Before the first input to a run from before a restart: the box is asked how much it has. Until it
 * has said so, input_unknown is set and input waits; low() is called then. */
void exec_input_check(struct exec *r);
uint64_t exec_input_has(const struct exec *r); /* bytes that it has or will get, if we live */
void exec_on_counters(struct exec *r, const struct wire_exec *about); /* from berth.c */
/* Bytes for its channel; they wait here for room, so their number is for the caller to bound. Returns
 * the offset behind them. */
uint64_t exec_channel_send(struct exec *r, const void *bytes, size_t n);
uint64_t exec_on_output(const struct exec *r);

/* From berth.c: the box is gone, with these last figures (or none). */
void exec_box_gone(struct exec *r, const struct wire_counted *figures);
int exec_is_helper(const struct exec *r);
void exec_free(struct exec *r);
json_t *exec_json(const struct exec *r); /* what is known of it while it runs */
json_t *exec_row_json(const struct store_run *row);
json_t *exec_row_request(const struct store_run *row); /* the caller's; NULL: there is none */
