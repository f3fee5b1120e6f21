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

struct port_change {
	const char *box, *port; /* NULL: all ports */
	int opens, to_public, closes;
};

static int port_show(struct api_client *r, const struct port_change *x, uint32_t port)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/ports/%u", x->box, (uint64_t)port);
	json_t *doc;

	if (x->closes) {
		doc = api_client_json(r, "DELETE", path, NULL);
		json_decref(doc);
		if (!doc)
			return r->status;
	}
	doc = api_client_json(r, x->opens ? "PUT" : "GET", path,
			      x->to_public ? json_pack("{s:b}", "public", 1) : NULL);
	if (!doc)
		return r->status;
	port_report(r->cli, doc, x->box);
	json_decref(doc);
	return 0;
}

/* BOX [PORT] with flags; or open BOX PORT, close BOX PORT. */
static int port_read_words(const struct args *a, struct port_change *out)
{
	int worded = a->nwords == 3, opens = worded && !strcmp(a->words[0], "open"),
	    closes = worded && !strcmp(a->words[0], "close");

	*out = (struct port_change){ .to_public = args_has(a, PORT_PUBLIC),
				     .closes = closes || args_has(a, PORT_CLOSE) };
	out->opens = opens || out->to_public || args_has(a, PORT_OPEN);
	if (!a->nwords || (worded && !opens && !closes) || (out->opens && out->closes) ||
	    (a->nwords == 1 && (out->opens || out->closes)))
		return -1;
	out->box = a->words[worded];
	out->port = a->nwords > 1 ? a->words[1 + worded] : NULL;
	return 0;
}

static int port_of_box(struct api_client *r, const struct args *a)
{
	struct port_change x;
	uint32_t port;

	if (port_read_words(a, &x) < 0) {
		api_client_usage(r, "port: missing box or port, or both --close and --open");
		cli_error_hint(&r->error, "type",
			       "atoll port BOX PORT [--open | --public | --close]");
		return r->status;
	}
	if (!x.port)
		return port_list(r, x.box);
	if (port_parse(r, x.port, &port))
		return r->status;
	if (port_show(r, &x, port)) {
		api_client_explain_box(r, x.box);
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
		"`atoll port open BOX PORT` and `atoll port close BOX PORT` are the same as --open and --close.\n"
		"Prints the address on stdout; of a private preview, the link with its token. Prints on stderr which\n"
		"program listens on the port and whether the preview is open; the document of --json contains both.",
	.flags = flags,
	.nflags = PORT_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_port,
};
