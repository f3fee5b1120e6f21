/* attachment.h - one connection that reads the output of one exec.
 * Owns: the cursors. Nothing is queued for a client: the bytes to send are the difference
 * between its cursors and the logs, and frames are built from the logs when its socket takes
 * them. */
#pragma once
#include "wire/wire.h"
#include <stddef.h>
#include <stdint.h>

enum { ATTACHMENT_MAX = 256 };

struct conn;
struct exec;

struct attachment {
	struct conn *conn;                                  /* NULL: a free slot */
	struct attachment *next;                            /* of the same exec */
	uint64_t cursor[WIRE_STREAMS], until[WIRE_STREAMS]; /* next byte to send; credit */
	uint64_t room_told[2]; /* last ROOM sent: for stdin, for the channel */
	uint8_t streams;       /* bits: the attached streams; none: only the EXIT */
	uint8_t hold;          /* no EXIT yet: a READ for another stream follows */
	uint8_t untold;        /* it is owed a STARTED */
};

struct attachment *attachment_find(struct exec *x, const struct conn *c);
struct attachment *attachment_add(struct exec *x,
				  struct conn *c); /* found or new; NULL: none left */
void attachment_detach_all(struct exec *x);
void attachment_detach_conn(const struct conn *c); /* from every exec */
void attachment_conn_due(const struct conn *c);    /* its socket takes frames again */

/* The lowest cursor on this stream, or the end of the log without attachments. */
uint64_t attachment_slowest(const struct exec *x, int stream);
/* Bytes that are about to be appended to the log: sent directly to a single reader that has read
 * all before them. */
void attachment_offer(struct exec *x, int stream, const char *bytes, size_t n);
/* Schedules STARTED, together with the first other frame or in a moment. For a program that has
 * ended by then without output, EXIT is enough: its client is woken once. */
void attachment_will_report(struct exec *x, struct attachment *v);
/* Sends the bytes that the window permits. 1: there is more, but other execs get their turn. */
int attachment_pump(struct exec *x);
