/* start_msg.h - how a seed is told what to be. Freestanding: init has no libc.
 * A seed's socket is a stream. First comes one byte with its stdin, stdout and stderr; then, when
 * the time has come, a uint32_t and so many bytes: cwd NUL argc NUL argv... env..., each with its
 * NUL. A seed that started with `WIRE_START_CHANNEL` keeps the socket as its channel. */
#pragma once

enum { SEED_WORDS = 1 << 16 }; /* bytes of it at most; longer ones are executed plainly */
