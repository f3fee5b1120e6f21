/* rm.c - `atoll rm`: ends boxes of the daemon and deletes their files. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>

static int rm_drop(struct api_client *r, const char *box)
{
	auto_free char *path = api_client_path("/v1/boxes/%s", box);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	if (!doc) {
		api_client_explain_box(r, box);
		return r->status;
	}
	json_decref(doc);
	if (r->cli->json) {
		json_t *gone = json_pack("{s:o, s:s}", "box", json_string(box), "state", "deleted");

		api_client_print(gone);
		json_decref(gone);
	} else if (!r->cli->quiet) {
		puts(box);
	}
	return 0;
}

static int drop_all(struct api_client *r, const struct args *a)
{
	int status = 0;

	if (!a->nwords) {
		api_client_usage(r, "rm: missing box");
		cli_error_hint(&r->error, "list", "atoll ls");
		return r->status;
	}
	/* A missing file does not prevent the removal of the others. */
	for (unsigned i = 0; i < a->nwords; i++) {
		int one = rm_drop(r, a->words[i]);

		if (one)
			cli_error_print(&r->error, r->cli->json, status = one);
	}
	r->error.what[0] = 0; /* all errors were printed */
	return status;
}

static int run_rm(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, drop_all);
}

static const struct example examples[] = {
	{ "atoll rm demo", "delete a box; returns when no part of it is left" },
	{ "atoll ls -q | xargs atoll rm", "delete all boxes" },
	{ 0 },
};

const struct command command_rm = {
	.name = "rm",
	.group = "Boxes",
	.usage = "BOX...",
	.summary = "delete boxes and their files",
	.max_words = 10000,
	.examples = examples,
	.run = run_rm,
};
