/* oidc_fuzz.c - tokens, sets of keys, claims: the first byte selects one of them. The fuzzer cannot
 * sign, so no token is ever accepted; claims may be, and are then complete. */
#include "api/oidc.h"
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A point of P-256 with a publicly known private key: it is the generator. */
static const char set[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\","
			  "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
			  "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"}]}";

static const struct oidc_conf conf = { "i", "a", "team", "role" };

static void fuzz_token(const struct oidc *o, const char *text)
{
	struct oidc_subject who;
	struct err e = { 0 };

	assert(oidc_check(o, text, 1000, &who, &e) < 0);
	assert(e.kind == ERR_DENIED && e.msg[0]);
}

static void fuzz_claims(const struct oidc *o, const char *text, size_t n)
{
	struct oidc_subject who;
	struct err e = { 0 };

	if (oidc_claims(o, text, n, 1000, &who, &e) < 0) {
		assert(e.kind == ERR_DENIED && e.msg[0]);
		return;
	}
	assert(who.until_s > 1000 && who.team[0] && !strncmp(who.id, "oidc:", 5));
	assert(strlen(who.id) <= STORE_NAME && who.role < ROLE_COUNT);
	for (const char *p = who.id; *p; p++)
		assert(*p > 0x20 && *p < 0x7f);
}

static void fuzz_set(const char *text, size_t n)
{
	struct oidc *o = NULL;
	struct err e = { 0 };

	if (oidc_new(&o, &conf, text, n, &e) < 0)
		assert(e.msg[0]);
	oidc_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct oidc *o;
	struct err e;
	char *text;

	if (!o && oidc_new(&o, &conf, set, sizeof(set) - 1, &e) < 0)
		abort();
	if (!len)
		return 0;
	text = calloc(1, len);
	if (!text)
		abort();
	memcpy(text, bytes + 1, len - 1);
	switch (bytes[0] % 3) {
	case 0:
		fuzz_token(o, text);
		break;
	case 1:
		fuzz_claims(o, text, len - 1);
		break;
	default:
		fuzz_set(text, len - 1);
	}
	free(text);
	return 0;
}
