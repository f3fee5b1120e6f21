/* json_pipe.h - JSON messages over a stream socket, each after its length: 4 bytes, little-endian. If the
 * highest bit of the length is set, a text follows in the same form; it is the member "body" of the message.
 * Owns: the descriptor, incomplete messages, unsent messages. Bounded in both directions: a peer
 * that sends more, or leaves more unread, is disconnected. */
#pragma once
#include "base/buf.h"
#include "loop/loop.h"
#include <jansson.h>

enum { PIPE_MESSAGE = 32 << 20, PIPE_WAITING = 64 << 20 };

struct json_pipe {
	struct watch watch;
	struct timer gone_soon, write_soon;
	int fd;
	struct buf in, out;
	size_t out_at;
	int broken;
	/* Set both before json_pipe_init(). */
	void (*message)(struct json_pipe *p, const json_t *m); /* must not call json_pipe_fini() */
	void (*gone)(struct json_pipe *p); /* called once; may call json_pipe_fini() */
};

/* fd: blocking or not. */
void json_pipe_init(struct json_pipe *p, struct loop *l, int take_fd);
/* Written in the next turn of the loop, together with others of this one. gone() reports a failure to send. */
void json_pipe_send(struct json_pipe *p, json_t *take_message);
/* The same with a member "body", which is neither escaped nor parsed: n bytes of UTF-8, borrowed. */
void json_pipe_send_body(struct json_pipe *p, json_t *take_message, const char *body, size_t n);
void json_pipe_fini(struct json_pipe *p); /* allowed on a zeroed one whose fd is -1 */
