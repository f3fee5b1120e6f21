/* scrub_test.c - texts of a support bundle, without what may be a secret. */
#include "daemon/scrub.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const char *scrubbed(const char *text)
{
	static const char *const values[] = { "tiny-pass", "abc", "with space!", NULL };
	static struct buf out;

	buf_cut(&out, 0);
	scrub_text(&out, text, strlen(text), values);
	return buf_str(&out);
}

TEST(ordinary_text_stays)
{
	static const char *const lines[] = {
		"",
		"level=info msg=\"serving\" boxes=3 runs=0\n",
		"atoll_http_requests_total{code=\"2xx\"} 17\n",
		"version 1.2.3-rc4, schema 21, /var/lib/atoll/server/atoll.db\n",
		"abc",
		"box bq3tknw2c4ya ended: exit\n",
		"\"serve.listen\": [\"127.0.0.1:7681\"]",
		"https://example.org/simple?x=1",
		"a_long_name_without_any_digit_in_it 12345678901234567890123",
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CHECK_STR(scrubbed(lines[i]), lines[i]);
}

TEST(known_values_are_removed_everywhere)
{
	CHECK_STR(scrubbed("x tiny-pass y"), "x [removed] y");
	CHECK_STR(scrubbed("xtiny-passy"), "x[removed]y");
	CHECK_STR(scrubbed("\"with space!\""), "\"[removed]\"");
}

TEST(values_after_telling_names_are_removed)
{
	CHECK_STR(scrubbed("key=short"), "key=[removed]");
	CHECK_STR(scrubbed("?token=a-b&x=1"), "?token=[removed]&x=1");
	CHECK_STR(scrubbed("{\"api_key\": \"a b\", \"x\": 1}"),
		  "{\"api_key\": \"[removed]\", \"x\": 1}");
	CHECK_STR(scrubbed("Authorization: Bearer a b\nnext"), "Authorization: [removed]\nnext");
	CHECK_STR(scrubbed("PASSWORD='x y'"), "PASSWORD='[removed]'");
	CHECK_STR(scrubbed("trace.headers = [\"X-Api-Key: v\"]"),
		  "trace.headers = [\"X-Api-Key: [removed]\"]");
	CHECK_STR(scrubbed("Set-Cookie: sid=1; Path=/"), "Set-Cookie: [removed]; Path=/");
	CHECK_STR(scrubbed("the key of secrets"), "the key of secrets");
	CHECK_STR(scrubbed("key="), "key=");
}

TEST(users_of_urls_and_long_words_are_removed)
{
	CHECK_STR(scrubbed("https://me:pw@host/x"), "https://[removed]@host/x");
	CHECK_STR(scrubbed("https://tok@host"), "https://[removed]@host");
	CHECK_STR(scrubbed("http://host/a@b"), "http://host/a@b");
	CHECK_STR(scrubbed("got e2b_0123456789abcdef0123456789abcdef01234567."), "got [removed]");
	CHECK_STR(scrubbed("eyJhbGciOiJI1.eyJzdWIiOiIx.c2lnbmF0dXJl"), "[removed]");
	CHECK_STR(scrubbed("AAAA1AAAAAAAAAAAAAAA"), "[removed]");
	CHECK_STR(scrubbed("AAAA1AAAAAAAAAAAAAA"), "AAAA1AAAAAAAAAAAAAA");
}

TEST(a_text_that_ends_anywhere_is_not_read_beyond_its_end)
{
	static const char text[] = "https://me:pw@host key=\"v\" Authorization: Bearer x tiny-pass";
	struct buf out = { 0 };

	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = strndup(text, n);

		buf_cut(&out, 0);
		scrub_text(&out, copy, n, NULL);
		free(copy);
	}
	buf_fini(&out);
}
