/* swerex_test.c - escape sequences, marks, and decoding of bytes. */
#include "base/cleanup.h"
#include "tap.h"
#include "swerex/swerex.h"

#include <stdlib.h>
#include <string.h>

static void plain(const char *text, const char *expected)
{
	auto_buf struct buf out = { 0 };

	swerex_plain(text, strlen(text), &out);
	CHECK_STR(buf_str(&out), expected);
}

TEST(terminal_escape_sequences_are_removed)
{
	plain("", "");
	plain("\033[1;31mred\033[0m \033[2Kline\033[?25l", "red line");
	plain("\033]0;a title\007x\033]8;;link\033\\y", "xy");
	plain("\033(B\033=\033cz", "z");
	plain("one\r\ntwo\rthree\r", "one\ntwo\rthree\r");
	plain("\303\244\033[mb", "\303\244b");
}

TEST(an_unterminated_escape_sequence_does_not_remove_a_line)
{
	plain("a\033", "a");
	plain("a\033[", "a");
	plain("a\033[12\nb", "a\nb");
	plain("a\033]0;title\nb", "a\nb");
	plain("a\033\033[mb", "ab");
}

TEST(a_mark_is_recognised_only_at_the_start_of_a_line)
{
	size_t before = 0;

	CHECK(!swerex_marked("", &before));
	CHECK(!swerex_marked("x " SWEREX_MARK "none", &before));
	CHECK(!strcmp(swerex_marked(SWEREX_MARK "none", &before), "none"));
	CHECK_INT(before, 0);
	CHECK(!strcmp(swerex_marked("a " SWEREX_MARK "b\n" SWEREX_MARK "c", &before), "c"));
	CHECK_INT(before, strlen("a " SWEREX_MARK "b\n"));
}

static int decode(const char *bytes, size_t n, enum swerex_codec c, enum swerex_errors how,
		  struct buf *out)
{
	auto_buf struct buf in = { 0 };
	size_t at = 0;

	buf_add(&in, bytes, n);
	return swerex_decode(&in, c, how, out, &at) < 0 ? (int)at : -1;
}

TEST(strict_decoding_reports_the_first_invalid_byte)
{
	auto_buf struct buf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, e = { 0 };

	CHECK_INT(decode("", 0, SWEREX_UTF8, SWEREX_STRICT, &a), -1);
	CHECK_INT(decode("\303\244\360\237\230\200", 6, SWEREX_UTF8, SWEREX_STRICT, &a), -1);
	CHECK_STR(buf_str(&a), "\303\244\360\237\230\200");
	CHECK_INT(decode("ab\303", 3, SWEREX_UTF8, SWEREX_STRICT, &b), 2);
	CHECK_INT(decode("\300\200", 2, SWEREX_UTF8, SWEREX_STRICT, &c), 0);
	CHECK_INT(decode("a\303\244", 3, SWEREX_ASCII, SWEREX_STRICT, &d), 1);
	CHECK_INT(decode("a\344\000", 3, SWEREX_LATIN1, SWEREX_STRICT, &e), -1);
	CHECK_INT(e.len, 4);
	CHECK(!memcmp(e.p, "a\303\244\000", 4));
}

TEST(other_decoding_modes_continue_after_invalid_bytes)
{
	auto_buf struct buf a = { 0 }, b = { 0 }, c = { 0 };

	CHECK_INT(decode("a\377b", 3, SWEREX_UTF8, SWEREX_REPLACE, &a), -1);
	CHECK_STR(buf_str(&a), "a\357\277\275b");
	CHECK_INT(decode("a\377b", 3, SWEREX_UTF8, SWEREX_IGNORE, &b), -1);
	CHECK_STR(buf_str(&b), "ab");
	CHECK_INT(decode("a\303\244", 3, SWEREX_ASCII, SWEREX_BACKSLASH, &c), -1);
	CHECK_STR(buf_str(&c), "a\\xc3\\xa4");
	CHECK_INT(swerex_codec("UTF-8"), SWEREX_UTF8);
	CHECK_INT(swerex_codec("klingon"), -1);
	CHECK_INT(swerex_errors("surrogateescape"), -1);
}

TEST(file_names_are_quoted_in_the_script)
{
	auto_buf struct buf out = { 0 };
	json_t *sources = json_pack("[s, s]", "/x'; rm -rf ~; '", "~/a b");

	swerex_script_create(&out, "main", sources);
	CHECK(strstr(out.p, "source '/x'\\''; rm -rf ~; '\\'''\n"));
	CHECK(strstr(out.p, "source ~/'a b'\n"));
	json_decref(sources);
}
