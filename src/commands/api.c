/* api.c - `atoll api`: sends one request of the API unchanged; without arguments, prints the
 * table of routes. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { API_TYPE, API_ACCEPT, API_NFLAGS };

static const struct flag flags[API_NFLAGS] = {
	[API_TYPE] = { "type", 0, FLAG_TEXT, "MIME", "media type of the body (application/json)" },
	[API_ACCEPT] = { "accept", 0, FLAG_TEXT, "MIME",
			 "media type of the answer; application/x-ndjson streams" },
};

static void path_rows(struct table *t, const char *path, const json_t *methods)
{
	const char *method;
	json_t *op;

	json_object_foreach((json_t *)methods, method, op)
	{
		char upper[16] = "";

		for (unsigned i = 0; method[i] && i < sizeof(upper) - 1; i++)
			upper[i] = (char)toupper((unsigned char)method[i]);
		table_cell(t, "%s", upper);
		table_cell(t, "%s", path);
		table_cell(t, "%s", api_client_text(op, "x-atoll-role"));
		table_cell(t, "%s", api_client_text(op, "summary"));
	}
}

static int api_cmd_overview(struct api_client *r)
{
	static const char *const columns[] = { "METHOD", "PATH", "ROLE", "WHAT", NULL };
	json_t *doc = api_client_get(r, "/openapi.json"), *methods;
	struct table t;
	const char *path;

	if (!doc)
		return r->status;
	table_init(&t, columns);
	json_object_foreach(json_object_get(doc, "paths"), path, methods)
		path_rows(&t, path, methods);
	if (r->cli->json)
		api_client_print(doc);
	table_print(&t, !r->cli->json && isatty(1));
	json_decref(doc);
	return 0;
}

static int api_cmd_check(struct api_client *r, const struct args *a)
{
	const char *method = a->words[0];
	char shown[SHOWN];

	if (a->nwords < 2) {
		api_client_usage(r, "api: missing path");
	} else if (!*method || method[strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]) {
		api_client_usage(r, "api: '%s' is not a method", cli_error_shown(method, shown));
	} else if (a->words[1][0] != '/') {
		api_client_usage(r, "api: '%s' is not a path; it begins with /",
				 cli_error_shown(a->words[1], shown));
	} else {
		return 0;
	}
	cli_error_hint(&r->error, "type", "atoll api GET /v1/boxes");
	cli_error_hint(&r->error, "list", "atoll api");
	return r->status;
}

static int api_cmd_call(struct api_client *r, const struct args *a)
{
	struct api_client_bytes x = { .from = -1, .to = 1 };

	if (!a->nwords)
		return api_cmd_overview(r);
	if (api_cmd_check(r, a))
		return r->status;
	x.method = a->words[0];
	x.path = a->words[1];
	x.accept = args_text(a, API_ACCEPT, "application/json");
	if (a->nwords > 2) {
		x.type = args_text(a, API_TYPE, "application/json");
		x.body = a->words[2];
		x.len = strlen(a->words[2]);
	}
	if (a->nwords > 2 && !strcmp(a->words[2], "-")) {
		if (isatty(0) && !r->cli->quiet)
			fputs("atoll: reading the body from the terminal; Ctrl-D ends it\n",
			      stderr);
		x.body = NULL;
		x.len = 0;
		x.from = 0;
	}
	if (api_client_bytes(r, &x))
		return r->status;
	if (x.written && isatty(1))
		putchar('\n');
	return 0;
}

static int run_api(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, api_cmd_call);
}

static const struct example examples[] = {
	{ "atoll api", "list all paths" },
	{ "atoll api GET /v1/boxes", "send one request" },
	{ "atoll api POST /v1/run '{\"command\":\"date\"}'",
	  "send a request with a body; - reads it from stdin" },
	{ 0 },
};

const struct command command_api = {
	.name = "api",
	.group = "Machine",
	.usage = "[METHOD PATH [BODY | -]]",
	.summary = "call the HTTP API of the daemon",
	.flags = flags,
	.nflags = API_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_api,
};
