/* help.c - `atoll help`, and see help.h. */
#include "commands/help.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COMMANDS = 64 };

const struct command *help_find(const struct command *const *commands, const char *name)
{
	for (; *commands; commands++)
		if (!strcmp((*commands)->name, name))
			return *commands;
	return NULL;
}

int help_unknown(const struct command *const *commands, const char *typed, int json)
{
	const char *names[MOST_COMMANDS + 1] = { 0 }, *close;
	char shown[SHOWN];
	struct cli_error t;
	unsigned n = 0;

	for (; *commands; commands++)
		if ((*commands)->group && n < MOST_COMMANDS)
			names[n++] = (*commands)->name;
	cli_error_what(&t, "usage", "no command named '%s'", cli_error_shown(typed, shown));
	close = suggest_nearest(typed, names);
	if (close)
		cli_error_hint(&t, "close", "atoll %s", close);
	cli_error_hint(&t, "list", "atoll help");
	return cli_error_print(&t, json, STATUS_USAGE);
}

static void say_beginning(void)
{
	puts("atoll - run code in sandboxes on your own machine\n\n"
	     "  atoll run hello.py              run a local file in a new box, then delete the box\n"
	     "  atoll shell                     open an interactive shell in a new box\n"
	     "  atoll run -w . -- make test     run a command in a copy of this folder\n"
	     "  atoll new demo                  create a box that stays; then: atoll exec demo -- CMD");
}

void help_overview(const struct command *const *commands)
{
	const char *group = "";

	say_beginning();
	for (; *commands; commands++) {
		if (!(*commands)->group)
			continue;
		if (strcmp(group, (*commands)->group) != 0)
			printf("\n%-9s", (*commands)->group);
		group = (*commands)->group;
		printf("  %s", (*commands)->name);
	}
	puts("\nGlobal     -H/--host URL  --json  -q/--quiet  -v/--verbose  --color WHEN  -h/--help\n\n"
	     "atoll help describes every command; atoll COMMAND -h lists the flags of a command;\n"
	     "atoll help COMMAND explains it.");
}

static void list_all(const struct command *const *commands)
{
	const char *group = "";

	say_beginning();
	for (; *commands; commands++) {
		if (!(*commands)->group)
			continue;
		if (strcmp(group, (*commands)->group) != 0)
			printf("\n%s\n", (*commands)->group);
		group = (*commands)->group;
		printf("  %-10s %s\n", (*commands)->name, (*commands)->summary);
	}
	puts("\natoll COMMAND -h lists the flags of a command; atoll help COMMAND explains it.");
}

static void print_flag(const struct flag *f)
{
	char left[64], letter[8] = "    ";

	if (f->letter)
		snprintf(letter, sizeof(letter), "-%c, ", f->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, f->name, f->metavar ? " " : "",
		 f->metavar ? f->metavar : "");
	printf("  %-24s %s\n", left, f->help);
}

void help_command(const struct command *v, int whole)
{
	printf("atoll %s%s%s\n  %s\n", v->name, *v->usage ? " " : "", v->usage, v->summary);
	if (whole && v->notes)
		printf("\n%s\n", v->notes);
	if (v->nflags)
		puts("\nFlags");
	for (unsigned i = 0; i < v->nflags; i++)
		print_flag(&v->flags[i]);
	puts("\nFlags of every command");
	for (unsigned i = 0; i < args_ncommon; i++)
		print_flag(&args_common[i]);
	if (v->examples)
		puts("\nExamples");
	for (const struct example *x = v->examples; x && x->line; x++)
		printf("  %-50s %s\n", x->line, x->what);
}

static int help_help(const struct cli *cli, const struct args *a)
{
	const struct command *v;

	if (!a->nwords) {
		list_all(cli->commands);
		return 0;
	}
	v = help_find(cli->commands, a->words[0]);
	if (!v)
		return help_unknown(cli->commands, a->words[0], cli->json);
	help_command(v, 1);
	return 0;
}

const struct command command_help = {
	.name = "help",
	.group = "Machine",
	.usage = "[COMMAND]",
	.summary = "list all commands, or explain one",
	.max_words = 1,
	.run = help_help,
};
