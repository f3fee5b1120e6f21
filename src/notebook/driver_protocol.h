/* driver_protocol.h - the messages of a driver on its channel, line by line (docs/languages.md).
 * Owns: the line that has not ended yet. No byte is trusted: a line is bounded, is JSON of
 * bounded cost, and is one of the five events, or it is rejected. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum {
	DRIVER_MSG_LINE = 16 << 20, /* bytes of one line */
	DRIVER_MSG_NODES = 1 << 18, /* values in one line: each is some sixty bytes in memory */
};

enum driver_msg_kind {
	DRIVER_MSG_READY,
	DRIVER_MSG_RESULT,
	DRIVER_MSG_INPUT,
	DRIVER_MSG_ERROR,
	DRIVER_MSG_END
};
enum driver_msg_status { DRIVER_MSG_OK, DRIVER_MSG_FAILED, DRIVER_MSG_INTERRUPTED };

struct driver_msg_event {
	enum driver_msg_kind kind;
	uint64_t cell;                 /* 0: ready */
	enum driver_msg_status status; /* end */
	json_t *doc; /* the event as clients get it, with "type"; owned by the receiver */
};

struct driver_msg {
	struct buf line;
	int lost; /* bytes before it are missing: skip to the next newline */
};

/* Reads bytes up to the end of one line. 1: *out is its message; 0: the line is not complete and
 * all bytes were read, or it was empty; -1: it is not in the table. */
must_check int driver_msg_take(struct driver_msg *t, const char **bytes, size_t *n,
			       struct driver_msg_event *out, struct err *e);
void driver_msg_gap(struct driver_msg *t); /* some bytes are lost */
void driver_msg_fini(struct driver_msg *t);

/* A message for a driver; a line with its newline. env: NULL or an object. */
void driver_msg_run(struct buf *out, uint64_t cell, const char *code, size_t n, const json_t *env);
/* text NULL: the end of input. */
void driver_msg_input(struct buf *out, uint64_t cell, const char *text, size_t n);
