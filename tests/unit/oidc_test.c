/* oidc_test.c - tokens: valid ones are accepted, others are rejected with the reason. */
#include "api/oidc.h"
#include "base/buf.h"
#include "tap.h"

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define NOW 1800000000
#define GOOD                                                                                       \
	"{\"iss\":\"https://id.example\",\"aud\":\"atoll\",\"sub\":\"ann\",\"exp\":1800000300,"    \
	"\"team\":\"red\",\"role\":\"editor\"}"

static EVP_PKEY *rsa, *ec, *strange; /* the last one is in no key set */
static char jwks[8192];
static struct oidc *o;
static struct oidc_subject who;
static struct err e;

/* ---- the issuer of tokens ---- */

static char *coded(const void *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const unsigned char *p = bytes;
	char *out = calloc(1, n * 2 + 4), *to = out;

	for (size_t i = 0; i < n; i += 3) {
		unsigned v =
			p[i] << 16 | (i + 1 < n ? p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		if (i + 1 < n)
			*to++ = digits[v >> 6 & 63];
		if (i + 2 < n)
			*to++ = digits[v & 63];
	}
	return out;
}

static char *coded_bn(EVP_PKEY *k, const char *name)
{
	BIGNUM *n = NULL;
	unsigned char bytes[1024];
	char *text;

	EVP_PKEY_get_bn_param(k, name, &n);
	text = coded(bytes, (size_t)BN_bn2bin(n, bytes));
	BN_free(n);
	return text;
}

static char *rsa_jwk(EVP_PKEY *k, const char *more)
{
	static char out[4096];
	char *n = coded_bn(k, OSSL_PKEY_PARAM_RSA_N), *x = coded_bn(k, OSSL_PKEY_PARAM_RSA_E);

	snprintf(out, sizeof(out), "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}", n, x, more);
	free(n);
	free(x);
	return out;
}

static char *ec_jwk(EVP_PKEY *k, const char *more)
{
	static char out[1024];
	unsigned char point[65];
	size_t n = 0;
	char *x, *y;

	EVP_PKEY_get_octet_string_param(k, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n);
	x = coded(point + 1, 32);
	y = coded(point + 33, 32);
	snprintf(out, sizeof(out), "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"%s}",
		 x, y, more);
	free(x);
	free(y);
	return out;
}

static size_t sign(EVP_PKEY *k, const char *text, unsigned char *out, size_t room)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	size_t n = room;

	EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, k);
	if (EVP_DigestSign(md, out, &n, (const unsigned char *)text, strlen(text)) != 1)
		abort();
	EVP_MD_CTX_free(md);
	return n;
}

/* From DER to the 64 bytes that tokens carry. */
static size_t raw_ec(unsigned char *sig, size_t n)
{
	const unsigned char *p = sig;
	ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &p, (long)n);

	BN_bn2binpad(ECDSA_SIG_get0_r(s), sig, 32);
	BN_bn2binpad(ECDSA_SIG_get0_s(s), sig + 32, 32);
	ECDSA_SIG_free(s);
	return 64;
}

static char *token(EVP_PKEY *k, const char *head, const char *payload)
{
	char *h = coded(head, strlen(head)), *p = coded(payload, strlen(payload)), *s;
	char *out = calloc(1, strlen(h) + strlen(p) + 2048);
	unsigned char sig[1024];
	size_t n;

	if (!out)
		abort();
	sprintf(out, "%s.%s", h, p);
	n = sign(k, out, sig, sizeof(sig));
	if (EVP_PKEY_is_a(k, "EC"))
		n = raw_ec(sig, n);
	s = coded(sig, n);
	sprintf(out + strlen(out), ".%s", s);
	free(h);
	free(p);
	free(s);
	return out;
}

static int check_at(char *take_token, int64_t now)
{
	int rc;

	memset(&e, 0, sizeof(e));
	rc = oidc_check(o, take_token, now, &who, &e);
	free(take_token);
	return rc;
}

static int check(char *take_token)
{
	return check_at(take_token, NOW);
}

