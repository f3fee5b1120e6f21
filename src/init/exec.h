/* exec.h - the programs that init runs, from START until they are forgotten.
 * Owns: the table of execs; reaping, for the whole box; wall time and grace.
 * An exec has ended when its leader has ended and its streams are at their end. Pipes that other
 * processes still hold are cut grace_ms after the leader; those of a lone exec when a client has
 * killed it or its wall time has passed. A finished exec keeps its logs and its EXIT until it is
 * forgotten, or evicted by newer ones. */
#pragma once
#include "init/guest_counts.h"
#include "init/stdin_buf.h"
#include "init/stream.h"
#include "wire/wire.h"

/* Each has up to seven descriptors while it runs, and two logs afterwards: the limit is 1024. */
enum { EXEC_MAX = 192, EXEC_KEPT = 64 };

struct exec_args;
struct conn;
struct attachment;

struct exec {
	uint32_t ref;
	int pid;   /* the leader; 0 once it has ended */
	int group; /* its process group, which may outlive it */
	uint8_t over, tty;
	uint16_t rows, cols; /* of the terminal */
	uint8_t walled;      /* init killed it at its wall limit */
	uint8_t lone;        /* WIRE_START_LEADER_ONLY */
	uint8_t put_down;    /* lone: by a signal that ends every process; its streams are not
			   * waited for */
	uint8_t overdue;     /* the grace period has ended, only slow readers keep a stream open */
	struct stream out[WIRE_STREAMS];
	struct stdin_buf in;
	struct stdin_buf channel_in;
	struct attachment *views;
	const struct conn *last; /* WIRE_START_ONE_SHOT: whose EXIT ends the box; or NULL */
	uint64_t born_ns;
	uint64_t deadline_ns; /* wall time, then grace; 0: none */
	uint64_t
		tell_ns; /* time at which STARTED is sent alone, unless it was sent with another frame; 0: sent */
	uint32_t grace_ms;
	uint64_t turn;              /* of creation: the lowest finished one is evicted first */
	struct guest_counts before; /* at its start */
	struct wire_exit end;       /* filled as it becomes known; sent when over */
};

void exec_init(void); /* starts to reap */
struct exec *exec_find(uint32_t ref);
struct exec *exec_next(const struct exec *after); /* all of them; NULL: the first, or no more */
struct exec *exec_at(int slot);                   /* NULL: an empty one */
/* A slot for a new exec; EXEC_KEPT slots are for finished ones, the oldest is evicted. NULL: the
 * maximum number of execs runs. */
struct exec *exec_new(uint32_t ref);
void exec_run(struct exec *x, const struct wire_start *st, const struct exec_args *a);
/* For callers that start a process themselves: a pipe whose end `ours` does not block; the
 * channel. */
int exec_pipe(int out_pair[2], int ours);
int exec_channel(struct exec *x, int take_fd);
void exec_adopt(struct exec *x); /* its pid and streams are set: it runs, or will soon */
void exec_hold(void);            /* a hold has begun or ended */
/* A master of this number, which no terminal of the box has; -errno. */
int exec_new_terminal(uint32_t number);
/* The terminal of an exec that is imported; the descriptor is the caller's. -errno. */
int exec_import_terminal(struct exec *x, int master);
void exec_fail(struct exec *x, const char *step, int err); /* over before it began */
void exec_forget(struct exec *x);
void exec_signal(struct exec *x, int signo);
int exec_terminals_are_silent(
	void); /* 1: this kernel sends no signals for ^C, ^\, ^Z and a new size */
void exec_signal_foreground(const struct exec *x, int signo);
void exec_resize(struct exec *x, uint16_t rows, uint16_t cols);
void exec_cut_logs(void); /* all logs together have become too large: log.h */
unsigned exec_running(void);
int exec_kill_all(void);  /* every process of the box except init; -EPERM if init is not PID 1 */
int exec_childless(void); /* 1: all that lived at the last exec_kill_all() is reaped */
uint64_t exec_reaped(void);

/* Called by streams and stdin buffers. */
void exec_check(struct exec *x); /* is it over now? */
void exec_was_cut(struct exec *x, int stream);
void exec_due(struct exec *x); /* a frame is due for a client, or a socket has room again */

/* The loop's. */
void exec_pump(void);      /* sends what is owed */
int exec_timeout_ms(void); /* until something is due; -1: nothing is */
void exec_timers(void);
