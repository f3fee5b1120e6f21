/* start_msg.h - the message that starts a program in a forked interpreter. Freestanding: init has no libc.
 * Its socket is a stream. First comes one byte with its stdin, stdout and stderr; then, when
 * the time has come, a uint32_t and so many bytes: cwd NUL argc NUL argv... env..., each with its
 * NUL. An interpreter that started with `WIRE_START_CHANNEL` keeps the socket as its channel. */
#pragma once

enum {
	START_MSG_BYTES = 1 << 16
}; /* maximum number of bytes; longer messages are executed by a fresh interpreter */