#define RS "{\"alg\":\"RS256\",\"kid\":\"r\"}"
#define ES "{\"alg\":\"ES256\",\"kid\":\"e\",\"typ\":\"JWT\"}"
#define REFUSED(token, why)                                                                        \
	do {                                                                                       \
		CHECK_INT(check(token), -1);                                                       \
		CHECK_INT(e.kind, ERR_DENIED);                                                     \
		if (!strstr(e.msg, why))                                                           \
			printf("# said: %s\n", e.msg);                                             \
		CHECK(strstr(e.msg, why));                                                         \
	} while (0)

static const struct oidc_conf conf = { "https://id.example", "atoll", "team", "role" };

static int load(const char *set)
{
	struct oidc *x = NULL;
	int rc = oidc_new(&x, &conf, set, strlen(set), &e);

	oidc_free(x);
	return rc;
}

/* ---- the promises ---- */

TEST(a_key_set_is_parsed)
{
	rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	strange = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	snprintf(jwks, sizeof(jwks), "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"},%s,",
		 rsa_jwk(rsa, ",\"kid\":\"r\",\"use\":\"sig\",\"alg\":\"RS256\""));
	snprintf(jwks + strlen(jwks), sizeof(jwks) - strlen(jwks), "%s]}",
		 ec_jwk(ec, ",\"kid\":\"e\",\"key_ops\":[\"verify\"]"));
	CHECK_INT(oidc_new(&o, &conf, jwks, strlen(jwks), &e), 0);
}

TEST(valid_tokens_of_both_algorithms_are_accepted)
{
	CHECK_INT(check(token(rsa, RS, GOOD)), 0);
	CHECK_STR(who.id, "oidc:ann");
	CHECK_STR(who.team, "red");
	CHECK_INT(who.role, ROLE_EDITOR);
	CHECK_INT(who.until_s, 1800000300 + OIDC_LEEWAY_S);
	CHECK_INT(check(token(ec, ES, GOOD)), 0);
}

TEST(alg_none_is_refused)
{
	char *h = coded("{\"alg\":\"none\"}", 14), *p = coded(GOOD, strlen(GOOD));
	char text[1024];

	snprintf(text, sizeof(text), "%s.%s.", h, p);
	REFUSED(strdup(text), "alg is 'none'");
	free(h);
	free(p);
	REFUSED(token(rsa, "{\"alg\":\"None\",\"kid\":\"r\"}", GOOD), "alg");
	REFUSED(token(rsa, "{\"kid\":\"r\"}", GOOD), "alg");
	REFUSED(token(rsa, "{\"alg\":7,\"kid\":\"r\"}", GOOD), "alg");
}

TEST(a_token_signed_with_the_public_key_as_hmac_secret_is_rejected)
{
	char *h = coded("{\"alg\":\"HS256\",\"kid\":\"r\"}", 25), *p = coded(GOOD, strlen(GOOD)),
	     *s;
	unsigned char mac[32];
	unsigned n = 0;
	char text[2048];

	snprintf(text, sizeof(text), "%s.%s", h, p);
	HMAC(EVP_sha256(), jwks, (int)strlen(jwks), (unsigned char *)text, strlen(text), mac, &n);
	s = coded(mac, n);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ".%s", s);
	REFUSED(strdup(text), "alg is 'HS256'");
	free(h);
	free(p);
	free(s);
}

TEST(a_key_is_used_with_its_own_algorithm_only)
{
	REFUSED(token(ec, "{\"alg\":\"ES256\",\"kid\":\"r\"}", GOOD), "its key is for RS256");
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":\"e\"}", GOOD), "its key is for ES256");
}

TEST(an_unknown_key_or_kid_is_rejected)
{
	REFUSED(token(strange, RS, GOOD), "signature");
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":\"x\"}", GOOD), "kid 'x'");
	REFUSED(token(rsa, "{\"alg\":\"RS256\"}", GOOD), "not among"); /* there are two */
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":[\"r\"]}", GOOD), "kid");
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"kid\":\"r\"}", GOOD), "header");
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"b64\"]}", GOOD),
		"critical");
	REFUSED(token(rsa, "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":\"JWE\"}", GOOD), "typ");
}

