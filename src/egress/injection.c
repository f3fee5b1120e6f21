/* injection.c - see injection.h. */
#include "egress/injection.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/wire.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
	SECRETS = 16,
	HOSTS = 16,
	HOST_TEXT = 256,
	LEAVES = 64, /* certificates that are kept; a rule may name many hosts (*.example) */
	LEAF_DAYS = 365,
	IN_HEADER = 1,
	IN_QUERY = 2,
};

struct injection_host {
	char name[HOST_TEXT];
	uint16_t port; /* 0: HTTPS on 443 */
	int below;     /* every name below it */
};

struct injection_secret {
	struct buf placeholder; /* replaced by value; empty: header is set to value */
	struct buf header, value;
	unsigned in;
	struct injection_host hosts[HOSTS];
	unsigned nhosts;
};

struct injection_leaf {
	struct injection_leaf *next;
	SSL_CTX *ctx;
	char host[HOST_TEXT];
};

struct injection {
	struct injection_secret v[SECRETS];
	unsigned n;
	X509 *ca;
	EVP_PKEY *ca_key, *leaf_key;
	struct injection_leaf *leaves;
	unsigned nleaves;
};

static void injection_wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->room);
	buf_fini(b);
}
#define auto_wiped __attribute__((cleanup(injection_wipe)))

/* ---- the parts ---- */

/* "host", "host:port", "*.host", "[::1]:port": written by the server, from a parsed rule. */
static int injection_read_host(struct injection_host *h, const char *text, size_t n, struct err *e)
{
	char all[HOST_TEXT + 16], *name = all, *colon;
	int v6;

	if (n == 0 || n >= sizeof(all) || memchr(text, 0, n))
		return err_set(e, ERR_INVALID, "a host of %zu bytes", n);
	memcpy(all, text, n);
	all[n] = 0;
	h->below = !strncmp(name, "*.", 2);
	name += h->below ? 2 : 0;
	v6 = *name == '[';
	colon = strchr(v6 && strchr(name, ']') ? strchr(name, ']') : name, ':');
	if (colon) {
		long port = strtol(colon + 1, NULL, 10);

		if (port < 1 || port > 65535)
			return err_set(e, ERR_INVALID, "port %ld of a host", port);
		h->port = (uint16_t)port;
		*colon = 0;
	}
	if (v6) {
		name++;
		name[strcspn(name, "]")] = 0;
	}
	if (strlen(name) >= sizeof(h->name))
		return err_set(e, ERR_INVALID, "a host of %zu bytes", strlen(name));
	memcpy(h->name, name, strlen(name) + 1);
	return 0;
}

static int injection_add_host(struct injection_secret *s, const char *bytes, size_t n,
			      struct err *e)
{
	if (s->nhosts == HOSTS)
		return err_set(e, ERR_LIMIT, "a secret with more than %d hosts", HOSTS);
	return injection_read_host(&s->hosts[s->nhosts++], bytes, n, e);
}

static int injection_read_ca(struct injection *x, char kind, const char *bytes, size_t n,
			     struct err *e)
{
	BIO *b = BIO_new_mem_buf(bytes, (int)n);
	int ok;

	if (kind == WIRE_SECRET_CERT)
		ok = !x->ca && (x->ca = PEM_read_bio_X509(b, NULL, NULL, NULL));
	else
		ok = !x->ca_key && (x->ca_key = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL));
	BIO_free(b);
	ERR_clear_error();
	return ok ? 0 : err_set(e, ERR_INVALID, "the certificate authority is not PEM");
}

static int injection_take(struct injection *x, char kind, const char *bytes, size_t n,
			  struct err *e)
{
	struct injection_secret *s = x->n ? &x->v[x->n - 1] : NULL;

	if (kind == WIRE_SECRET_CERT || kind == WIRE_SECRET_KEY)
		return injection_read_ca(x, kind, bytes, n, e);
	if (kind == WIRE_SECRET_PLACEHOLDER) {
		if (x->n == SECRETS || n < 16)
			return err_set(e, ERR_INVALID, "more than %d placeholders, or a short one",
				       SECRETS);
		buf_add(&x->v[x->n++].placeholder, bytes, n);
		return 0;
	}
	if (kind == WIRE_SECRET_HEADER) {
		if (x->n == SECRETS || n == 0)
			return err_set(e, ERR_INVALID, "more than %d headers, or an empty one",
				       SECRETS);
		buf_add(&x->v[x->n++].header, bytes, n);
		return 0;
	}
	if (!s)
		return err_set(e, ERR_INVALID, "a part before the first placeholder or header");
	if (kind == WIRE_SECRET_VALUE && !s->value.len) {
		buf_add(&s->value, bytes, n);
		return 0;
	}
	if (kind == WIRE_SECRET_IN) {
		s->in |= n == 6 && !memcmp(bytes, "header", 6) ? IN_HEADER : IN_QUERY;
		return 0;
	}
	if (kind == WIRE_SECRET_HOST)
		return injection_add_host(s, bytes, n, e);
	return err_set(e, ERR_INVALID, "an unknown part '%c'", kind);
}

