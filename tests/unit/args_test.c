/* args_test.c - the arguments of a command, parsed by its table of flags. */
#include "cli/args.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "cli/options.h"
#include "tap.h"

#include <stdlib.h>

enum { F_SWITCH, F_MEM, F_TIME, F_CPUS, F_COUNT, F_ENV, F_NAME };

static const struct flag flags[] = {
	[F_SWITCH] = { "keep", 'k', FLAG_SWITCH, NULL, "a switch" },
	[F_MEM] = { "mem", 'm', FLAG_SIZE, "SIZE", "memory" },
	[F_TIME] = { "time", 0, FLAG_TIME, "TIME", "time" },
	[F_CPUS] = { "cpu", 0, FLAG_CPUS, "N", "processors" },
	[F_COUNT] = { "pids", 'p', FLAG_COUNT, "N", "processes" },
	[F_ENV] = { "env", 'e', FLAG_ENV, "NAME=VALUE", "environment" },
	[F_NAME] = { "name", 'n', FLAG_TEXT, "NAME", "a name" },
};

static const struct command plain = {
	.name = "plain", .usage = "", .flags = flags, .nflags = ARRAY_LEN(flags), .max_words = 2
};
static const struct command owner = {
	.name = "owner", .usage = "", .flags = flags, .nflags = ARRAY_LEN(flags), .own_words = 1
};

static struct args a;
static struct cli_error t;

#define PARSE(command, ...)                                                                        \
	({                                                                                         \
		static char *argv_[] = { "command", __VA_ARGS__ };                                 \
		args_fini(&a);                                                                     \
		t = (struct cli_error){ 0 };                                                       \
		args_parse(&a, command, (int)ARRAY_LEN(argv_), argv_, &t);                         \
	})

TEST(a_value_follows_its_flag_or_an_equals_sign_or_its_letter)
{
	CHECK_INT(PARSE(&plain, "--mem", "1k", "--time=2s", "-p7", "-n", "x"), 0);
	CHECK_INT(args_value(&a, F_MEM, 0), 1024);
	CHECK_INT(args_value(&a, F_TIME, 0), 2000);
	CHECK_INT(args_value(&a, F_COUNT, 0), 7);
	CHECK_STR(args_text(&a, F_NAME, ""), "x");
	CHECK_INT(args_has(&a, F_SWITCH), 0);
}

TEST(the_last_value_of_a_flag_wins_and_a_missing_flag_has_its_default)
{
	CHECK_INT(PARSE(&plain, "--mem", "1k", "--mem", "2k"), 0);
	CHECK_INT(args_value(&a, F_MEM, 0), 2048);
	CHECK_INT(args_value(&a, F_CPUS, 42), 42);
}

TEST(short_flags_can_be_joined)
{
	CHECK_INT(PARSE(&plain, "-kqm", "1M"), 0);
	CHECK(args_has(&a, F_SWITCH));
	CHECK(args_has(&a, ARG_QUIET));
	CHECK_INT(args_value(&a, F_MEM, 0), 1 << 20);
}

TEST(a_thousand_joined_short_flags_are_accepted)
{
	static char many[1002];
	char *argv[] = { "command", many };

	memset(many, 'k', 1001);
	many[0] = '-';
	args_fini(&a);
	CHECK_INT(args_parse(&a, &plain, 2, argv, &t), 0);
	CHECK_INT(a.ngiven, 1000);
}

TEST(arguments_and_flags_may_be_mixed)
{
	CHECK_INT(PARSE(&plain, "one", "-k", "two"), 0);
	CHECK_INT(a.nwords, 2);
	CHECK_STR(a.words[1], "two");
	CHECK(args_has(&a, F_SWITCH));
}

TEST(too_many_arguments_are_rejected)
{
	CHECK_INT(PARSE(&plain, "one", "two", "three"), -1);
	CHECK(strstr(t.what, "'three'"));
}

TEST(after_the_first_argument_all_belong_to_the_program)
{
	CHECK_INT(PARSE(&owner, "-k", "prog", "--mem", "12Q", "-z"), 0);
	CHECK_INT(a.nwords, 4);
	CHECK_STR(a.words[3], "-z");
	CHECK_INT(a.dashes, 0);
}

TEST(two_dashes_end_the_flags)
{
	CHECK_INT(PARSE(&owner, "-k", "--", "-z"), 0);
	CHECK_INT(a.nwords, 1);
	CHECK_INT(a.dashes, 1);
}

TEST(a_single_dash_is_an_argument)
{
	CHECK_INT(PARSE(&owner, "-n", "x", "-"), 0);
	CHECK_STR(a.words[0], "-");
}

TEST(an_unknown_flag_suggests_a_similar_one)
{
	CHECK_INT(PARSE(&plain, "--meme", "1k"), -1);
	CHECK_STR(t.what, "plain: unknown flag '--meme'");
	CHECK_STR(t.hints[0].label, "close");
	CHECK_STR(t.hints[0].text, "--mem");
}

