/* template.c - `atoll template`: what boxes start from; see template_build.c for its builds. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/build_follow.h"
#include "cli/list_output.h"
#include "commands/commands.h"
#include "commands/template_build.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct flag flags[TEMPLATE_NFLAGS] = {
	[TEMPLATE_NAME] = { "name", 'n', FLAG_TEXT, "NAME",
			    "build, import: name of the template, also NAME:TAG (that of the file or folder)" },
	[TEMPLATE_TAG] = { "tag", 0, FLAG_WORDS, "TAG",
			   "build: tag of the build (default); may be repeated" },
	[TEMPLATE_FILE] = { "file", 0, FLAG_TEXT, "FILE",
			    "build: the Dockerfile, atoll.toml, e2b.toml or devcontainer.json in DIR" },
	[TEMPLATE_ARG] = { "build-arg", 0, FLAG_WORDS, "NAME=VALUE",
			   "build: value of an ARG; may be repeated" },
	[TEMPLATE_TARGET] = { "target", 0, FLAG_TEXT, "STAGE", "build: stage to build (the last)" },
	[TEMPLATE_SECRET] = { "secret", 0, FLAG_WORDS, "id=NAME,src=FILE",
			      "build: a secret for the steps that name it; may be repeated" },
	[TEMPLATE_FORCE] = { "force", 0, FLAG_SWITCH, NULL, "build: use nothing of the cache" },
	[TEMPLATE_FROM_BOX] = { "from-box", 0, FLAG_TEXT, "BOX",
				"build: of the files of a box, whose programs end" },
	[TEMPLATE_FROM_SNAPSHOT] = { "from-snapshot", 0, FLAG_TEXT, "NAME",
				     "build: of the files of a snapshot" },
	[TEMPLATE_DETACH] = { "detach", 'd', FLAG_SWITCH, NULL,
			      "build: print the id of the build and do not wait" },
	[TEMPLATE_FOLLOW] = { "follow", 'f', FLAG_SWITCH, NULL, "log: wait until the build ends" },
	[TEMPLATE_YES] = { "yes", 'y', FLAG_SWITCH, NULL, "rm: do not ask" },
};

/* ---- ls, show ---- */

static void template_row(struct table *t, json_t *v)
{
	const json_t *newest = json_array_get(json_object_get(v, "builds"), 0);
	auto_buf struct buf tags = { 0 };
	const char *tag;
	char text[UNITS_TEXT];
	json_t *build;

	json_object_foreach(json_object_get(v, "tags"), tag, build)
		buf_printf(&tags, "%s%s", tags.len ? " " : "", tag);
	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", tags.len ? buf_str(&tags) : "-");
	table_cell(t, "%s",
		   json_is_true(json_object_get(v, "builtin")) ? "built in"
		   : newest                                    ? api_client_text(newest, "state")
							       : "-");
	table_cell(t, "%lld", (long long)api_client_int(v, "spawns", 0));
	table_cell(t, "%s", api_client_since(text, v, "updated"));
}

static int template_list(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "TEMPLATE", "TAGS",     "STATE",
					       ">BOXES",   ">UPDATED", NULL };

	(void)a;
	return list_output_show(r, "/v1/templates",
				&(struct list_output){ columns, "name", template_row });
}

static void template_show_value(const char *name, const json_t *v)
{
	char text[UNITS_TEXT];

	if (json_is_string(v) && json_string_length(v)) {
		auto_free char *clean = strdup(json_string_value(v));

		for (char *p = clean; p && *p; p++)
			*p = (unsigned char)*p < 32 || *p == 127 ? ' ' : *p;
		printf("%-12s %s\n", name, clean ? clean : "");
	} else if (json_is_integer(v) && json_integer_value(v)) {
		if (!strcmp(name, "memory") || !strcmp(name, "disk"))
			printf("%-12s %s\n", name,
			       units_size(text, (uint64_t)json_integer_value(v)));
		else if (!strcmp(name, "cpu"))
			printf("%-12s %g\n", name, (double)json_integer_value(v) / 1000);
		else
			printf("%-12s %lld\n", name, (long long)json_integer_value(v));
	}
}

