/* oidc.c - see oidc.h. */
#include "api/oidc.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <string.h>

enum { EC_BYTES = 32, KID = 255, RSA_LEAST = 2048, RSA_MOST = 8192 };

enum alg { RS256, ES256, NALGS };
static const struct {
	const char *name, *kty;
} algs[NALGS] = { [RS256] = { "RS256", "RSA" }, [ES256] = { "ES256", "EC" } };

struct oidc_key {
	EVP_PKEY *pkey;
	enum alg alg;
	char *kid; /* NULL: it has none */
};

struct oidc {
	char *issuer, *audience, *team_claim, *role_claim;
	struct oidc_key keys[OIDC_KEYS];
	unsigned nkeys;
};

/* ---- text ---- */

static int oidc_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* base64url without padding. Each sequence of bytes has one text: unused bits must be zero, or two
 * different tokens would be equal. */
static int oidc_decode(const char *text, size_t n, struct buf *out)
{
	unsigned bits = 0, have = 0;

	if (n % 4 == 1)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int d = oidc_digit(text[i]);

		if (d < 0)
			return -1;
		bits = bits << 6 | (unsigned)d;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		buf_putc(out, (char)(bits >> have & 0xff));
	}
	return bits & ((1u << have) - 1) ? -1 : 0;
}

static json_t *oidc_object(const char *text, size_t n)
{
	json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	return NULL;
}

static void own_decref(json_t **doc)
{
	json_decref(*doc);
}
#define auto_json __attribute__((cleanup(own_decref)))

/* NULL also if the member is not a string. */
static const char *text_of(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

static char *oidc_copy(const char *s)
{
	char *c = strdup(s);

	if (!c)
		abort();
	return c;
}

/* ---- keys ---- */

static EVP_PKEY *public_key(const char *kind, OSSL_PARAM *params)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
	EVP_PKEY *pkey = NULL;

	if (!ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
		pkey = NULL;
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

static int oidc_sound(EVP_PKEY *pkey)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	int ok = ctx && EVP_PKEY_public_check(ctx) == 1;

	EVP_PKEY_CTX_free(ctx);
	return ok;
}

static BIGNUM *oidc_number(const json_t *jwk, const char *name)
{
	auto_buf struct buf bytes = { 0 };
	const char *text = text_of(jwk, name);

	if (!text || oidc_decode(text, strlen(text), &bytes) < 0 || bytes.len > RSA_MOST / 8)
		return NULL;
	return BN_bin2bn((const unsigned char *)buf_str(&bytes), (int)bytes.len, NULL);
}

static EVP_PKEY *rsa_from(const BIGNUM *n, const BIGNUM *e)
{
	OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
	OSSL_PARAM *params = NULL;
	EVP_PKEY *pkey = NULL;

	if (bld && OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
	    OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, e) == 1)
		params = OSSL_PARAM_BLD_to_param(bld);
	if (params)
		pkey = public_key("RSA", params);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(bld);
	return pkey;
}

static EVP_PKEY *read_rsa(const json_t *jwk, struct err *e)
{
	BIGNUM *n = oidc_number(jwk, "n"), *exp = oidc_number(jwk, "e");
	EVP_PKEY *pkey = NULL;

	if (!n || !exp || !BN_is_odd(exp) || BN_is_one(exp) || BN_num_bits(exp) > 64)
		err_set(e, ERR_INVALID, "n and e are not those of an RSA key");
	else if (BN_num_bits(n) < RSA_LEAST || BN_num_bits(n) > RSA_MOST)
		err_set(e, ERR_INVALID, "an RSA key of %d bits; %d to %d are taken", BN_num_bits(n),
			RSA_LEAST, RSA_MOST);
	else if (!(pkey = rsa_from(n, exp)))
		err_set(e, ERR_INVALID, "n and e are not those of an RSA key");
	BN_free(n);
	BN_free(exp);
	return pkey;
}

static int oidc_coordinate(const json_t *jwk, const char *name, unsigned char out[EC_BYTES])
{
	auto_buf struct buf bytes = { 0 };
	const char *text = text_of(jwk, name);

	if (!text || oidc_decode(text, strlen(text), &bytes) < 0 || bytes.len != EC_BYTES)
		return -1;
	memcpy(out, bytes.p, EC_BYTES);
	return 0;
}

