/* args_fuzz.c - a command line, one word per line, against a command with a flag of every type. */
#include "cli/args.h"
#include "base/cleanup.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static const struct flag flags[] = {
	/* clang-format off */
	{ "switch", 's', FLAG_SWITCH, NULL, "yes" },  { "text", 't', FLAG_TEXT, "TEXT", "words" },
	{ "size", 'm', FLAG_SIZE, "SIZE", "bytes" },  { "time", 0, FLAG_TIME, "TIME", "a while" },
	{ "cpus", 'c', FLAG_CPUS, "NUMBER", "some" }, { "count", 'n', FLAG_COUNT, "NUMBER", "many" },
	{ "env", 'e', FLAG_ENV, "NAME=VALUE", "set" }, { "words", 'w', FLAG_WORDS, "TEXT", "more" },
	/* clang-format on */
};

static void parse(const struct command *v, int argc, char **argv)
{
	struct cli_error t = { 0 };
	struct args a;

	if (args_parse(&a, v, argc, argv, &t) == 0) {
		for (unsigned i = 0; i < a.ngiven; i++)
			assert(a.given[i].flag < v->nflags ||
			       (a.given[i].flag >= ARG_HELP && a.given[i].flag < ARG_END));
		assert(a.nwords < (unsigned)argc || argc == 0);
		assert(v->own_words || a.nwords <= v->max_words);
	} else {
		assert(t.what[0]);
	}
	args_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct command command = { .name = "command",
				   .usage = "WORD",
				   .flags = flags,
				   .nflags = ARRAY_LEN(flags),
				   .max_words = 3 };
	char text[4096], *argv[65] = { "command" }, *save = NULL;
	int argc = 1;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;
	for (char *w = strtok_r(text, "\n", &save); w && argc < 64; w = strtok_r(NULL, "\n", &save))
		argv[argc++] = w;

	parse(&command, argc, argv);
	command.own_words = 1;
	parse(&command, argc, argv);
	return 0;
}
