/* driver_protocol.h - what a driver says on its channel, line by line (docs/languages.md).
 * Owns: the line that has not ended yet. Every byte is a stranger's: a line is bounded, is JSON that
 * costs no more memory than it should, and is one of the five events, or talk_line() says no. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stdint.h>

enum {
	TALK_LINE = 16 << 20,  /* bytes of one line */
	TALK_NODES = 1 << 18,  /* values in one line: each is some sixty bytes in memory */
};

enum talk_kind { TALK_READY, TALK_RESULT, TALK_INPUT, TALK_ERROR, TALK_END };
enum talk_status { TALK_OK, TALK_FAILED, TALK_INTERRUPTED };

struct talk_event {
	enum talk_kind kind;
	uint64_t cell; /* 0: ready */
	enum talk_status status; /* end */
	json_t *doc; /* the event as clients get it, with "type"; the receiver's */
};

struct talk {
	struct buf line;
	int lost; /* bytes before it are missing: up to the next newline nothing is known */
};

/* Takes bytes up to the end of one line. 1: *out is what it said; 0: the line goes on, all were taken,
 * or there was nothing in it; -1: it is not of the table. */
must_check int talk_take(struct talk *t, const char **bytes, size_t *n, struct talk_event *out,
			 struct err *e);
void talk_gap(struct talk *t); /* some bytes are lost */
void talk_fini(struct talk *t);

/* What a driver is told; a line with its newline. env: NULL or an object. */
void talk_run(struct buf *out, uint64_t cell, const char *code, size_t n, const json_t *env);
/* text NULL: the end of input. */
void talk_input(struct buf *out, uint64_t cell, const char *text, size_t n);
