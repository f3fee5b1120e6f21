/* llm_sse_test.c - server-sent events from bytes in any parts. */
#include "llm/sse.h"
#include "tap.h"

static char seen[4096];

static int note(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
	size_t n = strlen(seen);

	(void)ctx;
	if (strcmp(data, "stop") == 0)
		return err_set(e, ERR_SYS, "enough");
	snprintf(seen + n, sizeof(seen) - n, "[%s|%.*s]", name, (int)len, data);
	return 0;
}

/* In pieces of every size: the events are the same. */
static int same_in_all_pieces(int lines, const char *text, const char *want)
{
	size_t n = strlen(text);

	for (size_t piece = 1; piece <= n; piece++) {
		struct sse s = { .lines = lines, .event = note };
		struct err e;
		int rc = 0;

		seen[0] = 0;
		for (size_t at = 0; at < n && rc == 0; at += piece)
			rc = sse_feed(&s, text + at, at + piece < n ? piece : n - at, &e);
		if (rc == 0)
			rc = sse_end(&s, &e);
		sse_fini(&s);
		if (rc < 0 || strcmp(seen, want) != 0) {
			printf("# pieces of %zu: %s\n", piece, seen);
			return 0;
		}
	}
	return 1;
}

TEST(an_event_is_its_data_and_its_name)
{
	CHECK(same_in_all_pieces(0, "event: ping\ndata: {}\n\ndata: 1\n\n", "[ping|{}][|1]"));
}

TEST(lines_end_with_LF_CR_or_both)
{
	CHECK(same_in_all_pieces(0, "data: 1\r\rdata: 2\r\n\r\ndata: 3\n\n", "[|1][|2][|3]"));
}

TEST(several_lines_of_data_are_joined)
{
	CHECK(same_in_all_pieces(0, "data: a\ndata:\ndata:b\n\n", "[|a\n\nb]"));
}

TEST(comments_and_unknown_fields_are_ignored)
{
	CHECK(same_in_all_pieces(0, ": ping\n\nid: 7\nretry: 9\nnonsense\ndata:  x\n\n", "[| x]"));
}

TEST(an_event_without_the_final_empty_line_is_dropped)
{
	CHECK(same_in_all_pieces(0, "data: a\n\ndata: cut", "[|a]"));
}

TEST(a_byte_order_mark_is_skipped)
{
	CHECK(same_in_all_pieces(0,
				 "\xef\xbb\xbf"
				 "data: a\n\n",
				 "[|a]"));
}

TEST(a_byte_order_mark_does_not_count_for_the_line_limit)
{
	static const char text[] = "\xef\xbb\xbf"
				   "data: abcd\n\n";

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		struct sse s = { .event = note, .most = 10 };
		struct err e;
		int rc = 0;

		seen[0] = 0;
		for (size_t at = 0, n = sizeof(text) - 1; at < n && rc == 0; at += piece)
			rc = sse_feed(&s, text + at, at + piece < n ? piece : n - at, &e);
		sse_fini(&s);
		CHECK_INT(rc, 0);
		CHECK_STR(seen, "[|abcd]");
	}
}

TEST(characters_may_be_split_anywhere)
{
	CHECK(same_in_all_pieces(0, "data: \xc3\xa9\xf0\x9f\x90\xa2\n\n",
				 "[|\xc3\xa9\xf0\x9f\x90\xa2]"));
}

TEST(in_line_mode_each_line_is_an_event_with_or_without_a_final_newline)
{
	CHECK(same_in_all_pieces(1, "{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}",
				 "[|{\"a\":1}][|{\"b\":2}][|{\"c\":3}]"));
}

TEST(a_line_that_does_not_end_is_an_error)
{
	struct sse s = { .event = note, .most = 100 };
	struct err e;
	int rc = 0;

	for (int i = 0; i < 101 && rc == 0; i++)
		rc = sse_feed(&s, "x", 1, &e);
	sse_fini(&s);
	CHECK_INT(rc, -1);
	CHECK_INT(e.kind, ERR_LIMIT);
}

TEST(an_event_of_endless_lines_is_an_error)
{
	struct sse s = { .event = note, .most = 100 };
	struct err e;
	int rc = 0;

	for (int i = 0; i < 30 && rc == 0; i++)
		rc = sse_feed(&s, "data: abc\n", 10, &e);
	sse_fini(&s);
	CHECK_INT(rc, -1);
	CHECK_INT(e.kind, ERR_LIMIT);
}

TEST(a_callback_can_stop_the_parser)
{
	struct sse s = { .event = note };
	struct err e = { 0 };
	int rc = sse_feed(&s, "data: stop\n\ndata: more\n\n", 24, &e);

	sse_fini(&s);
	CHECK_INT(rc, -1);
	CHECK_STR(e.msg, "enough");
}
