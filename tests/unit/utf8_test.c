/* utf8_test.c - which bytes are characters, and where text may be cut. */
#include "base/utf8.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Written from the definition, in another way than utf8.c: encodes each code point and compares. */
static unsigned encode(uint32_t c, unsigned char out[4])
{
	unsigned len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (unsigned i = len - 1; i > 0; i--, c >>= 6)
		out[i] = (unsigned char)(0x80 | (c & 0x3f));
	out[0] = (unsigned char)(lead[len] | c);
	return len;
}

/* A copy of n bytes, followed by memory that cannot be read. */
static const char *at_end_of_memory(const void *bytes, size_t n)
{
	static char *page;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (!page) {
		page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (page == MAP_FAILED || mprotect(page + size, size, PROT_NONE) < 0)
			abort();
	}
	memcpy(page + size - n, bytes, n);
	return page + size - n;
}

TEST(every_code_point_but_surrogates_is_decoded)
{
	unsigned wrong = 0;

	for (uint32_t c = 0; c <= 0x1fffff; c++) {
		unsigned char bytes[4];
		unsigned len = encode(c, bytes);
		int is_char = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		uint32_t got;

		wrong += utf8_decode(bytes, len, &got) != (is_char ? len : 0);
		wrong += got != (is_char ? c : 0xfffd);
		wrong += utf8_length(bytes, len) != (is_char ? len : 0);
		wrong += utf8_valid(bytes, len) != is_char;
	}
	CHECK_INT(wrong, 0);
}

TEST(no_other_byte_sequence_is_decoded)
{
	unsigned two = 0, three = 0, four = 0;

	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			two += utf8_length((unsigned char[]){ (unsigned char)a, (unsigned char)b },
					   2) == 2;
			for (unsigned c = 0; c < 256; c++) {
				unsigned char bytes[4] = { (unsigned char)a, (unsigned char)b,
							   (unsigned char)c, 0x80 };

				three += utf8_length(bytes, 3) == 3;
				four += utf8_length(bytes, 4) == 4;
			}
		}
	CHECK_INT(two, 0x800 - 0x80);
	CHECK_INT(three, 0x10000 - 0x800 - 0x800);
	CHECK_INT(four, 0x100000 / 64); /* with 0x80 as the last byte */
}

TEST(overlong_forms_surrogates_and_stray_bytes_are_rejected)
{
	static const char *const bad[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x80\x80",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf0\x80\x80\x80",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80",
		"\xf8\x90\x80\x80",
		"\xfe",
		"\xff",
		"\xc3(",
		"\xe2\x82(",
		"\xe2(\xac",
		"\xf0\x9f\x98(",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		size_t n = strlen(bad[i]);
		struct utf8_check u = { 0 };
		int is_bad;

		CHECK_INT(utf8_length(bad[i], n), 0);
		CHECK_INT(utf8_valid(bad[i], n), 0);
		CHECK_INT(utf8_complete(bad[i], n, &is_bad), 0);
		CHECK_INT(is_bad, 1);
		CHECK_INT(utf8_check_add(&u, bad[i], n), 0);
	}
}

TEST(a_character_without_its_end_is_incomplete_and_nothing_after_it_is_read)
{
	static const char *const whole[] = { "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };

	for (unsigned i = 0; i < 3; i++)
		for (size_t n = 1; n < strlen(whole[i]); n++) {
			const char *p = at_end_of_memory(whole[i], n);
			struct utf8_check u = { 0 };
			uint32_t code;
			int bad = 1;

			CHECK_INT(utf8_length(p, n), 0);
			CHECK_INT(utf8_decode(p, n, &code), 0);
			CHECK_INT(code, 0xfffd);
			CHECK_INT(utf8_valid(p, n), 0);
			CHECK_INT(utf8_complete(p, n, &bad), 0);
			CHECK_INT(bad, 0);
			CHECK_INT(utf8_check_add(&u, p, n), 1);
			CHECK_INT(u.need, strlen(whole[i]) - n);
			CHECK_INT(utf8_check_add(&u, whole[i] + n, strlen(whole[i]) - n), 1);
			CHECK_INT(u.need, 0);
		}
	CHECK_INT(utf8_length("a", 0), 0);
	CHECK_INT(utf8_valid(NULL, 0), 1);
}

TEST(counting_stops_at_the_first_invalid_character)
{
	int bad;

	CHECK_INT(utf8_complete("a\0\xc3\xa4\xe2\x82", 6, &bad), 4);
	CHECK_INT(bad, 0);
	CHECK_INT(utf8_complete("ab\xff"
				"cd",
				5, &bad),
		  2);
	CHECK_INT(bad, 1);
	CHECK_INT(utf8_complete("", 0, &bad), 0);
	CHECK_INT(bad, 0);
}

TEST(each_byte_that_is_not_text_is_replaced)
{
	auto_buf struct buf out = { 0 };
	static const char bytes[] = "a\0\xc3\xa4\xff\xed\xa0\x80z\xe2\x82";

	utf8_scrub(&out, at_end_of_memory(bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
	CHECK_STR(buf_str(&out),
		  "a" UTF8_REPLACEMENT
		  "\xc3\xa4" UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
		  "z" UTF8_REPLACEMENT UTF8_REPLACEMENT);
	utf8_scrub(&out, NULL, 0);
}

TEST(text_is_cut_between_characters)
{
	static const char text[] = "a\xf0\x9f\x98\x80z";

	CHECK_INT(utf8_cut(text, 0), 0);
	CHECK_INT(utf8_cut(text, 1), 1);
	for (size_t n = 2; n < 5; n++) {
		CHECK_INT(utf8_cut(text, n), 1);
		CHECK_INT(utf8_begin(text, 6, n), 5);
	}
	CHECK_INT(utf8_cut(text, 5), 5);
	CHECK_INT(utf8_cut(text, 6), 6);
	CHECK_INT(utf8_cut("\x80\x80\x80", 2), 0);
	CHECK_INT(utf8_begin(text, 6, 1), 1);
	CHECK_INT(utf8_begin("\x80\x80", 2, 0), 2);
	CHECK_INT(utf8_begin(at_end_of_memory("\x80\x80", 2), 2, 0), 2);
}
