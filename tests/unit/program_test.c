/* program_test.c - a program of the API, of a batch or of the command line becomes paths and commands. */
#include "lang/program.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "tap.h"

static struct program p;
static struct err e;

static const struct program_file two_files[] = {
	{ "lib.sh", "x=1\n", 4 }, { "main.sh", ". ./lib.sh\n", 11 }, { "data.txt", "", 0 }, { 0 }
};

TEST(code_gets_the_default_name_and_runs)
{
	const struct program_spec s = { .language = "bash", .code = "echo 1", .code_len = 6 };
	static const char *const args[] = { "a b", NULL };
	struct program_step steps[PROGRAM_STEPS];
	auto_free const char **words = NULL;

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_STR(p.source, BOX_HOME "/main.sh");
	CHECK_STR(p.binary, "/tmp/main.out");
	CHECK_STR(p.sources[0], p.source);
	CHECK(!p.sources[1]);
	CHECK_INT(program_steps(&p, 0, steps, &e), 1);
	CHECK_STR(steps[0].what, "run");
	words = program_words(&p, steps[0].row, args, 0);
	CHECK_STR(words[1], p.source);
	CHECK_STR(words[2], "a b");
	CHECK(!words[3]);
	program_fini(&p);
}

TEST(entry_is_the_first_source_and_other_languages_are_none)
{
	const struct program_spec s = { .entry = "main.sh",
					.files = two_files,
					.binary_beside = 1 };

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_STR(p.lang->name, "bash");
	CHECK_STR(p.binary, BOX_HOME "/main.sh.out");
	CHECK_INT(p.nsources, 2);
	CHECK_STR(p.sources[0], BOX_HOME "/main.sh");
	CHECK_STR(p.sources[1], BOX_HOME "/lib.sh");
	program_fini(&p);
}

TEST(entry_is_found_by_the_default_name_or_as_the_only_file)
{
	struct program_spec s = { .language = "bash", .files = two_files };
	const struct program_file one[] = { { "/home/user/x/go.sh", "", 0 }, { 0 } };
	const struct program_file unclear[] = { { "a.sh", "", 0 }, { "b.sh", "", 0 }, { 0 } };

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_STR(p.source, BOX_HOME "/main.sh");
	program_fini(&p);
	s.files = one;
	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_STR(p.source, "/home/user/x/go.sh");
	CHECK_INT(p.nsources, 1);
	program_fini(&p);
	s.files = unclear;
	CHECK_INT(program_plan(&p, &s, &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	program_fini(&p);
	s.any_entry = 1;
	CHECK_INT(program_plan(&p, &s, &e), 0);
	program_fini(&p);
}

TEST(requested_version_is_checked_before_anything_else)
{
	const struct program_spec s = { .language = "bash@5.2", .code = "", .code_len = 0 };
	struct program_step steps[PROGRAM_STEPS];

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_STR(p.pin, "5.2");
	CHECK_INT(program_steps(&p, 0, steps, &e), 2);
	CHECK_STR(steps[0].what, PROGRAM_VERSION);
	CHECK_STR(steps[1].what, "run");
	program_fini(&p);
}

TEST(compiled_language_is_compiled_then_run)
{
	const struct program_spec s = {
		.language = "c", .code = "int main(){}", .code_len = 12, .layered = 1
	};
	struct program_step steps[PROGRAM_STEPS];
	auto_free const char **words = NULL;

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_INT(program_steps(&p, 0, steps, &e), 2);
	CHECK_STR(steps[0].what, "compile");
	CHECK_STR(steps[1].what, "run");
	words = program_words(&p, steps[1].row, NULL, 0);
	CHECK_STR(words[0], "/tmp/main.out");
	program_fini(&p);
}

TEST(wrong_descriptions_are_rejected)
{
	static char name[300];
	const struct program_spec rows[] = {
		{ .language = "klingon", .code = "" },
		{ .code = "echo" },
		{ .entry = "what.xyz" },
		{ .language = "bash@x", .code = "" },
		{ .language = "bash", .code = "", .compiler = "gcc" },
		{ .language = "bash", .entry = name },
		{ .language = "bash" },
	};

	memset(name, 'a', sizeof(name) - 1);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_INT(program_plan(&p, &rows[i], &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		program_fini(&p);
	}
}

TEST(tests_of_a_language_replace_compile_and_run)
{
	struct program_spec s = {
		.language = "python", .files = two_files, .any_entry = 1, .layered = 1
	};
	struct program_step steps[PROGRAM_STEPS];

	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_INT(program_steps(&p, 1, steps, &e), 1);
	CHECK_STR(steps[0].what, "test");
	program_fini(&p);
	s.language = "bash";
	CHECK_INT(program_plan(&p, &s, &e), 0);
	CHECK_INT(program_steps(&p, 1, steps, &e), -1);
	program_fini(&p);
}

TEST(command_is_for_the_shell_or_a_list)
{
	json_t *text = json_string("echo $HOME"), *list = json_pack("[s, s]", "a", "b");
	auto_free const char **shell = program_command(text);
	auto_free const char **words = program_command(list);

	CHECK_STR(shell[0], "/bin/bash");
	CHECK_STR(shell[2], "echo $HOME");
	CHECK_STR(words[1], "b");
	CHECK(!words[2]);
	json_decref(text);
	json_decref(list);
}
