/* stdin_buf.h - the bytes on their way to a program's stdin, or to its channel.
 * Owns: init's end of the pipe (or a copy of the terminal's), and a buffer for what the program
 * has not read yet. The buffer is bounded, and the client knows the bound: ROOM. */
#pragma once
#include "initlib/loop.h"
#include <stddef.h>
#include <stdint.h>

enum { STDIN_BUF_ROOM = 65536 }; /* bytes a client may be ahead of the program */
enum event_stream_kind { STDIN_BUF_PIPE, STDIN_BUF_TTY, STDIN_BUF_SOCKET };

struct exec;

struct stdin_buf {
	struct event_source
		src; /* fd -1: no stdin, or closed by either side; bytes are discarded */
	struct exec *exec;
	uint8_t kind, ending;
	char *ring; /* mapped at the first byte that the pipe does not take */
	uint32_t head, len;
	uint64_t accepted, consumed; /* from the client; by the program */
	uint64_t room;               /* announced: the client may write up to here */
};

/* take_fd -1: there is none. */
void stdin_buf_init(struct stdin_buf *f, struct exec *x, int take_fd, enum event_stream_kind kind);
void stdin_buf_fini(struct stdin_buf *f);
int stdin_buf_push(struct stdin_buf *f, const char *bytes,
		   size_t n); /* -1: more than ROOM allowed */
void event_stream_end(
	struct stdin_buf *f); /* end of file once all is drained; on a terminal its ^D */
void stdin_buf_resume(struct stdin_buf *f); /* a hold has begun or ended */
/* Bytes that the program's side has not accepted: read, and put back at another init. */
size_t stdin_buf_read(const struct stdin_buf *f, uint32_t from, char *to, size_t room);
void stdin_buf_restore(struct stdin_buf *f, const char *bytes, size_t n);
