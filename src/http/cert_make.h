/* cert_make.h - making X.509 certificates: what the authorities of Atoll have in common.
 * Owns: nothing. Functions that return int return 1 for success, as those of OpenSSL do; tls_why() has
 * the reason of a failure. */
#pragma once
#include "base/buf.h"
#include <openssl/x509.h>
#include <time.h>

struct cert_extension {
	int nid;
	const char *value; /* as in a configuration file of OpenSSL */
};

/* Version 3, a random serial number, valid from a day ago (clocks differ, most of all those of virtual
 * machines) and for that many days. NULL: failed. */
X509 *cert_make_new(EVP_PKEY *key, time_t now, int days);
int cert_make_name(X509_NAME *name, const char *field, const char *text);
/* Extends and signs it; ca: the issuer, or c itself. */
int cert_make_sign(X509 *c, X509 *ca, EVP_PKEY *ca_key, const struct cert_extension *x, unsigned n);
/* Appends PEM. */
int cert_make_text(X509 *c, struct buf *out);
int cert_make_key_text(EVP_PKEY *k, struct buf *out);
int cert_make_hash(const X509 *c, unsigned char out[32]); /* SHA-256 of the whole certificate */

static inline void cert_make_free_key(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static inline void cert_make_free_cert(X509 **c)
{
	X509_free(*c);
}

#define auto_key __attribute__((cleanup(cert_make_free_key)))
#define auto_cert __attribute__((cleanup(cert_make_free_cert)))
