/* exec_reader.h - somebody reads the output of a run, from a byte on, as fast as they take it.
 * Owns: its place in the output and, unless it came with the start, a line of its own.
 * Nothing is buffered here: credit is given to the box when the reader has room. */
#pragma once
#include "fleet/exec.h"

enum { EXEC_READER_WINDOW = 64 * 1024 }; /* what the box may send ahead of the reader, per stream */
enum {
	EXEC_READER_READERS = 48
}; /* in one box; its init has some more connections, for others than us */

struct exec_reader;
struct exec_reader_events {
	/* clang-format off */
	/* The first byte that will really be served; beyond the one asked for: those between are
	 * gone. tip: the end of what is written so far. */
	void (*reading)(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip);
	void (*output)(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes, size_t n);
	/* The last word: the record (borrowed), or e when there is none to be had. */
	void (*over)(struct exec_reader *t, json_t *record, const struct err *e);
	/* Of one that came with the start, may be NULL: it runs, and is this one in the box. */
	void (*started)(struct exec_reader *t, int pid);
	/* clang-format on */
};

struct exec_reader {
	struct fleet *fleet;
	struct exec *run; /* while it is not over; NULL otherwise */
	char run_id[ID_LEN + 1], box[ID_LEN + 1];
	uint32_t ref;
	unsigned streams; /* how many are read: with the channel or without */
	uint64_t from[WIRE_STREAMS];
	uint64_t until[WIRE_STREAMS]; /* the reader's own limit: no credit beyond it */
	const struct exec_reader_events *on;
	struct init_conn own;
	int has_own;
	struct keeper_call *opening;
	struct init_call ear; /* on own */
	struct exec_wait wait;
	struct exec *early; /* waits for this one to begin, in its list */
	struct exec_reader *next_early;
	int stopped; /* the reader is full */
	int ended;
	unsigned tries; /* to get a line of its own */
	struct timer again;
};

#define EXEC_READER_NOW UINT64_MAX /* as an offset: from what is written next */
/* Attaches to a run, living or over, at these offsets. More than EXEC_READER_READERS: over() tells. */
void exec_reader_open(struct exec_reader *t, struct fleet *f, const char *box, const char *run_id,
		      uint32_t ref, const uint64_t from[2], const struct exec_reader_events *on);
/* The same with the channel. */
void exec_reader_open_channel(struct exec_reader *t, struct fleet *f, const char *box,
			      const char *run_id, uint32_t ref, const uint64_t from[WIRE_STREAMS],
			      const struct exec_reader_events *on);
/* For exec_launch(): zeroes it and sets the events. */
void exec_reader_init(struct exec_reader *t, struct fleet *f, const struct exec_reader_events *on);
void exec_reader_stop(struct exec_reader *t, int stopped); /* no more credit; and again */
void exec_reader_close(struct exec_reader *t);             /* over() is not called any more */

/* From run.c: init knows the run now, or it is over. */
void exec_reader_begin(struct exec_reader *t);
/* From run.c and run_end.c, for the tap that came with the start. */
void exec_reader_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			size_t n);
void exec_reader_over(struct exec_reader *t, json_t *record, const struct err *e);
void exec_reader_grant(struct exec_reader *t, struct init_call *ear, unsigned stream);
