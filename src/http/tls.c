/* tls.c - contexts with the few settings that matter. */
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <time.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *tls_why(void)
{
	unsigned long first =
		ERR_get_error(); /* the first is the cause, the others are consequences */
	const char *text = first ? ERR_reason_error_string(first) : NULL;

	ERR_clear_error();
	return text ? text : "OpenSSL does not say why";
}

static SSL_CTX *tls_context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* An idle connection frees its 34 KiB of buffers. */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return ctx;
}

/* For a key with a passphrase OpenSSL would prompt on the terminal; a daemon has none. */
static int no_passphrase(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

/* A client that offers several protocols gets http/1.1; one that offers only others gets no
 * answer to its offer. */
static int tls_choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		      const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	return SSL_TLSEXT_ERR_OK;
}

static int tls_load(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct err *e)
{
	/* The message of OpenSSL for a missing file is not clear enough. */
	if (access(cert_file, R_OK) < 0)
		return err_sys(e, "certificate %.120s", cert_file);
	if (access(key_file, R_OK) < 0)
		return err_sys(e, "key %.120s", key_file);
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
		return err_set(e, ERR_INVALID, "certificate %.120s: %s", cert_file, tls_why());
	if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
		return err_set(e, ERR_INVALID, "key %.120s: %s", key_file, tls_why());
	if (SSL_CTX_check_private_key(ctx) != 1)
		return err_set(e, ERR_INVALID, "key %.80s does not belong to certificate %.80s: %s",
			       key_file, cert_file, tls_why());
	return 0;
}

int tls_server(const char *cert_file, const char *key_file, struct ssl_ctx_st **out_ctx,
	       struct err *e)
{
	SSL_CTX *ctx;

	ERR_clear_error();
	ctx = tls_context(TLS_server_method());
	if (!ctx)
		return err_set(e, ERR_SYS, "make a TLS context: %s", tls_why());
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	SSL_CTX_set_alpn_select_cb(ctx, tls_choose, NULL);
	if (tls_load(ctx, cert_file, key_file, e) < 0) {
		SSL_CTX_free(ctx);
		return -1;
	}
	*out_ctx = ctx;
	return 0;
}

int tls_client(const char *ca_file, struct ssl_ctx_st **out_ctx, struct err *e)
{
	SSL_CTX *ctx;
	int ok;

	ERR_clear_error();
	if (ca_file && access(ca_file, R_OK) < 0)
		return err_sys(e, "certificates %.120s", ca_file);
	ctx = tls_context(TLS_client_method());
	if (!ctx)
		return err_set(e, ERR_SYS, "make a TLS context: %s", tls_why());
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	ok = ca_file ? SSL_CTX_load_verify_locations(ctx, ca_file, NULL)
		     : SSL_CTX_set_default_verify_paths(ctx);
	if (ok != 1) {
		err_set(e, ERR_INVALID, "certificates %.120s: %s",
			ca_file ? ca_file : "of this machine", tls_why());
		SSL_CTX_free(ctx);
		return -1;
	}
	*out_ctx = ctx;
	return 0;
}

int64_t tls_expires_s(struct ssl_ctx_st *ctx)
{
	const X509 *cert = SSL_CTX_get0_certificate(ctx);
	struct tm tm;

	if (!cert || ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1)
		return 0;
	return timegm(&tm);
}

void tls_free(struct ssl_ctx_st *ctx)
{
	SSL_CTX_free(ctx);
}
