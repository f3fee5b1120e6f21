/* cloak_test.c - what a model is not given: secrets, and the middle of long output. */
#include "tools/redact.h"
#include "tools/truncate.h"
#include "tap.h"

#include <string.h>

static struct cloak k;

/* The text in pieces of n bytes. */
static const char *pass(const char *text, size_t n)
{
	static struct buf out;
	size_t len = strlen(text);

	buf_fini(&out);
	for (size_t i = 0; i < len; i += n)
		cloak_pass(&k, 0, text + i, len - i < n ? len - i : n, &out);
	cloak_flush(&k, 0, &out);
	return buf_str(&out);
}

TEST(names_tell_what_is_a_secret)
{
	CHECK(cloak_suspects("OPENAI_API_KEY"));
	CHECK(cloak_suspects("github_token"));
	CHECK(cloak_suspects("MY_SECRET_THING"));
	CHECK(cloak_suspects("PGPASSWORD"));
	CHECK(!cloak_suspects("PATH"));
	CHECK(!cloak_suspects("KEYBOARD"));
}

TEST(secrets_are_hidden_however_the_text_is_cut)
{
	cloak_init(&k, "{\"A_KEY\":\"abcdef\",\"B_KEY\":\"abcdefgh\",\"C_KEY\":\"short\",\"PLAIN\":\"visible\"}");
	CHECK_INT(k.n, 2);
	for (size_t n = 1; n < 30; n++) {
		CHECK_STR(pass("x abcdef y abcdefgh z abcde visible short", n),
			  "x [A_KEY] y [B_KEY] z abcde visible short");
		CHECK_STR(pass("abcabcdef", n), "abc[A_KEY]");
		CHECK_STR(pass("abcdefg", n), "[A_KEY]g");
	}
	cloak_fini(&k);
}

TEST(a_box_without_secrets_passes_everything)
{
	cloak_init(&k, NULL);
	CHECK_STR(pass("abcdef", 2), "abcdef");
	cloak_init(&k, "nonsense");
	CHECK_STR(pass("abcdef", 2), "abcdef");
	cloak_fini(&k);
}

TEST(short_output_is_kept_whole)
{
	struct cut c = { 0 };
	struct buf out = { 0 };

	cut_add(&c, "a", 1);
	cut_add(&c, "b", 1);
	cut_text(&c, NULL, &out);
	CHECK_STR(buf_str(&out), "ab");
	CHECK_INT(cut_lost(&c), 0);
	cut_fini(&c);
	buf_fini(&out);
}

TEST(long_output_loses_its_middle_and_says_how_much)
{
	struct cut c = { 0 };
	struct buf out = { 0 };

	for (unsigned i = 0; i < 100000; i++)
		cut_add(&c, "\xc3\xa4", 2); /* cut between the two bytes it would be no character */
	cut_add(&c, "end", 3);
	CHECK_INT(cut_lost(&c), 200003 - 2 * CUT_HALF);
	cut_text(&c, "here", &out);
	CHECK(strstr(buf_str(&out), "bytes left out; here ...]"));
	CHECK(!strstr(buf_str(&out), "\xef\xbf\xbd"));
	CHECK(!strcmp(out.p + out.len - 3, "end"));
	CHECK(out.len < 2 * CUT_HALF + 100);
	cut_fini(&c);
	buf_fini(&out);
}

TEST(any_bytes_become_text)
{
	struct buf out = { 0 };

	cut_clean("a\0b\xff\xe2\x82z\xe2\x82", 9, &out);
	CHECK_STR(buf_str(&out), "a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
	buf_fini(&out);
}

