/* new.c - `atoll new`: creates a box that exists until it is deleted. */
#include "base/id.h"
#include "cli/build_follow.h"
#include "cli/fields.h"
#include "cli/options.h"
#include "cli/package_request.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	NEW_TEMPLATE,
	NEW_MEM,
	NEW_CPU,
	NEW_CPU_TIME,
	NEW_DISK,
	NEW_FILES,
	NEW_PIDS,
	NEW_ENV,
	NEW_META,
	NEW_SESSION,
	NEW_LIFETIME,
	NEW_IDLE,
	NEW_ON_TIMEOUT,
	NEW_KEEP,
	NEW_ON_LOSS,
	NEW_CHECKPOINTS,
	NEW_VOLUME,
	NEW_SECRET,
	NEW_LINK,
	NEW_PACKAGE,
	NEW_SNAPSHOT,
	NEW_ALLOW,
	NEW_COLD,
	NEW_ISOLATION,
	NEW_TRUST,
	NEW_NFLAGS,
};

static const struct flag flags[NEW_NFLAGS] = {
	[NEW_TEMPLATE] = { "template", 't', FLAG_TEXT, "NAME", "template of the box (base)" },
	[NEW_MEM] = OPTION_MEM,
	[NEW_CPU] = OPTION_CPU,
	[NEW_CPU_TIME] = OPTION_CPU_TIME,
	[NEW_DISK] = OPTION_DISK,
	[NEW_FILES] = OPTION_FILES,
	[NEW_PIDS] = OPTION_PIDS,
	[NEW_ENV] = OPTION_ENV,
	[NEW_META] = FIELD_FLAG_META,
	[NEW_SESSION] = { "session", 0, FLAG_TEXT, "TEXT",
			  "return the box of this session, always the same one" },
	[NEW_LIFETIME] = FIELD_FLAG_LIFETIME("time until the box times out (10m)"),
	[NEW_IDLE] = FIELD_FLAG_IDLE,
	[NEW_ON_TIMEOUT] = FIELD_FLAG_ON_TIMEOUT,
	[NEW_KEEP] = FIELD_FLAG_KEEP,
	[NEW_ON_LOSS] = { "on-loss", 0, FLAG_TEXT, "keep|stop|restart",
			  "in a cluster, when the node of the box is lost (keep)" },
	[NEW_CHECKPOINTS] = FIELD_FLAG_CHECKPOINTS,
	[NEW_VOLUME] = FIELD_FLAG_VOLUME,
	[NEW_SECRET] = FIELD_FLAG_SECRET,
	[NEW_LINK] = { "link", 0, FLAG_WORDS, "NAME=BOX",
		       "reach another box under this name; may be repeated" },
	[NEW_PACKAGE] = OPTION_PACKAGE,
	[NEW_SNAPSHOT] = { "snapshot", 0, FLAG_TEXT, "NAME",
			   "start with the files of this snapshot" },
	[NEW_ALLOW] = { "allow", 0, FLAG_WORDS, "RULE",
			"allow this destination, for example db.example.org:5432; may be repeated" },
	[NEW_COLD] = OPTION_COLD,
	[NEW_ISOLATION] = OPTION_ISOLATION,
	[NEW_TRUST] = OPTION_TRUST,
};

static int put_network(struct api_client *r, json_t *doc, const struct args *a)
{
	json_t *network = json_object(), *allow = json_array();

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == NEW_ALLOW)
			json_array_append_new(allow, json_string(a->given[i].text));
	if (json_array_size(allow))
		json_object_set(network, "allow", allow);
	json_decref(allow);
	if (fields_pairs(r, network, a, NEW_LINK, "links") == 0 && json_object_size(network))
		json_object_set(doc, "network", network);
	json_decref(network);
	return r->status;
}

static json_t *limits_of(const struct args *a)
{
	json_t *l = json_object();

	fields_number(l, a, NEW_MEM, "mem");
	fields_number(l, a, NEW_CPU, "cpu_milli");
	fields_number(l, a, NEW_CPU_TIME, "cpu_ms");
	fields_number(l, a, NEW_DISK, "disk");
	fields_number(l, a, NEW_FILES, "files");
	fields_number(l, a, NEW_PIDS, "pids");
	return l;
}