static int injection_read(struct injection *x, const char *parts, size_t n, struct err *e)
{
	while (n) {
		uint32_t len;

		if (n < 1 + sizeof(len))
			return err_set(e, ERR_INVALID, "a part without a length");
		memcpy(&len, parts + 1, sizeof(len));
		if (len > n - 1 - sizeof(len))
			return err_set(e, ERR_INVALID, "a part longer than its frame");
		if (injection_take(x, *parts, parts + 1 + sizeof(len), len, e) < 0)
			return -1;
		parts += 1 + sizeof(len) + len;
		n -= 1 + sizeof(len) + len;
	}
	if (!x->ca || !x->ca_key || X509_check_private_key(x->ca, x->ca_key) != 1)
		return err_set(e, ERR_INVALID, "the certificate authority and its key differ");
	x->leaf_key = EVP_EC_gen("P-256");
	return x->leaf_key ? 0 : err_set(e, ERR_SYS, "make a key");
}

int injection_parse(struct injection **out, const char *parts, size_t n, struct err *e)
{
	struct injection *x;

	*out = NULL;
	if (!n)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	if (injection_read(x, parts, n, e) < 0) {
		injection_free(x);
		return err_in(e, "secrets of a box");
	}
	*out = x;
	return 0;
}

void injection_free(struct injection *x)
{
	if (!x)
		return;
	for (unsigned i = 0; i < x->n; i++) {
		injection_wipe(&x->v[i].placeholder);
		injection_wipe(&x->v[i].header);
		injection_wipe(&x->v[i].value);
	}
	while (x->leaves) {
		struct injection_leaf *l = x->leaves;

		x->leaves = l->next;
		SSL_CTX_free(l->ctx);
		free(l);
	}
	X509_free(x->ca);
	EVP_PKEY_free(x->ca_key);
	EVP_PKEY_free(x->leaf_key);
	free(x);
}

/* ---- requests ---- */

static int injection_host_fits(const struct injection_host *h, const char *host, uint16_t port,
			       int tls)
{
	size_t n = strlen(h->name), all = strlen(host);

	if (h->port ? h->port != port : !tls || port != 443)
		return 0;
	if (!h->below)
		return strcmp(h->name, host) == 0;
	return all > n + 1 && host[all - n - 1] == '.' && strcmp(host + all - n, h->name) == 0;
}

static int injection_secret_fits(const struct injection_secret *s, const char *host, uint16_t port,
				 int tls)
{
	for (unsigned i = 0; i < s->nhosts; i++)
		if (injection_host_fits(&s->hosts[i], host, port, tls))
			return 1;
	return 0;
}

int injection_fits(const struct injection *x, const char *host, uint16_t port, int tls)
{
	for (unsigned i = 0; x && i < x->n; i++)
		if (injection_secret_fits(&x->v[i], host, port, tls))
			return 1;
	return 0;
}

