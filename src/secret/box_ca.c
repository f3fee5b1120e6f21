/* box_ca.c - see box_ca.h. */
#include "secret/box_ca.h"
#include "base/cleanup.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

enum { BOX_CA_DAYS = 3650 };

static void box_ca_free_key(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void box_ca_free_cert(X509 **c)
{
	X509_free(*c);
}

static int box_ca_extend(X509 *c)
{
	static const struct {
		int nid;
		const char *value;
	} rows[] = {
		{ NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
		{ NID_key_usage, "critical,keyCertSign" },
		{ NID_subject_key_identifier, "hash" },
	};
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, c, c, NULL, NULL, 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &ctx, rows[i].nid, rows[i].value);
		int ok = one && X509_add_ext(c, one, -1);

		X509_EXTENSION_free(one);
		if (!ok)
			return 0;
	}
	return 1;
}

/* Valid from a day ago: the clock may be set back. */
static int box_ca_fill(X509 *c, EVP_PKEY *key)
{
	X509_NAME *name = X509_get_subject_name(c);
	time_t now = time(NULL);

	return X509_set_version(c, X509_VERSION_3) &&
	       ASN1_INTEGER_set(X509_get_serialNumber(c), 1) &&
	       X509_time_adj_ex(X509_getm_notBefore(c), -1, 0, &now) &&
	       X509_time_adj_ex(X509_getm_notAfter(c), BOX_CA_DAYS, 0, &now) &&
	       X509_set_pubkey(c, key) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
					  (const unsigned char *)"Atoll box", -1, -1, 0) &&
	       X509_set_issuer_name(c, name) && box_ca_extend(c) && X509_sign(c, key, EVP_sha256());
}

static int box_ca_text(BIO *b, int written, struct buf *out)
{
	char *text;
	long n = written ? BIO_get_mem_data(b, &text) : 0;

	if (n > 0)
		buf_add(out, text, (size_t)n);
	BIO_free(b);
	return n > 0;
}

int box_ca_make(struct buf *out_cert, struct buf *out_key, struct err *e)
{
	__attribute__((cleanup(box_ca_free_key))) EVP_PKEY *key = EVP_EC_gen("P-256");
	__attribute__((cleanup(box_ca_free_cert))) X509 *c = X509_new();
	BIO *cert = BIO_new(BIO_s_mem()), *text = BIO_new(BIO_s_secmem());
	int made = key && c && cert && text && box_ca_fill(c, key);
	int wrote = box_ca_text(cert, made && PEM_write_bio_X509(cert, c), out_cert);

	wrote = box_ca_text(text,
			    made && PEM_write_bio_PKCS8PrivateKey(text, key, NULL, NULL, 0, NULL,
								  NULL),
			    out_key) &&
		wrote;
	return wrote ? 0 : err_set(e, ERR_SYS, "make the certificate authority of a box");
}
