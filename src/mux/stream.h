/* stream.h - streams: one descriptor at this end for each, and what waits for it.
 * Owns: the descriptors, bytes that arrived for a reader that has not taken them, and what this end
 * still has to send: OPEN, GRANT, SHUTDOWN, CLOSE. packet.h has the state of the protocol. */
#pragma once
#include "initlib/loop.h"
#include "mux/channel.h"

enum { STREAM_OPEN = 1, STREAM_SHUTDOWN = 2, STREAM_CLOSE = 4 }; /* struct stream.owes */

enum { STREAM_ANSWERS = 8192, STREAM_BUFFER = PACKET_WINDOW + STREAM_ANSWERS };

struct stream {
	struct event_source src; /* fd -1: none */
	uint8_t eof;             /* nothing more is read from it */
	uint8_t broken;          /* nothing more can be written to it */
	uint8_t shut;            /* the writing direction was ended */
	uint8_t gone;            /* closed at this end: what arrives is dropped */
	uint8_t owes;            /* packets to be sent, as bits */
	uint8_t copies;          /* frames wait for the copy of a file */
	int32_t taken; /* of the window, used up and not granted again; below 0: own answers wait */
	uint32_t from, to; /* bytes in the buffer */
	char *buffer;      /* STREAM_BUFFER bytes, or NULL: never needed so far */
};

void stream_take(const struct packet_head *h, const struct packet_fd *fds, const char *body);
/* A new stream of this end with this descriptor (-1: none); its number, or 0. The peer gets OPEN before
 * anything else if `owes` is STREAM_OPEN. */
unsigned stream_add(enum packet_kind kind, int take_fd, uint8_t owes);
void stream_start(unsigned number, int take_fd,
		  uint8_t owes); /* the same for a number that is open */
struct stream *stream_at(unsigned number);
void stream_due(unsigned number);    /* it may have something to send, or something to wait for */
void stream_finish(unsigned number); /* closes its descriptor, sends CLOSE */
void stream_resume_all(void);        /* the channel takes packets again */
void stream_flush(void);             /* sends what is owed; called once per turn */
void stream_end_all(void);           /* the channel is closed: only buffers are written */
int stream_waiting(void);            /* streams with bytes for a reader */
void stream_arm(unsigned number);
/* Writes a frame of this end to the stream's own descriptor, in order with those that arrived. */
void stream_answer(unsigned number, const void *frame, uint32_t bytes, int take_fd);