TEST(a_set_of_one_key_needs_no_kid)
{
	struct oidc *many = o;
	char set[4096];
	char *t = token(rsa, "{\"alg\":\"RS256\"}", GOOD);

	snprintf(set, sizeof(set), "{\"keys\":[%s]}", rsa_jwk(rsa, ""));
	CHECK_INT(oidc_new(&o, &conf, set, strlen(set), &e), 0);
	CHECK_INT(check(t), 0);
	REFUSED(token(rsa, RS, GOOD), "kid 'r'");
	oidc_free(o);
	o = many;
}

TEST(every_changed_bit_invalidates_a_token)
{
	char *good = token(ec, ES, GOOD);

	for (size_t i = 0; good[i]; i++) {
		char *bad = strdup(good);

		if (bad[i] == '.') {
			free(bad);
			continue;
		}
		bad[i] = bad[i] == 'A' ? 'B' : 'A';
		CHECK_INT(check(bad), -1);
	}
	free(good);
}

TEST(times_are_checked_with_a_minute_of_tolerance)
{
#define TIMED(claims)                                                                                  \
	token(ec, ES,                                                                                  \
	      "{\"iss\":\"https://id.example\",\"aud\":\"atoll\",\"sub\":\"a\",\"team\":\"t\"," claims \
	      "}")
	CHECK_INT(check_at(TIMED("\"exp\":1800000000"), NOW + 59), 0);
	CHECK_INT(check_at(TIMED("\"exp\":1800000000"), NOW + 60), -1);
	CHECK(strstr(e.msg, "expired 60 s ago"));
	CHECK_INT(check_at(TIMED("\"exp\":1900000000,\"nbf\":1800000060"), NOW), 0);
	CHECK_INT(check_at(TIMED("\"exp\":1900000000,\"nbf\":1800000061"), NOW), -1);
	CHECK(strstr(e.msg, "becomes valid in"));
	CHECK_INT(check_at(TIMED("\"exp\":1800000000.5"), NOW), 0);
	REFUSED(TIMED("\"x\":1"), "no exp");
	REFUSED(TIMED("\"exp\":\"1900000000\""), "no exp");
	REFUSED(TIMED("\"exp\":null"), "no exp");
	REFUSED(TIMED("\"exp\":-5"), "no exp");
	REFUSED(TIMED("\"exp\":1e300"), "no exp");
	REFUSED(TIMED("\"exp\":1900000000,\"nbf\":\"soon\""), "nbf");
}

TEST(issuer_and_audience_must_be_ours)
{
#define SAID(text) token(ec, ES, "{\"exp\":1900000000,\"sub\":\"a\",\"team\":\"t\"" text "}")
	CHECK_INT(check(SAID(",\"iss\":\"https://id.example\",\"aud\":[\"x\",\"atoll\"]")), 0);
	CHECK_INT(who.role, ROLE_VIEWER);
	REFUSED(SAID(",\"iss\":\"https://id.example/\",\"aud\":\"atoll\""), "issuer");
	REFUSED(SAID(",\"aud\":\"atoll\""), "issuer");
	REFUSED(SAID(",\"iss\":\"https://id.example\",\"aud\":\"Atoll\""), "audience");
	REFUSED(SAID(",\"iss\":\"https://id.example\",\"aud\":[]"), "audience");
	REFUSED(SAID(",\"iss\":\"https://id.example\",\"aud\":{\"atoll\":1}"), "audience");
	REFUSED(SAID(",\"iss\":\"https://id.example\""), "audience");
}

TEST(subject_team_and_role_claims_are_checked)
{
#define CLAIMS(text)                                                                               \
	token(ec, ES,                                                                              \
	      "{\"exp\":1900000000,\"iss\":\"https://id.example\",\"aud\":\"atoll\"" text "}")
	REFUSED(CLAIMS(",\"sub\":\"a\""), "team");
	REFUSED(CLAIMS(",\"sub\":\"a\",\"team\":\"../x\""), "team");
	REFUSED(CLAIMS(",\"sub\":\"a\",\"team\":[\"t\"]"), "team");
	REFUSED(CLAIMS(",\"team\":\"t\""), "sub");
	REFUSED(CLAIMS(",\"sub\":\"\",\"team\":\"t\""), "sub");
	REFUSED(CLAIMS(",\"sub\":\"a\",\"team\":\"t\",\"role\":\"king\""), "role");
	REFUSED(CLAIMS(",\"sub\":\"a\",\"team\":\"t\",\"role\":3"), "role");
	REFUSED(CLAIMS(",\"sub\":\"a\",\"team\":\"t\",\"team\":\"u\""), "payload");
	CHECK_INT(check(CLAIMS(",\"sub\":\"a\",\"team\":\"t\",\"role\":\"owner\"")), 0);
	CHECK_INT(who.role, ROLE_OWNER);
}

