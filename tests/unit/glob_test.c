/* glob_test.c - which paths a pattern matches. */
#include "base/glob.h"
#include "tap.h"

static int matches(const char *pattern, const char *path)
{
	struct glob g;
	struct err e;

	if (glob_compile(&g, pattern, &e) < 0)
		return -1;
	return glob_match(&g, path);
}

TEST(a_star_does_not_match_a_slash)
{
	CHECK_INT(matches("*.png", "a.png"), 1);
	CHECK_INT(matches("*.png", ".png"), 1);
	CHECK_INT(matches("*.png", "a/b.png"), 0);
	CHECK_INT(matches("*.png", "a.pngx"), 0);
	CHECK_INT(matches("*", "a"), 1);
	CHECK_INT(matches("*", "a/b"), 0);
	CHECK_INT(matches("a*b*c", "aXbYc"), 1);
	CHECK_INT(matches("a*b*c", "aXbYcd"), 0);
	CHECK_INT(matches("out/*.csv", "out/x.csv"), 1);
	CHECK_INT(matches("out/*.csv", "out/x/y.csv"), 0);
}

TEST(two_stars_match_any_number_of_folders)
{
	CHECK_INT(matches("**/*.png", "a.png"), 1);
	CHECK_INT(matches("**/*.png", "a/b/c.png"), 1);
	CHECK_INT(matches("**/*.png", "a/b/c.jpg"), 0);
	CHECK_INT(matches("a/**/z", "a/z"), 1);
	CHECK_INT(matches("a/**/z", "a/b/c/z"), 1);
	CHECK_INT(matches("a/**/z", "az"), 0);
	CHECK_INT(matches("a/**/z", "a/bz"), 0);
	CHECK_INT(matches("a/**/**/z", "a/z"), 1);
	CHECK_INT(matches("a/**", "a/b/c"), 1);
	CHECK_INT(matches("**", "a/b/c"), 1);
	CHECK_INT(matches("a**b", "a/x/b"), 1);
}

TEST(a_question_mark_and_sets_match_one_byte)
{
	CHECK_INT(matches("?.txt", "a.txt"), 1);
	CHECK_INT(matches("?.txt", "ab.txt"), 0);
	CHECK_INT(matches("a?b", "a/b"), 0);
	CHECK_INT(matches("[a-c]1", "b1"), 1);
	CHECK_INT(matches("[a-c]1", "d1"), 0);
	CHECK_INT(matches("[!a-c]1", "d1"), 1);
	CHECK_INT(matches("[!a]b", "/b"), 0);
	CHECK_INT(matches("[]]", "]"), 1);
	CHECK_INT(matches("\\*", "*"), 1);
	CHECK_INT(matches("\\*", "a"), 0);
	CHECK_INT(matches("ä*", "äb"), 1);
}

TEST(an_invalid_pattern_is_rejected)
{
	char long_one[GLOB_BYTES + 2];

	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	CHECK_INT(matches("", "a"), -1);
	CHECK_INT(matches(long_one, "a"), -1);
	CHECK_INT(matches("[a", "a"), -1);
	CHECK_INT(matches("a\\", "a"), -1);
	long_one[GLOB_BYTES] = 0;
	CHECK_INT(matches(long_one, long_one), 1);
}

TEST(a_hostile_pattern_is_matched_in_bounded_time)
{
	char path[4096], pattern[GLOB_BYTES + 1] = "";
	struct glob g;
	struct err e;

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	while (strlen(pattern) + 3 < GLOB_BYTES)
		strcat(pattern, "*a");
	strcat(pattern, "b");
	CHECK(glob_compile(&g, pattern, &e) == 0);
	for (int i = 0; i < 1000; i++)
		CHECK_INT(glob_match(&g, path), 0);
}