static int new_describe(struct api_client *r, json_t *doc, const struct args *a)
{
	if (fields_on_timeout(r, doc, a, NEW_ON_TIMEOUT) ||
	    fields_checkpoints(r, doc, a, NEW_CHECKPOINTS))
		return r->status;
	if (a->nwords)
		json_object_set_new(doc, "name", json_string(a->words[0]));
	fields_text(doc, a, NEW_TEMPLATE, "template");
	fields_text(doc, a, NEW_SESSION, "session");
	fields_text(doc, a, NEW_SNAPSHOT, "snapshot");
	fields_text(doc, a, NEW_ON_LOSS, "on_loss");
	fields_text(doc, a, NEW_ISOLATION, "isolation");
	fields_text(doc, a, NEW_TRUST, "trust");
	fields_number(doc, a, NEW_LIFETIME, "lifetime_ms");
	fields_number(doc, a, NEW_IDLE, "idle_ms");
	json_object_set_new(doc, "limits", limits_of(a));
	if (args_has(a, NEW_PACKAGE))
		json_object_set_new(doc, "packages", package_request_json(a, NEW_PACKAGE, "pip"));
	if (args_has(a, NEW_COLD))
		json_object_set_new(doc, "cold", json_true());
	if (fields_pairs(r, doc, a, NEW_ENV, "env") ||
	    fields_pairs(r, doc, a, NEW_META, "metadata") ||
	    fields_volumes(r, doc, a, NEW_VOLUME) || fields_secrets(r, doc, a, NEW_SECRET) ||
	    put_network(r, doc, a))
		return r->status;
	return fields_keep(r, doc, a, NEW_KEEP, NEW_ON_TIMEOUT);
}

static void new_say(const struct cli *cli, const json_t *box)
{
	const char *name = api_client_text(box, "name"), *id = api_client_text(box, "id");
	char ends[24];

	if (cli->json) {
		api_client_print(box);
		return;
	}
	puts(*name && !cli->quiet ? name : id);
	if (!cli->quiet && isatty(2))
		fprintf(stderr, "atoll: box %s is ready and ends in %s\n", id,
			api_client_until(ends, box, "ends"));
}

static json_t *new_request(struct api_client *r, const json_t *want)
{
	char once[ID_MAX + 1];
	struct err e;

	/* So that one box is created, even if the answer is lost and the request is repeated. */
	if (id_new(once, &e) == 0)
		r->once = once;
	return api_client_json(r, "POST", "/v1/boxes", json_deep_copy(want));
}

static int new_make(struct api_client *r, const struct args *a)
{
	json_t *want = json_object(), *doc = NULL;

	if (new_describe(r, want, a) == 0) {
		doc = new_request(r, want);
		if (!doc && build_follow_first(r, args_text(a, NEW_TEMPLATE, "")) == 0)
			doc = new_request(r, want);
	}
	json_decref(want);
	if (!doc)
		return r->status;
	new_say(r->cli, doc);
	json_decref(doc);
	return 0;
}

static int run_new(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, new_make);
}

static const struct example examples[] = {
	{ "atoll new demo", "create a box named demo" },
	{ "atoll new demo --keep 2h && atoll shell demo",
	  "keep its files for two hours after the timeout" },
	{ "atoll new --mem 1G --cpu 2 --lifetime 1h -q",
	  "create a larger box for an hour; print its id" },
	{ "atoll new demo --volume data:/data", "create a box with a volume; see atoll volume" },
	{ "atoll new demo --secret API_KEY@api.example.com",
	  "the value is added to requests to this host, and never enters the box" },
	{ "atoll new demo --allow '*.example.org'",
	  "create a box that may reach these hosts; see atoll net" },
	{ "atoll new --session alice", "return the box of a session, always the same one" },
	{ 0 },
};

const struct command command_new = {
	/* clang-format off */
	.name = "new",
	.group = "Boxes",
	.usage = "[FLAGS] [NAME]",
	.summary = "create a box that stays",
	.notes = "Prints the name of the box, or its id if it has no name. A box times out after its lifetime,\n"
		 "or after --idle without activity. It is then deleted; with --keep, its programs end and its\n"
		 "files stay.",
	.flags = flags,
	.nflags = NEW_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_new,
	/* clang-format on */
};
