/* gunzip_test.c - decompression of gzip request bodies. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "e2b/gunzip.h"
#include "tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

static size_t pack(const void *bytes, size_t n, char *out, size_t room)
{
	z_stream z = { 0 };

	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	z.next_in = (Bytef *)(uintptr_t)bytes;
	z.avail_in = (uInt)n;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&z);
	return room - z.avail_out;
}

/* -1: rejected; else whether it has ended. */
static int unpack(const char *in, size_t n, size_t piece, size_t room, struct buf *out,
		  struct err *e)
{
	struct gunzip *g = gunzip_new();
	int ended;

	for (size_t at = 0; at < n; at += piece) {
		size_t len = n - at < piece ? n - at : piece;
		const char *p = in + at;
		long got;

		do {
			got = gunzip_some(g, &p, &len, buf_space(out, room), room, e);
			if (got > 0)
				buf_grew(out, (size_t)got);
		} while (got > 0 || (got == 0 && len));
		if (got < 0) {
			gunzip_free(g);
			return -1;
		}
	}
	ended = gunzip_ended(g);
	gunzip_free(g);
	return ended;
}

TEST(compressed_data_in_any_parts_is_decompressed)
{
	char packed[400], text[] = "one two three two three one two one";
	size_t n = pack(text, sizeof(text) - 1, packed, sizeof(packed));
	struct err e;

	for (size_t piece = 1; piece <= n; piece++) {
		auto_buf struct buf out = { 0 };

		CHECK(unpack(packed, n, piece, 1 + piece % 7, &out, &e) == 1);
		CHECK_STR(buf_str(&out), text);
	}
}

TEST(concatenated_gzip_members_are_one_body)
{
	char packed[400];
	size_t n = pack("ab", 2, packed, 200);
	auto_buf struct buf out = { 0 };
	struct err e;

	n += pack("cd", 2, packed + n, 200);
	CHECK(unpack(packed, n, 3, 10, &out, &e) == 1);
	CHECK_STR(buf_str(&out), "abcd");
}

TEST(a_truncated_body_is_incomplete_and_an_invalid_one_rejected)
{
	char packed[400];
	size_t n = pack("some text", 9, packed, sizeof(packed));
	auto_buf struct buf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
	struct err e;

	CHECK(unpack(packed, n - 1, 5, 10, &a, &e) == 0);
	CHECK(unpack("plain text", 10, 5, 10, &b, &e) == -1);
	packed[n - 6] ^= 1; /* its checksum */
	CHECK(unpack(packed, n, 5, 10, &c, &e) == -1);
	CHECK(unpack("", 0, 5, 10, &d, &e) == 0);
}

TEST(a_decompression_bomb_yields_no_more_than_requested)
{
	size_t n = 50 << 20, size;
	auto_free char *zeros = calloc(1, n), *packed = malloc(1 << 20);
	struct gunzip *g = gunzip_new();
	char out[4096];
	const char *p = packed;
	struct err e;

	size = pack(zeros, n, packed, 1 << 20);
	CHECK(gunzip_some(g, &p, &size, out, sizeof(out), &e) == sizeof(out));
	CHECK(size > 0);
	gunzip_free(g);
}
