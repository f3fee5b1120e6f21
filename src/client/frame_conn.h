/* frame_conn.h - sends and receives frames over a socket, on the loop, without blocking.
 * Owns: the descriptor, and frames that the socket did not accept yet: FRAME_CONN_QUEUE bytes at
 *  most.
 * A peer that leaves more than that unread is disconnected. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include "wire/wire.h"
#include <stddef.h>

enum { FRAME_CONN_QUEUE = 4 * 1024 * 1024, FRAME_CONN_FRAMES_A_TURN = 16 };

struct frame_conn_item;

struct frame_conn {
	struct watch watch;
	int fd; /* -1: closed */
	struct frame_conn_item *first, *last;
	size_t queued;
	int paused; /* reading is stopped */
	/* len bytes, checked by the size table; *fd: the descriptor that came with the frame, or
	 * -1; the callback takes it by setting *fd to -1. The frame is valid until the callback
	 * returns. */
	void (*on_frame)(struct frame_conn *p, const struct frame *f, size_t len, int *fd);
	/* The connection has ended; called once, from the loop. The descriptor is closed. */
	void (*on_gone)(struct frame_conn *p, const struct err *why);
};

void frame_conn_init(struct frame_conn *p, struct loop *l, int take_fd);
/* -1 only if the connection is closed already; on_gone() reports a failure to send. take_fd: -1 or
 * a descriptor to send. */
int frame_conn_send(struct frame_conn *p, const void *body, size_t n, const void *tail,
		    size_t tail_n, int take_fd);
void frame_conn_pause(struct frame_conn *p, int paused);
void frame_conn_fini(struct frame_conn *p); /* closes without on_gone(); fine on a closed one */
