/* repair_test.c - messages of a search box, and edits. */
#include "repair/overfit_check.h"
#include "repair/edit.h"
#include "repair/search_protocol.h"
#include "repair/repair.h"
#include "base/cleanup.h"
#include "tap.h"

#include <string.h>

static const char source[] = "def add(a, b):\n    return a - b  # \xc3\xa4\n";
static struct err err;

static int hear(struct search_msg *x, const char *line)
{
	return search_msg_parse(x, line, strlen(line), source, strlen(source), &err);
}

static void refused(const char *line, const char *why)
{
	struct search_msg x;

	CHECK(hear(&x, line) < 0);
	CHECK(strstr(err.msg, why) != NULL);
	CHECK(!x.edit.text);
}

TEST(an_edit_applies_to_the_given_source)
{
	auto_buf struct buf text = { 0 }, shown = { 0 };
	struct search_msg x;

	CHECK_INT(hear(&x,
		       "{\"found\":7,\"rule\":\"arithmetic\",\"at\":28,\"cut\":1,\"new\":\"+\"}"),
		  0);
	CHECK_INT(x.kind, SEARCH_MSG_FOUND);
	CHECK_INT(x.n, 7);
	CHECK_INT(edit_line(&x.edit, source), 2);
	edit_apply(&x.edit, source, strlen(source), &text);
	CHECK_STR(buf_str(&text), "def add(a, b):\n    return a + b  # \xc3\xa4\n");
	edit_show(&x.edit, source, strlen(source), &shown);
	CHECK_STR(buf_str(&shown),
		  "-    return a - b  # \xc3\xa4\n+    return a + b  # \xc3\xa4\n");
	edit_fini(&x.edit);
}

TEST(edits_at_the_beginning_and_at_the_end_apply)
{
	struct search_msg x;
	char line[128];

	CHECK_INT(hear(&x, "{\"found\":0,\"rule\":\"first\",\"at\":0,\"cut\":0,\"new\":\"#\"}"), 0);
	edit_fini(&x.edit);
	snprintf(line, sizeof(line),
		 "{\"found\":0,\"rule\":\"first\",\"at\":%zu,\"cut\":0,\"new\":\"#\"}",
		 strlen(source));
	CHECK_INT(hear(&x, line), 0);
	edit_fini(&x.edit);
	snprintf(line, sizeof(line),
		 "{\"found\":0,\"rule\":\"first\",\"at\":%zu,\"cut\":0,\"new\":\"#\"}",
		 strlen(source) + 1);
	refused(line, "after the end");
}

static const char *doubted(const char *said)
{
	static char why[OVERFIT_CHECK_REASON];

	overfit_check_read(said, strlen(said), why);
	return why;
}

TEST(an_incomplete_search_is_reported_as_doubt)
{
	char long_one[2048];

	CHECK_STR(doubted("{\"candidates\":3}\n{\"over\":true,\"tried\":3}\n"), "");
	CHECK(strstr(doubted(""), "not everything"));
	CHECK(strstr(doubted("{\"candidates\":3}\n"), "not everything"));
	CHECK(strstr(doubted("{\"over\":true}"), "not everything")); /* cut: no line */
	CHECK(strstr(doubted("\xff\n[]\n7\n{\"over\":1}\n"), "not everything"));
	CHECK_STR(doubted("{\"doubt\":\"another\"}\n{\"over\":true}\n"), "another");
	CHECK_STR(doubted("{\"doubt\":\"another\"}\n"), "another");
	CHECK(strstr(doubted("{\"found\":4}\n{\"over\":true}\n"), "the same line"));
	snprintf(long_one, sizeof(long_one), "{\"doubt\":\"%01000d\"}\n{\"over\":true}\n", 0);
	CHECK_INT(strlen(doubted(long_one)), OVERFIT_CHECK_REASON - 1);
}

TEST(an_invalid_edit_is_rejected)
{
	static const char *const lines[] = {
		"{\"found\":-1,\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":\"1\",\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1000001,\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":99999999999999999999,\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"x\",\"at\":-1,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"x\",\"at\":0.5,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"x\",\"at\":0,\"cut\":-3,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":7}",
		"{\"found\":1,\"rule\":\"../x\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"rule\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"at\":0,\"cut\":0,\"new\":\"#\"}",
		"{\"found\":1,\"at\":0,\"cut\":0,\"new\":\"#\"}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++)
		refused(lines[i], "no");
	refused("{\"found\":1,\"rule\":\"x\",\"at\":9223372036854775807,\"cut\":9223372036854775807,\"new\":\"#\"}",
		"after the end");
	refused("{\"found\":1,\"rule\":\"x\",\"at\":0,\"cut\":3,\"new\":\"def\"}",
		"changes nothing");
	refused("{\"found\":1,\"rule\":\"x\",\"at\":36,\"cut\":0,\"new\":\"#\"}",
		"within a character");
	refused("{\"found\":1,\"rule\":\"x\",\"at\":0,\"cut\":0,\"new\":\"a\\u0000b\"}", "JSON");
}

