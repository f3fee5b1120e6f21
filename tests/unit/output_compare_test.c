/* output_compare_test.c - comparison of output with the expected one. */
#include "batch/output_compare.h"
#include "base/cleanup.h"
#include "tap.h"

#include <string.h>

static int same(enum output_compare how, const char *got, const char *want)
{
	return output_compare_same(how, got, strlen(got), want, strlen(want));
}

TEST(comparison_modes_have_names)
{
	enum output_compare how;

	CHECK_INT(output_compare_parse("exact", &how), 0);
	CHECK_INT(how, JUDGE_EXACT);
	CHECK_INT(output_compare_parse("trimmed", &how), 0);
	CHECK_INT(how, JUDGE_TRIMMED);
	CHECK_INT(output_compare_parse("tokens", &how), 0);
	CHECK_INT(how, JUDGE_TOKENS);
	CHECK_INT(output_compare_parse("", &how), -1);
	CHECK_INT(output_compare_parse("Exact", &how), -1);
}

TEST(exact_compares_every_byte)
{
	CHECK(same(JUDGE_EXACT, "", ""));
	CHECK(same(JUDGE_EXACT, "a\nb\n", "a\nb\n"));
	CHECK(!same(JUDGE_EXACT, "a", "a\n"));
	CHECK(!same(JUDGE_EXACT, "a\n", "a"));
	CHECK(!same(JUDGE_EXACT, "a ", "a"));
	CHECK(!same(JUDGE_EXACT, "", "\n"));
	CHECK(!same(JUDGE_EXACT, "a\r\n", "a\n"));
}

TEST(trimmed_ignores_white_space_at_line_ends_and_at_the_end)
{
	CHECK(same(JUDGE_TRIMMED, "42\n", "42"));
	CHECK(same(JUDGE_TRIMMED, "42", "42\n\n\n"));
	CHECK(same(JUDGE_TRIMMED, "a \nb\t\n", "a\nb"));
	CHECK(same(JUDGE_TRIMMED, "a\r\nb\r\n", "a\nb\n"));
	CHECK(same(JUDGE_TRIMMED, "", " \n\t\n"));
}

TEST(trimmed_does_not_ignore_white_space_inside_or_before_text)
{
	CHECK(!same(JUDGE_TRIMMED, " a", "a"));
	CHECK(!same(JUDGE_TRIMMED, "a  b", "a b"));
	CHECK(!same(JUDGE_TRIMMED, "a\n\nb", "a\nb"));
	CHECK(!same(JUDGE_TRIMMED, "\na", "a"));
	CHECK(!same(JUDGE_TRIMMED, "a\nb", "a\nc"));
	CHECK(!same(JUDGE_TRIMMED, "a", "a\nb"));
	CHECK(!same(JUDGE_TRIMMED, "", "a"));
}

TEST(tokens_treats_all_white_space_as_equal)
{
	CHECK(same(JUDGE_TOKENS, "1 2\n3", " 1\n2\t3 \n"));
	CHECK(same(JUDGE_TOKENS, "", "  \n "));
	CHECK(!same(JUDGE_TOKENS, "12 3", "1 23"));
	CHECK(!same(JUDGE_TOKENS, "1 2", "1 2 3"));
	CHECK(!same(JUDGE_TOKENS, "1 2 3", "1 2"));
}

TEST(output_of_any_bytes_is_compared)
{
	CHECK(output_compare_same(JUDGE_EXACT, "a\0b", 3, "a\0b", 3));
	CHECK(!output_compare_same(JUDGE_EXACT, "a\0b", 3, "a\0c", 3));
	CHECK(!output_compare_same(JUDGE_TRIMMED, "a\0b", 3, "a", 1));
	CHECK(output_compare_same(JUDGE_TRIMMED, NULL, 0, "", 0));
	CHECK(!output_compare_same(JUDGE_TOKENS, NULL, 0, "x", 1));
	CHECK(output_compare_same(JUDGE_TOKENS, "\xff\xfe", 2, "\xff\xfe\n", 3));
}

TEST(the_line_of_the_first_difference_is_returned)
{
	CHECK_INT(output_compare_line(JUDGE_EXACT, "a\nb\n", 4, "a\nc\n", 4), 2);
	CHECK_INT(output_compare_line(JUDGE_TRIMMED, "a\nb\nx", 5, "a\nb", 3), 3);
	CHECK_INT(output_compare_line(JUDGE_TOKENS, "a\n\nb", 4, "a c", 3), 3);
	CHECK_INT(output_compare_line(JUDGE_TOKENS, "a", 1, "a", 1), 0);
}