static void template_show_builds(const json_t *builds)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)builds, i, v)
	{
		const json_t *reason = json_object_get(v, "reason");
		char size[UNITS_TEXT], age[UNITS_TEXT];

		printf("%-12s %s  %s  %s  %s ago%s%s\n", "build", api_client_text(v, "id"),
		       api_client_text(v, "state"),
		       units_size(size, (uint64_t)api_client_int(v, "bytes", 0)),
		       api_client_since(age, v, "created"), reason ? "  " : "",
		       api_client_text(reason, "message"));
	}
}

static int template_show(struct api_client *r, const struct args *a)
{
	static const char *const rows[] = { "name",  "id",    "description", "user",    "workdir",
					    "start", "ready", "port",        "cpu",     "memory",
					    "disk",  "pool",  "file",        "created", "updated" };
	json_t *doc = api_client_get(r, "/v1/templates/%s", a->words[1]), *v;
	const char *key;
	size_t i;

	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
		json_decref(doc);
		return 0;
	}
	for (i = 0; i < ARRAY_LEN(rows); i++)
		template_show_value(rows[i], json_object_get(doc, rows[i]));
	json_object_foreach(json_object_get(doc, "tags"), key, v)
		printf("%-12s %s  %s\n", "tag", key, json_string_value(v));
	json_array_foreach(json_object_get(doc, "aliases"), i, v)
		printf("%-12s %s\n", "alias", json_string_value(v));
	json_array_foreach(json_object_get(doc, "missing"), i, v)
		printf("%-12s %s\n", "missing", json_string_value(v));
	template_show_builds(json_object_get(doc, "builds"));
	json_decref(doc);
	return 0;
}

/* ---- builds ---- */

/* The id of a build, or the newest build of a template. The caller frees it. NULL: r->status. */
static char *template_build_id(struct api_client *r, const char *text)
{
	json_t *doc = api_client_get(r, "/v1/builds/%s", text);
	const json_t *builds;
	char *id = NULL, shown[SHOWN];

	if (doc) {
		json_decref(doc);
		return strdup(text);
	}
	if (r->http != 404)
		return NULL;
	doc = api_client_get(r, "/v1/templates/%s", text);
	builds = json_object_get(doc, "builds");
	if (json_array_size(builds)) {
		id = strdup(api_client_text(json_array_get(builds, 0), "id"));
	} else {
		cli_error_what(&r->error, "not_found", "no build or template with builds '%s'",
			       cli_error_shown(text, shown));
		cli_error_hint(&r->error, "list", "atoll template ls");
		r->status = STATUS_NOT_FOUND;
	}
	json_decref(doc);
	return id;
}

static int template_log(struct api_client *r, const struct args *a)
{
	auto_free char *id = template_build_id(r, a->words[1]);
	json_t *build = NULL;
	int status;

	if (!id)
		return r->status;
	status = build_follow_show(r, id, args_has(a, TEMPLATE_FOLLOW), &build);
	if (!status && args_has(a, TEMPLATE_FOLLOW))
		status = build_follow_result(r, build);
	json_decref(build);
	return status;
}

static int template_drop_build(struct api_client *r, const struct args *a)
{
	auto_free char *id = template_build_id(r, a->words[1]);
	auto_free char *path = id ? api_client_path("/v1/builds/%s", id) : NULL;
	json_t *doc = id ? api_client_json(r, "DELETE", path, NULL) : NULL;

	json_decref(doc);
	return doc ? 0 : r->status;
}

/* ---- changes ---- */

