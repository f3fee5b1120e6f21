/* lang.c - `atoll lang`: lists the supported languages, and which of them this machine has. */
#include "base/cleanup.h"
#include "cli/runtime.h"
#include "cli/table.h"
#include "commands/commands.h"
#include "cli/versions.h"
#include "lang/lang_json.h"

#include <stdio.h>
#include <string.h>

enum { LANG_HELLO, LANG_SELFTEST, LANG_NFLAGS };

static const struct flag flags[LANG_NFLAGS] = {
	[LANG_HELLO] = { "hello", 0, FLAG_SWITCH, NULL, "print an example program" },
	[LANG_SELFTEST] = { "selftest", 0, FLAG_SWITCH, NULL, "print a program that prints ok" },
};

static const char *version_at(void *ctx, unsigned i)
{
	const struct versions *v = ctx;

	return v->text[i];
}

static void say_json(json_t *take_doc)
{
	json_dumpf(take_doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(take_doc);
}

static void lang_do_words(struct buf *out, const char *const *all)
{
	for (; *all; all++)
		buf_printf(out, "%s%s", out->len ? " " : "", *all);
}

/* ---- all of them ---- */

static void lang_row(struct table *t, const struct lang *l, const char *version)
{
	auto_buf struct buf names = { 0 }, endings = { 0 }, more = { 0 };

	lang_do_words(&names, l->aliases);
	lang_do_words(&endings, l->endings);
	for (const struct lang_extra *x = l->extras; x->name; x++)
		if (access(x->file, F_OK) == 0)
			buf_printf(&more, "%s%s", more.len ? " " : "", x->name);
	table_cell(t, "%s", l->name);
	table_cell(t, "%s", !lang_present(l) ? "-" : *version ? version : "?");
	table_cell(t, "%s", buf_str(&endings));
	table_cell(t, "%s", names.len ? buf_str(&names) : "-");
	table_cell(t, "%s", more.len ? buf_str(&more) : "-");
}

/* Further languages of `atoll repl` and contexts. */
static void list_kernels(void)
{
	static const char *const names[] = { "KERNEL", "LANGUAGE", "TITLE", NULL };
	json_t *all = lang_json_kernels(), *k;
	struct table t;
	size_t i;

	table_init(&t, names);
	json_array_foreach(all, i, k)
	{
		const char *language = json_string_value(json_object_get(k, "language")),
			   *title = json_string_value(json_object_get(k, "title"));

		table_cell(&t, "%s", json_string_value(json_object_get(k, "name")));
		table_cell(&t, "%s", *language ? language : "-");
		table_cell(&t, "%s", *title ? title : "-");
	}
	if (json_array_size(all))
		putchar('\n');
	table_print(&t, json_array_size(all) > 0);
	json_decref(all);
}

static int lang_do_list(const struct cli *cli)
{
	static const char *const names[] = { "LANGUAGE", "VERSION", "FILES", "ALSO", "WITH", NULL };
	auto_buf struct buf install = { 0 };
	struct versions v;
	struct table t;

	versions_ask(&v, NULL);
	if (cli->json) {
		say_json(lang_json_all(version_at, &v, lang_json_kernels()));
		return 0;
	}
	table_init(&t, names);
	for (unsigned i = 0; i < lang_count(); i++)
		if (!cli->quiet)
			lang_row(&t, lang_at(i), v.text[i]);
		else if (lang_present(lang_at(i)))
			puts(lang_at(i)->name);
	table_print(&t, 1);
	if (!cli->quiet)
		list_kernels();
	lang_json_install(&install);
	if (cli->quiet)
		return 0;
	if (install.len)
		printf("\nto install the rest: %s\n", buf_str(&install));
	for (unsigned i = 0; i < lang_count(); i++)
		if (!lang_present(lang_at(i)) && !lang_at(i)->apt[0])
			printf("%s: %s\n", lang_at(i)->name, lang_at(i)->how);
	return 0;
}

/* ---- one ---- */

static void lang_line(const char *what, const char *const *all)
{
	auto_buf struct buf text = { 0 };

	lang_do_words(&text, all);
	if (text.len)
		printf("%-10s %s\n", what, buf_str(&text));
}

static int lang_show(const struct cli *cli, const struct lang *l)
{
	auto_buf struct buf install = { 0 };
	struct versions v;

	versions_ask(&v, l);
	if (cli->json) {
		say_json(lang_json_lang(l, versions_of(&v, l)));
		return 0;
	}
	lang_install(l, &install);
	printf("%-10s %s\n", l->name, l->title);
	if (lang_present(l))
		printf("%-10s %s\n", "version", versions_of(&v, l));
	else
		printf("%-10s %s\n", "not here", buf_str(&install));
	lang_line("also", l->aliases);
	lang_line("files", l->endings);
	for (const struct lang_list *c = l->compilers; c->key; c++)
		printf("%-10s %s%s\n", "compiler", c->key,
		       access(c->values[0], X_OK) == 0 ? "" : " (not here)");
	for (const struct lang_extra *x = l->extras; x->name; x++)
		if (access(x->file, F_OK) == 0)
			printf("%-10s %s\n", "with", x->name);
		else
			printf("%-10s %s (not here: sudo apt-get install %s)\n", "with", x->name,
			       x->apt);
	if (l->packages.manager)
		printf("%-10s %s\n", "packages", l->packages.manager);
	return 0;
}

static int lang_lang(const struct cli *cli, const struct args *a)
{
	const struct lang *l = a->nwords ? lang_named(a->words[0]) : NULL;
	struct cli_error t;

	if (a->nwords && !l)
		return runtime_unknown(a->words[0], &t),
		       cli_error_print(&t, cli->json, STATUS_USAGE);
	if (!l && (args_has(a, LANG_HELLO) || args_has(a, LANG_SELFTEST))) {
		cli_error_what(&t, "usage", "lang: missing language");
		cli_error_hint(&t, "type", "atoll lang python --hello");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (args_has(a, LANG_HELLO) || args_has(a, LANG_SELFTEST)) {
		fputs(args_has(a, LANG_HELLO) ? l->hello : l->selftest, stdout);
		return 0;
	}
	return l ? lang_show(cli, l) : lang_do_list(cli);
}

static const struct example examples[] = {
	{ "atoll lang", "list languages, versions, and how to install the others" },
	{ "atoll lang rust", "print details of one language" },
	{ "atoll lang go --hello | atoll run -t go -", "run the example program" },
	{ 0 },
};

const struct command command_lang = {
	.name = "lang",
	.group = "Machine",
	.usage = "[NAME]",
	.summary = "list languages and their installed versions",
	.flags = flags,
	.nflags = LANG_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = lang_lang,
};
