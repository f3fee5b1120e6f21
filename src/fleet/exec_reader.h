/* exec_reader.h - reads the output of an exec from an offset, as fast as its consumer accepts it.
 * Owns: its position in the output and, unless it was created with the exec, a connection to init.
 * Nothing is buffered here: the box gets credit when the consumer has space. */
#pragma once
#include "fleet/exec.h"

/* Bytes per stream that the box may send before the reader grants more. */
enum { EXEC_READER_WINDOW = 64 * 1024 };
enum {
	EXEC_READER_READERS = 48
}; /* per box; its init accepts some more connections, for other clients */

struct exec_reader;
struct exec_reader_events {
	/* clang-format off */
	/* from: the first byte that will be sent; if it is after the requested one, the bytes in
	 * between are lost. tip: the end of the output so far. */
	void (*reading)(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip);
	void (*output)(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes, size_t n);
	/* Called last: the record (borrowed), or e if there is none. */
	void (*over)(struct exec_reader *t, json_t *record, const struct err *e);
	/* For a reader that was created with the exec, may be NULL: the exec runs, and has this pid
	 * in the box. */
	void (*started)(struct exec_reader *t, int pid);
	/* clang-format on */
};

struct exec_reader {
	struct fleet *fleet;
	struct exec *run; /* NULL: the exec has ended */
	char run_id[ID_MAX + 1], box[ID_MAX + 1];
	uint32_t ref;
	unsigned streams; /* number of streams that are read: with the channel or without */
	uint64_t from[WIRE_STREAMS];
	uint64_t until[WIRE_STREAMS]; /* limit of the reader: no credit beyond it */
	const struct exec_reader_events *on;
	struct init_conn own;
	int has_own;
	struct keeper_call *opening;
	struct init_call init_call; /* on the connection `own` */
	struct exec_wait wait;
	struct exec *early; /* waits in the list of this exec until it is started */
	struct exec_reader *next_early;
	int stopped; /* the consumer has no space */
	int ended;
	unsigned tries; /* attempts to get a connection */
	struct timer again;
};

#define EXEC_READER_NOW UINT64_MAX /* as an offset: from the next byte that is written */
/* Attaches to an exec, running or ended, at these offsets. With more than EXEC_READER_READERS
 * readers, over() gets an error. */
void exec_reader_open(struct exec_reader *t, struct fleet *f, const char *box, const char *run_id,
		      uint32_t ref, const uint64_t from[2], const struct exec_reader_events *on);
/* The same with the channel. */
void exec_reader_open_channel(struct exec_reader *t, struct fleet *f, const char *box,
			      const char *run_id, uint32_t ref, const uint64_t from[WIRE_STREAMS],
			      const struct exec_reader_events *on);
/* For exec_launch(): zeroes it and sets the events. */
void exec_reader_init(struct exec_reader *t, struct fleet *f, const struct exec_reader_events *on);
/* 1: grants no more credit; 0: grants again. */
void exec_reader_stop(struct exec_reader *t, int stopped);
void exec_reader_close(struct exec_reader *t); /* over() is no longer called */

/* From exec.c: init knows the exec now, or it has ended. */
void exec_reader_begin(struct exec_reader *t);
/* From exec.c and exec_end.c, for the reader that was created with the exec. */
void exec_reader_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			size_t n);
void exec_reader_over(struct exec_reader *t, json_t *record, const struct err *e);
