/* client_conn.h - a blocking connection to a server with time limits: TCP, TLS or a unix socket.
 * Owns: the socket and its TLS session. */
#pragma once
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ssl_st;
struct ssl_ctx_st;

enum client_conn_kind { CLIENT_CONN_TCP, CLIENT_CONN_TLS, CLIENT_CONN_UNIX };

struct client_conn_url { /* "http://host:port/prefix", "https://...", "unix:/path" */
	enum client_conn_kind kind;
	char host[256]; /* without brackets; unix: the path of the socket */
	char port[8];
	char prefix[256]; /* "" or "/some/where", without a slash at the end */
	char header[272]; /* what Host says */
};
must_check int client_conn_url_parse(const char *text, struct client_conn_url *out, struct err *e);
/* A unix socket, or an address in digits without TLS: needs neither resolver nor OpenSSL. */
int client_conn_url_is_plain(const struct client_conn_url *u);

struct client_conn {
	int fd; /* -1: not connected */
	struct ssl_st *ssl;
	int stall_ms; /* -1: no limit */
	const struct client_conn_url *url;
};
/* tls: for CLIENT_CONN_TLS. Every address of the name is tried; the error message names the last
 * one. */
must_check int client_conn_open(struct client_conn *d, const struct client_conn_url *url,
				struct ssl_ctx_st *tls, uint32_t connect_ms, struct err *e);
void client_conn_close(struct client_conn *d); /* fine on a closed one */
must_check ssize_t client_conn_read(struct client_conn *d, void *out, size_t n,
				    struct err *e); /* 0: the end */
/* The same, but does not wait: -2 when there is nothing. */
must_check ssize_t client_conn_read_now(struct client_conn *d, void *out, size_t n, struct err *e);
must_check int client_conn_write(struct client_conn *d, const void *bytes, size_t n,
				 struct err *e); /* all of it */
/* The same, but does not wait: how many were written, or -2 when there is no room. After -2, the
 * next call must have the same bytes. */
must_check ssize_t client_conn_write_now(struct client_conn *d, const void *bytes, size_t n,
					 struct err *e);
void client_conn_shut(struct client_conn *d); /* no more will be written; it can still be read */
int client_conn_is_stale(
	struct client_conn *d); /* the peer has closed it, or has sent bytes without a request */
