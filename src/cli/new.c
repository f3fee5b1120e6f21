/* new.c - `atoll new`: a box that stays. */
#include "base/id.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/packages.h"
#include "cli/remote.h"
#include "cli/verbs.h"

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
	NEW_VOLUME,
	NEW_PACKAGE,
	NEW_SNAPSHOT,
	NEW_COLD,
	NEW_NFLAGS,
};

static const struct flag flags[NEW_NFLAGS] = {
	[NEW_TEMPLATE] = { "template", 't', FLAG_TEXT, "NAME", "what is in it (base)" },
	[NEW_MEM] = OPTION_MEM,
	[NEW_CPU] = OPTION_CPU,
	[NEW_CPU_TIME] = OPTION_CPU_TIME,
	[NEW_DISK] = OPTION_DISK,
	[NEW_FILES] = OPTION_FILES,
	[NEW_PIDS] = OPTION_PIDS,
	[NEW_ENV] = OPTION_ENV,
	[NEW_META] = { "meta", 0, FLAG_WORDS, "KEY=VALUE", "a text to find it by; may be repeated" },
	[NEW_SESSION] = { "session", 0, FLAG_TEXT, "TEXT",
			  "the box of this session: the same one every time" },
	[NEW_LIFETIME] = { "lifetime", 0, FLAG_TIME, "TIME", "until it times out (10m)" },
	[NEW_IDLE] = { "idle", 0, FLAG_TIME, "TIME", "without activity until it times out (never)" },
	[NEW_ON_TIMEOUT] = { "on-timeout", 0, FLAG_TEXT, "WHAT", "then: kill, keep its files, or pause (kill)" },
	[NEW_KEEP] = { "keep", 0, FLAG_TEXT, "TIME",
		       "keep its files so long after the timeout, or forever" },
	[NEW_VOLUME] = { "volume", 0, FLAG_WORDS, "NAME:PATH[:ro]",
			 "a disk that outlives it, mounted there; may be repeated" },
	[NEW_PACKAGE] = OPTION_PACKAGE,
	[NEW_SNAPSHOT] = { "snapshot", 0, FLAG_TEXT, "NAME", "begin with the files of this one" },
	[NEW_COLD] = OPTION_COLD,
};

static void put_number(json_t *doc, const struct args *a, unsigned flag, const char *key)
{
	if (args_has(a, flag))
		json_object_set_new(doc, key, json_integer((json_int_t)args_value(a, flag, 0)));
}

static void put_text(json_t *doc, const struct args *a, unsigned flag, const char *key)
{
	if (args_has(a, flag))
		json_object_set_new(doc, key, json_string(args_text(a, flag, "")));
}

/* KEY=VALUE as often as given. */
static int put_pairs(struct remote *r, json_t *doc, const struct args *a, unsigned flag,
		     const char *key)
{
	json_t *map = json_object();

	for (unsigned i = 0; i < a->ngiven; i++) {
		const char *text = a->given[i].text, *eq;
		char shown[SHOWN], name[256];

		if (a->given[i].flag != flag)
			continue;
		eq = strchr(text, '=');
		snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq - text) : 0, text);
		if (!*name || strlen(name) != (size_t)(eq - text) ||
		    json_object_set_new(map, name, json_string(eq + 1)) < 0) {
			json_decref(map);
			return remote_usage(r, "--%s: '%s' is not KEY=VALUE, as text", flags[flag].name,
					    trouble_shown(text, shown));
		}
	}
	if (json_object_size(map))
		json_object_set(doc, key, map);
	json_decref(map);
	return 0;
}

static int put_keep(struct remote *r, json_t *doc, const struct args *a)
{
	const char *keep = args_text(a, NEW_KEEP, NULL);
	uint32_t ms;
	struct err e;

	if (!keep)
		return 0;
	if (strcmp(keep, "forever") && units_parse_time(keep, &ms, &e) < 0) {
		remote_usage(r, "--keep: %s", e.msg);
		trouble_hint(&r->trouble, "type", "--keep 2h, or --keep forever");
		return r->status;
	}
	json_object_set_new(doc, "retention_ms",
			    json_integer(strcmp(keep, "forever") ? (json_int_t)ms : -1));
	if (!args_has(a, NEW_ON_TIMEOUT))
		json_object_set_new(doc, "on_timeout", json_string("keep"));
	return 0;
}

