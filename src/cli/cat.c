/* cat.c - `atoll cat`: the content of a file in a box. */
#include "base/own.h"
#include "cli/place.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* "cat BOX PATH", and "cat BOX:PATH" as cp spells it. */
static int where(struct remote *r, const struct args *a, struct place *out)
{
	if (a->nwords == 1)
		place_parse(out, a->words[0]);
	if (a->nwords == 1 && out->box[0])
		return 0;
	if (a->nwords == 2 && strlen(a->words[0]) < sizeof(out->box)) {
		snprintf(out->box, sizeof(out->box), "%s", a->words[0]);
		out->path = a->words[1];
		return 0;
	}
	remote_usage(r, "cat which file of which box?");
	trouble_hint(&r->trouble, "type", "atoll cat BOX PATH");
	return r->status;
}

static int print(struct remote *r, const struct args *a)
{
	struct remote_bytes x = { .method = "GET", .from = -1, .to = 1 };
	auto_free char *path = NULL;
	struct place p;

	if (where(r, a, &p))
		return r->status;
	x.path = path = remote_path("/v1/boxes/%s/files?path=%s", p.box, p.path);
	if (remote_bytes(r, &x) == 0)
		return 0;
	remote_explain_box(r, p.box);
	return r->status;
}

static int run_cat(const struct cli *cli, const struct args *a)
{
	return remote_verb(cli, a, print);
}

static const struct example examples[] = {
	{ "atoll cat demo result.json", "relative paths are below /home/user" },
	{ 0 },
};

const struct verb verb_cat = {
	.name = "cat",
	.group = "Files",
	.usage = "BOX PATH",
	.summary = "print a file of a box",
	.max_words = 2,
	.examples = examples,
	.run = run_cat,
};
