/* certificates.c - see certificates.h. */
#include "cluster/certificates.h"
#include "base/cleanup.h"
#include "http/cert_make.h"
#include "http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CERTIFICATES_FILE_MAX = 16 << 10 };

/* ---- names ---- */

int cluster_peer_parse(const char *name, size_t n, struct cluster_peer *out, struct err *e)
{
	static const struct {
		const char *prefix;
		enum cluster_role role;
	} roles[] = { { "node=", CLUSTER_NODE }, { "gateway=", CLUSTER_GATEWAY } };

	for (unsigned i = 0; i < ARRAY_LEN(roles); i++) {
		size_t at = strlen(roles[i].prefix);
		unsigned number = 0;

		if (n <= at || n > at + 5 || memcmp(name, roles[i].prefix, at) != 0 ||
		    name[at] == '0')
			continue;
		for (; at < n && name[at] >= '0' && name[at] <= '9'; at++)
			number = number * 10 + (unsigned)(name[at] - '0');
		if (at < n || number > CLUSTER_NUMBER_MAX)
			continue;
		*out = (struct cluster_peer){ roles[i].role, number };
		return 0;
	}
	return err_set(e, ERR_DENIED,
		       "'%.*s' is not the name of a certificate of a cluster (node=7, gateway=3)",
		       (int)(n < 40 ? n : 40), name);
}

static int certificates_peer_of(const X509 *cert, struct cluster_peer *out, struct err *e)
{
	const X509_NAME *subject = X509_get_subject_name(cert);
	const X509_NAME_ENTRY *entry =
		X509_NAME_entry_count(subject) == 1 ? X509_NAME_get_entry(subject, 0) : NULL;
	const ASN1_STRING *text;

	if (!entry || OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName)
		return err_set(e, ERR_DENIED,
			       "the subject of the certificate is not one common name (CN)");
	text = X509_NAME_ENTRY_get_data(entry);
	return cluster_peer_parse((const char *)ASN1_STRING_get0_data(text),
				  (size_t)ASN1_STRING_length(text), out, e);
}

int cluster_peer(struct ssl_st *ssl, struct cluster_peer *out, struct err *e)
{
	const X509 *cert = SSL_get0_peer_certificate(ssl);
	long verified = SSL_get_verify_result(ssl);

	if (!cert)
		return err_set(e, ERR_DENIED, "the other machine has no certificate");
	if (verified != X509_V_OK)
		return err_set(e, ERR_DENIED, "the certificate of the other machine: %s",
			       X509_verify_cert_error_string(verified));
	return certificates_peer_of(cert, out, e);
}

/* ---- files ---- */

int cluster_read_file(const char *folder, const char *name, struct buf *out, struct err *e)
{
	char path[1200];
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%.1000s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err_sys(e, "%.200s", path);
		if (e->sys == ENOENT)
			e->kind = ERR_NOT_FOUND;
		return -1;
	}
	/* One allocation: a buffer that grows leaves copies of a key in freed memory. */
	buf_space(out, CERTIFICATES_FILE_MAX + 1);
	while ((n = read(fd, out->p + out->len, CERTIFICATES_FILE_MAX + 1 - out->len)) > 0)
		buf_grew(out, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.200s", path);
	if (out->len > CERTIFICATES_FILE_MAX)
		return err_set(e, ERR_INVALID, "%.200s is larger than %d bytes", path,
			       CERTIFICATES_FILE_MAX);
	return 0;
}

int cluster_identity_load(struct cluster_identity *id, const char *folder, struct err *e)
{
	*id = (struct cluster_identity){ 0 };
	if (access(folder, F_OK) < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND,
			       "this machine has not joined a cluster: %.120s does not exist; type "
			       "`atoll node join` or, on a gateway, `atoll cluster init`",
			       folder);
	if (cluster_read_file(folder, "ca.crt", &id->ca, e) == 0 &&
	    cluster_read_file(folder, "own.crt", &id->cert, e) == 0 &&
	    cluster_read_file(folder, "own.key", &id->key, e) == 0)
		return 0;
	cluster_identity_fini(id);
	return -1;
}

void cluster_identity_fini(struct cluster_identity *id)
{
	if (id->key.p)
		explicit_bzero(id->key.p, id->key.len);
	buf_fini(&id->ca);
	buf_fini(&id->cert);
	buf_fini(&id->key);
	*id = (struct cluster_identity){ 0 };
}

/* ---- contexts ---- */

static void certificates_free_bio(BIO **b)
{
	BIO_free(*b);
}

#define auto_bio __attribute__((cleanup(certificates_free_bio)))

/* A key with a passphrase is rejected: a daemon has no terminal to ask for it. */
static int certificates_no_passphrase(char *buf, int size, int writing, void *user)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static X509 *certificates_parse(const struct buf *pem, const char *what, struct err *e)
{
	auto_bio BIO *b =
		pem->len && pem->len < INT_MAX ? BIO_new_mem_buf(pem->p, (int)pem->len) : NULL;
	X509 *c;

	ERR_clear_error();
	c = b ? PEM_read_bio_X509(b, NULL, certificates_no_passphrase, NULL) : NULL;
	if (!c)
		err_set(e, ERR_INVALID, "%s is not a certificate (PEM): %s", what, tls_why());
	return c;
}

