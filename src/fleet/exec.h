/* exec.h - one program in a box, from START to its record.
 * Owns:         its call on the connection to init, input that waits for window, the record once it
 *               has ended.
 * Does not own: output; that is in the log of init, read through exec readers. Freed when it has
 * ended and all waiters were notified; then the store has its record, and init has its output for a
 * while. */
#pragma once
#include "base/buf.h"
#include "fleet/output_digest.h"
#include "fleet/box.h"
#include "store/runs.h"

/* Running at the same time in a box; init also keeps some that have ended. */
enum { EXECS_PER_BOX = 128 };
enum {
	EXEC_INPUT = 256 * 1024
}; /* bytes of stdin that may wait here before exec_stdin() returns 1 */

struct lang;
struct exec_reader;

/* The automatic checkpoint before a program: in its record. */
struct exec_before {
	int wanted;
	char checkpoint[ID_MAX + 1]; /* "": there is none */
	char skipped[120];           /* and this is why */
};

struct exec;
struct exec_spec {                            /* borrowed for the call */
	const char *const *argv, *const *env; /* env: in addition to the variables of the box */
	const char *const *usual;             /* default variables, which both override; NULL:
					       * box_default_env */
	const char *cwd;
	const char *id; /* NULL, or the id that it gets */
	const char *tag;
	enum store_run_kind kind;
	uint32_t wall_ms;
	uint16_t rows, cols; /* pty */
	int pty, stdin_open, root;
	int has_ids; /* as uid and gid, ids of the box; else as root or as the box's user */
	uint16_t uid, gid;
	int channel; /* its descriptor 3 is a channel to the server: exec_channel_send(); stream 2
		      * has its answers */
	int warm;    /* a warm interpreter of the box may execute it */
	int helper;  /* started by the server, not by a client: in no list, and not
				  * counted as a program */
	const struct lang *lang; /* language of the program, or NULL */
	int cached;              /* the program came from the compile cache; shown in its record */
	int lone; /* signals and wall limit apply to the leader only, not to its process group:
		   * WIRE_START_LEADER_ONLY */
	uint64_t log_bytes;
	json_t *request;       /* NULL, or the request for a replay; stored in its row, returned to
			        * no client */
	json_t *inputs;        /* NULL, or the hashes of a request that is too large to be stored */
	const char *replay_of; /* "", or the run that it repeats */
	const struct exec_before *before; /* NULL: no checkpoint was wanted before it */
	const char *key; /* id of the key that is charged; NULL: the one that created the box */
	/* May be NULL. Called while the row is written, before the start. What it writes to the
	 * store is part of the same transaction. */
	void (*note)(const struct exec *r, void *user);
	void *user;
};

struct exec_wait {
	struct exec_wait *next;
	struct exec *run; /* NULL: not waiting */
	/* record: borrowed; kept by json_incref() */
	void (*done)(struct exec_wait *w, json_t *record);
};
void exec_wait_cancel(struct exec_wait *w);

struct exec {
	struct exec *next; /* in the list of its box */
	struct box *box;
	char id[ID_MAX + 1];
	uint32_t ref;
	enum store_run_kind kind;
	char tag[STORE_NAME + 1];
	char key[STORE_NAME + 1], runtime[STORE_WORD + 1]; /* as in its row */
	int pid, tty, stdin_open;
	int input_noted; /* the first input was written to the audit log */
	int cached;
	const struct lang *lang; /* NULL: a command, or not known since a restart */
	int restored;
	unsigned tries; /* restored: number of requests that init rejected as unknown */
	struct timer again;
	int over; /* EXIT has arrived, or the box has ended; the record may not be complete yet */
	json_t *command;
	char *cwd;
	json_t *request, *inputs;
	char replay_of[ID_MAX + 1];
	struct exec_before before;
	int64_t started_ns;
	uint64_t began_ms, wall_ms;
	int begun;                 /* init knows it; before that its output cannot be read */
	struct exec_reader *early; /* exec readers that were opened before that */
	struct init_call init_call;
	struct exec_reader *reader;     /* the reader that uses this call; other readers have
				     * connections of their own */
	struct output_digest digest[2]; /* of its output, for its receipt */
	struct trace_context trace;
	struct wire_exit exit;
	int exited;
	struct wire_counters seen; /* counters of the box when the exec was started */
	int has_base;              /* seen.cpu_us is the CPU time of the box when the exec was
				   * started */
	int is_shared; /* another program ran at the same time: CPU time of the box cannot be
		        * attributed */
	struct keeper_call *asking, *asking_base;
	struct buf input;
	size_t input_taken; /* bytes of input that were sent */
	int input_end;
	uint64_t room, sent;
	int input_unknown; /* after a restart: init has not reported yet how much input it has */
	uint64_t input_counted_ms; /* when init has reported it last */
	uint64_t count_from;       /* an older tally of the box lacks input that was sent since */
	int input_sure; /* the count is right: no other server has sent input since, and init has read
			 * what a killed one had sent */
	struct exec_input_wait *input_waiters;
	struct buf words;   /* bytes for its channel */
	size_t words_taken; /* bytes of words that were sent */
	uint64_t words_room, words_sent;
	void (*on_told)(struct exec *r); /* after a restart: init has reported how much it has */
	void *user;
	struct exec_wait *waiters;
	json_t *record;
};

