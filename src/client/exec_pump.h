/* exec_pump.h - carries one exec's streams between a box and the descriptors of this process.
 * Owns:         what is on its way: at most STREAM_WINDOW bytes of each stream.
 * Does not own: the descriptors, the box, the terminal's mode. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "client/box_handle.h"

enum {
	STREAM_WINDOW = 256 * 1024, /* what a box may send ahead of the reader, per stream */
	STREAM_STOP_MS = 500,       /* for a program to end by itself once we want it to */
};

enum stream_end {
	STREAM_EXITED,   /* .exit says how */
	STREAM_BOX_DIED, /* init's connection ended first; the keeper knows why */
	STREAM_KILLED,   /* by Ctrl-C, twice */
	STREAM_UNREAD,   /* nobody reads our stdout or stderr any more */
	STREAM_HUNG_UP,  /* our terminal went away */
};

/* One stream of the exec, on its way out. */
struct output_sink {
	int fd;           /* -1: into keep */
	struct buf *keep; /* NULL: discarded */
	size_t keep_max;
	void (*note)(struct buf *noted, const char *bytes,
		     size_t n); /* NULL, or who listens in ... */
	struct buf *noted;      /* ... and where to */
	int bounded;            /* a write may block: ask poll first and write little */
	char *held;             /* STREAM_WINDOW bytes, once something had to wait */
	size_t start, len;
	uint64_t next, passed, granted; /* offsets: expected, handed on, promised to init */
	uint64_t dropped;               /* never reached us, or did not fit keep */
};

struct exec_pump {
	struct box_handle *box;
	uint32_t ref;
	int in;       /* forwarded as stdin; -1: nothing */
	int signals;  /* a signalfd, or -1 */
	int terminal; /* in and out[0] are a raw terminal: a lost one ends the run */
	int twice;    /* a second Ctrl-C within two seconds kills */
	struct output_sink out[2];

	uint64_t room, sent; /* stdin offsets */
	uint64_t last_int_ns, deadline_ns;
	int exited;          /* .exit is valid */
	int gone;            /* init's connection is at its end */
	enum stream_end end; /* why it was over: STREAM_EXITED unless we wanted it so before */
	struct wire_exit exit;
};

/* Zeroes it and gives it the descriptors 0, 1 and 2. */
void exec_pump_init(struct exec_pump *s, struct box_handle *b);
/* Runs cmd to its end. An err is our failure; whatever happens to the program is in .end and .exit. */
must_check int exec_pump_run(struct exec_pump *s, const struct box_command *cmd, struct err *e);
void exec_pump_fini(struct exec_pump *s);
