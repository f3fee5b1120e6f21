/* upstream_link.h - an established connection to a server, plain or with TLS.
 * Owns:         the descriptor and the TLS session, until upstream_link_close().
 * Does not own: the TLS context; and no handshake is made here. So the session may be one that was
 *               accepted: on a tunnel the server has connected to its client.
 *
 * The descriptor is non-blocking. With TLS the process must ignore SIGPIPE. A close without
 * upstream_link_shut() is a cut for the peer, not an end. */
#pragma once
#include <stddef.h>

struct iovec;
struct ssl_st;

struct upstream_link {
	int fd;             /* -1: none */
	struct ssl_st *tls; /* NULL: plain */
};

enum link_result {
	LINK_OK,
	LINK_END,         /* the peer has ended its direction; with TLS: by a close_notify */
	LINK_BROKEN,      /* reset, or invalid TLS, or TLS that was cut */
	LINK_WANTS_READ,  /* try the same again when the descriptor is readable ... */
	LINK_WANTS_WRITE, /* ... or writable; with TLS either can be the result of both directions */
};

static inline struct upstream_link upstream_link_plain(int take_fd)
{
	return (struct upstream_link){ .fd = take_fd };
}
void upstream_link_init(struct upstream_link *l);  /* sets the modes of TLS that this file needs */
void upstream_link_close(struct upstream_link *l); /* allowed on a closed one */
/* 1: the connection is open and the peer has sent nothing: it can carry a request. */
int upstream_link_is_silent(struct upstream_link *l);
/* 1: there may be input that the descriptor does not show as readable. */
int upstream_link_has_buffered(const struct upstream_link *l);
/* Reads up to n bytes. *out_got bytes were read before the result; LINK_OK: and there may be more
 * that the descriptor does not show as readable. */
enum link_result upstream_link_read(struct upstream_link *l, void *bytes, size_t n,
				    size_t *out_got);
/* *out_sent bytes are accepted, in all cases. After LINK_WANTS_... the next call begins with the
 * same bytes, and has as many or more. */
enum link_result upstream_link_write(struct upstream_link *l, const struct iovec *iov, unsigned n,
				     size_t *out_sent);
/* Ends this direction; the other one continues. Call it again only after LINK_WANTS_... */
enum link_result upstream_link_shut(struct upstream_link *l);
