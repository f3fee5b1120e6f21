/* conn.h - connections of clients: frames in, frames out.
 * Owns: the connections and the listening socket. A connection stores at most one frame that its
 * socket did not take; meanwhile nothing more is read from that client. */
#pragma once
#include "initlib/loop.h"
#include "wire/wire.h"
#include <stddef.h>

enum { CONN_MAX = 64 };

struct conn {
	struct event_source src;
	uint8_t is_keeper;     /* the keeper's: may KEEP and ADOPT */
	uint8_t kill_on_close; /* kill on close: the box ends with this connection */
	uint8_t blocked;       /* the socket is full */
	uint8_t dead;          /* to be closed at the end of the turn */
	uint8_t ended;         /* nothing more can be read from it: the end, or an invalid frame */
	uint8_t listing;       /* EXECS: 1 + the next slot to tell; 0: not listing */
	uint32_t listing_ref;
	uint32_t answer_len; /* of the frame that waits; 0: none does */
	int answer_fd;       /* rides on it; or -1 */
};

void conn_init(int take_keeper, int take_listener);
struct frame conn_head(uint8_t type, uint32_t ref);
/* 1 if the socket accepted it, 0 if not: then it is blocked, or closed. fd: -1 or a descriptor
 * that is sent with it. */
int conn_send(struct conn *c, const void *body, size_t n, const void *tail, size_t tail_n, int fd);
int conn_idle(const struct conn *c); /* can the connection probably send a frame now? */
/* Sends now or as soon as possible. 0: another answer still waits, and the caller keeps take_fd. */
int conn_answer(struct conn *c, const void *body, size_t n, int take_fd);
/* ERROR{kind, sys, "what" or "what: text of errno"}. kind ERR_NONE: the kind that belongs to
 * errno. */
int conn_error(struct conn *c, uint32_t ref, uint32_t kind, int sys, const char *what);
_Noreturn void conn_end(
	struct conn *c); /* the box, now that this one has been sent all it waits for */
void conn_list(struct conn *c, uint32_t ref); /* answers EXECS */
void conn_keep(void);                         /* the keeper has given this box to a client ... */
void conn_claim(void); /* ... and a client has it: now the first connection is like any other */
int conn_kept(void);
void conn_arm_all(void); /* a hold has begun or ended: which connections are read has changed */
unsigned conn_count(void);
void conn_sweep(void); /* frees closed connections; called by the loop */