/* As a part of a query: every byte that is not unreserved is %XX. */
static void injection_add_query(struct buf *out, const struct buf *value)
{
	for (size_t i = 0; i < value->len; i++) {
		char c = value->p[i];

		if (c &&
		    strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", c))
			buf_putc(out, c);
		else
			buf_printf(out, "%%%02X", (unsigned char)c);
	}
}

/* Appends the text with every placeholder replaced. Returns how many were. */
struct injection_target {
	const struct injection *x;
	const char *host;
	uint16_t port;
	int tls;
};

static unsigned injection_replace(const struct injection_target *t, unsigned in, const char *text,
				  size_t n, struct buf *out)
{
	unsigned done = 0;

	for (size_t i = 0; i < n && out->len <= INJECTION_HEAD;) {
		const struct injection_secret *s = NULL;

		for (unsigned k = 0; k < t->x->n && !s; k++) {
			const struct injection_secret *one = &t->x->v[k];

			if (one->in & in && one->placeholder.len && n - i >= one->placeholder.len &&
			    !memcmp(text + i, one->placeholder.p, one->placeholder.len) &&
			    injection_secret_fits(one, t->host, t->port, t->tls))
				s = one;
		}
		if (!s) {
			buf_putc(out, text[i++]);
			continue;
		}
		if (in == IN_QUERY)
			injection_add_query(out, &s->value);
		else
			buf_add(out, s->value.p, s->value.len);
		i += s->placeholder.len;
		done++;
	}
	return done;
}

/* "Basic BASE64": the placeholder is inside. 0: it is something else, or has no placeholder. */
static int injection_basic(const struct injection_target *t, const char *value, size_t n,
			   struct buf *out)
{
	auto_wiped struct buf plain = { 0 }, with = { 0 }, coded = { 0 };

	if (n < 6 || strncasecmp(value, "basic ", 6) != 0 ||
	    base64_decode(&plain, value + 6, n - 6) < 0 ||
	    !injection_replace(t, IN_HEADER, plain.p, plain.len, &with))
		return 0;
	base64_encode(&coded, with.p, with.len);
	buf_add(out, value, 6);
	buf_add(out, coded.p, coded.len);
	return 1;
}

/* "GET /path?query HTTP/1.1": only the query. */
static void injection_request_line(const struct injection_target *t, const char *line, size_t n,
				   struct buf *out)
{
	const char *query = memchr(line, '?', n), *end = memrchr(line, ' ', n);

	if (!query || !end || end < query) {
		buf_add(out, line, n);
		return;
	}
	buf_add(out, line, (size_t)(query - line));
	injection_replace(t, IN_QUERY, query, (size_t)(end - query), out);
	buf_add(out, end, n - (size_t)(end - line));
}

static void injection_header(const struct injection_target *t, const char *line, size_t n,
			     struct buf *out)
{
	const char *colon = memchr(line, ':', n);
	size_t name = colon ? (size_t)(colon - line) + 1 : n;

	if (name < n && line[name] == ' ')
		name++;
	buf_add(out, line, name);
	if (!injection_basic(t, line + name, n - name, out))
		injection_replace(t, IN_HEADER, line + name, n - name, out);
}

/* 1: the name of this line is that of a header that is set for the host; the box cannot send its own. */
static int injection_is_set(const struct injection_target *t, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	size_t name = colon ? (size_t)(colon - line) : n;

	for (unsigned i = 0; i < t->x->n; i++) {
		const struct injection_secret *s = &t->x->v[i];

		if (s->header.len && s->header.len == name &&
		    !strncasecmp(s->header.p, line, name) &&
		    injection_secret_fits(s, t->host, t->port, t->tls))
			return 1;
	}
	return 0;
}

static void injection_set_headers(const struct injection_target *t, struct buf *out)
{
	for (unsigned i = 0; i < t->x->n && out->len <= INJECTION_HEAD; i++) {
		const struct injection_secret *s = &t->x->v[i];

		if (!s->header.len || !injection_secret_fits(s, t->host, t->port, t->tls))
			continue;
		buf_add(out, s->header.p, s->header.len);
		buf_puts(out, ": ");
		buf_add(out, s->value.p, s->value.len);
		buf_puts(out, "\r\n");
	}
}

int injection_write(const struct injection *x, const char *host, uint16_t port, int tls,
		    const char *head, size_t n, struct evbuffer *out)
{
	struct injection_target t = { x, host, port, tls };
	auto_wiped struct buf all = { 0 };
	int first = 1;

	buf_space(&all, 2 * INJECTION_HEAD);
	while (n) {
		const char *end = memmem(head, n, "\r\n", 2);
		size_t line = end ? (size_t)(end - head) : n;
		int replaced = !first && line && injection_is_set(&t, head, line);

		if (first)
			injection_request_line(&t, head, line, &all);
		else if (line == 0)
			injection_set_headers(&t, &all);
		else if (!replaced)
			injection_header(&t, head, line, &all);
		first = 0;
		if (end && !replaced)
			buf_add(&all, "\r\n", 2);
		head += line + (end ? 2 : 0);
		n -= line + (end ? 2 : 0);
		if (all.len > INJECTION_HEAD)
			return -1;
	}
	if (out)
		evbuffer_add(out, all.p, all.len);
	return 0;
}

/* ---- TLS to the box ---- */

static int injection_literal(const char *host)
{
	unsigned char address[16];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int injection_extend(X509 *c, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *one;
	X509V3_CTX ctx;
	int ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, c, NULL, NULL, 0);
	one = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = one && X509_add_ext(c, one, -1);
	X509_EXTENSION_free(one);
	return ok;
}

static int injection_serial(X509 *c)
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

static X509 *injection_leaf_cert(const struct injection *x, const char *host)
{
	char name[HOST_TEXT + 8];
	time_t now = time(NULL);
	X509 *c = X509_new();

	snprintf(name, sizeof(name), "%s:%s", injection_literal(host) ? "IP" : "DNS", host);
	if (c && X509_set_version(c, X509_VERSION_3) && injection_serial(c) &&
	    X509_time_adj_ex(X509_getm_notBefore(c), -1, 0, &now) &&
	    X509_time_adj_ex(X509_getm_notAfter(c), LEAF_DAYS, 0, &now) &&
	    X509_set_pubkey(c, x->leaf_key) &&
	    X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_UTF8,
				       (const unsigned char *)"Atoll egress", -1, -1, 0) &&
	    X509_set_issuer_name(c, X509_get_subject_name(x->ca)) &&
	    injection_extend(c, x->ca, NID_basic_constraints, "critical,CA:FALSE") &&
	    injection_extend(c, x->ca, NID_key_usage, "critical,digitalSignature") &&
	    injection_extend(c, x->ca, NID_ext_key_usage, "serverAuth") &&
	    injection_extend(c, x->ca, NID_subject_alt_name, name) &&
	    injection_extend(c, x->ca, NID_authority_key_identifier, "keyid:always") &&
	    X509_sign(c, x->ca_key, EVP_sha256()))
		return c;
	X509_free(c);
	return NULL;
}

