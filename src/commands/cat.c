/* cat.c - `atoll cat`: the content of a file in a box. */
#include "base/cleanup.h"
#include "cli/box_path.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

static int cat_print(struct api_client *r, const struct args *a)
{
	struct api_client_bytes x = { .method = "GET", .from = -1, .to = 1 };
	auto_free char *path = NULL;
	struct box_path p;

	if (box_path_words(r, a, &p))
		return r->status;
	x.path = path = box_path_content(r, &p);
	if (!path || api_client_bytes(r, &x) == 0)
		return r->status;
	if (!box_path_of_checkpoint(&p))
		api_client_explain_box(r, p.box);
	return r->status;
}

static int run_cat(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, cat_print);
}

static const struct example examples[] = {
	{ "atoll cat demo result.json", "relative paths are below /home/user" },
	{ "atoll cat demo@good:result.json", "as it was at the checkpoint good" },
	{ 0 },
};

const struct command command_cat = {
	.name = "cat",
	.group = "Files",
	.usage = "BOX[@CHECKPOINT] PATH",
	.summary = "print a file of a box",
	.max_words = 2,
	.examples = examples,
	.run = run_cat,
};
