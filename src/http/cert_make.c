/* cert_make.c - see cert_make.h. */
#include "http/cert_make.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

static int cert_make_serial(X509 *c)
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

X509 *cert_make_new(EVP_PKEY *key, time_t now, int days)
{
	X509 *c = X509_new();

	if (c && X509_set_version(c, X509_VERSION_3) && cert_make_serial(c) &&
	    X509_time_adj_ex(X509_getm_notBefore(c), -1, 0, &now) &&
	    X509_time_adj_ex(X509_getm_notAfter(c), days, 0, &now) && X509_set_pubkey(c, key))
		return c;
	X509_free(c);
	return NULL;
}

int cert_make_name(X509_NAME *name, const char *field, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)text,
					  -1, -1, 0);
}

static int cert_make_extend(X509 *c, X509 *ca, const struct cert_extension *x, unsigned n)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, ca, c, NULL, NULL, 0);
	for (unsigned i = 0; i < n; i++) {
		X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &ctx, x[i].nid, x[i].value);
		int ok = one && X509_add_ext(c, one, -1);

		X509_EXTENSION_free(one);
		if (!ok)
			return 0;
	}
	return 1;
}

int cert_make_sign(X509 *c, X509 *ca, EVP_PKEY *ca_key, const struct cert_extension *x, unsigned n)
{
	return X509_set_issuer_name(c, X509_get_subject_name(ca)) &&
	       cert_make_extend(c, ca, x, n) && X509_sign(c, ca_key, EVP_sha256());
}

static int cert_make_take_text(BIO *b, int written, struct buf *out)
{
	char *text;
	long n = written ? BIO_get_mem_data(b, &text) : 0;

	if (n > 0)
		buf_add(out, text, (size_t)n);
	BIO_free(b);
	return n > 0;
}

int cert_make_text(X509 *c, struct buf *out)
{
	BIO *b = BIO_new(BIO_s_mem());

	return b && cert_make_take_text(b, PEM_write_bio_X509(b, c), out);
}

int cert_make_key_text(EVP_PKEY *k, struct buf *out)
{
	BIO *b = BIO_new(BIO_s_secmem());

	return b && cert_make_take_text(
			    b, PEM_write_bio_PKCS8PrivateKey(b, k, NULL, NULL, 0, NULL, NULL), out);
}

int cert_make_hash(const X509 *c, unsigned char out[32])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!X509_digest(c, EVP_sha256(), hash, &n) || n != 32)
		return 0;
	for (unsigned i = 0; i < n; i++)
		out[i] = hash[i];
	return 1;
}
