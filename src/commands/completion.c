/* completion.c - `atoll completion`: prints completion scripts for shells, from the tables of
 * the commands. A script does not run atoll: names and flags are in it. */
#include "base/cleanup.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

static int completion_shown(const struct command *v)
{
	return v->group != NULL;
}

static int takes_value(const struct flag *f)
{
	return f->type != FLAG_SWITCH;
}

static unsigned count_flags(const struct command *v)
{
	return v->nflags + args_ncommon;
}

static const struct flag *flag_at(const struct command *v, unsigned i)
{
	return i < v->nflags ? &v->flags[i] : &args_common[i - v->nflags];
}

/* Text in single quotes for a shell; fish supports \' inside, in other shells the quotes are
 * closed and opened again. */
static void completion_quoted(const char *text, const char *quote)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs(quote, stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

/* ---- bash ---- */

static void bash_command(const struct command *v)
{
	printf("\t%s)\n\t\tflags='", v->name);
	for (unsigned i = 0; i < count_flags(v); i++) {
		const struct flag *f = flag_at(v, i);

		printf("%s--%s", i ? " " : "", f->name);
		if (f->letter)
			printf(" -%c", f->letter);
	}
	printf("'\n\t\tvalued='");
	for (unsigned i = 0; i < count_flags(v); i++) {
		const struct flag *f = flag_at(v, i);

		if (!takes_value(f))
			continue;
		printf(" --%s ", f->name);
		if (f->letter)
			printf("-%c ", f->letter);
	}
	printf("'\n\t\twords='%s' ;;\n", v->words ? v->words : "");
}

static void completion_bash(const struct command *const *commands)
{
	puts("# bash completion for atoll: source <(atoll completion bash)\n"
	     "_atoll() {\n"
	     "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
	     "\tlocal flags= valued= words=\n"
	     "\tCOMPREPLY=()");
	printf("\tlocal commands='");
	for (const struct command *const *v = commands; *v; v++)
		if (completion_shown(*v))
			printf("%s%s", v == commands ? "" : " ", (*v)->name);
	puts("'\n"
	     "\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase $command in");
	for (; *commands; commands++)
		if (completion_shown(*commands))
			bash_command(*commands);
	puts("\tesac\n"
	     "\t[ \"$command\" = help ] && words=$commands\n"
	     "\t[ \"$COMP_CWORD\" = 2 ] || words=\n"
	     "\tcase \" $valued \" in\n"
	     "\t*\" $before \"*) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n"
	     "\tesac\n"
	     "\tif [[ $word == -* ]]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
	     "\telif [ \"$words\" ]; then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
	     "\telse\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
	     "\tfi\n"
	     "}\n"
	     "complete -o filenames -F _atoll atoll");
}

/* ---- zsh ---- */

/* In a specification of _arguments, brackets and colons have a meaning. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_flag(const struct flag *f, const char *spelling, int repeated)
{
	printf(" \\\n\t\t\t'%s%s[", repeated ? "*" : "", spelling);
	zsh_text(f->help);
	putchar(']');
	if (takes_value(f)) {
		putchar(':');
		zsh_text(f->metavar);
		fputs(":_files", stdout);
	}
	putchar('\'');
}

static void zsh_command(const struct command *v)
{
	printf("\t\t%s)\n\t\t_arguments", v->name);
	for (unsigned i = 0; i < count_flags(v); i++) {
		const struct flag *f = flag_at(v, i);
		int repeated = f->type == FLAG_ENV || f->type == FLAG_WORDS;
		char spelling[64];

		snprintf(spelling, sizeof(spelling), "--%s", f->name);
		zsh_flag(f, spelling, repeated);
		if (f->letter) {
			snprintf(spelling, sizeof(spelling), "-%c", f->letter);
			zsh_flag(f, spelling, repeated);
		}
	}
	if (v->words)
		printf(" \\\n\t\t\t'1:word:(%s)'", v->words);
	else if (!strcmp(v->name, "help"))
		printf(" \\\n\t\t\t'1:command:_atoll_commands'");
	if (v->own_words || v->max_words)
		printf(" \\\n\t\t\t'*:file:_files'");
	puts(" ;;");
}

static void completion_zsh(const struct command *const *commands)
{
	puts("#compdef atoll\n"
	     "# zsh completion for atoll: atoll completion zsh > \"${fpath[1]}/_atoll\"\n"
	     "_atoll_commands() {\n"
	     "\tlocal -a commands=(");
	for (const struct command *const *v = commands; *v; v++) {
		if (!completion_shown(*v))
			continue;
		printf("\t\t'%s:", (*v)->name);
		zsh_text((*v)->summary);
		puts("'");
	}
	puts("\t)\n"
	     "\t_describe command commands\n"
	     "}\n"
	     "_atoll() {\n"
	     "\tif (( CURRENT == 2 )); then\n"
	     "\t\t_atoll_commands\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tlocal command=$words[2]\n"
	     "\twords=(\"${(@)words[2,-1]}\")\n"
	     "\t(( CURRENT-- ))\n"
	     "\tcase $command in");
	for (; *commands; commands++)
		if (completion_shown(*commands))
			zsh_command(*commands);
	puts("\tesac\n"
	     "}\n"
	     "[ \"$funcstack[1]\" = _atoll ] && _atoll \"$@\" || compdef _atoll atoll");
}

/* ---- fish ---- */

static void fish_command(const struct command *v)
{
	printf("complete -c atoll -f -n __fish_use_subcommand -a %s -d ", v->name);
	completion_quoted(v->summary, "\\'");
	putchar('\n');
	for (unsigned i = 0; i < count_flags(v); i++) {
		const struct flag *f = flag_at(v, i);

		printf("complete -c atoll -n '__fish_seen_subcommand_from %s' -l %s", v->name,
		       f->name);
		if (f->letter)
			printf(" -s %c", f->letter);
		printf("%s -d ", takes_value(f) ? " -r" : "");
		completion_quoted(f->help, "\\'");
		putchar('\n');
	}
	if (v->words)
		printf("complete -c atoll -f -n '__fish_seen_subcommand_from %s' -a '%s'\n",
		       v->name, v->words);
}

static void completion_fish(const struct command *const *commands)
{
	puts("# fish completion for atoll: atoll completion fish | source");
	for (; *commands; commands++)
		if (completion_shown(*commands))
			fish_command(*commands);
}

static const struct shell {
	/* clang-format off */
	const char *name;
	void (*print)(const struct command *const *commands);
} shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh }, { "fish", completion_fish } };

static int completion_completion(const struct cli *cli, const struct args *a)
{
	char seen[SHOWN];
	struct cli_error t;

	for (unsigned i = 0; a->nwords && i < ARRAY_LEN(shells); i++) {
		if (!strcmp(shells[i].name, a->words[0])) {
			shells[i].print(cli->commands);
			return 0;
		}
	}
	if (a->nwords)
		cli_error_what(&t, "usage", "completion: '%s' is not one of bash, zsh, fish",
			     cli_error_shown(a->words[0], seen));
	else
		cli_error_what(&t, "usage", "completion: missing shell: bash, zsh or fish");
	cli_error_hint(&t, "type", "source <(atoll completion bash)");
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static const struct example examples[] = {
	{ "source <(atoll completion bash)", "for this shell, or in ~/.bashrc" },
	{ "atoll completion fish | source", "for fish" },
	{ 0 },
	/* clang-format on */
};

const struct command command_completion = {
	.name = "completion",
	.group = "Machine",
	.usage = "bash | zsh | fish",
	.summary = "print a script that completes commands and flags",
	.words = "bash zsh fish",
	.max_words = 1,
	.examples = examples,
	.run = completion_completion,
};
