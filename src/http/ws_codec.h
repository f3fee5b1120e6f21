/* ws_codec.h - the WebSocket protocol for client and server, without the socket (RFC 6455).
 * Owns:         the frame in progress and the message put together so far.
 * Does not own: the socket; the owner passes received bytes in and sends the output.
 *
 * wslay cuts frames; this file implements fragments, control frames between them, UTF-8, close
 * codes and the size limit. A message takes the memory that has arrived of it, not the size that
 * it announces. */
#pragma once
#include "base/buf.h"
#include "base/utf8.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct wslay_frame_context;

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10, WS_CONTROL_MAX = 125 };

struct ws_codec_owner {
	size_t (*take)(void *user, void *out, size_t n); /* bytes that have arrived; 0: none */
	void (*put)(void *user, const struct iovec *iov, unsigned n);
	void (*on_message)(void *user, int opcode, const char *bytes,
			   size_t n); /* followed by a NUL */
};

struct ws_codec {
	struct wslay_frame_context *frames;
	const struct ws_codec_owner *owner;
	void *user;
	int is_client;
	size_t message_max;

	struct buf message;
	struct utf8_check utf8;
	uint64_t left;  /* of the frame in progress */
	uint8_t opcode; /* of the message in progress; 0: none */
	uint8_t in_frame;
	uint8_t control[WS_CONTROL_MAX];
	unsigned control_len;

	int close_sent, close_got;
	uint16_t close_code; /* the status of the peer, 1005 if it sent none; or the own status */
};

void ws_codec_init(struct ws_codec *m, int is_client, size_t message_max,
		   const struct ws_codec_owner *owner, void *user);
void ws_codec_fini(struct ws_codec *m);
/* 1: something was read, call again; 0: nothing to read, or reading is paused. Calls
 * on_message(). */
int ws_codec_read(struct ws_codec *m);
/* One complete message or control frame. Sends nothing after a close. */
void ws_codec_send(struct ws_codec *m, int opcode, const struct iovec *iov, unsigned n);
void ws_codec_close(struct ws_codec *m, uint16_t code,
		    const char *reason); /* code 0: without one */
int ws_codec_over(
	const struct ws_codec
		*m); /* both sides have sent a close frame, or the peer violated the protocol */

/* The value that proves that the server understood the handshake: base64 of 20 bytes. */
void ws_accept_key(const char *key, char out[29]);
