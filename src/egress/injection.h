/* injection.h - the values that egress writes into requests of one box, and the certificate authority with
 * which it answers TLS in place of the hosts of these values. For the files of this folder only.
 * Owns: values, keys and certificates; all of them in memory only, and wiped at the end.
 *
 *   "authorization: Bearer atoll-placeholder-5c1e..."  ──►  "authorization: Bearer VALUE"
 *   a header that is set for the host                  ──►  "NAME: VALUE" in place of the box's own
 *
 * A rule without a port ("api.example") is for HTTPS on port 443. A rule with a port is for that port, with
 * or without TLS. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct injection;
struct ssl_ctx_st;
struct ssl_st;

enum { INJECTION_HEAD = 64 << 10 }; /* bytes of a head with all values */

/* parts: the tail of WIRE_EGRESS_SECRETS. *out is NULL if there are none. */
must_check int injection_parse(struct injection **out, const char *parts, size_t n, struct err *e);
void injection_free(struct injection *x); /* allowed on NULL */
/* 1: requests to this host are opened, because a value may be written into them. x may be NULL. */
int injection_fits(const struct injection *x, const char *host, uint16_t port, int tls);
/* Appends the head of a request, as message_write_request() has written it, with values to out. -1: it
 * would have more than INJECTION_HEAD bytes. */
must_check int injection_write(const struct injection *x, const char *host, uint16_t port, int tls,
			       const char *head, size_t n, struct evbuffer *out);
/* A TLS connection on which egress is this host. NULL: it could not be made. */
struct ssl_st *injection_accept(struct injection *x, const char *host);

/* For connections to hosts: verifies their certificates with these (PEM). */
must_check int injection_trust(struct ssl_ctx_st **out, const char *certificates, struct err *e);
/* A TLS connection to this host. NULL: it could not be made. */
struct ssl_st *injection_connect(struct ssl_ctx_st *trust, const char *host);
