/* exec_pump.h - copies the streams of one exec between a box and the descriptors of this process.
 * Owns:         buffered output: at most STREAM_WINDOW bytes of each stream.
 * Does not own: the descriptors, the box, the mode of the terminal. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "client/box_handle.h"

enum {
	STREAM_WINDOW = 256 * 1024, /* bytes per stream that a box may send before more
				     * is granted */
	STREAM_STOP_MS = 500,       /* time for a program to exit after the request to do so */
};

enum stream_end {
	STREAM_EXITED,   /* see .exit */
	STREAM_BOX_DIED, /* the connection to init was closed first; the keeper knows the cause */
	STREAM_KILLED,   /* by Ctrl-C, twice */
	STREAM_UNREAD,   /* stdout or stderr no longer has a reader */
	STREAM_HUNG_UP,  /* the terminal was closed */
};

/* Destination of one output stream. */
struct output_sink {
	int fd;           /* -1: into keep */
	struct buf *keep; /* NULL: discarded */
	size_t keep_max;
	void (*note)(struct buf *noted, const char *bytes,
		     size_t n); /* may be NULL; also receives the output ... */
	struct buf *noted;      /* ... and stores it here */
	int bounded;            /* a write may block: poll first and write at most PIPE_BUF */
	char *held;             /* STREAM_WINDOW bytes, allocated when output must wait */
	size_t start, len;
	uint64_t next, passed, granted; /* offsets: expected next, written, granted to init */
	uint64_t dropped;               /* bytes that were lost in init, or did not fit into keep */
};

struct exec_pump {
	struct box_handle *box;
	uint32_t ref;
	int in;       /* forwarded as stdin; -1: nothing */
	int signals;  /* a signalfd, or -1 */
	int terminal; /* in and out[0] are a raw terminal: the exec ends when it is closed */
	int twice;    /* a second Ctrl-C within two seconds kills */
	struct output_sink out[2];

	uint64_t room, sent; /* stdin offsets */
	uint64_t last_int_ns, deadline_ns;
	int exited;          /* .exit is valid */
	int gone;            /* the connection to init was closed */
	enum stream_end end; /* why it ended: STREAM_EXITED unless this process has ended it */
	struct wire_exit exit;
};

/* Zeroes it and sets the descriptors 0, 1 and 2. */
void exec_pump_init(struct exec_pump *s, struct box_handle *b);
/* Runs cmd until it exits. An err is a failure of this client; the result of the program is in .end
 * and .exit. */
must_check int exec_pump_run(struct exec_pump *s, const struct box_command *cmd, struct err *e);
void exec_pump_fini(struct exec_pump *s);