static int template_agreed(struct api_client *r, const char *name)
{
	char answer[16] = "";

	if (!isatty(0) || !isatty(2)) {
		api_client_usage(r, "its builds would be deleted");
		cli_error_hint(&r->error, "do it", "atoll template rm --yes %s", name);
		return 0;
	}
	fprintf(stderr, "atoll: delete template %s with its builds? [y/N] ", name);
	r->status = STATUS_FAILED;
	return fgets(answer, sizeof(answer), stdin) &&
	       (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
}

static int template_remove(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/templates/%s", a->words[1]);
	char shown[SHOWN];
	json_t *doc;

	if (!args_has(a, TEMPLATE_YES) && !template_agreed(r, cli_error_shown(a->words[1], shown)))
		return r->status;
	doc = api_client_json(r, "DELETE", path, NULL);
	json_decref(doc);
	return doc ? 0 : r->status;
}

static int template_answered(struct api_client *r, json_t *take_doc)
{
	int status = take_doc ? 0 : r->status;

	if (take_doc && r->cli->json && json_is_object(take_doc))
		api_client_print(take_doc);
	json_decref(take_doc);
	return status;
}

/* NAME[:TAG] NEW...: the new tags name the build that the old one names. */
static int template_tag(struct api_client *r, const struct args *a)
{
	const char *colon = strrchr(a->words[1], ':');
	auto_free char *name =
		strndup(a->words[1], colon ? (size_t)(colon - a->words[1]) : strlen(a->words[1]));

	for (unsigned i = 2; name && i < a->nwords; i++) {
		auto_free char *path =
			api_client_path("/v1/templates/%s/tags/%s", name, a->words[i]);
		json_t *doc = api_client_json(
			r, "PUT", path, json_pack("{s:s}", "tag", colon ? colon + 1 : "default"));

		if (template_answered(r, doc))
			return r->status;
	}
	return 0;
}

static int template_untag(struct api_client *r, const struct args *a)
{
	for (unsigned i = 1; i < a->nwords; i++) {
		const char *colon = strrchr(a->words[i], ':');
		auto_free char *name = NULL, *path = NULL;

		if (!colon || !colon[1])
			return api_client_usage(r, "untag: which tag? type NAME:TAG");
		name = strndup(a->words[i], (size_t)(colon - a->words[i]));
		path = api_client_path("/v1/templates/%s/tags/%s", name ? name : "", colon + 1);
		if (template_answered(r, api_client_json(r, "DELETE", path, NULL)))
			return r->status;
	}
	return 0;
}

static int template_patch(struct api_client *r, const char *name, json_t *take_change)
{
	auto_free char *path = api_client_path("/v1/templates/%s", name);

	return template_answered(r, api_client_json(r, "PATCH", path, take_change));
}

static int template_rename(struct api_client *r, const struct args *a)
{
	return template_patch(r, a->words[1], json_pack("{s:o}", "name", json_string(a->words[2])));
}

static int template_alias(struct api_client *r, const struct args *a)
{
	json_t *doc = api_client_get(r, "/v1/templates/%s", a->words[1]), *all;

	if (!doc)
		return r->status;
	all = json_deep_copy(json_object_get(doc, "aliases"));
	json_decref(doc);
	for (unsigned i = 2; i < a->nwords; i++)
		json_array_append_new(all, json_string(a->words[i]));
	return template_patch(r, a->words[1], json_pack("{s:o}", "aliases", all));
}

static int template_check(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/templates/%s/check", a->words[1]);
	json_t *doc = api_client_json(r, "POST", path, NULL);
	char size[UNITS_TEXT], shown[SHOWN];
	int intact = json_is_true(json_object_get(doc, "intact"));

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else if (intact)
		printf("%s is intact: %lld files, %s\n", cli_error_shown(a->words[1], shown),
		       (long long)api_client_int(doc, "files", 0),
		       units_size(size, (uint64_t)api_client_int(doc, "bytes", 0)));
	if (!intact) {
		cli_error_what(&r->error, "damaged", "%s is damaged",
			       cli_error_shown(a->words[1], shown));
		cli_error_why(&r->error, "%s", api_client_text(doc, "why"));
		cli_error_hint(&r->error, "again", "atoll template build --force DIR");
		r->status = STATUS_FAILED;
	}
	json_decref(doc);
	return intact ? 0 : r->status;
}

/* ---- the command ---- */

static const struct {
	const char *name, *type; /* what to type */
	unsigned least, most;    /* words */
	int (*run)(struct api_client *r, const struct args *a);
} template_commands[] = {
	{ "ls", "ls", 1, 1, template_list },
	{ "show", "show NAME", 2, 2, template_show },
	{ "build", "build [DIR]", 1, 2, template_build },
	{ "log", "log BUILD|NAME", 2, 2, template_log },
	{ "cancel", "cancel BUILD|NAME", 2, 2, template_drop_build },
	{ "rm", "rm NAME", 2, 2, template_remove },
	{ "tag", "tag NAME[:TAG] NEW...", 3, 18, template_tag },
	{ "untag", "untag NAME:TAG...", 2, 17, template_untag },
	{ "rename", "rename NAME NEW", 3, 3, template_rename },
	{ "alias", "alias NAME ALIAS...", 3, 17, template_alias },
	{ "check", "check NAME", 2, 2, template_check },
	{ "export", "export NAME FILE", 3, 3, template_export },
	{ "import", "import FILE", 2, 2, template_import },
};

static int template_template(struct api_client *r, const struct args *a)
{
	const char *typed = a->nwords ? a->words[0] : "ls";

	for (unsigned i = 0; i < ARRAY_LEN(template_commands); i++) {
		if (strcmp(typed, template_commands[i].name) != 0)
			continue;
		if ((!a->nwords && template_commands[i].least == 1) ||
		    (a->nwords >= template_commands[i].least &&
		     a->nwords <= template_commands[i].most))
			return template_commands[i].run(r, a);
		api_client_usage(r, "template %s: missing argument, or too many", typed);
		cli_error_hint(&r->error, "type", "atoll template %s", template_commands[i].type);
		return r->status;
	}
	api_client_usage(r, "template: unknown subcommand");
	cli_error_hint(
		&r->error, "type",
		"atoll template ls | show | build | log | cancel | rm | tag | untag | rename | "
		"alias | check | export | import");
	return r->status;
}

static int run_template(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, template_template);
}

