/* rename.c - `atoll rename`: changes the name of a box. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>

static int rename_change(struct api_client *r, const struct args *a)
{
	auto_free char *path = NULL;
	json_t *box;

	if (a->nwords != 2) {
		api_client_usage(r, "rename: missing box or new name");
		cli_error_hint(&r->error, "type", "atoll rename BOX NAME");
		return r->status;
	}
	path = api_client_path("/v1/boxes/%s", a->words[0]);
	box = api_client_json(r, "PATCH", path,
			      json_pack("{s:o}", "name", json_string(a->words[1])));
	if (!box) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(box);
	json_decref(box);
	return 0;
}

static int run_rename(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, rename_change);
}

static const struct example examples[] = {
	{ "atoll rename demo trial-2", "rename demo to trial-2" },
	{ 0 },
};

const struct command command_rename = {
	.name = "rename",
	.group = "Boxes",
	.usage = "BOX NAME",
	.summary = "change the name of a box",
	.max_words = 2,
	.examples = examples,
	.run = run_rename,
};
