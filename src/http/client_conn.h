/* client_conn.h - a connection to a server, blocking, with limits in time: TCP, TLS or a unix socket.
 * Owns: the socket and its TLS session. */
#pragma once
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ssl_st;
struct ssl_ctx_st;

enum dial_kind { DIAL_TCP, DIAL_TLS, DIAL_UNIX };

struct dial_url { /* "http://host:port/prefix", "https://...", "unix:/path" */
	enum dial_kind kind;
	char host[256]; /* without brackets; unix: the path of the socket */
	char port[8];
	char prefix[256]; /* "" or "/some/where", without a slash behind it */
	char header[272]; /* what Host says */
};
must_check int dial_url_parse(const char *text, struct dial_url *out, struct err *e);
/* A unix socket, or an address in digits without TLS: needs neither resolver nor OpenSSL. */
int dial_url_is_plain(const struct dial_url *u);

struct dial {
	int fd; /* -1: not connected */
	struct ssl_st *ssl;
	int stall_ms; /* -1: wait for ever */
	const struct dial_url *url;
};
/* tls: for DIAL_TLS. Every address the name has is tried; the message names the last. */
must_check int dial_open(struct dial *d, const struct dial_url *url, struct ssl_ctx_st *tls,
			 uint32_t connect_ms, struct err *e);
void dial_close(struct dial *d); /* fine on a closed one */
must_check ssize_t dial_read(struct dial *d, void *out, size_t n, struct err *e); /* 0: the end */
/* The same, but does not wait: -2 when there is nothing. */
must_check ssize_t dial_read_now(struct dial *d, void *out, size_t n, struct err *e);
must_check int dial_write(struct dial *d, const void *bytes, size_t n,
			  struct err *e); /* all of it */
int dial_is_stale(struct dial *d); /* the peer has closed it, or has said something unasked */
