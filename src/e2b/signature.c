/* signature.c - see signature.h. */
#include "e2b/signature.h"
#include "base/base64.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static void add(struct sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text));
}

void signature_make(const struct signature_of *s, char out[SIGNATURE])
{
	auto_buf struct buf coded = { 0 };
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;

	sha256_init(&h);
	add(&h, s->path);
	add(&h, ":");
	add(&h, s->operation);
	add(&h, ":");
	add(&h, s->user);
	add(&h, ":");
	add(&h, s->token);
	if (s->expiration) {
		add(&h, ":");
		add(&h, s->expiration);
	}
	sha256_end(&h, digest);
	base64_encode(&coded, digest, sizeof(digest));
	while (coded.len && coded.p[coded.len - 1] == '=')
		buf_cut(&coded, coded.len - 1);
	snprintf(out, SIGNATURE, "v1_%s", buf_str(&coded));
}
