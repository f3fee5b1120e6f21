/* file_client.h - a file worker inside a box, on the loop: one request after another.
 * Owns: the connection to the worker. Closing it ends the worker and what it was doing.
 * Paths are the box's business: they go in as they are, and permission, quota and symlinks are
 * judged by the kernel in there. */
#pragma once
#include "client/init_conn.h"

struct file_client;

struct file_client_events {
	/* clang-format off */
	void (*ready)(struct file_client *c); /* there is a worker: ask */
	void (*entry)(struct file_client *c, const struct wire_entry *e, const char *name, size_t n);
	void (*data)(struct file_client *c, const char *bytes, size_t n); /* n 0: the end of the file */
	void (*done)(struct file_client *c, uint16_t flags);
	void (*other)(struct file_client *c, const struct frame *f, size_t len);
	/* ERROR, or worker or box are gone. No more events unless another request is made. */
	void (*failed)(struct file_client *c, const struct err *e);
	/* clang-format on */
};

struct file_client {
	struct frame_conn post; /* fd -1: no worker (yet) */
	struct init_call hello;
	const struct file_client_events *on;
	uint32_t ref;
};

/* Asks the line's init for a worker; flags: WIRE_FILES_*. */
void file_client_open(struct file_client *c, struct init_conn *l, uint16_t flags,
		      const struct file_client_events *on);
void file_client_close(
	struct file_client *c); /* tells nobody; fine at any time after file_client_open() */

/* body: a frame of the worker's language, head filled in; tail: usually the path. */
void file_client_ask(struct file_client *c, uint8_t type, void *body, size_t n, const void *tail,
		     size_t tail_n);
void file_client_data(struct file_client *c, const void *bytes,
		      size_t n); /* of a PUT; n 0: its end */
/* A PUT whose bytes are all here, and bounded: the socket's queue takes what it must. */
void file_client_put(struct file_client *c, struct wire_put *put, const char *path,
		     const void *bytes, size_t n);
/* PUT and GET with WIRE_PIPE: the bytes go through a pipe whose other end is *out_fd, the writing one of
 * a PUT. They never pass through whoever asks: it can splice them to where they belong. */
/* head.flags may hold others. */
must_check int file_client_ask_pipe(struct file_client *c, uint8_t type, void *body, size_t n,
				    const char *path, int *out_fd, struct err *e);
/* More about the PUT under way, before its end: META, APPEND. */
void file_client_more(struct file_client *c, uint8_t type, const void *tail, size_t n);
void file_client_pause(struct file_client *c, int paused);

const char *file_client_event_name(uint32_t kind); /* of a WIRE_EVENT: "create", "write", ... */
