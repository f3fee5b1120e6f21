/* toml_test.c - values of a file, and the messages of errors. tests/system/toml.sh compares the
 * accepted language with Python's parser. */
#include "base/toml.h"
#include "base/buf.h"
#include "tap.h"

static const char *complaint(const char *text)
{
	static struct err e;
	struct toml doc;

	e = (struct err){ 0 };
	if (toml_parse(&doc, "f", text, strlen(text), &e) == 0) {
		toml_fini(&doc);
		return "no complaint";
	}
	return e.msg;
}

TEST(values_are_found_by_name_with_their_type_and_line)
{
	static const char text[] = "a = 1\n[t]\nb = 'x'\nc = [true, 2.5]\n";
	const struct toml_node *t, *c;
	struct toml doc;
	struct err e;

	CHECK_INT(toml_parse(&doc, "f", text, strlen(text), &e), 0);
	CHECK_INT(toml_get(doc.root, "a")->integer, 1);
	t = toml_get(doc.root, "t");
	CHECK_INT(t->type, TOML_TABLE);
	CHECK_INT(t->line, 2);
	CHECK_STR(toml_get(t, "b")->text, "x");
	c = toml_get(t, "c");
	CHECK_INT(c->line, 4);
	CHECK_INT(c->in.count, 2);
	CHECK(c->in.first->type == TOML_BOOLEAN && c->in.first->truth);
	CHECK(c->in.last->real == 2.5);
	CHECK(!toml_get(t, "d") && !toml_get(doc.root, "b") && !toml_get(doc.root, ""));
	toml_fini(&doc);
	toml_fini(&doc);
}

TEST(an_empty_document_is_an_empty_table)
{
	struct toml doc;
	struct err e;

	CHECK_INT(toml_parse(&doc, "f", NULL, 0, &e), 0);
	CHECK(doc.root->type == TOML_TABLE && !doc.root->in.first);
	toml_fini(&doc);
}

TEST(an_error_names_line_and_value)
{
	const struct {
		const char *text, *complaint;
	} rows[] = {
		{ "a 1", "f:1:3: expected '=' after a key, saw '1'" },
		{ "x = 1\na =\n", "f:2:4: expected a value, saw the end of the line" },
		{ "a = ", "f:1:5: expected a value, saw the end of the file" },
		{ "a = é", "f:1:5: expected a value, saw 'é'" },
		{ "é = 1", "f:1:1: expected a key, saw 'é'" },
		{ "'é' = ]", "f:1:7: expected a value, saw ']'" }, /* characters, not bytes */
		{ "a = 1 b", "f:1:7: expected the end of the line after a value, saw 'b'" },
		{ "[a] 1", "f:1:5: expected the end of the line after a header, saw '1'" },
		{ "[a\n",
		  "f:1:3: expected ']' after the name of a table, saw the end of the line" },
		{ "a = hello",
		  "f:1:5: 'hello' is not a number, boolean, date or time; text needs quotes" },
		{ "a = 010",
		  "f:1:5: '010' is not a number, boolean, date or time; numbers have no leading zeros" },
		{ "a = 2023-02-29", "f:1:5: '2023-02-29' is not a date or time" },
		{ "a = 9223372036854775808",
		  "f:1:5: '9223372036854775808' does not fit into 64 bits" },
		{ "a = 1e999", "f:1:5: '1e999' is too large for a float" },
		{ "\n\na = \"x", "f:3:5: a string that does not end" },
		{ "a = \"x\nb = 1", "f:1:5: a string that does not end on its line" },
		{ "a = [1,\n2", "f:1:5: an array that does not end" },
		{ "a = [1 2]", "f:1:8: expected ',' or ']' in an array, saw '2'" },
		{ "a = {b = 1,}", "f:1:12: an inline table has no ',' before its '}'" },
		{ "a = {b = 1",
		  "f:1:11: expected ',' or '}' in an inline table, saw the end of the file" },
		{ "a = 1\n\na = 2", "f:3:1: 'a' is already defined, as an integer on line 1" },
		{ "[t]\nb.c = 1\n[t.b]", "f:3:4: 'b' is already defined, as a table on line 2" },
		{ "a = \"\\q\"", "f:1:6: unknown escape: a backslash and 'q'" },
		{ "a = \"\\ud800\"", "f:1:6: '\\ud800' is not a character" },
		{ "a = \"\\u12\"", "f:1:10: \\u needs 4 hex digits, saw '\"'" },
		{ "a = 'x\ty\001'", "f:1:9: control character 0x01" },
		{ "a = 1\rb = 2", "f:1:6: a carriage return without a line feed" },
		{ "# \xff", "f:1:3: byte 0xff is not UTF-8" },
		{ "\xef\xbb\xbf# x", "f:1:1: a byte order mark is not part of TOML" },
		{ "'''a''' = 1", "f:1:1: a multi-line string cannot be a key" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(complaint(rows[i].text), rows[i].complaint);
}

static const char *repeated(const char *head, const char *unit, unsigned times)
{
	static struct buf b;

	buf_fini(&b);
	buf_puts(&b, head);
	for (unsigned i = 0; i < times; i++)
		buf_puts(&b, unit);
	return buf_str(&b);
}

TEST(exceeding_a_parser_limit_is_an_error)
{
	CHECK_STR(complaint(repeated("a = ", "[", 100000)), "f:1:69: more than 64 levels");
	CHECK(strstr(complaint(repeated("a = ", "{a=", 100000)), "more than 64 levels"));
	CHECK(strstr(complaint(repeated("a", ".a", 100000)), "more than 64 levels"));
	CHECK(strstr(complaint(repeated("", "[[a]]\n", 5000)), "more than 4096 keys"));
	CHECK(strstr(complaint(repeated("a = [", "1,", 70000)), "more than 65536 values"));
	CHECK(strstr(complaint(repeated("", "# a comment\n", 100000)), "at most 1048576 are read"));
	CHECK_STR(complaint(repeated("", "# a comment\n", 80000)), "no complaint");
	repeated("", "", 0);
}

TEST(no_byte_after_the_end_is_read)
{
	struct toml doc;
	struct err e;

	CHECK_INT(toml_parse(&doc, "f", "a = 12", 5, &e), 0);
	CHECK_INT(toml_get(doc.root, "a")->integer, 1);
	toml_fini(&doc);
}

TEST(a_nul_in_a_string_is_kept)
{
	static const char text[] = "a = 'x'\n\"b\\u0000c\" = \"y\\u0000z\"";
	struct toml doc;
	struct err e;

	CHECK_INT(toml_parse(&doc, "f", text, strlen(text), &e), 0);
	CHECK_INT(doc.root->in.last->key_len, 3);
	CHECK_INT(doc.root->in.last->len, 3);
	CHECK(!toml_get(doc.root, "b"));
	toml_fini(&doc);
}
