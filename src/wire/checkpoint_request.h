/* checkpoint_request.h - how a program in a box requests a checkpoint of its box.
 *
 *   /opt/atoll/bin/checkpoint ── NAME\n ──► 127.0.0.1:CHECKPOINT_REQUEST_PORT (the server)
 *                             ◄── ok ID\n, or the error\n ── end of file
 *
 * This header is freestanding: the program has no libc. */
#pragma once

enum {
	CHECKPOINT_REQUEST_PORT = 3129, /* after that of egress */
	CHECKPOINT_REQUEST_NAME = 64,   /* longest name */
	CHECKPOINT_REQUEST_ANSWER = 512 /* longest answer */
};
