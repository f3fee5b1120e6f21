/* lang_test.c - which runtime runs which file. */
#include "lang/lang.h"
#include "tap.h"

static const char *of(const char *file, const char *head)
{
	const struct lang *l = lang_of(file, head, strlen(head));

	return l ? l->name : "none";
}

TEST(an_ending_decides)
{
	CHECK_STR(of("a.py", ""), "python");
	CHECK_STR(of("/x/y/a.mjs", ""), "node");
	CHECK_STR(of("a.b.c", ""), "c");
	CHECK_STR(of("x.cpp", ""), "c++");
	CHECK_STR(of("x.R", ""), "r");
}

TEST(an_ending_must_match_whole)
{
	CHECK_STR(of("a.p", ""), "none");
	CHECK_STR(of("a.pyc", ""), "none");
	CHECK_STR(of("a.", ""), "none");
	CHECK_STR(of("a", ""), "none");
	CHECK_STR(of(".py", ""), "none");
	CHECK_STR(of("x.py/a", ""), "none");
}

TEST(a_first_line_decides_where_the_name_does_not)
{
	CHECK_STR(of("tool", "#!/usr/bin/python3\n"), "python");
	CHECK_STR(of("tool", "#!/usr/bin/env node\nx"), "node");
	CHECK_STR(of("tool", "#! /usr/bin/env -S python3 -u\n"), "python");
	CHECK_STR(of("tool", "#!/bin/sh"), "bash");
	CHECK_STR(of("tool", "#!/opt/strange\n"), "none");
	CHECK_STR(of("tool", "#!"), "none");
	CHECK_STR(of("tool", "#!\npython3"), "none");
	CHECK_STR(of("tool", "#!/usr/bin/env\npython3"), "none");
}

TEST(a_program_is_known_by_its_first_bytes)
{
	CHECK(lang_is_program("\177ELF\2", 5));
	CHECK(lang_is_program("#!/x", 4));
	CHECK(!lang_is_program("\177EL", 3));
	CHECK(!lang_is_program("", 0));
}

TEST(a_command_is_a_row_with_its_places_filled)
{
	const struct lang *c = lang_named("c");
	const char *argv[LANG_ARGS + 1];
	unsigned n = lang_command(c->compile, "/s.c", "/b", argv);

	CHECK_STR(argv[0], "/usr/bin/cc");
	CHECK_STR(argv[3], "/b");
	CHECK_STR(argv[4], "/s.c");
	CHECK(!argv[n]);
	CHECK_INT(lang_command(c->run, "/s.c", "/b", argv), 1);
	CHECK_STR(argv[0], "/b");
}

TEST(names_are_unique_and_every_row_can_run)
{
	for (unsigned i = 0; i < lang_nrows; i++) {
		CHECK(lang_named(lang_rows[i].name) == &lang_rows[i]);
		CHECK(lang_rows[i].run[0]);
		CHECK(*lang_rows[i].package);
		CHECK(!lang_rows[i].compile[LANG_ARGS - 1] && !lang_rows[i].run[LANG_ARGS - 1]);
	}
}
