/* gunzip_fuzz.c - a compressed body in any pieces. The first byte selects the size of the pieces and of
 * the room for the output. The output is the same as that of the whole, never more than the room, and
 * a call that gives nothing has taken all of its input. */
#include "base/buf.h"
#include "e2b/gunzip.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

enum { ROOM_MAX = 65536 };

struct gunzip_result {
	uint64_t length, hash;
	int rc; /* -1: rejected; else whether it has ended */
};

static void gunzip_note(struct gunzip_result *r, const char *out, size_t n)
{
	r->length += n;
	for (size_t i = 0; i < n; i++)
		r->hash = (r->hash ^ (uint8_t)out[i]) * 1099511628211u;
}

static struct gunzip_result gunzip_read(const char *bytes, size_t n, size_t piece, size_t room)
{
	static char out[ROOM_MAX + 1];
	struct gunzip *g = gunzip_new();
	struct gunzip_result r = { 0 };
	struct err e = { 0 };

	for (size_t at = 0; at < n && r.rc == 0; at += piece) {
		const char *p = bytes + at;
		size_t left = n - at < piece ? n - at : piece;
		long got;

		do {
			out[room] = '!';
			got = gunzip_some(g, &p, &left, out, room, &e);
			assert(out[room] == '!' && got <= (long)room && left <= piece);
			assert(got != 0 || left == 0);
			gunzip_note(&r, out, got > 0 ? (size_t)got : 0);
		} while (got > 0);
		assert(got == 0 || (e.kind == ERR_INVALID && e.msg[0]));
		r.rc = got < 0 ? -1 : 0;
	}
	if (r.rc == 0)
		r.rc = gunzip_ended(g);
	gunzip_free(g);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gunzip_result whole, split;
	const char *text = (const char *)bytes + 1;

	if (len < 2)
		return 0;
	whole = gunzip_read(text, len - 1, len - 1, ROOM_MAX);
	split = gunzip_read(text, len - 1, bytes[0] % 16 + 1u, bytes[0] / 16 * 64 + 61u);
	assert(whole.rc == split.rc);
	assert(whole.length <= len * 1100); /* deflate makes at most 1032 bytes of one */
	/* Of a body that is rejected the last output is not given. */
	assert(whole.rc < 0 || (whole.length == split.length && whole.hash == split.hash));
	return 0;
}
