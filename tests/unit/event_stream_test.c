/* event_stream_test.c - output of programs as JSON strings: every byte of a text is decoded
 * unchanged. */
#include "api/event_stream.h"
#include "base/cleanup.h"
#include "tap.h"

#include <jansson.h>

static int round_trips(const char *text, size_t n)
{
	auto_buf struct buf out = { 0 };
	json_t *back;
	int same;

	event_stream_quote(&out, text, n);
	back = json_loadb(out.p, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	same = json_string_length(back) == n && !memcmp(json_string_value(back), text, n);
	json_decref(back);
	return same;
}

TEST(every_byte_of_a_text_is_quoted_as_json)
{
	char text[0x80];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	CHECK(round_trips(text, sizeof(text)));
	CHECK(round_trips("", 0));
	CHECK(round_trips("\xc3\xa4\xe2\x82\xac", 5));
}

TEST(the_buffer_fits_a_text_of_only_escapes)
{
	static char text[100000];

	for (unsigned c = 0; c < 3; c++) {
		memset(text, "\x01\n\""[c], sizeof(text));
		CHECK(round_trips(text, sizeof(text)));
		CHECK(round_trips(text, 4096));
		CHECK(round_trips(text, 4097));
	}
}

TEST(short_escapes_are_used)
{
	auto_buf struct buf out = { 0 };

	event_stream_quote(&out, "a\t\"\\\r\n\x1f", 7);
	CHECK_STR(buf_str(&out), "\"a\\t\\\"\\\\\\r\\n\\u001f\"");
}
