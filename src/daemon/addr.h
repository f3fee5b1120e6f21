/* addr.h - a listen address as text, and the socket that listens there.
 *
 * 	127.0.0.1:7070   [::1]:7070   localhost:7070   an address of this machine
 * 	:7070                                          all of them, IPv6 and IPv4
 * 	127.0.0.1:0                                    any free port; addr_of() returns which
 * 	unix:/run/atoll/atoll.sock                     clients that may open the file may connect
 *
 * No name but localhost is looked up: where a daemon listens must not depend on a resolver. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDR_TEXT 128

struct addr {
	char text[ADDR_TEXT]; /* "127.0.0.1:7070", "unix:/path": for messages, and can be parsed
			       * again */
	socklen_t len;
	union {
		struct sockaddr any;
		struct sockaddr_storage room;
		struct sockaddr_un local;
	};
	int everywhere; /* ":7070" */
};

must_check int addr_parse(struct addr *out, const char *text, struct err *e);
/* Bound, listening, non-blocking, CLOEXEC. A unix socket has mode 0660, and replaces a socket
 * without a listener. -1: ERR_CONFLICT in use, ERR_DENIED not allowed, ERR_INVALID not an
 * address of this machine. */
must_check int addr_listen(const struct addr *a, int backlog, struct err *e);
must_check int addr_of(int fd, struct addr *out, struct err *e); /* what it is bound to */
