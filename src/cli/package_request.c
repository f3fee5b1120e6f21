/* package_request.c - see package_request.h. */
#include "cli/package_request.h"
#include "base/cleanup.h"
#include "lang/package.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- -p ---- */

void package_request_add(json_t *all, const char *word, const char *otherwise)
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

json_t *package_request_json(const struct args *a, unsigned flag, const char *otherwise)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == flag)
			package_request_add(all, a->given[i].text, otherwise);
	if (json_object_size(all))
		return all;
	json_decref(all);
	return NULL;
}

/* ---- installing ---- */

static void package_request_fail(struct api_client *r, const json_t *error)
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

static int package_request_line(void *ctx, json_t *line)
{
	struct package_request *a = ctx;
	const char *type = api_client_text(line, "type");

	if (!strcmp(type, "install")) {
		const char *text = api_client_text(line, "text");

		if (!a->r->cli->quiet && (a->r->cli->verbose || isatty(2) || !a->options))
			(void)!api_client_write(2, text, strlen(text));
		return 0;
	}
	if (!strcmp(type, "error"))
		package_request_fail(a->r, json_object_get(line, "error"));
	else
		a->done = json_incref(line);
	return 1;
}

static void package_request_warn(const struct api_client *r, const json_t *done)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(done, "warnings"), i, v) if (!r->cli->quiet)
		fprintf(stderr, "atoll: %s\n", json_string_value(v));
}

int package_request_send(struct package_request *a, json_t *take_packages)
{
	struct api_client *r = a->r;
	int status = api_client_lines(r, "POST", "/v1/packages",
				      json_pack("{s:o}", "packages", take_packages),
				      package_request_line, a);

	if (status && r->lost)
		cli_error_hint(&r->error, "start",
			       "atoll serve: it is the daemon that installs packages");
	if (status)
		return status;
	if (!a->done)
		return r->status ? r->status : (r->status = STATUS_OURS);
	package_request_warn(r, a->done);
	return 0;
}

static int package_request_layers(struct options *o, const json_t *done)
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

int package_request_for(struct options *o, const struct cli *cli, const struct args *a,
			unsigned flag, const char *language)
{
	int m = language ? package_manager_of(language) : PM_PIP;
	json_t *packages = package_request_json(
		a, flag, package_manager_name(m < 0 ? PM_PIP : (enum package_manager)m));
	struct api_client r;
	struct package_request x = { .r = &r, .options = o };
	int status;

	if (!packages)
		return 0;
	status = api_client_open(&r, cli);
	r.runs = 1;
	if (!status)
		status = package_request_send(&x, packages);
	else
		json_decref(packages);
	if (!status && package_request_layers(o, x.done) < 0)
		status = STATUS_OURS;
	json_decref(x.done);
	if (status)
		cli_error_print(&r.error, cli->json, status);
	api_client_close(&r);
	return status;
}
