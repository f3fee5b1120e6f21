/* volume.c - `atoll volume`: disks that exist longer than boxes. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VOLUME_SIZE, VOLUME_YES, VOLUME_NFLAGS };

static const struct flag flags[VOLUME_NFLAGS] = {
	[VOLUME_SIZE] = { "size", 0, FLAG_SIZE, "SIZE", "new: maximum size (1G)" },
	[VOLUME_YES] = { "yes", 'y', FLAG_SWITCH, NULL, "rm: do not ask" },
};

static void volume_row(struct table *t, json_t *v)
{
	char text[UNITS_TEXT];

	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", units_size(text, (uint64_t)api_client_int(v, "bytes", 0)));
	table_cell(t, "%s", api_client_text(v, "writer"));
	table_cell(t, "%lld", (long long)api_client_int(v, "readers", 0));
	table_cell(t, "%s", api_client_since(text, v, "created"));
}

static int volume_list(struct api_client *r)
{
	static const char *const columns[] = {
		"VOLUME", ">SIZE", "WRITER", ">READERS", ">AGE", NULL
	};

	return list_output_show(r, "/v1/volumes",
				&(struct list_output){ columns, "name", volume_row });
}

static int volume_make(struct api_client *r, const struct args *a)
{
	json_t *doc = json_pack("{s:o}", "name", json_string(a->words[1]));

	if (args_has(a, VOLUME_SIZE))
		json_object_set_new(doc, "bytes",
				    json_integer((json_int_t)args_value(a, VOLUME_SIZE, 0)));
	doc = api_client_json(r, "POST", "/v1/volumes", doc);
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		puts(api_client_text(doc, "name"));
	json_decref(doc);
	return 0;
}

/* Deleting a volume deletes its content, so it needs a confirmation. */
static int volume_agreed(struct api_client *r, const char *name)
{
	char answer[16] = "";

	if (!isatty(0) || !isatty(2)) {
		api_client_usage(r, "its content would be deleted");
		cli_error_hint(&r->error, "do it", "atoll volume rm --yes %s", name);
		return 0;
	}
	fprintf(stderr, "atoll: delete volume %s and all that is in it? [y/N] ", name);
	r->status = STATUS_FAILED;
	return fgets(answer, sizeof(answer), stdin) &&
	       (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
}

static int volume_drop(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/volumes/%s", a->words[1]);
	char shown[SHOWN];
	json_t *doc;

	if (!args_has(a, VOLUME_YES) && !volume_agreed(r, cli_error_shown(a->words[1], shown)))
		return r->status;
	doc = api_client_json(r, "DELETE", path, NULL);
	json_decref(doc);
	return doc ? 0 : r->status;
}

static int volume_volume(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return volume_list(r);
	if (!strcmp(what, "new") && a->nwords == 2)
		return volume_make(r, a);
	if (!strcmp(what, "rm") && a->nwords == 2)
		return volume_drop(r, a);
	api_client_usage(r, "volume: missing or unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll volume new NAME | ls | rm NAME");
	return r->status;
}

static int run_volume(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, volume_volume);
}

static const struct example examples[] = {
	{ "atoll volume new data --size 4G", "create a volume of 4 GiB" },
	{ "atoll new demo --volume data:/data", "create a box with this volume" },
	{ "atoll volume rm --yes data", "delete the volume and its files" },
	{ 0 },
};

const struct command command_volume = {
	.name = "volume",
	.group = "Boxes",
	.usage = "new NAME | ls | rm NAME",
	.summary = "manage disks that exist independently of boxes",
	.words = "new ls rm",
	.flags = flags,
	.nflags = VOLUME_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_volume,
};
