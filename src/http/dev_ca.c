/* dev_ca.c - see dev_ca.h. */
#include "http/dev_ca.h"
#include "base/cleanup.h"
#include "http/tls.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DOMAIN_MAX = 200, LABEL_MAX = 63, DAY_S = 24 * 3600 };

/* ---- the name ---- */

static int is_label(const char *text, size_t n)
{
	if (n == 0 || n > LABEL_MAX || text[0] == '-' || text[n - 1] == '-')
		return 0;
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") >= n;
}

int ca_check_domain(const char *domain, struct err *e)
{
	unsigned labels = 0;
	size_t n;

	if (strlen(domain) > DOMAIN_MAX)
		return err_set(e, ERR_INVALID, "a domain has at most %d bytes", DOMAIN_MAX);
	for (const char *at = domain;; at += n + 1) {
		n = strcspn(at, ".");
		if (!is_label(at, n))
			return err_set(
				e, ERR_INVALID,
				"'%.60s' is not a domain: labels of a-z, 0-9 and '-', with dots between",
				domain);
		labels++;
		if (!at[n])
			break;
	}
	if (strspn(domain, "0123456789.") == strlen(domain))
		return err_set(e, ERR_INVALID,
			       "'%.60s' is an address, and boxes need names below a domain",
			       domain);
	if (labels < 2)
		return err_set(
			e, ERR_INVALID,
			"'%.60s' has one label, and clients do not take a certificate for *.%.60s",
			domain, domain);
	return 0;
}

/* ---- certificates ---- */

static void free_key(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void free_cert(X509 **c)
{
	X509_free(*c);
}

#define auto_key __attribute__((cleanup(free_key)))
#define auto_cert __attribute__((cleanup(free_cert)))

static int dev_ca_failed(struct err *e, const char *what)
{
	return err_set(e, ERR_SYS, "%s: %s", what, tls_why());
}

static int set_serial(X509 *c)
{
	unsigned char bytes[16];
	BIGNUM *n;
	int ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return 0;
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of full length */
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c));
	BN_free(n);
	return ok;
}

/* Valid from a day ago: clocks differ, most of all those of virtual machines. */
static int set_dates(X509 *c, time_t now)
{
	return X509_time_adj_ex(X509_getm_notBefore(c), -1, 0, &now) &&
	       X509_time_adj_ex(X509_getm_notAfter(c), CA_DAYS, 0, &now);
}

static int name_it(X509_NAME *name, const char *common)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
					  (const unsigned char *)"Atoll development", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common,
					  -1, -1, 0);
}

struct extension {
	int nid;
	const char *value;
};

static int dev_ca_extend(X509 *c, X509 *issuer, const struct extension *x, unsigned n)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, c, NULL, NULL, 0);
	for (unsigned i = 0; i < n; i++) {
		X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &ctx, x[i].nid, x[i].value);
		int ok = one && X509_add_ext(c, one, -1);

		X509_EXTENSION_free(one);
		if (!ok)
			return 0;
	}
	return 1;
}

static X509 *dev_ca_begin(EVP_PKEY *key, const char *common, time_t now)
{
	X509 *c = X509_new();

	if (c && X509_set_version(c, X509_VERSION_3) && set_serial(c) && set_dates(c, now) &&
	    X509_set_pubkey(c, key) && name_it(X509_get_subject_name(c), common))
		return c;
	X509_free(c);
	return NULL;
}

/* The authority may sign certificates but no other authority, and only names of this domain. */
/* The web UI is served at localhost itself, because names below the domain are those of boxes. */
static int dev_ca_is_local(const char *domain)
{
	size_t n = strlen(domain), tail = strlen(".localhost");

	return n > tail && strcasecmp(domain + n - tail, ".localhost") == 0;
}