static EVP_PKEY *read_ec(const json_t *jwk, struct err *e)
{
	unsigned char point[1 + 2 * EC_BYTES] = { POINT_CONVERSION_UNCOMPRESSED };
	char group[] = "prime256v1";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
		OSSL_PARAM_construct_end(),
	};
	EVP_PKEY *pkey = NULL;

	if (oidc_coordinate(jwk, "x", point + 1) == 0 &&
	    oidc_coordinate(jwk, "y", point + 1 + EC_BYTES) == 0)
		pkey = public_key("EC", params);
	if (pkey && oidc_sound(pkey))
		return pkey;
	EVP_PKEY_free(pkey);
	err_set(e, ERR_INVALID, "x and y are not a point of P-256");
	return NULL;
}

/* 1: a key for signatures that this module supports. A set may have keys for other purposes. */
static int oidc_usable(const json_t *jwk, enum alg *out)
{
	const char *kty = text_of(jwk, "kty"), *alg = text_of(jwk, "alg"),
		   *use = text_of(jwk, "use"), *crv = text_of(jwk, "crv");
	const json_t *ops = json_object_get(jwk, "key_ops"), *op;
	int verifies = !ops;
	size_t i;

	json_array_foreach(ops, i, op) verifies |=
		json_is_string(op) && !strcmp(json_string_value(op), "verify");
	for (*out = 0; *out < NALGS; ++*out)
		if (kty && !strcmp(kty, algs[*out].kty))
			break;
	return *out < NALGS && verifies && (!alg || !strcmp(alg, algs[*out].name)) &&
	       (!use || !strcmp(use, "sig")) && (*out != ES256 || (crv && !strcmp(crv, "P-256")));
}

static int add_key(struct oidc *o, const json_t *jwk, struct err *e)
{
	const char *kid = text_of(jwk, "kid");
	struct oidc_key *k = &o->keys[o->nkeys];
	enum alg alg;

	if (!json_is_object(jwk))
		return err_set(e, ERR_INVALID, "the key is not a JSON object");
	if (!oidc_usable(jwk, &alg))
		return 0;
	if (o->nkeys == OIDC_KEYS)
		return err_set(e, ERR_LIMIT, "more than %d keys", OIDC_KEYS);
	if (kid && strlen(kid) > KID)
		return err_set(e, ERR_INVALID, "its kid has more than %d bytes", KID);
	for (unsigned i = 0; kid && i < o->nkeys; i++)
		if (o->keys[i].kid && !strcmp(o->keys[i].kid, kid))
			return err_set(e, ERR_INVALID, "kid '%.40s' occurs twice", kid);
	k->pkey = alg == RS256 ? read_rsa(jwk, e) : read_ec(jwk, e);
	if (!k->pkey)
		return -1;
	k->alg = alg;
	k->kid = kid ? oidc_copy(kid) : NULL;
	o->nkeys++;
	return 0;
}

static int read_keys(struct oidc *o, const char *jwks, size_t n, struct err *e)
{
	auto_json json_t *doc = n <= OIDC_JWKS ? oidc_object(jwks, n) : NULL;
	const json_t *keys = json_object_get(doc, "keys"), *jwk;
	size_t i;

	if (!json_is_array(keys))
		return err_set(e, ERR_INVALID, "not a set of keys: {\"keys\": [...]}");
	json_array_foreach(keys, i, jwk) if (add_key(o, jwk, e) < 0) return err_in(e, "key %zu",
										   i + 1);
	return o->nkeys ? 0 : err_set(e, ERR_INVALID, "no key in it is for RS256 or ES256");
}

int oidc_new(struct oidc **out, const struct oidc_conf *conf, const char *jwks, size_t n,
	     struct err *e)
{
	struct oidc *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->issuer = oidc_copy(conf->issuer);
	o->audience = oidc_copy(conf->audience);
	o->team_claim = oidc_copy(conf->team_claim);
	o->role_claim = oidc_copy(conf->role_claim);
	if (read_keys(o, jwks, n, e) < 0) {
		ERR_clear_error();
		oidc_free(o);
		return -1;
	}
	*out = o;
	return 0;
}

void oidc_free(struct oidc *o)
{
	if (!o)
		return;
	for (unsigned i = 0; i < o->nkeys; i++) {
		EVP_PKEY_free(o->keys[i].pkey);
		free(o->keys[i].kid);
	}
	free(o->issuer);
	free(o->audience);
	free(o->team_claim);
	free(o->role_claim);
	free(o);
}

/* ---- the signature ---- */

