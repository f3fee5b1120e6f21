/* tls.h - OpenSSL contexts, for the server and for clients.
 * Owns: nothing; a context belongs to the caller, until tls_free(). */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct ssl_ctx_st;

/* TLS 1.2 and later, the certificate chain and its key from PEM files. */
must_check int tls_server(const char *cert_file, const char *key_file, struct ssl_ctx_st **out_ctx,
			  struct err *e);
/* Verifies certificates; ca_file: NULL for the list of the machine. */
must_check int tls_client(const char *ca_file, struct ssl_ctx_st **out_ctx, struct err *e);
int64_t tls_expires_s(struct ssl_ctx_st *ctx); /* of its certificate, since 1970; 0: not known */
void tls_free(struct ssl_ctx_st *ctx);         /* allowed on NULL; connections may still use it */
/* The last error of OpenSSL as text; clears its error queue. */
const char *tls_why(void);
