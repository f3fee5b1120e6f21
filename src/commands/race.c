/* race.c - `atoll race`: commands in copies of a box, a check after each, and the files of the winner for the box. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "cli/fields.h"
#include "cli/table.h"
#include "commands/commands.h"
#include "commands/race.h"

#include <stdio.h>
#include <string.h>

enum { RACE_CHECK, RACE_BEST, RACE_NONE, RACE_TIMEOUT, RACE_CPU_TIME, RACE_NFLAGS };
enum { RACE_WORDS = 33 }; /* the box, and 32 commands */

static const struct flag race_flags[RACE_NFLAGS] = {
	[RACE_CHECK] = { "check", 'c', FLAG_TEXT, "COMMAND",
			 "runs after each attempt in its copy; exit code 0 means passed" },
	[RACE_BEST] = { "best", 0, FLAG_SWITCH, NULL,
			"run all; the highest number in the last line of the check wins" },
	[RACE_NONE] = { "keep-none", 0, FLAG_SWITCH, NULL, "do not change the box" },
	[RACE_TIMEOUT] = { "timeout", 't', FLAG_TIME, "TIME", "of all attempts together (5m)" },
	[RACE_CPU_TIME] = { "cpu-time", 0, FLAG_TIME, "TIME", "CPU time of each attempt" },
};

static json_t *race_body(const struct args *a)
{
	json_t *attempts = json_array(), *budget = json_object(), *doc;

	for (unsigned i = 1; i < a->nwords; i++)
		json_array_append_new(attempts, json_pack("{s:s}", "command", a->words[i]));
	fields_number(budget, a, RACE_TIMEOUT, "wall_ms");
	fields_number(budget, a, RACE_CPU_TIME, "cpu_ms");
	doc = json_pack("{s:o, s:{s:s}, s:s}", "attempts", attempts, "check", "command",
			args_text(a, RACE_CHECK, ""), "keep",
			args_has(a, RACE_NONE)   ? "none"
			: args_has(a, RACE_BEST) ? "best"
						 : "first");
	if (json_object_size(budget))
		json_object_set(doc, "budget", budget);
	json_decref(budget);
	return doc;
}

static void race_print(const char *box, const json_t *doc)
{
	static const char *const columns[] = { "ATTEMPT", "STATE", ">SCORE", ">MS", NULL };
	const json_t *winner = json_object_get(doc, "winner");
	json_t *one;
	struct table t;
	size_t i;

	table_init(&t, columns);
	json_array_foreach(json_object_get(doc, "results"), i, one)
	{
		const json_t *score = json_object_get(one, "score");
		int won = json_is_integer(winner) && json_integer_value(winner) == (json_int_t)i;

		table_cell(&t, "%zu", i + 1);
		table_cell(&t, "%s", won ? "won" : api_client_text(one, "state"));
		if (json_is_number(score))
			table_cell(&t, "%g", json_number_value(score));
		else
			table_cell(&t, "-");
		table_cell(&t, "%lld", (long long)api_client_int(one, "took_ms", 0));
	}
	table_print(&t, 0);
	if (json_is_object(json_object_get(doc, "promoted")))
		printf("undo: atoll rollback %s %s\n", box,
		       api_client_text(json_object_get(doc, "promoted"), "safety"));
}

int race_run(struct api_client *r, const char *box, json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/race", box);
	json_t *doc = api_client_json(r, "POST", path, take_body);
	int failed;

	if (!doc) {
		api_client_explain_box(r, box);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else
		race_print(box, doc);
	failed = !json_is_integer(json_object_get(doc, "winner"));
	json_decref(doc);
	return failed;
}

static int race_do(struct api_client *r, const struct args *a)
{
	if (a->nwords < 2 || !args_has(a, RACE_CHECK)) {
		api_client_usage(r, !a->nwords      ? "race: missing box"
				    : a->nwords < 2 ? "race: missing command of an attempt"
						    : "race: missing --check COMMAND");
		cli_error_hint(&r->error, "type",
			       "atoll race BOX --check 'make test' 'COMMAND' 'COMMAND'");
		return r->status;
	}
	return race_run(r, a->words[0], race_body(a));
}

static int run_race(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, race_do);
}

static const struct example race_examples[] = {
	{ "atoll race demo --check 'make test' 'git apply a.diff' 'git apply b.diff'",
	  "keep the first patch with which the tests pass" },
	{ "atoll race demo --best --check './score' './tune 1' './tune 2'",
	  "keep the one whose check prints the highest number" },
	{ 0 },
};

const struct command command_race = {
	.name = "race",
	.group = "Boxes",
	.usage = "BOX --check COMMAND ATTEMPT...",
	.summary = "run commands in copies of a box and keep the files of the winner",
	.notes =
		"Each attempt is a command line for the shell. The exit status is 1 if no attempt passes; then the box stays as it is.",
	.flags = race_flags,
	.nflags = RACE_NFLAGS,
	.max_words = RACE_WORDS,
	.examples = race_examples,
	.run = run_race,
};
