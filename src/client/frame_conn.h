/* frame_conn.h - frames over a socket, on the loop, without waiting.
 * Owns: the descriptor, and frames that the socket did not take at once: POST_QUEUE bytes at most.
 * A peer that lets more than that pile up is treated as gone. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include "wire/wire.h"
#include <stddef.h>

enum { POST_QUEUE = 4 * 1024 * 1024, POST_FRAMES_A_TURN = 16 };

struct post_item;

struct post {
	struct watch watch;
	int fd; /* -1: closed */
	struct post_item *first, *last;
	size_t queued;
	int paused; /* nothing is read for now */
	/* len bytes, checked by the size table; *fd: the one that came along or -1, to be taken by
	 * setting it to -1. The frame is good until the callback returns. */
	void (*on_frame)(struct post *p, const struct frame *f, size_t len, int *fd);
	/* The end, told once and from the loop. The descriptor is closed. */
	void (*on_gone)(struct post *p, const struct err *why);
};

void post_init(struct post *p, struct loop *l, int take_fd);
/* -1 only when it is closed already; a failure to send is told by on_gone(). take_fd: -1 or one
 * that rides along. */
int post_send(struct post *p, const void *body, size_t n, const void *tail, size_t tail_n,
	      int take_fd);
void post_pause(struct post *p, int paused);
void post_fini(struct post *p); /* closes, tells nobody; fine on a closed one */
