/* signed_url.c - see signed_url.h. */
#include "cluster/signed_url.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/hmac.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SIGNED_URL_DAY "%.8s"

/* RFC 3986: all but unreserved characters; '/' stays in paths. */
static void signed_url_encode(struct buf *out, const char *text, int is_path)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++)
		if (strchr(plain, *text) || (is_path && *text == '/'))
			buf_putc(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
}

static void signed_url_mac(const void *key, size_t n, const char *text, uint8_t out[SHA256_BYTES])
{
	hmac_sha256(key, n, (const void *[]){ text }, (const size_t[]){ strlen(text) }, 1, out);
}

static void signed_url_parameter(struct buf *out, const char *name, const char *value)
{
	if (out->len)
		buf_putc(out, '&');
	signed_url_encode(out, name, 0);
	buf_putc(out, '=');
	signed_url_encode(out, value, 0);
}

static void signed_url_own(struct buf *out, const struct signed_url_request *r,
			   const char *credential, const char *at)
{
	char valid[16];

	snprintf(valid, sizeof(valid), "%u", r->valid_s);
	signed_url_parameter(out, "X-Amz-Algorithm", "AWS4-HMAC-SHA256");
	signed_url_parameter(out, "X-Amz-Credential", credential);
	signed_url_parameter(out, "X-Amz-Date", at);
	signed_url_parameter(out, "X-Amz-Expires", valid);
	signed_url_parameter(out, "X-Amz-SignedHeaders", "host");
}

/* HMAC over date, region, service and a constant, one after the other. */
static void signed_url_sign(const struct signed_url_account *a, const char *at, const char *text,
			    char out_hex[2 * SHA256_BYTES + 1])
{
	auto_buf struct buf first = { 0 };
	uint8_t key[SHA256_BYTES];
	char day[9];

	snprintf(day, sizeof(day), SIGNED_URL_DAY, at);
	buf_printf(&first, "AWS4%s", a->secret_key);
	signed_url_mac(first.p, first.len, day, key);
	signed_url_mac(key, sizeof(key), a->region, key);
	signed_url_mac(key, sizeof(key), "s3", key);
	signed_url_mac(key, sizeof(key), "aws4_request", key);
	signed_url_mac(key, sizeof(key), text, key);
	hex_encode(out_hex, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	explicit_bzero(first.p, first.len);
}

static int signed_url_check(const struct signed_url_request *r, struct err *e)
{
	static const char *const methods[] = { "GET", "PUT", "HEAD", "DELETE", "POST" };
	unsigned i = 0;

	while (i < ARRAY_LEN(methods) && strcmp(methods[i], r->method) != 0)
		i++;
	if (i == ARRAY_LEN(methods))
		return err_set(e, ERR_INVALID, "'%.20s' is not a method for objects", r->method);
	if (!*r->key || *r->key == '/' || strlen(r->key) > SIGNED_URL_KEY)
		return err_set(
			e, ERR_INVALID,
			"'%.40s' is not the key of an object: 1 to %d bytes, no leading slash",
			r->key, SIGNED_URL_KEY);
	if (r->valid_s < 1 || r->valid_s > SIGNED_URL_MOST_S)
		return err_set(e, ERR_INVALID, "a URL can be valid for 1 to %d seconds, not %u",
			       SIGNED_URL_MOST_S, r->valid_s);
	/* Small letters follow "X-Amz-" in the order that is signed. */
	for (i = 0; i < ARRAY_LEN(r->query) && r->query[i]; i += 2)
		if (r->query[i][0] < 'a' || r->query[i][0] > 'z' ||
		    (i && strcmp(r->query[i - 2], r->query[i]) >= 0))
			return err_set(e, ERR_INVALID, "parameter '%.40s' is not in order",
				       r->query[i]);
	return 0;
}

int signed_url(const struct signed_url_account *a, const struct signed_url_request *r,
	       struct buf *out, struct err *e)
{
	auto_buf struct buf scope = { 0 }, credential = { 0 }, path = { 0 }, own = { 0 },
			    more = { 0 }, text = { 0 };
	char at[32], digest[2 * SHA256_BYTES + 1], signature[2 * SHA256_BYTES + 1];
	uint8_t hash[SHA256_BYTES];
	time_t now = (time_t)r->at_s;
	struct sha256 sha;
	struct tm tm;

	if (signed_url_check(r, e) < 0)
		return -1;
	if (!gmtime_r(&now, &tm) || !strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", &tm))
		return err_set(e, ERR_INVALID, "%lld is not a time", (long long)r->at_s);
	buf_printf(&scope, SIGNED_URL_DAY "/%s/s3/aws4_request", at, a->region);
	buf_printf(&credential, "%s/%s", a->access_key, scope.p);
	buf_putc(&path, '/');
	if (a->bucket) {
		signed_url_encode(&path, a->bucket, 0);
		buf_putc(&path, '/');
	}
	signed_url_encode(&path, r->key, 1);
	signed_url_own(&own, r, credential.p, at);
	for (unsigned i = 0; i < ARRAY_LEN(r->query) && r->query[i]; i += 2)
		signed_url_parameter(&more, r->query[i], r->query[i + 1]);
	buf_printf(&text, "%s\n%s\n%s%s%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", r->method, path.p,
		   own.p, more.len ? "&" : "", buf_str(&more), a->host);
	sha256_init(&sha);
	sha256_add(&sha, text.p, text.len);
	sha256_end(&sha, hash);
	hex_encode(digest, hash, sizeof(hash));
	buf_cut(&text, 0);
	buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", at, scope.p, digest);
	signed_url_sign(a, at, text.p, signature);
	buf_printf(out, "%s://%s%s?%s%s%s&X-Amz-Signature=%s", a->scheme, a->host, path.p,
		   buf_str(&more), more.len ? "&" : "", own.p, signature);
	return 0;
}
