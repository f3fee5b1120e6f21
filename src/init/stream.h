/* stream.h - one output of a running program: its pipe (or terminal) and its log.
 * Owns: init's end of the pipe. Reads it while the log has room for what attached readers have
 * not received yet; without room the bytes stay in the pipe, and the program waits.
 * The channel is read last: clients must get what a program printed before it wrote to the
 * channel first. So nothing is read from it before the other two are empty, and while one of
 * them waits, it waits. */
#pragma once
#include "initlib/output_log.h"
#include "initlib/loop.h"

enum { STREAM_CHUNK = 32768 }; /* bytes per read, and at most per OUTPUT frame */

struct exec;

struct stream {
	struct event_source src; /* fd -1: at its end, or cut */
	struct log log;
	struct exec *exec;
	uint8_t index; /* 0 stdout or terminal, 1 stderr, 2 the channel */
	uint8_t tty;
	uint8_t hung_up; /* see stream_hang_up() */
};

void exec_pump_init(struct stream *s, struct exec *x, int index, uint64_t log_bytes);
void stream_open(struct stream *s, int take_fd, int tty);
void exec_pump_fini(struct stream *s); /* the log too */
void stream_resume(struct stream *s);  /* a reader has moved: listen again, if there is room now */
/* The leader has ended and its grace period has expired: reads the content of the pipe, then
 * closes it. Returns 0 if readers must catch up first. */
int stream_cut(struct stream *s);
/* The leader of the session of a terminal has ended. Linux hangs up the terminal then; gVisor does not,
 * and processes in the background could keep it open without limit. Reads what it contains, and closes it. */
void stream_hang_up(struct stream *s);
/* Appends what is in it now to the log, more than its readers allow if necessary: its writers are stopped. */
int stream_empty(struct stream *s);
