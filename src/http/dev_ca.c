/* dev_ca.c - see dev_ca.h. */
#include "http/dev_ca.h"
#include "base/cleanup.h"
#include "http/cert_make.h"
#include "http/tls.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
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

static int dev_ca_failed(struct err *e, const char *what)
{
	return err_set(e, ERR_SYS, "%s: %s", what, tls_why());
}

static X509 *dev_ca_begin(EVP_PKEY *key, const char *common, time_t now)
{
	X509 *c = cert_make_new(key, now, CA_DAYS);

	if (c && cert_make_name(X509_get_subject_name(c), "O", "Atoll development") &&
	    cert_make_name(X509_get_subject_name(c), "CN", common))
		return c;
	X509_free(c);
	return NULL;
}

/* The web UI is served at localhost itself, because names below the domain are those of boxes. */
static int dev_ca_is_local(const char *domain)
{
	size_t n = strlen(domain), tail = strlen(".localhost");

	return n > tail && strcasecmp(domain + n - tail, ".localhost") == 0;
}

/* The authority may sign certificates but no other authority, and only names of this domain. */
static X509 *make_ca(EVP_PKEY *key, const char *domain, time_t now)
{
	char only[DOMAIN_MAX + 40], name[64];
	const struct cert_extension x[] = {
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
	if (c && cert_make_sign(c, c, key, x, ARRAY_LEN(x)))
		return c;
	X509_free(c);
	return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *domain, time_t now)
{
	char names[2 * DOMAIN_MAX + 40];
	const struct cert_extension x[] = {
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
	if (c && cert_make_sign(c, ca, ca_key, x, ARRAY_LEN(x)))
		return c;
	X509_free(c);
	return NULL;
}

/* ---- as text ---- */

static int dev_ca_fingerprint(X509 *c, char out[96])
{
	unsigned char hash[32];

	if (!cert_make_hash(c, hash))
		return 0;
	for (unsigned i = 0; i < sizeof(hash); i++)
		snprintf(out + 3 * i, 4, i + 1 < sizeof(hash) ? "%02X:" : "%02X", hash[i]);
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
	if (!cert_make_text(ca, &out->ca) || !cert_make_text(cert, &out->cert) ||
	    !cert_make_key_text(key, &out->key) || !dev_ca_fingerprint(ca, out->fingerprint)) {
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
