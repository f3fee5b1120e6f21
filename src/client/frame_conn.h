/* frame_conn.h - frames over a socket, on the loop, without waiting.
 * Owns: the descriptor, and frames that the socket did not take at once: FRAME_CONN_QUEUE bytes at most.
 * A peer that lets more than that pile up is treated as gone. */
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
	int paused; /* nothing is read for now */
	/* len bytes, checked by the size table; *fd: the one that came along or -1, to be taken by
	 * setting it to -1. The frame is good until the callback returns. */
	void (*on_frame)(struct frame_conn *p, const struct frame *f, size_t len, int *fd);
	/* The end, told once and from the loop. The descriptor is closed. */
	void (*on_gone)(struct frame_conn *p, const struct err *why);
};

void frame_conn_init(struct frame_conn *p, struct loop *l, int take_fd);
/* -1 only when it is closed already; a failure to send is told by on_gone(). take_fd: -1 or one
 * that rides along. */
int frame_conn_send(struct frame_conn *p, const void *body, size_t n, const void *tail,
		    size_t tail_n, int take_fd);
void frame_conn_pause(struct frame_conn *p, int paused);
void frame_conn_fini(struct frame_conn *p); /* closes, tells nobody; fine on a closed one */
