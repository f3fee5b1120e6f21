/* rename.c - `atoll rename`: another name for a box. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "cli/verbs.h"

#include <stdio.h>

static int change(struct remote *r, const struct args *a)
{
	auto_free char *path = NULL;
	json_t *box;

	if (a->nwords != 2) {
		remote_usage(r, "rename which box, and to what?");
		trouble_hint(&r->trouble, "type", "atoll rename BOX NAME");
		return r->status;
	}
	path = remote_path("/v1/boxes/%s", a->words[0]);
	box = remote_json(r, "PATCH", path, json_pack("{s:o}", "name", json_string(a->words[1])));
	if (!box) {
		remote_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		remote_print(box);
	json_decref(box);
	return 0;
}

static int run_rename(const struct cli *cli, const struct args *a)
{
	return remote_verb(cli, a, change);
}

static const struct example examples[] = {
	{ "atoll rename demo trial-2", "demo is trial-2 from now on" },
	{ 0 },
};

const struct verb verb_rename = {
	.name = "rename",
	.group = "Boxes",
	.usage = "BOX NAME",
	.summary = "give a box another name",
	.max_words = 2,
	.examples = examples,
	.run = run_rename,
};
