/* ca.c - see ca.h. */
#include "cluster/ca.h"
#include "base/cleanup.h"
#include "http/cert_make.h"
#include "http/tls.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_S = 24 * 3600 };

struct cluster_ca {
	X509 *cert;
	EVP_PKEY *key;
};

static void ca_free_bio(BIO **b)
{
	BIO_free(*b);
}

static void ca_free_request(X509_REQ **r)
{
	X509_REQ_free(*r);
}

#define auto_bio __attribute__((cleanup(ca_free_bio)))
#define auto_request __attribute__((cleanup(ca_free_request)))

static int ca_failed(struct err *e, enum err_kind kind, const char *what)
{
	return err_set(e, kind, "%s: %s", what, tls_why());
}

/* OpenSSL would ask for the passphrase of a key on the terminal. */
static int ca_no_passphrase(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static BIO *ca_reader(const char *text, size_t n)
{
	ERR_clear_error();
	return n && n < INT_MAX ? BIO_new_mem_buf(text, (int)n) : NULL;
}

static X509 *ca_parse_cert(const struct buf *pem, struct err *e)
{
	auto_bio BIO *b = ca_reader(pem->p, pem->len);
	X509 *c = b ? PEM_read_bio_X509(b, NULL, ca_no_passphrase, NULL) : NULL;

	if (!c)
		ca_failed(e, ERR_INVALID, "not a certificate (PEM)");
	return c;
}

static EVP_PKEY *ca_parse_key(const struct buf *pem, struct err *e)
{
	auto_bio BIO *b = ca_reader(pem->p, pem->len);
	EVP_PKEY *k = b ? PEM_read_bio_PrivateKey(b, NULL, ca_no_passphrase, NULL) : NULL;

	if (!k)
		ca_failed(e, ERR_INVALID, "not a private key (PEM)");
	return k;
}

/* ---- the authority ---- */

int cluster_ca_make(struct buf *out_cert, struct buf *out_key, struct err *e)
{
	static const struct cert_extension x[] = {
		{ NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
		{ NID_key_usage, "critical,keyCertSign" },
		{ NID_subject_key_identifier, "hash" },
	};
	auto_key EVP_PKEY *key = EVP_EC_gen("P-256");
	auto_cert X509 *c = key ? cert_make_new(key, time(NULL), CLUSTER_CA_DAYS) : NULL;

	if (c && cert_make_name(X509_get_subject_name(c), "CN", "Atoll cluster") &&
	    cert_make_sign(c, c, key, x, ARRAY_LEN(x)) && cert_make_text(c, out_cert) &&
	    cert_make_key_text(key, out_key))
		return 0;
	return ca_failed(e, ERR_SYS, "make the certificate authority of a cluster");
}

int cluster_ca_load(struct cluster_ca **out, const struct buf *cert, const struct buf *key,
		    struct err *e)
{
	auto_cert X509 *c = ca_parse_cert(cert, e);
	auto_key EVP_PKEY *k = c ? ca_parse_key(key, e) : NULL;

	if (!k)
		return -1;
	if (X509_check_ca(c) != 1)
		return err_set(e, ERR_INVALID, "the certificate is not one of an authority");
	if (X509_check_private_key(c, k) != 1)
		return ca_failed(e, ERR_INVALID, "the key is not the key of the authority");
	*out = malloc(sizeof(**out));
	if (!*out)
		abort();
	**out = (struct cluster_ca){ .cert = steal(&c), .key = steal(&k) };
	return 0;
}

void cluster_ca_free(struct cluster_ca *ca)
{
	if (!ca)
		return;
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	free(ca);
}

int cluster_ca_fingerprint(const struct buf *cert, unsigned char out[CLUSTER_FINGERPRINT],
			   struct err *e)
{
	auto_cert X509 *c = ca_parse_cert(cert, e);

	if (!c)
		return -1;
	return cert_make_hash(c, out) ? 0 : ca_failed(e, ERR_SYS, "hash a certificate");
}

/* ---- requests ---- */

static int ca_write_request(EVP_PKEY *key, struct buf *out, struct err *e)
{
	auto_request X509_REQ *r = X509_REQ_new();
	auto_bio BIO *b = BIO_new(BIO_s_mem());
	char *text;
	long n;

	if (!r || !b || !X509_REQ_set_version(r, X509_REQ_VERSION_1) ||
	    !X509_REQ_set_pubkey(r, key) || !X509_REQ_sign(r, key, EVP_sha256()) ||
	    !PEM_write_bio_X509_REQ(b, r))
		return ca_failed(e, ERR_SYS, "make a certificate request");
	n = BIO_get_mem_data(b, &text);
	buf_add(out, text, (size_t)n);
	return 0;
}

int cluster_ca_request(struct buf *out_request, struct buf *out_key, struct err *e)
{
	auto_key EVP_PKEY *key = EVP_EC_gen("P-256");

	if (!key || !cert_make_key_text(key, out_key))
		return ca_failed(e, ERR_SYS, "make a key");
	return ca_write_request(key, out_request, e);
}

int cluster_ca_request_for(const struct buf *key, struct buf *out_request, struct err *e)
{
	auto_key EVP_PKEY *k = ca_parse_key(key, e);

	return k ? ca_write_request(k, out_request, e) : -1;
}

static int ca_check_key(EVP_PKEY *key, struct err *e)
{
	char group[40] = "";

	if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
	    EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group),
					   NULL) == 1 &&
	    strcmp(group, "prime256v1") == 0)
		return 0;
	return err_set(e, ERR_INVALID, "the key of a certificate request is not ECDSA P-256");
}