static int put_volumes(struct remote *r, json_t *doc, const struct args *a)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < a->ngiven; i++) {
		const char *text = a->given[i].text, *colon, *end;
		char shown[SHOWN];

		if (a->given[i].flag != NEW_VOLUME)
			continue;
		colon = strchr(text, ':');
		end = colon ? colon + strlen(colon) : NULL;
		if (colon && end - colon > 3 && !strcmp(end - 3, ":ro"))
			end -= 3;
		if (!colon || colon == text || colon + 1 >= end || colon[1] != '/' ||
		    json_array_append_new(all, json_pack("{s:s%, s:s%, s:b}", "name", text,
							 (size_t)(colon - text), "path", colon + 1,
							 (size_t)(end - colon - 1), "read_only",
							 *end != 0)) < 0) {
			json_decref(all);
			return remote_usage(r, "--volume: '%s' is not NAME:/PATH or NAME:/PATH:ro",
					    trouble_shown(text, shown));
		}
	}
	if (json_array_size(all))
		json_object_set(doc, "volumes", all);
	json_decref(all);
	return 0;
}

static json_t *limits_of(const struct args *a)
{
	json_t *l = json_object();

	put_number(l, a, NEW_MEM, "mem");
	put_number(l, a, NEW_CPU, "cpu_milli");
	put_number(l, a, NEW_CPU_TIME, "cpu_ms");
	put_number(l, a, NEW_DISK, "disk");
	put_number(l, a, NEW_FILES, "files");
	put_number(l, a, NEW_PIDS, "pids");
	return l;
}

static int describe(struct remote *r, json_t *doc, const struct args *a)
{
	const char *then = args_text(a, NEW_ON_TIMEOUT, "kill");
	char shown[SHOWN];

	if (strcmp(then, "kill") && strcmp(then, "keep") && strcmp(then, "pause"))
		return remote_usage(r, "--on-timeout: '%s' is not kill, keep or pause",
				    trouble_shown(then, shown));
	if (a->nwords)
		json_object_set_new(doc, "name", json_string(a->words[0]));
	put_text(doc, a, NEW_TEMPLATE, "template");
	put_text(doc, a, NEW_SESSION, "session");
	put_text(doc, a, NEW_ON_TIMEOUT, "on_timeout");
	put_text(doc, a, NEW_SNAPSHOT, "snapshot");
	put_number(doc, a, NEW_LIFETIME, "lifetime_ms");
	put_number(doc, a, NEW_IDLE, "idle_ms");
	json_object_set_new(doc, "limits", limits_of(a));
	if (args_has(a, NEW_PACKAGE))
		json_object_set_new(doc, "packages", packages_json(a, NEW_PACKAGE, "pip"));
	if (args_has(a, NEW_COLD))
		json_object_set_new(doc, "cold", json_true());
	if (put_pairs(r, doc, a, NEW_ENV, "env") || put_pairs(r, doc, a, NEW_META, "metadata") ||
	    put_volumes(r, doc, a))
		return r->status;
	return put_keep(r, doc, a);
}

static void say(const struct cli *cli, const json_t *box)
{
	const char *name = remote_text(box, "name"), *id = remote_text(box, "id");
	char ends[24];

	if (cli->json) {
		remote_print(box);
		return;
	}
	puts(*name && !cli->quiet ? name : id);
	if (!cli->quiet && isatty(2))
		fprintf(stderr, "atoll: box %s is ready and ends in %s\n", id,
			remote_until(ends, box, "ends"));
}

static int make(struct remote *r, const struct args *a)
{
	json_t *doc = json_object();
	char once[ID_LEN + 1];
	struct err e;

	if (describe(r, doc, a)) {
		json_decref(doc);
		return r->status;
	}
	/* So that it is made once, even if the answer is lost and we ask again. */
	if (id_new(once, &e) == 0)
		r->once = once;
	doc = remote_json(r, "POST", "/v1/boxes", doc);
	if (!doc)
		return r->status;
	say(r->cli, doc);
	json_decref(doc);
	return 0;
}

static int run_new(const struct cli *cli, const struct args *a)
{
	return remote_verb(cli, a, make);
}

static const struct example examples[] = {
	{ "atoll new demo", "a box named demo" },
	{ "atoll new demo --keep 2h && atoll shell demo", "its files outlive its time by two hours" },
	{ "atoll new --mem 1G --cpu 2 --lifetime 1h -q", "larger, for an hour; prints its id" },
	{ "atoll new demo --volume data:/data", "with a disk of its own: see atoll volume" },
	{ "atoll new --session alice", "the box of a session: the same one every time" },
	{ 0 },
};

const struct verb verb_new = {
	.name = "new",
	.group = "Boxes",
	.usage = "[FLAGS] [NAME]",
	.summary = "make a box that stays",
	.notes = "Prints its name, or its id if it has none. A box times out after its lifetime, or when\n"
		 "nothing has happened in it for --idle. Then it is deleted, or with --keep its programs\n"
		 "end and its files stay.",
	.flags = flags,
	.nflags = NEW_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_new,
};
