/* client_conn_internal.h - shared by client_conn.c and client_conn_tls.c, or client_conn_plain.c
 * in the small client. */
#pragma once
#include "http/client_conn.h"

#include <sys/socket.h>

/* ---- in dial.c ---- */
const char *client_conn_name(const struct client_conn_url *u); /* for messages */
must_check int client_conn_wait(struct client_conn *d, short what, int ms, const char *action,
				struct err *e);
must_check int client_conn_connect(struct client_conn *d, const struct sockaddr *to, socklen_t len,
				   uint32_t ms, struct err *e);

/* ---- in dial_tls.c ---- */
must_check int client_conn_open_name(struct client_conn *d, uint32_t ms,
				     struct err *e); /* resolves, connects */
must_check int client_conn_tls_open(struct client_conn *d, struct ssl_ctx_st *tls, uint32_t ms,
				    struct err *e);
void client_conn_tls_close(struct client_conn *d);
must_check ssize_t client_conn_tls_read_now(struct client_conn *d, void *out, size_t n,
					    struct err *e);
must_check int client_conn_tls_write(struct client_conn *d, const char *p, size_t n, struct err *e);
must_check ssize_t client_conn_tls_write_now(struct client_conn *d, const void *bytes, size_t n,
					     struct err *e);
void client_conn_tls_shut(struct client_conn *d);
