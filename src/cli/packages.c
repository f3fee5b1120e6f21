/* packages.c - `atoll packages`, and -p of other commands; see packages.h. */
#include "cli/packages.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "cli/commands.h"
#include "lang/package.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- -p ---- */

static void add_word(json_t *all, const char *word, const char *otherwise)
{
	size_t n = strcspn(word, ":");
	char name[16];
	json_t *list;

	snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : 0, word);
	if (word[n] && package_manager_named(name) >= 0)
		word += n + 1;
	else
		snprintf(name, sizeof(name), "%s", otherwise);
	list = json_object_get(all, name);
	if (!list) {
		list = json_array();
		json_object_set_new(all, name, list);
	}
	/* The daemon rejects an argument that is not UTF-8. */
	if (json_array_append_new(list, json_string(word)) < 0)
		json_array_append_new(list, json_string("?"));
}

json_t *packages_json(const struct args *a, unsigned flag, const char *otherwise)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == flag)
			add_word(all, a->given[i].text, otherwise);
	if (json_object_size(all))
		return all;
	json_decref(all);
	return NULL;
}

/* ---- installing ---- */

struct packages_adding {
	struct api_client *r;
	struct options *options; /* NULL: not for a box */
	json_t *done;
};

static void say_failure(struct api_client *r, const json_t *error)
{
	const json_t *near = json_object_get(error, "near"), *v;
	char shown[SHOWN];
	size_t i;

	cli_error_what(&r->error, "install", "%.300s", api_client_text(error, "message"));
	if (*api_client_text(error, "why"))
		cli_error_why(&r->error, "%.300s", api_client_text(error, "why"));
	json_array_foreach(near, i, v) cli_error_hint(&r->error, "close", "%s",
						      cli_error_shown(json_string_value(v), shown));
	if (json_array_size(json_object_get(error, "versions"))) {
		auto_free char *text = json_dumps(json_object_get(error, "versions"), JSON_COMPACT);

		cli_error_hint(&r->error, "versions", "%.200s", text ? text : "");
	}
	r->status = r->runs ? STATUS_OURS : STATUS_FAILED;
}

static int each_line(void *ctx, json_t *line)
{
	struct packages_adding *a = ctx;
	const char *type = api_client_text(line, "type");

	if (!strcmp(type, "install")) {
		const char *text = api_client_text(line, "text");

		if (!a->r->cli->quiet && (a->r->cli->verbose || isatty(2) || !a->options))
			(void)!api_client_write(2, text, strlen(text));
		return 0;
	}
	if (!strcmp(type, "error"))
		say_failure(a->r, json_object_get(line, "error"));
	else
		a->done = json_incref(line);
	return 1;
}

static void packages_warn(const struct api_client *r, const json_t *done)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(done, "warnings"), i, v) if (!r->cli->quiet)
		fprintf(stderr, "atoll: %s\n", json_string_value(v));
}

/* 0 with a->done, or the status. */
static int packages_install(struct packages_adding *a, json_t *take_packages)
{
	struct api_client *r = a->r;
	int status = api_client_lines(r, "POST", "/v1/packages",
				      json_pack("{s:o}", "packages", take_packages), each_line, a);

	if (status && r->lost)
		cli_error_hint(&r->error, "start",
			       "atoll serve: it is the daemon that installs packages");
	if (status)
		return status;
	if (!a->done)
		return r->status ? r->status : (r->status = STATUS_OURS);
	packages_warn(r, a->done);
	return 0;
}

static int take_layers(struct options *o, const json_t *done)
{
	const json_t *set;
	size_t i;

	json_array_foreach(json_object_get(done, "sets"), i, set)
	{
		if (o->nlayers == WIRE_LAYERS)
			return -1;
		snprintf(o->layers[o->nlayers++], WIRE_LAYER_ID, "%s",
			 api_client_text(set, "layer"));
	}
	return 0;
}

int packages_for(struct options *o, const struct cli *cli, const struct args *a, unsigned flag,
		 const char *language)
{
	int m = language ? package_manager_of(language) : PM_PIP;
	json_t *packages = packages_json(
		a, flag, package_manager_name(m < 0 ? PM_PIP : (enum package_manager)m));
	struct api_client r;
	struct packages_adding x = { .r = &r, .options = o };
	int status;

	if (!packages)
		return 0;
	status = api_client_open(&r, cli);
	r.runs = 1;
	if (!status)
		status = packages_install(&x, packages);
	else
		json_decref(packages);
	if (!status && take_layers(o, x.done) < 0)
		status = STATUS_OURS;
	json_decref(x.done);
	if (status)
		cli_error_print(&r.error, cli->json, status);
	api_client_close(&r);
	return status;
}