/* Starts it. reader may be NULL: its output is not read for now. */
must_check int exec_launch(struct box *b, const struct exec_spec *want, struct exec_reader *reader,
			   struct exec **out, struct err *e);
/* After a restart: the exec runs, or has ended in the meantime; waits for its EXIT. */
void exec_restore(struct box *b, struct store_run *take_row);
struct exec *exec_lookup(const struct box *b, const char *id);
struct exec *exec_by_tag(const struct box *b, const char *tag);
void exec_await(struct exec *r, struct exec_wait *w);
void exec_send_signal(struct exec *r, int signo);
/* The box has another init, which knows the exec: its reader reads on where it was. */
void exec_attach_again(struct exec *r);
void exec_set_size(struct exec *r, uint16_t rows, uint16_t cols);

/* Bytes for its stdin; they wait here for window. Returns 1: too many wait, wait for w->low. */
struct exec_input_wait {
	struct exec_input_wait *next;
	struct exec *run;
	void (*low)(struct exec_input_wait *w, int closed); /* closed: it reads no more input */
};
int exec_stdin(struct exec *r, const void *bytes, size_t n);
void exec_input_close(struct exec *r);
void exec_input_await(struct exec *r, struct exec_input_wait *w);
void exec_input_cancel(struct exec_input_wait *w);
/* Before the first input to an exec that was restored: asks init how much input it has. Until init
 * has answered, input_unknown is set and input waits; low() is called then. */
void exec_input_check(struct exec *r);
/* The same for a client that only asks how much that is: the last report is recent enough. While
 * an older server drains, each check makes the number unknown, so that a client that polls would
 * never get it. */
void exec_input_refresh(struct exec *r);
/* Asks init how much input it has; until init has answered, input waits. */
void exec_input_count(struct exec *r);
/* Bytes that are in its box, even if this server is killed now. */
uint64_t exec_input_delivered(const struct exec *r);
/* A client has a position after the bytes that this server knows of: init is queried again. */
void exec_input_doubt(struct exec *r);
uint64_t exec_input_has(const struct exec *r); /* bytes that it has or will get, unless the server
					        * dies */
void exec_on_counters(struct exec *r, const struct wire_exec *about); /* from box.c */
/* Bytes for its channel; they wait here for window, so the caller must limit their number. Returns
 * the offset after them. */
uint64_t exec_channel_send(struct exec *r, const void *bytes, size_t n);
uint64_t exec_on_output(const struct exec *r);

/* From box_end.c: the box has ended, with these final counters (or NULL). */
void exec_box_gone(struct exec *r, const struct wire_counters *figures);
int exec_is_helper(const struct exec *r);
void exec_free(struct exec *r);
json_t *exec_json(const struct exec *r); /* for a running exec */
/* checkpoint_before and checkpoint_skipped, if a checkpoint was wanted. */
void exec_before_json(const struct exec_before *x, json_t *doc);
json_t *exec_row_json(const struct store_run *row);
void exec_json_set_cached(json_t *doc);                /* the program came from the compile cache */
json_t *exec_row_request(const struct store_run *row); /* owned by the caller; NULL: none */