/* The request with a key of the right kind, made by the owner of that key; NULL: invalid. */
static X509_REQ *ca_parse_request(const char *text, size_t n, struct err *e)
{
	auto_request X509_REQ *r = NULL;
	auto_bio BIO *b = NULL;
	EVP_PKEY *key;

	if (n > CLUSTER_REQUEST_MAX) {
		err_set(e, ERR_INVALID,
			"a certificate request of %zu bytes; it may have at most %d", n,
			CLUSTER_REQUEST_MAX);
		return NULL;
	}
	b = ca_reader(text, n);
	r = b ? PEM_read_bio_X509_REQ(b, NULL, ca_no_passphrase, NULL) : NULL;
	key = r ? X509_REQ_get0_pubkey(r) : NULL;
	if (!key) {
		ca_failed(e, ERR_INVALID, "not a certificate request (PEM)");
		return NULL;
	}
	if (ca_check_key(key, e) < 0)
		return NULL;
	if (X509_REQ_verify(r, key) != 1) {
		ca_failed(e, ERR_INVALID, "the certificate request is not signed with its key");
		return NULL;
	}
	return steal(&r);
}

int cluster_ca_request_key(const char *request, size_t n, unsigned char out[32], struct err *e)
{
	auto_request X509_REQ *r = ca_parse_request(request, n, e);
	unsigned char *der = NULL;
	unsigned len = 0;
	int size, ok;

	if (!r)
		return -1;
	size = i2d_PUBKEY(X509_REQ_get0_pubkey(r), &der);
	ok = size > 0 && EVP_Digest(der, (size_t)size, out, &len, EVP_sha256(), NULL) == 1 &&
	     len == 32;
	OPENSSL_free(der);
	return ok ? 0 : ca_failed(e, ERR_SYS, "hash a public key");
}

int cluster_ca_sign(const struct cluster_ca *ca, const char *request, size_t n,
		    const struct cluster_peer *peer, time_t now, struct buf *out_cert,
		    struct err *e)
{
	int gateway = peer->role == CLUSTER_GATEWAY;
	const struct cert_extension x[] = {
		{ NID_basic_constraints, "critical,CA:FALSE" },
		{ NID_key_usage, "critical,digitalSignature" },
		{ NID_ext_key_usage,
		  gateway ? "critical,serverAuth,clientAuth" : "critical,clientAuth" },
		{ NID_authority_key_identifier, "keyid:always" },
	};
	auto_request X509_REQ *r = ca_parse_request(request, n, e);
	auto_cert X509 *c =
		r ? cert_make_new(X509_REQ_get0_pubkey(r), now, CLUSTER_CERT_DAYS) : NULL;
	char name[32];

	if (!r)
		return -1;
	snprintf(name, sizeof(name), "%s=%u", gateway ? "gateway" : "node", peer->number);
	if (c && cert_make_name(X509_get_subject_name(c), "CN", name) &&
	    cert_make_sign(c, ca->cert, ca->key, x, ARRAY_LEN(x)) && cert_make_text(c, out_cert))
		return 0;
	return ca_failed(e, ERR_SYS, "sign a certificate");
}

int cluster_ca_renew_at(const struct buf *cert, int64_t *out_s, struct err *e)
{
	auto_cert X509 *c = ca_parse_cert(cert, e);
	struct tm tm;

	if (!c)
		return -1;
	if (ASN1_TIME_to_tm(X509_get0_notAfter(c), &tm) != 1)
		return ca_failed(e, ERR_INVALID, "the end of a certificate");
	*out_s = (int64_t)timegm(&tm) - (int64_t)CLUSTER_RENEW_DAYS * DAY_S;
	return 0;
}
