/* prune.c - `atoll prune`: deletes stopped boxes and their files. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PRUNE_YES, PRUNE_NO_INPUT, PRUNE_NFLAGS };

static const struct flag flags[PRUNE_NFLAGS] = {
	[PRUNE_YES] = { "yes", 'y', FLAG_SWITCH, NULL, "do not ask" },
	[PRUNE_NO_INPUT] = { "no-input", 0, FLAG_SWITCH, NULL, "never ask; fail without --yes" },
};

static int prune_collect(void *ctx, json_t *box)
{
	json_array_append(ctx, box);
	return 0;
}

static int prune_agreed(size_t n)
{
	char answer[16] = "";

	fprintf(stderr, "atoll: delete %zu stopped box%s and %s files? [y/N] ", n,
		n == 1 ? "" : "es", n == 1 ? "its" : "their");
	if (!fgets(answer, sizeof(answer), stdin))
		return 0;
	return !strcmp(answer, "y\n") || !strcmp(answer, "yes\n");
}

static int delete_each(struct api_client *r, const json_t *boxes, json_t *gone)
{
	size_t i;
	json_t *box;

	json_array_foreach(boxes, i, box)
	{
		auto_free char *path = api_client_path("/v1/boxes/%s", api_client_text(box, "id"));
		json_t *doc = api_client_json(r, "DELETE", path, NULL);

		if (!doc && r->http != 404) /* another client has deleted it */
			return r->status;
		json_decref(doc);
		json_array_append(gone, json_object_get(box, "id"));
		if (!r->cli->json && !r->cli->quiet)
			puts(api_client_text(box, "id"));
	}
	return 0;
}

static int prune_boxes(struct api_client *r, const struct args *a, const json_t *boxes)
{
	size_t n = json_array_size(boxes);
	json_t *gone = json_array();
	int status = 0;

	if (n && !args_has(a, PRUNE_YES) &&
	    (args_has(a, PRUNE_NO_INPUT) || !isatty(0) || !isatty(2))) {
		api_client_usage(r, "%zu stopped box%s would be deleted with all files", n,
				 n == 1 ? "" : "es");
		cli_error_hint(&r->error, "list", "atoll ls --state stopped");
		cli_error_hint(&r->error, "confirm", "atoll prune --yes");
		status = r->status;
	} else if (n && !args_has(a, PRUNE_YES) && !prune_agreed(n)) {
		status = STATUS_FAILED;
	} else {
		status = delete_each(r, boxes, gone);
	}
	if (!status && r->cli->json) {
		json_t *doc = json_pack("{s:O}", "deleted", gone);

		api_client_print(doc);
		json_decref(doc);
	}
	json_decref(gone);
	return status;
}

static int prune_prune(struct api_client *r, const struct args *a)
{
	json_t *boxes = json_array();
	int status = api_client_list(r, "/v1/boxes?state=stopped", prune_collect, boxes);

	if (!status)
		status = prune_boxes(r, a, boxes);
	json_decref(boxes);
	return status;
}

static int run_prune(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, prune_prune);
}

static const struct example examples[] = {
	{ "atoll prune", "delete stopped boxes, after asking" },
	{ "atoll prune --yes", "delete them without asking" },
	{ 0 },
};

const struct command command_prune = {
	.name = "prune",
	.group = "Boxes",
	.usage = "[--yes]",
	.summary = "delete stopped boxes and their files",
	.flags = flags,
	.nflags = PRUNE_NFLAGS,
	.examples = examples,
	.run = run_prune,
};
