/* patch_test.c - patches as models write them. */
#include "tools/patch.h"
#include "tap.h"

#include <string.h>

static struct patch_file files[PATCH_FILES];
static struct err e;

static int parse(const char *text)
{
	return patch_parse(text, strlen(text), files, &e);
}

/* The changed text; NULL: the patch does not match. */
static const char *apply(const char *body, const char *old)
{
	static struct buf out;

	buf_fini(&out);
	if (patch_apply((struct patch_text){ body, strlen(body) }, old, strlen(old), &out, &e) < 0)
		return NULL;
	return buf_str(&out);
}

TEST(files_of_a_patch_are_parsed_with_operation_and_lines)
{
	CHECK_INT(
		parse("*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b c \n"
		      "*** Update File: d\n*** Move to: e\n@@\n-1\n+2\n*** End of File\n*** End Patch\n"),
		3);
	CHECK_INT(files[0].kind, PATCH_ADD);
	CHECK_INT(files[0].body.n, 3);
	CHECK_INT(files[1].kind, PATCH_DELETE);
	CHECK(files[1].path.n == 3 && !memcmp(files[1].path.p, "b c", 3));
	CHECK_INT(files[2].kind, PATCH_UPDATE);
	CHECK(files[2].move.n == 1 && *files[2].move.p == 'e');
	CHECK(!strncmp(files[2].body.p, "@@\n-1\n+2\n*** End of File\n", files[2].body.n));
}

TEST(an_invalid_patch_is_rejected_with_the_line)
{
	CHECK_INT(parse(""), -1);
	CHECK_INT(parse("*** Begin Patch\n*** End Patch"), -1);
	CHECK_INT(parse("*** Begin Patch\n+x\n*** End Patch"), -1);
	CHECK_STR(e.msg, "line 2 of the patch: is neither the head of a file nor a part of one");
	CHECK_INT(parse("*** Begin Patch\n*** Add File: a\n+x\n"), -1);
	CHECK_INT(parse("*** Begin Patch\n*** Add File: \n*** End Patch"), -1);
	CHECK_INT(parse("*** Begin Patch\n*** Rename File: a\n*** End Patch"), -1);
}

TEST(a_file_can_be_moved)
{
	static const char nul[] = "*** Begin Patch\n*** Update File: a\n*** Move to: b\0c\n-1\n"
				  "*** End Patch\n";

	CHECK_INT(patch_parse(nul, sizeof(nul) - 1, files, &e), -1);
	CHECK_STR(e.msg, "line 3 of the patch: names no file");
	CHECK_INT(parse("*** Begin Patch\n*** Update File: a\n*** Move to: \n-1\n*** End Patch\n"),
		  -1);
	CHECK_STR(e.msg, "line 3 of the patch: names no file");
}

TEST(a_change_is_located_by_its_lines)
{
	CHECK_STR(apply(" a\n-b\n+B\n c\n", "a\nb\nc\n"), "a\nB\nc\n");
	CHECK_STR(apply("@@\n-b\n", "a\nb\nc\n"), "a\nc\n");
	CHECK_STR(apply("@@ g:\n-x\n+y\n", "f:\nx\ng:\nx\n"), "f:\nx\ng:\ny\n");
	CHECK_STR(apply("@@ -1,2 +1,2 @@\n-x\n+y\n", "x\n"), "y\n");
	CHECK_STR(apply("@@\n-a\n+A\n@@\n-c\n+C\n", "a\nb\nc\n"), "A\nb\nC\n");
	CHECK_STR(apply("-x\n+y\n*** End of File\n", "x\nx\n"), "x\ny\n");
}

TEST(trailing_blanks_are_ignored_in_the_search_and_kept)
{
	CHECK_STR(apply(" a\n-b\n+B\n", "a  \nb\t\n"), "a  \nB\n");
	CHECK_STR(apply(" if x:\n-y\n+    z\n", "  if x:\n    y\n"), "  if x:\n    z\n");
	CHECK_STR(apply("-a\n+b\n c\n", "a\r\nc\r\n"), "b\nc\r\n");
}

TEST(a_change_of_only_new_lines_is_added_at_the_end_or_after_its_anchor)
{
	CHECK_STR(apply("+z\n", "a\n"), "a\nz\n");
	CHECK_STR(apply("@@ a\n+z\n", "a\nb\n"), "a\nz\nb\n");
	CHECK_STR(apply("+z\n", ""), "z\n");
}

TEST(a_file_without_a_newline_at_its_end_stays_so)
{
	CHECK_STR(apply("-a\n+A\n", "a\nlast"), "A\nlast");
	CHECK_STR(apply("-last\n+end\n", "a\nlast"), "a\nend\n");
	CHECK_STR(apply("-last\n+the last\n", "a\nlast"), "a\nthe last\n");
}

TEST(a_change_that_does_not_match_is_named)
{
	CHECK(!apply("-nothing\n+x\n", "a\n"));
	CHECK(strstr(e.msg, "'nothing'"));
	CHECK(!apply("@@ nowhere\n-a\n", "a\n"));
	CHECK(strstr(e.msg, "'nowhere'"));
	CHECK(!apply("?a\n", "a\n"));
	CHECK(!apply("@@\n-c\n@@\n-a\n", "a\nb\nc\n")); /* in the order of the file */
}

TEST(a_patch_that_takes_too_long_is_rejected)
{
	struct buf file = { 0 }, body = { 0 };

	for (unsigned i = 0; i < 200000; i++)
		buf_puts(&file, "\n");
	for (unsigned i = 0; i < 50000; i++)
		buf_puts(&body, " \n");
	buf_puts(&body, "-x\n");
	CHECK(!apply(buf_str(&body), buf_str(&file)));
	buf_fini(&file);
	buf_fini(&body);
}

TEST(a_new_file_has_only_new_lines)
{
	struct buf out = { 0 };

	CHECK_INT(patch_content((struct patch_text){ "+a\n+\n+b\n", 8 }, &out, &e), 0);
	CHECK_STR(buf_str(&out), "a\n\nb\n");
	CHECK_INT(patch_content((struct patch_text){ " a\n", 3 }, &out, &e), -1);
	buf_fini(&out);
}
