/* ignore_test.c - patterns of files that are not part of a build. */
#include "base/ignore.h"
#include "base/buf.h"

#include "tap.h"

static struct err e;

static int ignored(const char *text, const char *path)
{
	struct ignore g;
	int is;

	if (ignore_parse(&g, ".dockerignore", text, strlen(text), &e) < 0)
		return -1;
	is = ignore_match(&g, path);
	ignore_fini(&g);
	return is;
}

TEST(a_pattern_matches_from_the_folder_down)
{
	CHECK_INT(ignored("node_modules\n", "node_modules"), 1);
	CHECK_INT(ignored("node_modules\n", "node_modules/a/b.js"), 1);
	CHECK_INT(ignored("node_modules\n", "web/node_modules"), 0);
	CHECK_INT(ignored("node_modules\n", "node_modules.txt"), 0);
	CHECK_INT(ignored("/a/b/", "a/b"), 1);
	CHECK_INT(ignored("./a//b", "a/b/c"), 1);
	CHECK_INT(ignored("x/../a", "a"), 1);
	CHECK_INT(ignored("", "a"), 0);
}

TEST(stars_match_names_and_folders)
{
	CHECK_INT(ignored("*.log", "a.log"), 1);
	CHECK_INT(ignored("*.log", "b/a.log"), 0);
	CHECK_INT(ignored("**/*.log", "a.log"), 1);
	CHECK_INT(ignored("**/*.log", "c/b/a.log"), 1);
	CHECK_INT(ignored("*/tmp", "a/tmp/x"), 1);
	CHECK_INT(ignored("*/tmp", "tmp"), 0);
	CHECK_INT(ignored("a/**/z", "a/z"), 1);
	CHECK_INT(ignored("a/**/z", "a/b/c/z"), 1);
	CHECK_INT(ignored("**", "any/thing"), 1);
	CHECK_INT(ignored("tmp?", "tmp1"), 1);
	CHECK_INT(ignored("tmp?", "tmp"), 0);
	CHECK_INT(ignored("[^a-c]x", "dx"), 1);
	CHECK_INT(ignored("[^a-c]x", "bx"), 0);
}

TEST(the_last_match_decides)
{
	CHECK_INT(ignored("*.md\n!README.md\n", "README.md"), 0);
	CHECK_INT(ignored("*.md\n!README.md\n", "a.md"), 1);
	CHECK_INT(ignored("!README.md\n*.md\n", "README.md"), 1);
	CHECK_INT(ignored("*\n!src\n", "src/a/b.c"), 0);
	CHECK_INT(ignored("*\n!src\nsrc/*.o", "src/a.o"), 1);
	CHECK_INT(ignored("*\n! src \n", "src"), 0);
}

TEST(comments_and_blank_lines_have_no_pattern)
{
	CHECK_INT(ignored("# a\n\n  \r\n.\na\r\n", "b"), 0);
	CHECK_INT(ignored("# a\n\n  \r\n.\na\r\n", "a"), 1);
	CHECK_INT(ignored("\xef\xbb\xbf"
			  "a",
			  "a"),
		  1);
	CHECK_INT(ignored(" #a", "#a"), 1); /* only at the begin of a line */
}

TEST(errors_have_their_line)
{
	auto_buf struct buf long_one = { 0 };

	CHECK_INT(ignored("a\n!\n", "a"), -1);
	CHECK_STR(e.msg, ".dockerignore:2: no pattern after !");
	CHECK_INT(ignored("a\n\n[b\n", "a"), -1);
	CHECK_STR(e.msg, ".dockerignore:3: '[b' has a [ without its ]");
	for (int i = 0; i < 121; i++)
		buf_putc(&long_one, 'x');
	CHECK_INT(ignored(buf_str(&long_one), "a"), -1);
	CHECK_STR(e.msg, ".dockerignore:1: a pattern of 121 bytes, from 1 to 120");
	buf_cut(&long_one, 0);
	for (int i = 0; i <= IGNORE_RULES; i++)
		buf_puts(&long_one, "x\n");
	CHECK_INT(ignored(buf_str(&long_one), "a"), -1);
	CHECK_STR(e.msg, ".dockerignore:1001: more than 1000 patterns");
}

static int skipped(const char *text, const char *folder)
{
	struct ignore g;
	int is;

	if (ignore_parse(&g, "f", text, strlen(text), &e) < 0)
		return -1;
	is = ignore_match_all(&g, folder);
	ignore_fini(&g);
	return is;
}

TEST(a_folder_is_left_out_as_a_whole_if_nothing_in_it_can_be_included)
{
	CHECK_INT(skipped("a", "a"), 1);
	CHECK_INT(skipped("a", "b"), 0);
	CHECK_INT(skipped("a\n!b/c", "a"), 1);
	CHECK_INT(skipped("a\n!a/c", "a"), 0);
	CHECK_INT(skipped("a\n!a/c", "a/d"), 1);
	CHECK_INT(skipped("a\n!**/c", "a"), 0);
	CHECK_INT(skipped("*\n!src/x", "src"), 0);
}