TEST(an_unknown_flag_without_a_similar_one_refers_to_the_list)
{
	CHECK_INT(PARSE(&plain, "--zzzzzzzz=3"), -1);
	CHECK_INT(t.nhints, 1);
	CHECK_STR(t.hints[0].text, "atoll plain -h");
}

TEST(a_flag_without_its_value_names_the_expected_value)
{
	CHECK_INT(PARSE(&plain, "--mem"), -1);
	CHECK_STR(t.what, "--mem needs a value: SIZE");
	CHECK_INT(PARSE(&plain, "-m"), -1);
}

TEST(a_switch_takes_no_value)
{
	CHECK_INT(PARSE(&plain, "--keep=1"), -1);
}

TEST(a_limit_of_zero_below_zero_too_large_or_unknown_unit_is_refused)
{
	CHECK_INT(PARSE(&plain, "--mem", "0"), -1);
	CHECK_INT(PARSE(&plain, "--mem", "-1"), -1);
	CHECK_INT(PARSE(&plain, "--mem", "99999999999999999999"), -1);
	CHECK_INT(PARSE(&plain, "--mem", "12Q"), -1);
	CHECK(strstr(t.what, "12Q"));
	CHECK_INT(PARSE(&plain, "--mem", ""), -1);
	CHECK_INT(PARSE(&plain, "--pids", "0"), -1);
	CHECK_INT(PARSE(&plain, "--pids", "4294967296"), -1);
	CHECK_INT(PARSE(&plain, "--cpu", "-0.5"), -1);
	CHECK_INT(PARSE(&plain, "--time", "0s"), -1);
}

TEST(an_environment_name_is_letters_digits_and_underscores)
{
	CHECK_INT(PARSE(&plain, "-e", "A_1=x", "-e", "_b="), 0);
	CHECK_INT(a.ngiven, 2);
	CHECK_INT(PARSE(&plain, "-e", "1A=x"), -1);
	CHECK_INT(PARSE(&plain, "-e", "A B=x"), -1);
	CHECK_INT(PARSE(&plain, "-e", "=x"), -1);
	CHECK_INT(PARSE(&plain, "-e", "A"), -1);
}

TEST(text_of_the_user_is_truncated_and_escaped_in_errors)
{
	char shown[SHOWN];

	CHECK_STR(cli_error_shown("a\033[2Jb\n", shown), "a?[2Jb?");
	CHECK_STR(cli_error_shown("0123456789012345678901234567890123456789012345", shown),
		  "0123456789012345678901234567890123456789...");
	/* The cut falls into the two bytes of an umlaut. */
	CHECK_STR(cli_error_shown("012345678901234567890123456789012345678\xc3\xa4xyz", shown),
		  "012345678901234567890123456789012345678...");
}

TEST(edit_distance_counts_a_swap_as_one)
{
	CHECK_INT(suggest_distance("run", "run"), 0);
	CHECK_INT(suggest_distance("rnu", "run"), 1);
	CHECK_INT(suggest_distance("doktor", "doctor"), 1);
	CHECK_INT(suggest_distance("", "abc"), 3);
}

TEST(nothing_is_suggested_beyond_an_edit_distance_of_two)
{
	const char *const names[] = { "run", "shell", "doctor", NULL };

	CHECK_STR(suggest_nearest("shel", names), "shell");
	CHECK_STR(suggest_nearest("dcotro", names), "doctor");
	CHECK(!suggest_nearest("zzz", names));
	CHECK(!suggest_nearest("frobnicate", names));
}

TEST(later_environment_variables_replace_earlier_ones)
{
	static const struct command run = { .name = "run",
					    .usage = "",
					    .flags = options_flags,
					    .nflags = OPT_COUNT,
					    .own_words = 1 };
	struct cli cli = { 0 };
	struct options o;
	unsigned paths = 0;

	CHECK_INT(PARSE(&run, "-e", "PATH=/x", "-e", "A=1", "-e", "A=2", "x"), 0);
	CHECK_INT(options_read(&o, &cli, &a, &t), 0);
	for (unsigned i = 0; o.env[i]; i++) {
		paths += !strncmp(o.env[i], "PATH=", 5);
		CHECK(strcmp(o.env[i], "A=1") != 0);
		if (!strncmp(o.env[i], "PATH=", 5))
			CHECK_STR(o.env[i], "PATH=/x");
	}
	CHECK_INT(paths, 1);
	options_fini(&o);
}

TEST(a_network_other_than_off_is_refused)
{
	static const struct command run = { .name = "run",
					    .usage = "",
					    .flags = options_flags,
					    .nflags = OPT_COUNT,
					    .own_words = 1 };
	struct cli cli = { 0 };
	struct options o;

	CHECK_INT(PARSE(&run, "--net", "on", "x"), 0);
	CHECK_INT(options_read(&o, &cli, &a, &t), -1);
	CHECK_STR(t.why, "only a box of the daemon can have allowed hosts: network.allow");
	args_fini(&a);
}
