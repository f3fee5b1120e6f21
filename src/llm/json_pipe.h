/* json_pipe.h - JSON both ways over a stream socket, a length before each: 4 bytes, the lowest first.
 * Owns: the descriptor, what is not yet a message, what is not yet written. Bounded both ways: who sends
 *       or leaves more than that is hung up on. */
#pragma once
#include "base/buf.h"
#include "loop/loop.h"
#include <jansson.h>

enum { PIPE_MESSAGE = 32 << 20, PIPE_WAITING = 64 << 20 };

struct json_pipe {
	struct watch watch;
	struct timer gone_soon;
	int fd;
	struct buf in, out;
	size_t out_at;
	int broken;
	/* Set both before json_pipe_init(). */
	void (*message)(struct json_pipe *p,
			const json_t *m);  /* not json_pipe_fini() from within */
	void (*gone)(struct json_pipe *p); /* once; json_pipe_fini() is for here */
};

/* fd: blocking or not. */
void json_pipe_init(struct json_pipe *p, struct loop *l, int take_fd);
void json_pipe_send(struct json_pipe *p,
		    json_t *take_message); /* what cannot be sent ends in gone() */
void json_pipe_fini(struct json_pipe *p);  /* fine on a zeroed one whose fd is -1 */
