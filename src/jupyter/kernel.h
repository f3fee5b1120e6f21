/* kernel.h - the connection to a kernel: four sockets, every message signed and checked.
 * Owns: the sockets, the session, the numbers of our messages. */
#pragma once
#include "jupyter/launch.h"
#include "jupyter/message.h"
#include "jupyter/zmq.h"

enum { KERNEL_SESSION = 32 };

struct kernel {
	struct zmq zmq;
	void *socket[PORTS]; /* by PORT_...; a child needs no heartbeat */
	const char *key;
	char session[KERNEL_SESSION + 1];
	uint64_t sent;
};

/* Loads the library; no thread starts before kernel_open(). */
must_check int kernel_init(struct kernel *k, struct err *e);
must_check int kernel_open(struct kernel *k, const struct launch *l, struct err *e);
/* Its id is in out_id, and begins with the id of the session. */
must_check int kernel_send(struct kernel *k, int port, const char *type, const json_t *parent,
			   json_t *take_content, char out_id[JUPYTER_MSG_ID], struct err *e);
/* 1: a message. 0: none now. -1: an invalid message, to be ignored. */
must_check int kernel_take(struct kernel *k, int port, struct jupyter_msg *out, struct err *e);
int kernel_is_ours(const struct kernel *k, const char *id); /* did this session send it? */