TEST(a_program_with_many_differences_is_not_an_edit)
{
	auto_buf struct buf line = { 0 }, big = { 0 };
	struct search_msg x;

	buf_printf(&line, "{\"found\":1,\"rule\":\"x\",\"at\":0,\"cut\":%zu,\"new\":\"",
		   strlen(source));
	for (unsigned i = 0; i < 100; i++)
		buf_printf(&line, "x%u = %u\\n", i, i);
	buf_puts(&line, "\"}");
	refused(buf_str(&line), "more than one place");
	/* The old text with a little text around it is a valid edit, however long it is. */
	for (unsigned i = 0; i < 200; i++)
		buf_printf(&big, "x%u + ", i);
	buf_cut(&line, 0);
	buf_printf(&line,
		   "{\"found\":1,\"rule\":\"wrap\",\"at\":0,\"cut\":%zu,\"new\":\"abs(%s)\"}",
		   big.len, buf_str(&big));
	CHECK_INT(search_msg_parse(&x, line.p, line.len, big.p, big.len, &err), 0);
	edit_fini(&x.edit);
	buf_cut(&line, 0);
	buf_printf(&line,
		   "{\"found\":1,\"rule\":\"wrap\",\"at\":0,\"cut\":%zu,\"new\":\"abs(y + %s)\"}",
		   big.len, buf_str(&big) + 2);
	CHECK(search_msg_parse(&x, line.p, line.len, big.p, big.len, &err) < 0);
}

TEST(invalid_messages_are_rejected_and_other_messages_ignored)
{
	auto_buf struct buf huge = { 0 };
	struct search_msg x;

	refused("", "not a JSON");
	refused("hello", "not a JSON");
	refused("[1, 2]", "not a JSON");
	refused("{\"found\":1,\"rule\":\"x\",\"at\":0,\"cu", "not a JSON");
	refused("{\"at\":1,\"at\":2}", "not a JSON");
	refused("\xff\xfe", "not a JSON");
	buf_puts(&huge, "{\"a\":\"");
	while (huge.len < 2 * SEARCH_MSG_LINE)
		buf_puts(&huge, "xxxxxxxxxxxxxxxx");
	buf_puts(&huge, "\"}");
	refused(buf_str(&huge), "more than");
	CHECK_INT(hear(&x, "{\"love\":1}"), 0);
	CHECK_INT(x.kind, SEARCH_MSG_NOTHING);
	CHECK_INT(hear(&x, "{\"at\":12,\"tried\":7}"), 0);
	CHECK_INT(x.kind, SEARCH_MSG_AT);
	CHECK_INT(x.n, 12);
	CHECK_INT(x.tried, 7);
	CHECK_INT(hear(&x, "{\"over\":true,\"tried\":70}"), 0);
	CHECK_INT(x.kind, SEARCH_MSG_OVER);
	CHECK_INT(hear(&x, "{\"found\":3,\"acts\":\"zz\"}"), 0);
	CHECK(!x.has_edit);
	CHECK_STR(x.acts, "");
}

TEST(programs_differ_when_two_given_results_differ)
{
	CHECK(!search_msg_differ("", ""));
	CHECK(!search_msg_differ("12ab", "12ab"));
	CHECK(search_msg_differ("12ab", "12ac"));
	CHECK(!search_msg_differ("----", "12ac"));
	CHECK(!search_msg_differ("12ac", "----"));
	CHECK(search_msg_differ("----aaaa", "12acbbbb"));
	CHECK(!search_msg_differ("aaaa", "aaaabbbb"));
}

static int possible(const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);
	int fine = repair_possible(doc);

	json_decref(doc);
	return fine;
}

TEST(repair_needs_a_source_a_language_and_examples)
{
	CHECK(possible("{\"language\":\"python\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"x\"},"
		       "\"examples\":[{\"call\":\"f(1)\",\"expected\":\"1\"}]}"));
	CHECK(possible("{\"language\":\"py\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"x\"},"
		       "\"examples\":[{\"input\":\"1\",\"expected\":\"1\"}]}"));
	CHECK(possible("{\"language\":\"python\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"x\"},"
		       "\"tests\":[{\"path\":\"t.py\",\"content\":\"import a\"}]}"));
	CHECK(!possible("{\"language\":\"python\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"x\"}}"));
	CHECK(!possible("{\"language\":\"python\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"\"},"
			"\"examples\":[{\"call\":\"f(1)\",\"expected\":\"1\"}]}"));
	CHECK(!possible("{\"language\":\"python\",\"entry\":\"b.py\",\"files\":{\"a.py\":\"x\"},"
			"\"examples\":[{\"call\":\"f(1)\",\"expected\":\"1\"}]}"));
	CHECK(!possible("{\"language\":\"cobol\",\"entry\":\"a\",\"files\":{\"a\":\"x\"},"
			"\"examples\":[{\"input\":\"1\",\"expected\":\"1\"}]}"));
	CHECK(!possible("{\"language\":\"python\",\"entry\":\"a.py\",\"files\":{\"a.py\":\"x\"},"
			"\"examples\":[{\"input\":\"1\"}]}"));
	CHECK(!possible("{\"language\":7,\"entry\":[],\"files\":3,\"examples\":{}}"));
}
