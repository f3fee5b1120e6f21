/* file_client.h - client of a file worker inside a box, on the loop: one request after another.
 * Owns: the connection to the worker. Closing it ends the worker and its request.
 * Paths are sent unchanged: the kernel checks permissions, quota and symlinks inside the box. */
#pragma once
#include "client/init_conn.h"

struct file_client;

struct file_client_events {
	/* clang-format off */
	void (*ready)(struct file_client *c); /* the worker is connected: requests may be sent */
	void (*entry)(struct file_client *c, const struct wire_entry *e, const char *name, size_t n);
	void (*data)(struct file_client *c, const char *bytes, size_t n); /* n 0: the end of the file */
	void (*done)(struct file_client *c, uint16_t flags);
	void (*other)(struct file_client *c, const struct frame *f, size_t len);
	/* ERROR, or the worker or the box has ended. No more events unless another request
	 * is sent. */
	void (*failed)(struct file_client *c, const struct err *e);
	/* clang-format on */
};

struct file_client {
	struct frame_conn post; /* fd -1: no worker (yet) */
	struct init_call hello;
	const struct file_client_events *on;
	uint32_t ref;
};

/* Requests a worker from init of this connection; flags: WIRE_FILES_*. */
void file_client_open(struct file_client *c, struct init_conn *l, uint16_t flags,
		      const struct file_client_events *on);
/* Calls no event; fine at any time after file_client_open(). */
void file_client_close(struct file_client *c);

/* body: a frame of the worker's protocol, with its head filled in; tail: usually the path. */
void file_client_ask(struct file_client *c, uint8_t type, void *body, size_t n, const void *tail,
		     size_t tail_n);
void file_client_data(struct file_client *c, const void *bytes,
		      size_t n); /* of a PUT; n 0: its end */
/* A PUT with all its bytes, whose number is limited: the rest waits in the queue of the socket. */
void file_client_put(struct file_client *c, struct wire_put *put, const char *path,
		     const void *bytes, size_t n);
/* PUT and GET with WIRE_PIPE: the content goes through a pipe; *out_fd is its other end, for a PUT
 * the writing one. The caller can splice the content without copying it. */
/* head.flags may contain other flags. */
must_check int file_client_ask_pipe(struct file_client *c, uint8_t type, void *body, size_t n,
				    const char *path, int *out_fd, struct err *e);
/* A GET of one worker that is the PUT of another one, in another box: the content passes through one
 * pipe. Both answer as usual, without DATA. */
must_check int file_client_transfer(struct file_client *from, const char *from_path,
				    struct file_client *to, struct wire_put *put,
				    const char *to_path, struct err *e);
/* Adds to the PUT in progress, before its end: META, APPEND. */
void file_client_more(struct file_client *c, uint8_t type, const void *tail, size_t n);
void file_client_pause(struct file_client *c, int paused);

const char *file_client_event_name(uint32_t kind); /* of a WIRE_EVENT: "create", "write", ... */