/* ---- the command ---- */

static void packages_row(struct table *t, json_t *v)
{
	char text[UNITS_TEXT];

	table_cell(t, "%.12s", api_client_text(v, "set"));
	table_cell(t, "%s", api_client_text(v, "manager"));
	table_cell(t, "%lld", (long long)api_client_int(v, "uses", 0));
	table_cell(t, "%s", units_size(text, (uint64_t)api_client_int(v, "bytes", 0)));
	table_cell(t, "%s", api_client_since(text, v, "used"));
	table_cell(t, "%s", api_client_text(v, "packages"));
}

static int packages_do_list(struct api_client *r)
{
	static const char *const columns[] = { "SET",   "MANAGER",  ">USES", ">SIZE",
					       ">USED", "PACKAGES", NULL };

	return list_output_show(r, "/v1/packages",
				&(struct list_output){ columns, "set", packages_row });
}

static int packages_do_add(struct api_client *r, const struct args *a)
{
	struct packages_adding x = { .r = r };
	json_t *all = json_object(), *set;
	int status;
	size_t i;

	for (unsigned w = 1; w < a->nwords; w++)
		add_word(all, a->words[w], "pip");
	status = packages_install(&x, all);
	if (!status && r->cli->json)
		api_client_print(x.done);
	else if (!status)
		json_array_foreach(json_object_get(x.done, "sets"), i, set)
			puts(api_client_text(set, "set"));
	json_decref(x.done);
	return status;
}

/* A set by the beginning of its name, as `ls` shows it. */
struct seeking {
	const char *want;
	char found[80];
	int several;
};

static int packages_seek(void *ctx, json_t *v)
{
	struct seeking *s = ctx;
	const char *set = api_client_text(v, "set");

	if (strncmp(set, s->want, strlen(s->want)) == 0) {
		s->several |= s->found[0] != 0;
		snprintf(s->found, sizeof(s->found), "%s", set);
	}
	return 0;
}

static int each_named(struct api_client *r, const struct args *a,
		      int (*act)(struct api_client *r, const char *set))
{
	for (unsigned i = 1; i < a->nwords; i++) {
		struct seeking s = { .want = a->words[i] };
		char shown[SHOWN];
		int status = api_client_list(r, "/v1/packages", packages_seek, &s);

		if (status)
			return status;
		if (!s.found[0] || s.several) {
			cli_error_what(&r->error, "not_found", "%s package set named '%s'",
				       s.several ? "more than one" : "no",
				       cli_error_shown(a->words[i], shown));
			cli_error_hint(&r->error, "list", "atoll packages ls");
			return r->status = STATUS_NOT_FOUND;
		}
		status = act(r, s.found);
		if (status)
			return status;
	}
	return 0;
}

static int packages_drop(struct api_client *r, const char *set)
{
	auto_free char *path = api_client_path("/v1/packages/%s", set);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int packages_do_check(struct api_client *r, const char *set)
{
	auto_free char *path = api_client_path("/v1/packages/%s/check", set);
	json_t *doc = api_client_json(r, "POST", path, NULL);

	json_decref(doc);
	if (doc && !r->cli->quiet)
		printf("%.12s is unchanged\n", set);
	return doc ? 0 : r->status;
}

static int packages_command(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return packages_do_list(r);
	if (!strcmp(what, "add") && a->nwords > 1)
		return packages_do_add(r, a);
	if (!strcmp(what, "rm") && a->nwords > 1)
		return each_named(r, a, packages_drop);
	if (!strcmp(what, "check") && a->nwords > 1)
		return each_named(r, a, packages_do_check);
	api_client_usage(r, "packages: missing or unknown subcommand");
	cli_error_hint(&r->error, "type",
		       "atoll packages ls | add NAME... | rm SET... | check SET...");
	return r->status;
}

static int run_packages(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, packages_command);
}

static const struct example examples[] = {
	{ "atoll packages add numpy pandas==1.5", "install now, so that no run has to wait" },
	{ "atoll run -p numpy -p pandas==1.5 x.py", "run with these packages" },
	{ "atoll packages add npm:left-pad", "use another package manager than pip" },
	{ 0 },
};

const struct command command_packages = {
	.name = "packages",
	.group = "Boxes",
	.usage = "ls | add NAME... | rm SET... | check SET...",
	.summary = "manage package sets that boxes can use without installation",
	.notes =
		"A package set is installed once, in its own box, and becomes a read-only layer. Boxes that\n"
		"request the same set get it within a millisecond, without a network.",
	.words = "ls add rm check",
	.max_words = 200,
	.examples = examples,
	.run = run_packages,
};
