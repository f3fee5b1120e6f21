/* envelope_fuzz.c - envelopes of the Connect protocol in any pieces; the first byte is their size. No
 * body is larger than the limit, and the envelopes written again are the bytes that came. */
#include "e2b/envelope.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

enum { BODY_MAX = 300 };

/* All whole envelopes, written again. -1: rejected. */
static int envelope_copy(const char *bytes, size_t n, size_t piece, struct buf *out, int *open)
{
	struct envelope v = { 0 };
	const char *why = NULL;
	int rc = 0;

	for (size_t at = 0; at < n && rc >= 0; at += piece) {
		const char *p = bytes + at;
		size_t left = n - at < piece ? n - at : piece;

		do {
			uint8_t head[ENVELOPE];

			rc = envelope_take(&v, &p, &left, BODY_MAX, &why);
			assert(v.body.len <= BODY_MAX && left <= piece);
			assert(rc != 0 || left == 0);
			assert(rc >= 0 || (why && v.body.len == 0));
			if (rc <= 0)
				continue;
			assert(!envelope_is_open(&v));
			envelope_head(head, 0, v.body.len);
			buf_add(out, head, sizeof(head));
			buf_add(out, buf_str(&v.body), v.body.len);
		} while (rc >= 0 && left);
	}
	*open = envelope_is_open(&v);
	envelope_fini(&v);
	return rc < 0 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct buf whole = { 0 }, split = { 0 };
	const char *text = (const char *)bytes + 1;
	int rc, open, again;

	if (len < 2)
		return 0;
	rc = envelope_copy(text, len - 1, len - 1, &whole, &open);
	assert(envelope_copy(text, len - 1, bytes[0] + 1u, &split, &again) == rc && open == again);
	assert(whole.len == split.len && whole.len <= len - 1);
	assert(!whole.len || !memcmp(whole.p, split.p, whole.len));
	assert(!whole.len || !memcmp(whole.p, text, whole.len));
	assert(rc < 0 || open == (whole.len < len - 1));
	buf_fini(&whole);
	buf_fini(&split);
	return 0;
}
