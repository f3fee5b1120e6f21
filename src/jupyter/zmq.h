/* zmq.h - the used part of libzmq, loaded on demand.
 * Owns: the library and one context, for the life of the process. Only boxes with a Jupyter
 * context need it, so it is not linked and its header is not needed: the names and numbers below
 * are those of libzmq.so.5, whose ABI is stable. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct zmq_msg {
	_Alignas(void *) unsigned char opaque[64];
};
struct zmq_item {
	void *socket; /* or fd */
	int fd;
	short events, revents;
};

enum { ZMQ_SUB = 2, ZMQ_DEALER = 5 };
enum {
	ZMQ_ROUTING_ID = 5,
	ZMQ_SUBSCRIBE = 6,
	ZMQ_LINGER = 17,
	ZMQ_RECONNECT_IVL = 18,
	ZMQ_SNDHWM = 23,
	ZMQ_RCVHWM = 24,
};
enum { ZMQ_DONTWAIT = 1, ZMQ_SNDMORE = 2 };
enum { ZMQ_POLLIN = 1 };

struct zmq {
	void *context;
	void *(*socket)(void *context, int type);
	int (*setsockopt)(void *s, int option, const void *value, size_t n);
	int (*connect)(void *s, const char *address);
	int (*send)(void *s, const void *bytes, size_t n, int flags);
	int (*poll)(struct zmq_item *items, int n, long timeout_ms);
	int (*msg_init)(struct zmq_msg *m);
	int (*msg_recv)(struct zmq_msg *m, void *s, int flags);
	int (*msg_close)(struct zmq_msg *m);
	void *(*msg_data)(struct zmq_msg *m);
	size_t (*msg_size)(const struct zmq_msg *m);
	int (*msg_more)(const struct zmq_msg *m);
	const char *(*strerror)(int error);
	int (*last_error)(void);
};

/* ERR_NOT_FOUND: it is not installed; the message has the install command. */
must_check int zmq_load(struct zmq *out, struct err *e);
/* Connected to an ipc:// path; the peer may bind later. identity NULL: none. */
must_check int zmq_open(const struct zmq *z, int type, const char *path, const char *identity,
			void **out, struct err *e);