/* Converts r and s, 32 bytes each, to the DER form that OpenSSL expects. */
static unsigned char *to_der(const struct buf *raw, size_t *out_n)
{
	ECDSA_SIG *sig = raw->len == 2 * EC_BYTES ? ECDSA_SIG_new() : NULL;
	const unsigned char *p = (const unsigned char *)buf_str(raw);
	BIGNUM *r = sig ? BN_bin2bn(p, EC_BYTES, NULL) : NULL,
	       *s = sig ? BN_bin2bn(p + EC_BYTES, EC_BYTES, NULL) : NULL;
	unsigned char *der = NULL;
	int n = -1;

	if (r && s && ECDSA_SIG_set0(sig, r, s) == 1) {
		n = i2d_ECDSA_SIG(sig, &der);
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(sig);
	*out_n = n > 0 ? (size_t)n : 0;
	return der;
}

static int signed_by(const struct oidc_key *k, const char *text, size_t n, const struct buf *sig)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	const unsigned char *bytes = (const unsigned char *)buf_str(sig);
	unsigned char *der = NULL;
	size_t len = sig->len;
	int ok;

	if (k->alg == ES256)
		bytes = der = to_der(sig, &len);
	ok = md && bytes && len &&
	     EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, k->pkey) == 1 &&
	     EVP_DigestVerify(md, bytes, len, (const unsigned char *)text, n) == 1;
	OPENSSL_free(der);
	EVP_MD_CTX_free(md);
	ERR_clear_error(); /* a wrong signature leaves entries in the error queue of OpenSSL */
	return ok;
}

/* Without a kid the set must have exactly one key. */
static const struct oidc_key *oidc_choose(const struct oidc *o, const char *kid)
{
	if (!kid)
		return o->nkeys == 1 ? &o->keys[0] : NULL;
	for (unsigned i = 0; i < o->nkeys; i++)
		if (o->keys[i].kid && !strcmp(o->keys[i].kid, kid))
			return &o->keys[i];
	return NULL;
}

static const struct oidc_key *read_head(const struct oidc *o, const struct buf *text, struct err *e)
{
	auto_json json_t *head = oidc_object(buf_str(text), text->len);
	const char *alg = text_of(head, "alg"), *typ = text_of(head, "typ");
	const json_t *kid = json_object_get(head, "kid");
	const struct oidc_key *k = NULL;

	if (!head)
		err_set(e, ERR_DENIED, "the token's header is not a JSON object");
	else if (!alg || (strcmp(alg, "RS256") && strcmp(alg, "ES256")))
		err_set(e, ERR_DENIED, "the token's alg is '%.20s'; RS256 and ES256 are taken",
			alg ? alg : "");
	else if (json_object_get(head, "crit"))
		err_set(e, ERR_DENIED, "the token has critical extensions that are not supported");
	else if (json_object_get(head, "typ") &&
		 (!typ || (strcasecmp(typ, "JWT") && strcasecmp(typ, "at+jwt"))))
		err_set(e, ERR_DENIED, "the token's typ is not JWT");
	else if (kid && !json_is_string(kid))
		err_set(e, ERR_DENIED, "the token's kid is not a string");
	else if (!(k = oidc_choose(o, json_string_value(kid))))
		err_set(e, ERR_DENIED, "the token's key (kid '%.40s') is not among the signer's",
			kid ? json_string_value(kid) : "");
	else if (strcmp(alg, algs[k->alg].name) != 0) {
		err_set(e, ERR_DENIED, "the token has the algorithm %s, its key is for %s", alg,
			algs[k->alg].name);
		k = NULL;
	}
	return k;
}

/* ---- claims ---- */

static int for_us(const json_t *aud, const char *audience)
{
	const json_t *one;
	size_t i;

	if (json_is_string(aud))
		return !strcmp(json_string_value(aud), audience);
	json_array_foreach(aud, i, one) if (json_is_string(one) &&
					    !strcmp(json_string_value(one), audience)) return 1;
	return 0;
}

static int check_times(const json_t *doc, int64_t now_s, int64_t *out_until, struct err *e)
{
	const json_t *exp = json_object_get(doc, "exp"), *nbf = json_object_get(doc, "nbf");
	double end = json_number_value(exp), begin = json_number_value(nbf);

	if (!json_is_number(exp) || !(end > 0 && end < 1e12))
		return err_set(e, ERR_DENIED, "the token has no exp: an expiry time is required");
	if (nbf && (!json_is_number(nbf) || !(begin >= 0 && begin < 1e12)))
		return err_set(e, ERR_DENIED, "the token's nbf is not a time");
	*out_until = (int64_t)end + OIDC_LEEWAY_S;
	if (*out_until <= now_s)
		return err_set(e, ERR_DENIED, "the token expired %lld s ago",
			       (long long)(now_s - (int64_t)end));
	if (nbf && (int64_t)begin - OIDC_LEEWAY_S > now_s)
		return err_set(e, ERR_DENIED, "the token becomes valid in %lld s",
			       (long long)((int64_t)begin - now_s));
	return 0;
}

