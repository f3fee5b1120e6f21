/* line_diff_test.c - unified texts, and patch(1), which makes the second text of the first one with them. */
#include "base/line_diff.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *diff(const char *a, const char *b)
{
	static struct buf out;

	buf_cut(&out, 0);
	if (line_diff_unified(a, strlen(a), b, strlen(b), &out) < 0)
		return "too long";
	return buf_str(&out);
}

TEST(equal_texts_have_no_difference)
{
	CHECK_STR(diff("", ""), "");
	CHECK_STR(diff("a\nb\n", "a\nb\n"), "");
	CHECK_STR(diff("a", "a"), "");
}

TEST(changed_added_and_deleted_lines_are_a_hunk_with_three_lines_around)
{
	CHECK_STR(diff("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
	CHECK_STR(diff("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
	CHECK_STR(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
		  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
	CHECK_STR(diff("1\n2\n", "1\n2\n3\n"), "@@ -1,2 +1,3 @@\n 1\n 2\n+3\n");
	CHECK_STR(diff("0\n1\n", "1\n"), "@@ -1,2 +1 @@\n-0\n 1\n");
}

TEST(differences_that_are_far_from_each_other_are_two_hunks)
{
	CHECK_STR(diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
		  "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
	CHECK_STR(diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n"),
		  "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(a_missing_newline_at_the_end_is_marked)
{
	CHECK_STR(diff("a", "a\n"), "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	CHECK_STR(
		diff("a\nb", "a\nc"),
		"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n");
}

static void text_random(struct buf *t, unsigned lines, unsigned kinds)
{
	buf_cut(t, 0);
	for (unsigned i = 0; i < lines; i++)
		buf_printf(t, "line %u\n", (unsigned)rand() % kinds);
	if (t->len && rand() % 4 == 0)
		buf_cut(t, t->len - 1);
}

static void file_write(const char *name, const char *head, const struct buf *text)
{
	FILE *f = fopen(name, "w");

	if (!f)
		abort();
	fputs(head, f);
	fwrite(buf_str(text), 1, text->len, f);
	fclose(f);
}

/* The result of patch(1) is the second text, with few and with very many differences. */
TEST(patch_makes_the_second_text_of_the_first_one)
{
	struct buf a = { 0 }, b = { 0 }, out = { 0 };
	char got[200000];
	int bad = 0;

	if (system("patch --version >/dev/null 2>&1") != 0)
		SKIP("patch is not installed");
	for (unsigned turn = 0; turn < 60; turn++) {
		size_t n;
		FILE *f;

		text_random(&a, (unsigned)rand() % (turn < 50 ? 40 : 2000), turn < 50 ? 6 : 5000);
		text_random(&b, (unsigned)rand() % (turn < 50 ? 40 : 2000), turn < 50 ? 6 : 5000);
		buf_cut(&out, 0);
		CHECK_INT(line_diff_unified(buf_str(&a), a.len, buf_str(&b), b.len, &out), 0);
		file_write("text", "", &a);
		file_write("text.patch", "--- text\n+++ text\n", &out);
		if (out.len && system("patch -s -f text <text.patch >patch.out 2>&1") != 0)
			bad++;
		f = fopen("text", "r");
		n = f ? fread(got, 1, sizeof(got), f) : 0;
		if (f)
			fclose(f);
		bad += n != b.len || memcmp(got, buf_str(&b), n) != 0;
	}
	CHECK_INT(bad, 0);
	unlink("text");
	unlink("text.patch");
	unlink("patch.out");
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&out);
}

TEST(too_many_lines_are_rejected)
{
	struct buf a = { 0 };
	struct buf out = { 0 };

	for (unsigned i = 0; i <= LINE_DIFF_LINES; i++)
		buf_puts(&a, "\n");
	CHECK_INT(line_diff_unified(buf_str(&a), a.len, "", 0, &out), -1);
	CHECK_INT(line_diff_unified("", 0, buf_str(&a), a.len, &out), -1);
	CHECK_INT(line_diff_unified(buf_str(&a), a.len - 1, "", 0, &out), 0);
	buf_fini(&a);
	buf_fini(&out);
}
