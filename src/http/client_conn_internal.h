/* client_conn_internal.h - what dial.c shares with dial_tls.c, or with dial_plain.c in the small client. */
#pragma once
#include "http/client_conn.h"

#include <sys/socket.h>

/* ---- in dial.c ---- */
const char *dial_name(const struct dial_url *u); /* for messages */
must_check int dial_wait(struct dial *d, short what, int ms, const char *verb, struct err *e);
must_check int dial_connect(struct dial *d, const struct sockaddr *to, socklen_t len, uint32_t ms,
			    struct err *e);

/* ---- in dial_tls.c ---- */
must_check int dial_open_name(struct dial *d, uint32_t ms, struct err *e); /* resolves, connects */
must_check int dial_tls_open(struct dial *d, struct ssl_ctx_st *tls, uint32_t ms, struct err *e);
void dial_tls_close(struct dial *d);
must_check ssize_t dial_tls_read_now(struct dial *d, void *out, size_t n, struct err *e);
must_check int dial_tls_write(struct dial *d, const char *p, size_t n, struct err *e);
