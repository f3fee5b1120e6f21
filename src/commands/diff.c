/* diff.c - `atoll diff`: lists files of a box that have changed since its start, or since a checkpoint. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { DIFF_TEXT, DIFF_NFLAGS };
static const struct flag flags[DIFF_NFLAGS] = {
	[DIFF_TEXT] = { "text", 0, FLAG_SWITCH, NULL,
			"between checkpoints: the texts of changed files, as a patch" },
};

static void diff_print(const struct cli *cli, const json_t *items)
{
	static const char *const columns[] = { "", ">SIZE", "PATH", NULL };
	struct table t;
	size_t i;
	json_t *v;

	table_init(&t, columns);
	json_array_foreach(items, i, v)
	{
		char size[UNITS_TEXT];
		const char *kind = api_client_text(v, "kind");
		int gone = !strcmp(kind, "deleted");

		if (cli->quiet) {
			puts(api_client_text(v, "path"));
			continue;
		}
		table_cell(&t, "%s", gone ? "D" : !strcmp(kind, "added") ? "A" : "M");
		table_cell(&t, "%s",
			   gone ? "-" : units_size(size, (uint64_t)api_client_int(v, "size", 0)));
		table_cell(&t, "%s", api_client_text(v, "path"));
	}
	table_print(&t, 0);
}

static void diff_print_change(const struct cli *cli, const json_t *v)
{
	static const struct {
		const char *change, *letter;
	} letters[] = { { "added", "A" }, { "deleted", "D" }, { "changed", "M" },
			{ "mode", "m" },  { "type", "T" },    { "renamed", "R" } };
	const char *change = api_client_text(v, "change"), *letter = "?";
	const char *was = api_client_text(v, "was");

	for (unsigned i = 0; i < ARRAY_LEN(letters); i++)
		if (!strcmp(letters[i].change, change))
			letter = letters[i].letter;
	if (cli->quiet)
		puts(api_client_text(v, "path"));
	else
		printf("%s %s%s%s\n", letter, was, *was ? " -> " : "", api_client_text(v, "path"));
}

/* As patch(1) reads it. */
static void diff_print_text(const json_t *v)
{
	const char *path = api_client_text(v, "path"), *change = api_client_text(v, "change");
	const char *text = json_string_value(json_object_get(v, "text"));
	const char *omitted = api_client_text(v, "text_omitted");

	if (*omitted)
		printf("%s has no text here: %s\n", path, omitted);
	if (!text || !*text)
		return;
	printf("--- %s%s\n", strcmp(change, "added") ? "a" : "/dev/null",
	       strcmp(change, "added") ? path : "");
	printf("+++ %s%s\n%s", strcmp(change, "deleted") ? "b" : "/dev/null",
	       strcmp(change, "deleted") ? path : "", text);
}

static void diff_print_items(const struct cli *cli, const json_t *items, int texts)
{
	const json_t *one;
	size_t i;

	json_array_foreach(items, i, one)
	{
		if (texts)
			diff_print_text(one);
		else
			diff_print_change(cli, one);
	}
}

/* BOX A [B]: names are those of the box. */
static int diff_checkpoints(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/checkpoints?limit=1000", a->words[0]);
	json_t *all = api_client_json(r, "GET", path, NULL), *doc, *one;
	const char *ids[2] = { a->words[1], a->nwords > 2 ? a->words[2] : "now" };
	long long more;
	size_t i;

	if (!all) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	for (unsigned k = 0; k < ARRAY_LEN(ids); k++)
		json_array_foreach(json_object_get(all, "items"), i,
				   one) if (!strcmp(api_client_text(one, "name"), ids[k])) ids[k] =
			api_client_text(one, "id");
	free(path);
	path = api_client_path(args_has(a, DIFF_TEXT)
				       ? "/v1/checkpoints/%s/diff?limit=10000&content=1&to=%s"
				       : "/v1/checkpoints/%s/diff?limit=10000&to=%s",
			       ids[0], ids[1]);
	doc = api_client_json(r, "GET", path, NULL);
	json_decref(all);
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		diff_print_items(r->cli, json_object_get(doc, "items"), args_has(a, DIFF_TEXT));
	more = (long long)api_client_int(doc, "left_out", 0);
	if (more && !r->cli->json)
		fprintf(stderr, "atoll: there are %lld more\n", more);
	json_decref(doc);
	return 0;
}

static int diff_diff(struct api_client *r, const struct args *a)
{
	json_t *doc;

	if (a->nwords > 1)
		return diff_checkpoints(r, a);
	if (args_has(a, DIFF_TEXT)) {
		api_client_usage(r, "diff: --text needs a checkpoint");
		cli_error_hint(&r->error, "checkpoints of the box", "atoll checkpoints BOX");
		return r->status;
	}
	if (!a->nwords) {
		api_client_usage(r, "diff: missing box");
		cli_error_hint(&r->error, "list", "atoll ls");
		return r->status;
	}
	doc = api_client_get(r, "/v1/boxes/%s/changes?limit=10000", a->words[0]);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else
		diff_print(r->cli, json_object_get(doc, "items"));
	if (json_is_true(json_object_get(doc, "truncated")) && !r->cli->json)
		fputs("atoll: there are more\n", stderr);
	json_decref(doc);
	return 0;
}

static int run_diff(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, diff_diff);
}

static const struct example examples[] = {
	{ "atoll diff demo", "M: created or modified, D: deleted" },
	{ "atoll diff demo good",
	  "what has changed since the checkpoint good: A, D, M, R: renamed, T: type, m: mode" },
	{ "atoll diff demo good better", "what differs between two checkpoints" },
	{ "atoll diff demo good --text", "the texts of the files, as a patch" },
	{ 0 },
};

const struct command command_diff = {
	.name = "diff",
	.group = "Files",
	.usage = "BOX [CHECKPOINT [CHECKPOINT]]",
	.summary = "list the files that changed since the box was created, or since a checkpoint",
	.flags = flags,
	.nflags = DIFF_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_diff,
};