static int is_plain(const char *s, size_t most)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] <= 0x20 || (unsigned char)s[i] > 0x7e)
			return 0;
	return n <= most;
}

/* A subject that is too long or has other characters is cut; a hash makes the result unique. */
static void name_of(const char *sub, char out[STORE_NAME + 1])
{
	uint8_t hash[SHA256_BYTES];
	struct sha256 sha;
	unsigned n = 5;

	if (is_plain(sub, STORE_NAME - 5)) {
		snprintf(out, STORE_NAME + 1, "oidc:%s", sub);
		return;
	}
	sha256_init(&sha);
	sha256_add(&sha, sub, strlen(sub));
	sha256_end(&sha, hash);
	memcpy(out, "oidc:", 5);
	for (; *sub && n < 40; sub++)
		out[n++] = (unsigned char)*sub > 0x20 && (unsigned char)*sub < 0x7f ? *sub : '?';
	out[n++] = '~';
	hex_encode(out + n, hash, 10);
}

static int read_who(const struct oidc *o, const json_t *doc, struct oidc_subject *out,
		    struct err *e)
{
	const char *sub = text_of(doc, "sub"), *team = text_of(doc, o->team_claim),
		   *role = text_of(doc, o->role_claim);

	if (!sub || !*sub)
		return err_set(e, ERR_DENIED, "the token has no sub");
	if (!team || !fields_is_name(team, STORE_NAME))
		return err_set(e, ERR_DENIED, "the token's claim %.40s names no team",
			       o->team_claim);
	out->role = ROLE_VIEWER; /* the role with the fewest rights */
	if (json_object_get(doc, o->role_claim) &&
	    (!role || store_role_parse(role, &out->role) < 0))
		return err_set(e, ERR_DENIED,
			       "the token's claim %.40s is not viewer, editor or owner",
			       o->role_claim);
	snprintf(out->team, sizeof(out->team), "%s", team);
	name_of(sub, out->id);
	return 0;
}

int oidc_claims(const struct oidc *o, const char *payload, size_t n, int64_t now_s,
		struct oidc_subject *out, struct err *e)
{
	auto_json json_t *doc = oidc_object(payload, n);
	const char *iss = text_of(doc, "iss");
	struct oidc_subject who = { 0 };

	if (!doc)
		return err_set(e, ERR_DENIED, "the token's payload is not a JSON object");
	if (!iss || strcmp(iss, o->issuer) != 0)
		return err_set(e, ERR_DENIED, "the token is from another issuer, '%.80s'",
			       iss ? iss : "");
	if (!for_us(json_object_get(doc, "aud"), o->audience))
		return err_set(e, ERR_DENIED, "the token is for another audience");
	if (check_times(doc, now_s, &who.until_s, e) < 0 || read_who(o, doc, &who, e) < 0)
		return -1;
	*out = who;
	return 0;
}

int oidc_check(const struct oidc *o, const char *token, int64_t now_s, struct oidc_subject *out,
	       struct err *e)
{
	auto_buf struct buf head = { 0 }, payload = { 0 }, sig = { 0 };
	const char *dot = strchr(token, '.'), *last = dot ? strchr(dot + 1, '.') : NULL;
	const struct oidc_key *k;

	if (strnlen(token, OIDC_TOKEN + 1) > OIDC_TOKEN)
		return err_set(e, ERR_DENIED, "the token has more than %d bytes", OIDC_TOKEN);
	if (!last || strchr(last + 1, '.'))
		return err_set(e, ERR_DENIED, "not a token: three parts with dots between them");
	if (oidc_decode(token, (size_t)(dot - token), &head) < 0 ||
	    oidc_decode(dot + 1, (size_t)(last - dot) - 1, &payload) < 0 ||
	    oidc_decode(last + 1, strlen(last + 1), &sig) < 0)
		return err_set(e, ERR_DENIED, "the token is not base64url");
	k = read_head(o, &head, e);
	if (!k)
		return -1;
	if (!signed_by(k, token, (size_t)(last - token), &sig))
		return err_set(e, ERR_DENIED, "the token's signature is wrong");
	return oidc_claims(o, buf_str(&payload), payload.len, now_s, out, e);
}