static const unsigned char http11[] = "\x08http/1.1";

static int injection_choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			    const unsigned char *in, unsigned in_len, void *arg)
{
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_len, http11, sizeof(http11) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	return SSL_TLSEXT_ERR_OK;
}

/* The name in the handshake must be the host that was permitted. */
static int injection_check_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)arg; /* the leaf may have been freed meanwhile; its certificate has not */
	if (!name || X509_check_host(SSL_get_certificate(ssl), name, 0, 0, NULL) == 1)
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *injection_context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		abort();
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return ctx;
}

static void injection_drop_oldest(struct injection *x)
{
	struct injection_leaf **at = &x->leaves, *l;

	while ((*at)->next)
		at = &(*at)->next;
	l = *at;
	*at = NULL;
	x->nleaves--;
	SSL_CTX_free(l->ctx);
	free(l);
}

static struct injection_leaf *injection_leaf(struct injection *x, const char *host)
{
	struct injection_leaf *l = x->leaves;
	X509 *cert;

	while (l && strcmp(l->host, host) != 0)
		l = l->next;
	if (l)
		return l;
	cert = injection_leaf_cert(x, host);
	if (!cert)
		return NULL;
	if (x->nleaves == LEAVES)
		injection_drop_oldest(x);
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	snprintf(l->host, sizeof(l->host), "%s", host);
	l->ctx = injection_context(TLS_server_method());
	SSL_CTX_set_alpn_select_cb(l->ctx, injection_choose, NULL);
	SSL_CTX_set_tlsext_servername_callback(l->ctx, injection_check_name);
	if (SSL_CTX_use_certificate(l->ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(l->ctx, x->leaf_key) != 1)
		abort();
	X509_free(cert);
	l->next = x->leaves;
	x->leaves = l;
	x->nleaves++;
	return l;
}

SSL *injection_accept(struct injection *x, const char *host)
{
	struct injection_leaf *l = injection_leaf(x, host);

	ERR_clear_error();
	return l ? SSL_new(l->ctx) : NULL;
}

/* ---- TLS to the host ---- */

int injection_trust(SSL_CTX **out, const char *certificates, struct err *e)
{
	SSL_CTX *ctx = injection_context(TLS_client_method());
	BIO *b = BIO_new_mem_buf(certificates ? certificates : "", -1);
	X509 *c;

	if (!b)
		abort();
	while ((c = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
		(void)!X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), c); /* twice is fine */
		X509_free(c);
	}
	BIO_free(b);
	ERR_clear_error();
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_alpn_protos(ctx, http11, sizeof(http11) - 1) != 0) {
		SSL_CTX_free(ctx);
		return err_set(e, ERR_SYS, "make a TLS context");
	}
	*out = ctx;
	return 0;
}

SSL *injection_connect(SSL_CTX *trust, const char *host)
{
	SSL *ssl = SSL_new(trust);
	int ok;

	if (!ssl)
		return NULL;
	if (injection_literal(host))
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	else
		ok = SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
	ERR_clear_error();
	if (ok == 1)
		return ssl;
	SSL_free(ssl);
	return NULL;
}
