/* port.c - `atoll port`: the address of a port of a box, and whether a program listens there. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { PORT_OPEN, PORT_CLOSE, PORT_NFLAGS };

static const struct flag flags[PORT_NFLAGS] = {
	[PORT_OPEN] = { "open", 0, FLAG_SWITCH, NULL, "allow requests without a key" },
	[PORT_CLOSE] = { "close", 0, FLAG_SWITCH, NULL, "require a key again" },
};

static void port_row(struct table *t, json_t *v)
{
	table_cell(t, "%lld", (long long)api_client_int(v, "port", 0));
	table_cell(t, "%s", api_client_text(v, "url"));
}

static int port_list(struct api_client *r, const char *box)
{
	static const char *const columns[] = { ">PORT", "URL", NULL };
	auto_free char *path = api_client_path("/v1/boxes/%s/ports", box);
	int status = list_output_show(r, path, &(struct list_output){ columns, "url", port_row });

	if (status)
		api_client_explain_box(r, box);
	return status;
}

/* 1, 0, or -1: r->status. */
static int port_listens(struct api_client *r, const char *box, uint32_t port)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/tools/open_port", box);
	json_t *doc = api_client_json(r, "POST", path, json_pack("{s:i}", "port", (int)port));
	const json_t *error = json_object_get(json_object_get(doc, "data"), "error");
	int listens = json_is_false(json_object_get(doc, "is_error"));

	if (doc && !listens && strcmp(api_client_text(error, "code"), "not_open") != 0) {
		cli_error_what(&r->error, "failed", "port %u: %.200s", port,
			       api_client_text(error, "message"));
		r->status = STATUS_FAILED;
		listens = -1;
	}
	json_decref(doc);
	return doc ? listens : -1;
}

static void port_report(const struct cli *cli, const json_t *doc, const char *box, uint32_t port)
{
	int listens = json_is_true(json_object_get(doc, "listens")),
	    open = json_is_true(json_object_get(doc, "open"));

	if (cli->json) {
		api_client_print(doc);
		return;
	}
	puts(api_client_text(doc, "url"));
	if (cli->quiet)
		return;
	fprintf(stderr, "atoll: %s on port %u of %s; %s\n",
		listens ? "a program listens" : "no program listens", port, box,
		open ? "requests need no key" : "requests need a key");
	if (!open)
		fprintf(stderr, "  without a key: atoll port %s %u --open\n", box, port);
}

static int port_show(struct api_client *r, const struct args *a, uint32_t port)
{
	const char *method = args_has(a, PORT_OPEN) ? "PUT" : "GET", *box = a->words[0];
	auto_free char *path = api_client_path("/v1/boxes/%s/ports/%u", box, (uint64_t)port);
	json_t *doc;
	int listens;

	if (args_has(a, PORT_CLOSE)) {
		doc = api_client_json(r, "DELETE", path, NULL);
		json_decref(doc);
		if (!doc)
			return r->status;
	}
	doc = api_client_json(r, method, path, NULL);
	if (!doc)
		return r->status;
	listens = port_listens(r, box, port);
	if (listens >= 0) {
		json_object_set_new(doc, "listens", json_boolean(listens));
		port_report(r->cli, doc, box, port);
	}
	json_decref(doc);
	return listens < 0 ? r->status : 0;
}

static int port_of_box(struct api_client *r, const struct args *a)
{
	uint32_t port;
	struct err e;

	if (!a->nwords || (args_has(a, PORT_OPEN) && args_has(a, PORT_CLOSE)) ||
	    (a->nwords == 1 && a->ngiven && (args_has(a, PORT_OPEN) || args_has(a, PORT_CLOSE)))) {
		api_client_usage(r, "port: missing box or port");
		cli_error_hint(&r->error, "type", "atoll port BOX PORT [--open | --close]");
		return r->status;
	}
	if (a->nwords == 1)
		return port_list(r, a->words[0]);
	if (units_parse_count(a->words[1], 65535, &port, &e) < 0 || port == 0) {
		char shown[SHOWN];

		api_client_usage(r, "'%s' is not a port: 1 to 65535",
				 cli_error_shown(a->words[1], shown));
		return r->status;
	}
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
	{ "atoll port demo 3000", "print the address, and whether a program listens there" },
	{ "atoll port demo 3000 --open", "allow browsers, which have no key" },
	{ "atoll port demo", "list the ports that are open without a key" },
	{ 0 },
};

const struct command command_port = {
	.name = "port",
	.group = "Boxes",
	.usage = "[--open | --close] BOX [PORT]",
	.summary = "print the address of a port of a box",
	.notes =
		"Prints the URL on stdout. Prints on stderr whether a program listens on the port and whether\n"
		"requests need a key; the document of --json contains both.",
	.flags = flags,
	.nflags = PORT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_port,
};
