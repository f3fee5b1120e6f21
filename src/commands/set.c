/* set.c - `atoll set`: changes limits and times of a box while it runs. */
#include "base/cleanup.h"
#include "cli/fields.h"
#include "cli/options.h"
#include "commands/commands.h"

#include <stdio.h>

enum {
	SET_MEM,
	SET_CPU,
	SET_PIDS,
	SET_LIFETIME,
	SET_IDLE,
	SET_ON_TIMEOUT,
	SET_KEEP,
	SET_CHECKPOINTS,
	SET_META,
	SET_NFLAGS,
};

static const struct flag flags[SET_NFLAGS] = {
	[SET_MEM] = OPTION_MEM,
	[SET_CPU] = OPTION_CPU,
	[SET_PIDS] = OPTION_PIDS,
	[SET_LIFETIME] = FIELD_FLAG_LIFETIME("time from now until the box times out"),
	[SET_IDLE] = FIELD_FLAG_IDLE,
	[SET_ON_TIMEOUT] = FIELD_FLAG_ON_TIMEOUT,
	[SET_KEEP] = FIELD_FLAG_KEEP,
	[SET_CHECKPOINTS] = FIELD_FLAG_CHECKPOINTS,
	[SET_META] = { "meta", 0, FLAG_WORDS, "KEY=VALUE",
		       "replace all metadata; may be repeated" },
};

static int set_describe(struct api_client *r, json_t *doc, const struct args *a)
{
	json_t *limits = json_object();

	fields_number(limits, a, SET_MEM, "mem");
	fields_number(limits, a, SET_CPU, "cpu_milli");
	fields_number(limits, a, SET_PIDS, "pids");
	if (json_object_size(limits))
		json_object_set(doc, "limits", limits);
	json_decref(limits);
	fields_number(doc, a, SET_LIFETIME, "lifetime_ms");
	fields_number(doc, a, SET_IDLE, "idle_ms");
	if (fields_on_timeout(r, doc, a, SET_ON_TIMEOUT) ||
	    fields_checkpoints(r, doc, a, SET_CHECKPOINTS) ||
	    fields_pairs(r, doc, a, SET_META, "metadata"))
		return r->status;
	return fields_keep(r, doc, a, SET_KEEP, SET_ON_TIMEOUT);
}

static void set_report(const struct cli *cli, const json_t *box, const char *name)
{
	char ends[24];

	if (cli->json)
		api_client_print(box);
	else if (!cli->quiet && json_is_string(json_object_get(box, "ends")))
		printf("%s ends in %s\n", name, api_client_until(ends, box, "ends"));
}

static int set_box(struct api_client *r, const struct args *a)
{
	auto_free char *path = NULL;
	json_t *doc = json_object();

	if (!a->nwords || (set_describe(r, doc, a) == 0 && !json_object_size(doc))) {
		json_decref(doc);
		api_client_usage(r, a->nwords ? "set: no property given" : "set: missing box");
		cli_error_hint(&r->error, "type", "atoll set BOX --lifetime 1h --mem 1G");
		cli_error_hint(&r->error, "flags", "atoll set -h");
		return r->status;
	}
	if (r->status) {
		json_decref(doc);
		return r->status;
	}
	path = api_client_path("/v1/boxes/%s", a->words[0]);
	doc = api_client_json(r, "PATCH", path, doc);
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	set_report(r->cli, doc, a->words[0]);
	json_decref(doc);
	return 0;
}

static int run_set(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, set_box);
}

static const struct example examples[] = {
	{ "atoll set demo --lifetime 1h", "let the box time out in an hour" },
	{ "atoll set demo --mem 1G --cpu 2", "change memory and processors immediately" },
	{ "atoll set demo --keep forever", "keep its files after the timeout" },
	{ 0 },
};

const struct command command_set = {
	.name = "set",
	.group = "Boxes",
	.usage = "FLAGS BOX",
	.summary = "change limits and timeouts of a box",
	.notes =
		"Properties without a flag stay unchanged. Disk and number of files cannot be changed.",
	.flags = flags,
	.nflags = SET_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_set,
};
