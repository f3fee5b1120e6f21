/* packages.c - `atoll packages`. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "cli/package_request.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

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
	struct package_request x = { .r = r };
	json_t *all = json_object(), *set;
	int status;
	size_t i;

	for (unsigned w = 1; w < a->nwords; w++)
		package_request_add(all, a->words[w], "pip");
	status = package_request_send(&x, all);
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
