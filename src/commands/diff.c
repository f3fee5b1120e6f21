/* diff.c - `atoll diff`: lists files of a box that have changed since its start. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

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

static int diff_diff(struct api_client *r, const struct args *a)
{
	json_t *doc;

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
	{ 0 },
};

const struct command command_diff = {
	.name = "diff",
	.group = "Files",
	.usage = "BOX",
	.summary = "list the files that changed since the box was created",
	.max_words = 1,
	.examples = examples,
	.run = run_diff,
};