static X509 *make_ca(EVP_PKEY *key, const char *domain, time_t now)
{
	char only[DOMAIN_MAX + 40], name[64];
	const struct extension x[] = {
		{ NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
		{ NID_key_usage, "critical,keyCertSign,cRLSign" },
		{ NID_subject_key_identifier, "hash" },
		{ NID_name_constraints, only },
	};
	X509 *c;

	snprintf(name, sizeof(name), "Atoll CA for %.45s", domain); /* 64 is a name's limit */
	snprintf(only, sizeof(only), "critical,permitted;DNS:%s",
		 dev_ca_is_local(domain) ? "localhost" : domain);
	c = dev_ca_begin(key, name, now);
	if (c && X509_set_issuer_name(c, X509_get_subject_name(c)) &&
	    dev_ca_extend(c, c, x, ARRAY_LEN(x)) && X509_sign(c, key, EVP_sha256()))
		return c;
	X509_free(c);
	return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *domain, time_t now)
{
	char names[2 * DOMAIN_MAX + 40];
	const struct extension x[] = {
		{ NID_basic_constraints, "critical,CA:FALSE" },
		{ NID_key_usage, "critical,digitalSignature" },
		{ NID_ext_key_usage, "serverAuth" },
		{ NID_subject_alt_name, names },
		{ NID_subject_key_identifier, "hash" },
		{ NID_authority_key_identifier, "keyid:always" },
	};
	X509 *c = dev_ca_begin(key, "Atoll", now);

	snprintf(names, sizeof(names), "DNS:%s,DNS:*.%s%s", domain, domain,
		 dev_ca_is_local(domain) ? ",DNS:localhost" : "");
	if (c && X509_set_issuer_name(c, X509_get_subject_name(ca)) &&
	    dev_ca_extend(c, ca, x, ARRAY_LEN(x)) && X509_sign(c, ca_key, EVP_sha256()))
		return c;
	X509_free(c);
	return NULL;
}

/* ---- as text ---- */

static int take_text(BIO *b, int written, struct buf *out)
{
	char *text;
	long n = written ? BIO_get_mem_data(b, &text) : 0;

	if (n > 0)
		buf_add(out, text, (size_t)n);
	BIO_free(b);
	return n > 0;
}

static int cert_text(X509 *c, struct buf *out)
{
	BIO *b = BIO_new(BIO_s_mem());

	return b && take_text(b, PEM_write_bio_X509(b, c), out);
}

static int key_text(EVP_PKEY *k, struct buf *out)
{
	BIO *b = BIO_new(BIO_s_secmem());

	return b &&
	       take_text(b, PEM_write_bio_PKCS8PrivateKey(b, k, NULL, NULL, 0, NULL, NULL), out);
}

static int dev_ca_fingerprint(X509 *c, char out[96])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!X509_digest(c, EVP_sha256(), hash, &n) || n != 32)
		return 0;
	for (unsigned i = 0; i < n; i++)
		snprintf(out + 3 * i, 4, i + 1 < n ? "%02X:" : "%02X", hash[i]);
	return 1;
}

int ca_make(const char *domain, struct ca_files *out, struct err *e)
{
	auto_key EVP_PKEY *ca_key = NULL;
	auto_key EVP_PKEY *key = NULL;
	auto_cert X509 *ca = NULL;
	auto_cert X509 *cert = NULL;
	time_t now = time(NULL);

	*out = (struct ca_files){ .until_s = now + (int64_t)CA_DAYS * DAY_S };
	if (ca_check_domain(domain, e) < 0)
		return -1;
	ca_key = EVP_EC_gen("P-256");
	key = EVP_EC_gen("P-256");
	if (!ca_key || !key)
		return dev_ca_failed(e, "make a key");
	ca = make_ca(ca_key, domain, now);
	cert = ca ? make_leaf(key, ca, ca_key, domain, now) : NULL;
	if (!cert)
		return dev_ca_failed(e, "make a certificate");
	if (!cert_text(ca, &out->ca) || !cert_text(cert, &out->cert) || !key_text(key, &out->key) ||
	    !dev_ca_fingerprint(ca, out->fingerprint)) {
		ca_fini(out);
		return dev_ca_failed(e, "write a certificate");
	}
	return 0;
}

void ca_fini(struct ca_files *f)
{
	if (f->key.p)
		explicit_bzero(f->key.p, f->key.len);
	buf_fini(&f->ca);
	buf_fini(&f->cert);
	buf_fini(&f->key);
}