static EVP_PKEY *certificates_parse_key(const struct buf *pem, struct err *e)
{
	auto_bio BIO *b =
		pem->len && pem->len < INT_MAX ? BIO_new_mem_buf(pem->p, (int)pem->len) : NULL;
	EVP_PKEY *k;

	ERR_clear_error();
	k = b ? PEM_read_bio_PrivateKey(b, NULL, certificates_no_passphrase, NULL) : NULL;
	if (!k)
		err_set(e, ERR_INVALID, "own.key is not a private key (PEM): %s", tls_why());
	return k;
}

int cluster_identity_self(const struct cluster_identity *id, struct cluster_peer *out,
			  struct err *e)
{
	auto_cert X509 *cert = certificates_parse(&id->cert, "own.crt", e);

	return cert ? certificates_peer_of(cert, out, e) : -1;
}

static int certificates_fill(SSL_CTX *ctx, const struct cluster_identity *id, struct err *e)
{
	auto_cert X509 *ca = certificates_parse(&id->ca, "ca.crt", e);
	auto_cert X509 *cert = ca ? certificates_parse(&id->cert, "own.crt", e) : NULL;
	auto_key EVP_PKEY *key = cert ? certificates_parse_key(&id->key, e) : NULL;
	struct cluster_peer self;

	if (!key || certificates_peer_of(cert, &self, e) < 0)
		return -1;
	if (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, key) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return err_set(e, ERR_INVALID, "own.key does not belong to own.crt: %s", tls_why());
	/* The chain has the CA, too: a machine that joins knows only its fingerprint. */
	if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) != 1 ||
	    SSL_CTX_add1_chain_cert(ctx, ca) != 1)
		return err_set(e, ERR_SYS, "trust the cluster's CA: %s", tls_why());
	return 0;
}

static SSL_CTX *certificates_context(const SSL_METHOD *method, int verify, struct err *e)
{
	SSL_CTX *ctx;

	ERR_clear_error();
	ctx = SSL_CTX_new(method);
	if (!ctx) {
		err_set(e, ERR_SYS, "make a TLS context: %s", tls_why());
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, verify, NULL);
	return ctx;
}

static int certificates_context_of(const struct cluster_identity *id, const SSL_METHOD *method,
				   int verify, SSL_CTX **out_ctx, struct err *e)
{
	SSL_CTX *ctx = certificates_context(method, verify, e);

	if (!ctx)
		return -1;
	if (certificates_fill(ctx, id, e) < 0) {
		SSL_CTX_free(ctx);
		return -1;
	}
	*out_ctx = ctx;
	return 0;
}

int cluster_tls_server(const struct cluster_identity *id, enum cluster_clients clients,
		       struct ssl_ctx_st **out_ctx, struct err *e)
{
	int verify = SSL_VERIFY_PEER;

	if (clients == CLUSTER_CLIENTS_KNOWN)
		verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	return certificates_context_of(id, TLS_server_method(), verify, out_ctx, e);
}

int cluster_tls_client(const struct cluster_identity *id, struct ssl_ctx_st **out_ctx,
		       struct err *e)
{
	return certificates_context_of(id, TLS_client_method(), SSL_VERIFY_PEER, out_ctx, e);
}

/* ---- joining ---- */

/* The only trusted certificate is the one in the gateway's own chain that has the fingerprint. */
static int certificates_verify_pinned(X509_STORE_CTX *ctx, void *fingerprint)
{
	STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(ctx), *trusted = sk_X509_new_null();
	unsigned char hash[CLUSTER_FINGERPRINT];
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
	int ok = 0;

	/* The client of HTTP expects the host in the certificate; here the number is the name. */
	X509_VERIFY_PARAM_set1_host(param, NULL, 0);
	X509_VERIFY_PARAM_set1_ip(param, NULL, 0);
	for (int i = 0; trusted && i < sk_X509_num(chain); i++)
		if (cert_make_hash(sk_X509_value(chain, i), hash) &&
		    memcmp(hash, fingerprint, sizeof(hash)) == 0)
			sk_X509_push(trusted, sk_X509_value(chain, i));
	if (trusted && sk_X509_num(trusted) > 0) {
		X509_STORE_CTX_set0_trusted_stack(ctx, trusted);
		ok = X509_verify_cert(ctx) == 1;
	} else {
		X509_STORE_CTX_set_error(ctx, X509_V_ERR_CERT_UNTRUSTED);
	}
	sk_X509_free(trusted);
	return ok;
}

int cluster_tls_joining(const unsigned char fingerprint[CLUSTER_FINGERPRINT],
			struct ssl_ctx_st **out_ctx, struct err *e)
{
	SSL_CTX *ctx = certificates_context(TLS_client_method(), SSL_VERIFY_PEER, e);

	if (!ctx)
		return -1;
	SSL_CTX_set_cert_verify_callback(ctx, certificates_verify_pinned, (void *)fingerprint);
	*out_ctx = ctx;
	return 0;
}
