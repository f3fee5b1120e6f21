/* redact_test.c - output for a model: secrets are redacted, and long output loses its middle. */
#include "secret/redact.h"
#include "base/base64.h"
#include "base/head_tail.h"
#include "base/utf8.h"
#include "tap.h"

#include <string.h>

static struct redact k;

/* The text in pieces of n bytes. */
static const char *pass(const char *text, size_t n)
{
	static struct buf out;
	size_t len = strlen(text);

	buf_fini(&out);
	for (size_t i = 0; i < len; i += n)
		redact_pass(&k, 0, text + i, len - i < n ? len - i : n, &out);
	redact_flush(&k, 0, &out);
	return buf_str(&out);
}

TEST(secrets_are_recognised_by_variable_name)
{
	CHECK(redact_suspects("OPENAI_API_KEY"));
	CHECK(redact_suspects("github_token"));
	CHECK(redact_suspects("MY_SECRET_THING"));
	CHECK(redact_suspects("PGPASSWORD"));
	CHECK(!redact_suspects("PATH"));
	CHECK(!redact_suspects("KEYBOARD"));
}

TEST(secrets_are_redacted_however_the_text_is_split)
{
	redact_init(
		&k,
		"{\"A_KEY\":\"abcdef\",\"B_KEY\":\"abcdefgh\",\"C_KEY\":\"short\",\"PLAIN\":\"visible\"}");
	for (size_t n = 1; n < 30; n++) {
		CHECK_STR(pass("x abcdef y abcdefgh z abcde visible short", n),
			  "x [A_KEY] y [B_KEY] z abcde visible short");
		CHECK_STR(pass("abcabcdef", n), "abc[A_KEY]");
		CHECK_STR(pass("abcdefg", n), "[A_KEY]g");
	}
	redact_fini(&k);
}

TEST(encoded_forms_of_a_secret_are_redacted)
{
	const char *v = "s3cr/t v+lue?\xfb\xff\xbf";
	auto_buf struct buf text = { 0 }, user = { 0 }, out = { 0 };

	k = (struct redact){ 0 };
	redact_add(&k, "V", v, strlen(v));
	base64_encode(&text, v, strlen(v));
	CHECK_STR(pass(buf_str(&text), 3), "[V]");
	for (unsigned before = 1; before < 4; before++) {
		buf_cut(&user, 0);
		buf_cut(&text, 0);
		buf_printf(&user, "%.*s%s:x", (int)before, "abc", v);
		base64_encode(&text, user.p, user.len);
		buf_cut(&out, 0);
		redact_text(&k, text.p, text.len, &out);
		CHECK(strstr(buf_str(&out), "[V]") && out.len < 20);
	}
	CHECK_STR(pass("a=s3cr%2Ft%20v%2Blue%3F%FB%FF%BF&", 4), "a=[V]&");
	CHECK_STR(pass("a=s3cr%2ft+v%2blue%3f%fb%ff%bf&", 4), "a=[V]&");
	redact_fini(&k);
}

TEST(a_value_of_five_bytes_is_not_redacted)
{
	k = (struct redact){ 0 };
	redact_add(&k, "V", "abcde", 5);
	CHECK_STR(pass("abcde YWJjZGU=", 3), "abcde YWJjZGU=");
	redact_fini(&k);
}

TEST(without_secrets_output_is_unchanged)
{
	redact_init(&k, NULL);
	CHECK_STR(pass("abcdef", 2), "abcdef");
	redact_init(&k, "nonsense");
	CHECK_STR(pass("abcdef", 2), "abcdef");
	redact_fini(&k);
}

TEST(short_output_is_not_truncated)
{
	struct head_tail c = { .half = 16384 };
	struct buf out = { 0 };

	head_tail_add(&c, "a", 1);
	head_tail_add(&c, "b", 1);
	head_tail_text(&c, "", &out);
	CHECK_STR(buf_str(&out), "ab");
	CHECK_INT(head_tail_lost(&c), 0);
	head_tail_fini(&c);
	buf_fini(&out);
}

TEST(long_output_loses_its_middle_and_states_how_much)
{
	struct head_tail c = { .half = 16384 };
	struct buf out = { 0 };

	for (unsigned i = 0; i < 100000; i++)
		head_tail_add(&c, "\xc3\xa4",
			      2); /* a cut between the two bytes would split the character */
	head_tail_add(&c, "end", 3);
	CHECK_INT(head_tail_lost(&c), 200003 - 2 * 16384);
	head_tail_text(&c, "here", &out);
	CHECK(strstr(buf_str(&out), "[... here ...]"));
	CHECK(!strstr(buf_str(&out), "\xef\xbf\xbd"));
	CHECK(!strcmp(out.p + out.len - 3, "end"));
	CHECK(out.len < 2 * 16384 + 100);
	head_tail_fini(&c);
	buf_fini(&out);
}

TEST(bytes_that_are_not_utf8_are_replaced_in_output)
{
	struct buf out = { 0 };

	utf8_scrub(&out, "a\0b\xff\xe2\x82z\xe2\x82", 9);
	CHECK_STR(buf_str(&out), "a\xef\xbf\xbd"
				 "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
	buf_fini(&out);
}
