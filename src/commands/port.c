/* port.c - `atoll port`: the ports of a box, the programs that listen there, and their previews. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "commands/commands.h"
#include "commands/port.h"

#include <stdio.h>
#include <string.h>

enum { PORT_OPEN, PORT_PUBLIC, PORT_CLOSE, PORT_NFLAGS };

static const struct flag flags[PORT_NFLAGS] = {
	[PORT_OPEN] = { "open", 0, FLAG_SWITCH, NULL,
			"open it as a private preview: requests need its token" },
	[PORT_PUBLIC] = { "public", 0, FLAG_SWITCH, NULL,
			  "open it for every client that knows its address" },
	[PORT_CLOSE] = { "close", 0, FLAG_SWITCH, NULL, "close it; its token is no longer valid" },
};

static const char *port_access(const json_t *v)
{
	return json_is_true(json_object_get(v, "public")) ? "public"
	       : json_is_true(json_object_get(v, "open")) ? "private"
							  : "closed";
}

static void port_row(struct table *t, json_t *v)
{
	const char *address = api_client_text(v, "address"), *link = api_client_text(v, "link");

	table_cell(t, "%lld", (long long)api_client_int(v, "port", 0));
	table_cell(t, "%s", *address ? address : "-");
	table_cell(t, "%s", *api_client_text(v, "process") ? api_client_text(v, "process") : "-");
	table_cell(t, "%s", port_access(v));
	table_cell(t, "%s", *link ? link : api_client_text(v, "url"));
}

static int port_list(struct api_client *r, const char *box)
{
	static const char *const columns[] = {
		">PORT", "LISTENS", "PROCESS", "PREVIEW", "URL", NULL
	};
	auto_free char *path = api_client_path("/v1/boxes/%s/ports", box);
	int status = list_output_show(r, path, &(struct list_output){ columns, "url", port_row });

	if (status)
		api_client_explain_box(r, box);
	return status;
}

void port_report(const struct cli *cli, const json_t *doc, const char *box)
{
	const char *access = port_access(doc), *link = api_client_text(doc, "link"),
		   *process = api_client_text(doc, "process");
	long long port = (long long)api_client_int(doc, "port", 0);
	int listens = json_is_true(json_object_get(doc, "listening"));

	if (cli->json) {
		api_client_print(doc);
		return;
	}
	puts(*link && *access != 'c' ? link : api_client_text(doc, "url"));
	if (cli->quiet)
		return;
	fprintf(stderr, "atoll: %s on port %lld of %s; its preview is %s\n",
		!listens   ? "no program listens"
		: *process ? process
			   : "a program",
		port, box, access);
	if (*access == 'c')
		fprintf(stderr, "  open it: atoll port %s %lld --open\n", box, port);
}

int port_parse(struct api_client *r, const char *text, uint32_t *out)
{
	char shown[SHOWN];
	struct err e;

	if (units_parse_count(text, 65535, out, &e) == 0 && *out)
		return 0;
	return api_client_usage(r, "'%s' is not a port: 1 to 65535", cli_error_shown(text, shown));
}

static int port_show(struct api_client *r, const struct args *a, uint32_t port)
{
	int to_public = args_has(a, PORT_PUBLIC);
	const char *method = to_public || args_has(a, PORT_OPEN) ? "PUT" : "GET",
		   *box = a->words[0];
	auto_free char *path = api_client_path("/v1/boxes/%s/ports/%u", box, (uint64_t)port);
	json_t *doc;

	if (args_has(a, PORT_CLOSE)) {
		doc = api_client_json(r, "DELETE", path, NULL);
		json_decref(doc);
		if (!doc)
			return r->status;
	}
	doc = api_client_json(r, method, path, to_public ? json_pack("{s:b}", "public", 1) : NULL);
	if (!doc)
		return r->status;
	port_report(r->cli, doc, box);
	json_decref(doc);
	return 0;
}

static int port_of_box(struct api_client *r, const struct args *a)
{
	int changes = args_has(a, PORT_OPEN) || args_has(a, PORT_PUBLIC) || args_has(a, PORT_CLOSE);
	uint32_t port;

	if (!a->nwords || (a->nwords == 1 && changes) ||
	    (args_has(a, PORT_CLOSE) && (args_has(a, PORT_OPEN) || args_has(a, PORT_PUBLIC)))) {
		api_client_usage(r, "port: missing box or port, or --close with --open");
		cli_error_hint(&r->error, "type",
			       "atoll port BOX PORT [--open | --public | --close]");
		return r->status;
	}
	if (a->nwords == 1)
		return port_list(r, a->words[0]);
	if (port_parse(r, a->words[1], &port))
		return r->status;
	if (port_show(r, a, port)) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	return 0;
}

static int run_port(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, port_of_box);
}

static const struct example examples[] = {
	{ "atoll port demo", "list the ports on which programs listen, and open previews" },
	{ "atoll port demo 3000 --open", "open it as a private preview and print its link" },
	{ "atoll port demo 3000 --public", "allow every client that knows the address" },
	{ 0 },
};

const struct command command_port = {
	.name = "port",
	.group = "Boxes",
	.usage = "[--open | --public | --close] BOX [PORT]",
	.summary = "list the ports of a box, open or close a preview",
	.notes =
		"Prints the address on stdout; of a private preview, the link with its token. Prints on stderr which\n"
		"program listens on the port and whether the preview is open; the document of --json contains both.",
	.flags = flags,
	.nflags = PORT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_port,
};
