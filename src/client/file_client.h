/* file_client.h - a file worker inside a box, on the loop: one request after another.
 * Owns: the connection to the worker. Closing it ends the worker and what it was doing.
 * Paths are the box's business: they go in as they are, and permission, quota and symlinks are
 * judged by the kernel in there. */
#pragma once
#include "client/init_conn.h"

struct clerk;

struct clerk_events {
	void (*ready)(struct clerk *c); /* there is a worker: ask */
	void (*entry)(struct clerk *c, const struct wire_entry *e, const char *name, size_t n);
	void (*data)(struct clerk *c, const char *bytes, size_t n); /* n 0: the end of the file */
	void (*done)(struct clerk *c, uint16_t flags);
	void (*other)(struct clerk *c, const struct frame *f, size_t len);
	/* ERROR, or worker or box are gone. No more events unless another request is made. */
	void (*failed)(struct clerk *c, const struct err *e);
};

struct clerk {
	struct post post; /* fd -1: no worker (yet) */
	struct listener hello;
	const struct clerk_events *on;
	uint32_t ref;
};

/* Asks the line's init for a worker; flags: WIRE_FILES_*. */
void clerk_open(struct clerk *c, struct line *l, uint16_t flags, const struct clerk_events *on);
void clerk_close(struct clerk *c); /* tells nobody; fine at any time after clerk_open() */

/* body: a frame of the worker's language, head filled in; tail: usually the path. */
void clerk_ask(struct clerk *c, uint8_t type, void *body, size_t n, const void *tail, size_t tail_n);
void clerk_data(struct clerk *c, const void *bytes, size_t n); /* of a PUT; n 0: its end */
/* A PUT whose bytes are all here, and bounded: the socket's queue takes what it must. */
void clerk_put(struct clerk *c, struct wire_put *put, const char *path, const void *bytes, size_t n);
/* PUT and GET with WIRE_PIPE: the bytes go through a pipe whose other end is *out_fd, the writing one of
 * a PUT. They never pass through whoever asks: it can splice them to where they belong. */
/* head.flags may hold others. */
must_check int clerk_ask_pipe(struct clerk *c, uint8_t type, void *body, size_t n, const char *path,
			      int *out_fd, struct err *e);
/* More about the PUT under way, before its end: META, APPEND. */
void clerk_more(struct clerk *c, uint8_t type, const void *tail, size_t n);
void clerk_pause(struct clerk *c, int paused);

const char *clerk_event_name(uint32_t kind); /* of a WIRE_EVENT: "create", "write", ... */
