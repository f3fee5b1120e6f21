/* link.c - `atoll link`: names under which a box reaches other boxes of its team. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { LINK_UNSET, LINK_NFLAGS };

static const struct flag flags[LINK_NFLAGS] = {
	[LINK_UNSET] = { "unset", 'u', FLAG_WORDS, "NAME", "remove this link; may be repeated" },
};

static int link_check(struct api_client *r, const struct args *a)
{
	char shown[SHOWN];

	for (unsigned i = 1; i < a->nwords; i++) {
		const char *is = strchr(a->words[i], '=');

		if (is && is != a->words[i] && is[1])
			continue;
		api_client_usage(r, "'%s' is not NAME=BOX", cli_error_shown(a->words[i], shown));
		cli_error_hint(&r->error, "remove one", "atoll link BOX --unset NAME");
		return r->status;
	}
	return 0;
}

static void link_change(json_t *links, const struct args *a)
{
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == LINK_UNSET)
			json_object_del(links, a->given[i].text);
	for (unsigned i = 1; i < a->nwords; i++) {
		const char *is = strchr(a->words[i], '=');
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)(is - a->words[i]), a->words[i]);
		json_object_set_new(links, name, json_string(is + 1));
	}
}

static void link_print(const json_t *links)
{
	const char *name;
	json_t *box;

	json_object_foreach((json_t *)links, name, box)
		printf("%s=%s\n", name, json_string_value(box));
}

static int link_box(struct api_client *r, const struct args *a)
{
	int changes = a->nwords > 1 || args_has(a, LINK_UNSET);
	auto_free char *path = NULL;
	json_t *box, *links;

	if (!a->nwords) {
		api_client_usage(r, "link: missing box");
		cli_error_hint(&r->error, "type", "atoll link BOX [NAME=OTHER...]");
		return r->status;
	}
	if (link_check(r, a))
		return r->status;
	path = api_client_path("/v1/boxes/%s", a->words[0]);
	box = api_client_json(r, "GET", path, NULL);
	if (box && changes) {
		links = json_deep_copy(json_object_get(json_object_get(box, "network"), "links"));
		links = links ? links : json_object();
		link_change(links, a);
		json_decref(box);
		box = api_client_json(r, "PATCH", path,
				      json_pack("{s:{s:o}}", "network", "links", links));
	}
	if (!box) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	links = json_object_get(json_object_get(box, "network"), "links");
	if (r->cli->json)
		api_client_print(links);
	else if (!changes)
		link_print(links);
	json_decref(box);
	return 0;
}

static int run_link(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, link_box);
}

static const struct example examples[] = {
	{ "atoll link shop db=shop-db", "programs of shop reach shop-db as db" },
	{ "atoll link shop", "print the links of a box" },
	{ "atoll link shop --unset db", "remove a link" },
	{ 0 },
};

const struct command command_link = {
	.name = "link",
	.group = "Boxes",
	.usage = "BOX [NAME=OTHER...]",
	.summary = "let a box reach another box under a name",
	.notes =
		"Both boxes belong to one team. Every TCP port of the other box can be reached, also one that\n"
		"listens on 127.0.0.1 only. Links need egress.links of the daemon's settings.",
	.flags = flags,
	.nflags = LINK_NFLAGS,
	.max_words = 33,
	.examples = examples,
	.run = run_link,
};