TEST(long_and_unusual_subjects_have_different_names)
{
	char first[STORE_NAME + 1], payload[512], sub[100];

	memset(sub, 'x', 99);
	sub[99] = 0;
	snprintf(
		payload, sizeof(payload),
		"{\"exp\":1900000000,\"iss\":\"https://id.example\",\"aud\":\"atoll\",\"team\":\"t\","
		"\"sub\":\"%s\"}",
		sub);
	CHECK_INT(check(token(ec, ES, payload)), 0);
	snprintf(first, sizeof(first), "%s", who.id);
	sub[98] = 'y';
	snprintf(
		payload, sizeof(payload),
		"{\"exp\":1900000000,\"iss\":\"https://id.example\",\"aud\":\"atoll\",\"team\":\"t\","
		"\"sub\":\"%s\"}",
		sub);
	CHECK_INT(check(token(ec, ES, payload)), 0);
	CHECK(strcmp(first, who.id) != 0 && !strncmp(who.id, "oidc:xxx", 8));
	CHECK_INT(check(CLAIMS(",\"sub\":\"\\u00e4\\n b\",\"team\":\"t\"")), 0);
	CHECK(!strncmp(who.id, "oidc:????b~", 10));
}

TEST(text_that_is_not_a_token_is_rejected)
{
	static const char *const bad[] = { "",          ".",           "..",
					   "...",       "a.b",         "a.b.c.d",
					   "=.=.=",     "e30.e30.e30", "eyJ.eyJ.eyJ",
					   "e3 0.e30.", "e30\n.e30.",  "\xff.\xff.\xff" };
	char *long_one = malloc(OIDC_TOKEN + 2);

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_INT(check(strdup(bad[i])), -1);
	memset(long_one, 'A', OIDC_TOKEN + 1);
	long_one[OIDC_TOKEN + 1] = 0;
	REFUSED(long_one, "more than 8192 bytes");
	REFUSED(strdup("e30.e30.e3"), "base64url"); /* bits left over */
	REFUSED(strdup("e30=.e30.e30"), "base64url");
	REFUSED(strdup("e3+.e30.e30"), "base64url");
}

TEST(unusable_key_sets_are_rejected_with_the_reason)
{
	char set[8192];
	EVP_PKEY *weak = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);

	CHECK_INT(load(""), -1);
	CHECK_INT(load("[]"), -1);
	CHECK_INT(load("{\"keys\":{}}"), -1);
	CHECK_INT(load("{\"keys\":[]}"), -1);
	CHECK(strstr(e.msg, "no key"));
	CHECK_INT(load("{\"keys\":[7]}"), -1);
	CHECK(strstr(e.msg, "key 1"));
	CHECK_INT(load("{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}"), -1);
	CHECK(strstr(e.msg, "bits"));
	snprintf(set, sizeof(set), "{\"keys\":[%s]}", rsa_jwk(weak, ""));
	CHECK_INT(load(set), -1);
	CHECK(strstr(e.msg, "1024 bits"));
	snprintf(set, sizeof(set), "{\"keys\":[%s]}", rsa_jwk(rsa, ",\"use\":\"enc\""));
	CHECK_INT(load(set), -1);
	CHECK_INT(load("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
		       "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
		       "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}"),
		  -1);
	CHECK(strstr(e.msg, "not a point"));
	snprintf(set, sizeof(set), "{\"keys\":[%s,", ec_jwk(ec, ",\"kid\":\"a\""));
	snprintf(set + strlen(set), sizeof(set) - strlen(set), "%s]}",
		 ec_jwk(ec, ",\"kid\":\"a\""));
	CHECK_INT(load(set), -1);
	CHECK(strstr(e.msg, "twice"));
	EVP_PKEY_free(weak);
}

TEST(freeing_a_key_set_or_null_is_allowed)
{
	oidc_free(o);
	oidc_free(NULL);
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(strange);
	CHECK(1);
}
