/* object_client.h - requests of a node to the object store, with URLs that a gateway has signed: one object, one method.
 * Owns:         requests that wait for a connection; the connection of a request.
 * Does not own: how a socket is connected (the server process cannot: hooks.connect); the bytes.
 *
 *   object_client_begin() ─► hooks.connect() ─► object_client_connected(fd) ─► TLS ─► request ─► done()
 *
 * The store is not trusted: the caller knows length and digest of what it reads, and a store that moves less than
 * OBJECT_SLOW_BYTES in OBJECT_SLOW_MS is too slow to be of use. */
#pragma once
#include "http/object_store.h"
#include "http/upstream.h"

struct ssl_ctx_st;
struct object_request;

enum {
	OBJECT_SLOW_MS =
		8000, /* also for connection and handshake, and for the answer after the last byte */
	OBJECT_SLOW_BYTES = 256 << 10,
	OBJECT_MOST_BYTES = INT32_MAX, /* of one PUT; S3 has 5 GB */
};

struct object_client {
	struct loop *loop;
	struct object_store store;
	struct ssl_ctx_st *tls; /* verifies with the list of the machine; NULL: plain */
	void (*connect)(
		void *user); /* a socket is needed: object_client_connected() or _failed() */
	void *user;
	struct object_request *waiting; /* for a socket, the oldest first */
};

void object_client_init(struct object_client *c, struct loop *l, const struct object_store *s,
			struct ssl_ctx_st *tls, void (*connect)(void *user), void *user);
void object_client_connected(struct object_client *c, int take_fd);
void object_client_failed(struct object_client *c, const char *why); /* of the oldest request */
void object_client_fail_all(struct object_client *c, const char *why);

struct object_request { /* memory of the caller, zeroed; until done() or object_request_cancel() */
	/* Called once, from the loop. why NULL: the store has answered that it is done; of GET all bytes have come. */
	void (*done)(struct object_request *x, const char *why);
	/* The next bytes of the body; -1: they cannot be read. PUT only. */
	ssize_t (*read)(struct object_request *x, char *piece, size_t room);
	/* Bytes of the answer. GET only. Not 0: no more are wanted, done() follows with the reason `trouble`. */
	int (*body)(struct object_request *x, const char *bytes, size_t n);
	int is_other; /* in done() of a GET: the store has no such object, or one of another length */
	uint64_t
		length; /* PUT: of the body. GET: of the object; an answer of another length is refused */
	/* Of object_client.c. */
	const char *method;
	struct object_client *client;
	struct object_request *next;
	int is_active, is_put, is_waiting, has_link, status;
	struct upstream_link link; /* during the handshake */
	struct watch watch;
	struct upstream up;
	struct timer clock;
	struct buf head;
	uint64_t moved, counted, left;
	char why[160];
};
/* method: GET, PUT or DELETE, a constant. url: as signed. ERR_INVALID: it is not one of this store. */
must_check int object_client_begin(struct object_client *c, struct object_request *x,
				   const char *method, const char *url, struct err *e);
void object_request_cancel(
	struct object_request *x); /* done() is not called; fine on a zeroed or finished one */
