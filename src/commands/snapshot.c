/* snapshot.c - `atoll snapshot`: stores the files of a box, for new boxes to start with. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void snapshot_row(struct table *t, json_t *v)
{
	const char *tag = api_client_text(v, "tag");
	char text[UNITS_TEXT];

	table_cell(t, "%s", api_client_text(v, "id"));
	table_cell(t, "%s%s%s", api_client_text(v, "name"), *tag ? ":" : "", tag);
	table_cell(t, "%s", api_client_text(v, "box"));
	table_cell(t, "%s", units_size(text, (uint64_t)api_client_int(v, "bytes", 0)));
	table_cell(t, "%s", api_client_since(text, v, "created"));
}

static int snapshot_list(struct api_client *r)
{
	static const char *const columns[] = { "SNAPSHOT", "NAME", "BOX", ">SIZE", ">AGE", NULL };

	return list_output_show(r, "/v1/snapshots",
				&(struct list_output){ columns, "id", snapshot_row });
}

static int snapshot_do_take(struct api_client *r, const struct args *a)
{
	json_t *doc = json_pack("{s:o}", "box", json_string(a->words[1]));

	if (a->nwords == 3)
		json_object_set_new(doc, "name", json_string(a->words[2]));
	doc = api_client_json(r, "POST", "/v1/snapshots", doc);
	if (!doc) {
		api_client_explain_box(r, a->words[1]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else
		puts(api_client_text(doc, "id"));
	json_decref(doc);
	return 0;
}

static int snapshot_drop(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/snapshots/%s", a->words[1]);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int snapshot_snapshot(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return snapshot_list(r);
	if (!strcmp(what, "new") && a->nwords >= 2)
		return snapshot_do_take(r, a);
	if (!strcmp(what, "rm") && a->nwords == 2)
		return snapshot_drop(r, a);
	api_client_usage(r, "snapshot: missing or unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll snapshot new BOX [NAME] | ls | rm SNAPSHOT");
	return r->status;
}

static int run_snapshot(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, snapshot_snapshot);
}

static const struct example examples[] = {
	{ "atoll snapshot new demo ready", "save the files of demo under a name" },
	{ "atoll new other --snapshot ready", "create a box that starts with these files" },
	{ "atoll snapshot rm ready", "delete the snapshot; boxes stay" },
	{ 0 },
};

const struct command command_snapshot = {
	.name = "snapshot",
	.group = "Boxes",
	.usage = "new BOX [NAME] | ls | rm SNAPSHOT",
	.summary = "save a box's files as a base for new boxes",
	.words = "new ls rm",
	.max_words = 3,
	.examples = examples,
	.run = run_snapshot,
};
