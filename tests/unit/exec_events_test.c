/* exec_events_test.c - output of a cell in E2B format. */
#include "e2b/interpreter.h"
#include "notebook/cell.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* The JSON of a line with sorted keys, so that their order does not matter. */
static const char *dumped(json_t *take_line)
{
	static char out[1024];
	char *text = json_dumps(take_line, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_SORT_KEYS);
	json_decref(take_line);
	snprintf(out, sizeof(out), "%s", text ? text : "none");
	free(text);
	return out;
}

static const char *event(const char *text)
{
	return dumped(exec_events_result(text, strlen(text)));
}

/* Its text, and the bytes that are left for later. */
static const char *output(const char *bytes, size_t n, int last, size_t *left)
{
	struct cell_piece p = {
		.what = CELL_STDERR, .bytes = bytes, .n = n, .last = last, .after = { 0, n, 0 }
	};
	json_t *line = exec_events_output(&p);

	*left = n - (line ? p.after[1] : 0);
	if (!line)
		return "none";
	json_object_del(line, "timestamp");
	return dumped(line);
}

TEST(a_split_character_is_held_until_it_is_complete)
{
	size_t left;

	CHECK_STR(output("a\xc3\xa9", 3, 0, &left), "{\"text\":\"a\\u00E9\",\"type\":\"stderr\"}");
	CHECK_INT(left, 0);
	CHECK_STR(output("a\xc3", 2, 0, &left), "{\"text\":\"a\",\"type\":\"stderr\"}");
	CHECK_INT(left, 1);
	CHECK_STR(output("\xf0\x9f\x98", 3, 0, &left), "none");
	CHECK_INT(left, 3);
	CHECK_STR(output("\xf0\x9f\x98\x80", 4, 0, &left),
		  "{\"text\":\"\\uD83D\\uDE00\",\"type\":\"stderr\"}");
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
	size_t left;

	CHECK_STR(output("a\xc3", 2, 1, &left), "{\"text\":\"a\\uFFFD\",\"type\":\"stderr\"}");
	CHECK_INT(left, 0);
	CHECK_STR(output("\xff\0b", 3, 0, &left),
		  "{\"text\":\"\\uFFFD\\u0000b\",\"type\":\"stderr\"}");
	CHECK_STR(output("\xed\xa0\x80", 3, 1, &left),
		  "{\"text\":\"\\uFFFD\\uFFFD\\uFFFD\",\"type\":\"stderr\"}");
}

TEST(a_result_has_a_field_for_each_type)
{
	CHECK_STR(
		event("{\"type\":\"result\",\"main\":true,\"data\":{\"text/plain\":\"'a'\",\"image/png\":\"cA==\","
		      "\"application/json\":[1],\"x/y\":\"own\"},\"extra\":{\"chart\":{\"type\":\"pie\"},\"data\":{}}}"),
		"{\"chart\":{\"type\":\"pie\"},\"data\":{},\"extra\":{\"x/y\":\"own\"},\"is_main_result\":true,"
		"\"json\":[1],\"png\":\"cA==\",\"text\":\"a\",\"type\":\"result\"}");
}

TEST(only_a_matching_pair_of_quotes_is_removed)
{
	static const struct {
		const char *has, *shown;
	} rows[] = { { "'", "'" },           { "''", "" },         { "'a", "'a" },
		     { "'a\\\"", "'a\\\"" }, { "\\\"a\\\"", "a" }, { "", "" } };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[200], want[200];

		snprintf(text, sizeof(text),
			 "{\"type\":\"result\",\"data\":{\"text/plain\":\"%s\"}}", rows[i].has);
		snprintf(
			want, sizeof(want),
			"{\"extra\":{},\"is_main_result\":false,\"text\":\"%s\",\"type\":\"result\"}",
			rows[i].shown);
		CHECK_STR(event(text), want);
	}
}

TEST(an_error_has_name_value_and_traceback)
{
	CHECK_STR(
		event("{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"frames\":[],\"text\":\"t\"}"),
		"{\"name\":\"E\",\"traceback\":\"t\",\"type\":\"error\",\"value\":\"v\"}");
	CHECK_STR(event("{\"type\":\"error\",\"value\":5}"),
		  "{\"name\":\"\",\"traceback\":\"\",\"type\":\"error\",\"value\":\"\"}");
}

TEST(fields_that_e2b_does_not_know_are_left_out)
{
	CHECK_STR(event("{\"type\":\"input\",\"prompt\":\"?\"}"), "none");
	CHECK_STR(
		event("{\"type\":\"result\",\"data\":{},\"extra\":{\"display_id\":\"d\",\"update\":true}}"),
		"none");
	CHECK_STR(event("[]"), "none");
	CHECK_STR(event("no json"), "none");
	CHECK_STR(event("{\"type\":\"result\",\"data\":[],\"extra\":7}"),
		  "{\"extra\":{},\"is_main_result\":false,\"type\":\"result\"}");
	CHECK_STR(event("{\"type\":\"result\",\"data\":{\"text/plain\":null,\"text/html\":null}}"),
		  "{\"extra\":{},\"is_main_result\":false,\"type\":\"result\"}");
}
