/* connect_test.c - Connect envelopes in any parts, valid and invalid. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "e2b/connect.h"
#include "e2b/envelope.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1000 };

static int take(struct envelope *v, const char *bytes, size_t n, const char **why)
{
	*why = NULL;
	return envelope_take(v, &bytes, &n, MOST, why);
}

TEST(an_envelope_is_written_as_flags_length_and_data)
{
	uint8_t head[ENVELOPE];

	envelope_head(head, ENVELOPE_END, 0x01020304);
	CHECK(!memcmp(head, "\2\1\2\3\4", 5));
	envelope_head(head, 0, 26);
	CHECK(!memcmp(head, "\0\0\0\0\x1a", 5));
}

TEST(an_envelope_in_one_part_is_parsed)
{
	struct envelope v = { 0 };
	const char *why;

	CHECK(take(&v, "\0\0\0\0\2{}", 7, &why) == 1);
	CHECK_STR(buf_str(&v.body), "{}");
	CHECK(!envelope_is_open(&v));
	envelope_fini(&v);
}

TEST(an_envelope_byte_by_byte_is_parsed)
{
	static const char text[] = "\0\0\0\0\5hello";
	struct envelope v = { 0 };
	const char *why;

	for (size_t i = 0; i < 9; i++) {
		CHECK(take(&v, text + i, 1, &why) == 0);
		CHECK(envelope_is_open(&v));
	}
	CHECK(take(&v, text + 9, 1, &why) == 1);
	CHECK_STR(buf_str(&v.body), "hello");
	envelope_fini(&v);
}

TEST(several_envelopes_in_one_part_are_parsed)
{
	static const char text[] = "\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\2bc\0\0\0";
	const char *at = text, *why;
	size_t n = sizeof(text) - 1;
	struct envelope v = { 0 };

	CHECK(envelope_take(&v, &at, &n, MOST, &why) == 1);
	CHECK_STR(buf_str(&v.body), "a");
	CHECK(envelope_take(&v, &at, &n, MOST, &why) == 1);
	CHECK_INT(v.body.len, 0);
	CHECK(envelope_take(&v, &at, &n, MOST, &why) == 1);
	CHECK_STR(buf_str(&v.body), "bc");
	CHECK(envelope_take(&v, &at, &n, MOST, &why) == 0);
	CHECK_INT(n, 0);
	CHECK(envelope_is_open(&v)); /* the input ends in the middle of a head */
	envelope_fini(&v);
}

TEST(empty_input_has_no_result)
{
	struct envelope v = { 0 };
	const char *why;

	CHECK(take(&v, "", 0, &why) == 0);
	CHECK(!envelope_is_open(&v));
	envelope_fini(&v);
}

TEST(unknown_flags_and_sizes_over_the_limit_are_rejected_at_the_head)
{
	static const struct {
		const char *head, *why;
	} rows[] = {
		{ "\1\0\0\0\2", "compressed" },        { "\2\0\0\0\2", "flags" },
		{ "\x80\0\0\0\2", "flags" },           { "\3\0\0\0\2", "flags" },
		{ "\0\xff\xff\xff\xff", "too large" }, { "\0\0\0\3\xe9", "too large" }, /* 1001 */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct envelope v = { 0 };
		const char *why;

		CHECK(take(&v, rows[i].head, ENVELOPE, &why) == -1);
		CHECK(why && strstr(why, rows[i].why));
		CHECK_INT(v.body.room, 0); /* no memory was allocated for it */
		envelope_fini(&v);
	}
}

TEST(random_bytes_in_random_parts_end_with_a_result)
{
	unsigned seed = 7;

	for (int round = 0; round < 2000; round++) {
		struct envelope v = { 0 };
		int rc = 0;

		for (int piece = 0; piece < 8 && rc >= 0; piece++) {
			char bytes[64];
			const char *at = bytes, *why = NULL;
			size_t n = (size_t)rand_r(&seed) % sizeof(bytes), before;

			for (size_t i = 0; i < n; i++)
				bytes[i] = rand_r(&seed) % 3 ? 0 : (char)(rand_r(&seed) % 256);
			do {
				before = n;
				rc = envelope_take(&v, &at, &n, MOST, &why);
				CHECK(n <= before && v.body.len <= MOST && (rc >= 0 || why));
			} while (rc > 0);
		}
		envelope_fini(&v);
	}
}

static int bytes_of(const char *text, struct buf *out)
{
	json_t *v = json_string(text);
	int rc;

	buf_cut(out, 0);
	rc = connect_bytes(v, out);
	json_decref(v);
	return rc;
}

TEST(base64_is_accepted_with_and_without_padding)
{
	auto_buf struct buf out = { 0 };

	CHECK(bytes_of("aGkK", &out) == 0);
	CHECK_STR(buf_str(&out), "hi\n");
	CHECK(bytes_of("aA==", &out) == 0 && !strcmp(buf_str(&out), "h"));
	CHECK(bytes_of("aA", &out) == 0 && !strcmp(buf_str(&out), "h"));
	CHECK(bytes_of("aGk", &out) == 0 && !strcmp(buf_str(&out), "hi"));
	CHECK(bytes_of("", &out) == 0 && !out.len);
}

TEST(invalid_base64_is_rejected)
{
	static const char *const rows[] = { "a", "aGkKa", "a*==", "aG k", "aGk\n", "\xc3\xa4" };
	auto_buf struct buf out = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(bytes_of(rows[i], &out) == -1);
	CHECK(connect_bytes(NULL, &out) == -1);
	CHECK(connect_bytes(json_true(), &out) == -1);
}

TEST(base64_of_any_length_is_encoded_and_decoded)
{
	unsigned char bytes[300];
	unsigned seed = 3;

	for (size_t n = 0; n < sizeof(bytes); n++) {
		auto_buf struct buf text = { 0 }, back = { 0 };

		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)rand_r(&seed);
		base64_encode(&text, bytes, n);
		CHECK_INT(text.len, (n + 2) / 3 * 4);
		CHECK(base64_decode(&back, buf_str(&text), text.len) == 0);
		CHECK(back.len == n && (!n || !memcmp(back.p, bytes, n)));
	}
}