static const struct example examples[] = {
	{ "atoll template build", "build the Dockerfile or atoll.toml of this folder" },
	{ "atoll template build -n web:v2 --build-arg NODE=20 ./web",
	  "with a name, a tag and an ARG" },
	{ "atoll new demo --template web:v2", "create a box of it" },
	{ "atoll template log -f web", "follow the newest build of a template" },
	{ "atoll template tag web:v2 stable", "give the build another tag" },
	{ 0 },
};

const struct command command_template = {
	/* clang-format off */
	.name = "template",
	.group = "Boxes",
	.usage = "ls | show NAME | build [DIR] | log BUILD | cancel BUILD | rm NAME | tag NAME[:TAG] NEW... | untag NAME:TAG... | "
		 "rename NAME NEW | alias NAME ALIAS... | check NAME | export NAME[:TAG] FILE | import FILE",
	.summary = "build and manage what boxes start from",
	.notes = "build takes the first of these files of DIR: atoll.toml with [template], e2b.toml, Dockerfile,\n"
		 "e2b.Dockerfile, .devcontainer/devcontainer.json, .devcontainer.json. A DIR that does not exist may be\n"
		 "the name of a template that comes with the server: atoll template build node. Files that .atollignore,\n"
		 ".dockerignore or .e2bignore names are not sent. It prints the log to stderr and the name for\n"
		 "--template to stdout, with --quiet the id of the build. Ctrl-C asks whether to cancel the build.\n"
		 "It exits 1 if the build fails, with step, line and command. BUILD is an id, or the name of a\n"
		 "template for its newest build. export writes a template with its files to one file (- is stdout),\n"
		 "import builds it from that file on another machine. docs/templates.md describes the files.",
	.words = "ls show build log cancel rm tag untag rename alias check export import",
	.flags = flags,
	.nflags = TEMPLATE_NFLAGS,
	.max_words = 18,
	.examples = examples,
	.run = run_template,
	/* clang-format on */
};
