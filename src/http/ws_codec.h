/* ws_codec.h - a WebSocket conversation, either end of it, without the socket (RFC 6455).
 * Owns:         the frame in progress and the message put together so far.
 * Does not own: the bytes under way; the owner hands them in and carries them out.
 *
 * wslay cuts frames; what frames mean is here: fragments, control frames between them, UTF-8, close
 * codes, the limit. A message takes the memory that has arrived of it, not what it announces. */
#pragma once
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct wslay_frame_context;

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10, WS_CONTROL_MAX = 125 };

struct utf8 { /* a check that can stop in the middle of a character */
	uint8_t need, low, high;
};

struct wsmsg_owner {
	size_t (*take)(void *user, void *out, size_t n); /* bytes that have come; 0: none */
	void (*put)(void *user, const struct iovec *iov, unsigned n);
	void (*on_message)(void *user, int opcode, const char *bytes,
			   size_t n); /* with a NUL behind it */
};

struct wsmsg {
	struct wslay_frame_context *frames;
	const struct wsmsg_owner *owner;
	void *user;
	int is_client;
	size_t message_max;

	struct buf message;
	struct utf8 utf8;
	uint64_t left;  /* of the frame in progress */
	uint8_t opcode; /* of the message in progress; 0: none */
	uint8_t in_frame;
	uint8_t control[WS_CONTROL_MAX];
	unsigned control_len;

	int close_sent, close_got;
	uint16_t close_code; /* what the peer said, 1005 if nothing; or why we ended it */
};

void wsmsg_init(struct wsmsg *m, int is_client, size_t message_max, const struct wsmsg_owner *owner,
		void *user);
void wsmsg_fini(struct wsmsg *m);
/* 1: something was read, ask again; 0: nothing there, or nothing more wanted. Calls on_message(). */
int wsmsg_read(struct wsmsg *m);
/* One whole message or control frame. Nothing after a close. */
void wsmsg_send(struct wsmsg *m, int opcode, const struct iovec *iov, unsigned n);
void wsmsg_close(struct wsmsg *m, uint16_t code, const char *reason); /* code 0: without one */
int wsmsg_over(const struct wsmsg *m); /* both have said so, or the peer broke the rules */

/* 0: no longer UTF-8. Complete when need is 0. */
int utf8_feed(struct utf8 *u, const void *bytes, size_t n);
/* What proves that the handshake was understood: base64 of 20 bytes. */
void ws_accept_key(const char *key, char out[29]);
