/* ls.c - `atoll ls`: the daemon's boxes. */
#include "base/cleanup.h"
#include "base/id.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LS_ALL, LS_STATE, LS_TEMPLATE, LS_META, LS_NAME, LS_NFLAGS };

static const struct flag flags[LS_NFLAGS] = {
	[LS_ALL] = { "all", 'a', FLAG_SWITCH, NULL, "include deleted boxes" },
	[LS_STATE] = { "state", 0, FLAG_TEXT, "STATE",
		       "only boxes in this state: running, stopped, paused, deleted" },
	[LS_TEMPLATE] = { "template", 't', FLAG_TEXT, "NAME", "only boxes of this template" },
	[LS_META] = { "meta", 0, FLAG_WORDS, "KEY=VALUE",
		      "only boxes with this metadata; may be repeated" },
	[LS_NAME] = { "name", 0, FLAG_TEXT, "TEXT", "only boxes whose name starts with this text" },
};

static void ls_add(struct buf *path, const char *key, const char *value)
{
	buf_printf(path, "%c%s=", strchr(buf_str(path), '?') ? '&' : '?', key);
	api_client_escape(path, value);
}

static void ls_filter(struct buf *path, const struct args *a)
{
	auto_buf struct buf meta = { 0 };

	buf_puts(path, "/v1/boxes");
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == LS_META)
			buf_printf(&meta, "%s%s", meta.len ? "&" : "", a->given[i].text);
	if (args_has(a, LS_ALL) || args_has(a, LS_STATE))
		ls_add(path, "state", args_text(a, LS_STATE, "all"));
	if (args_has(a, LS_TEMPLATE))
		ls_add(path, "template", args_text(a, LS_TEMPLATE, ""));
	if (args_has(a, LS_NAME))
		ls_add(path, "name", args_text(a, LS_NAME, ""));
	if (meta.len)
		ls_add(path, "metadata", buf_str(&meta));
}

static json_t *ls_nodes; /* of a gateway: an array; NULL: the daemon is not a gateway */

/* The name of the node whose number is in the id; "-": the gateway does not know it. */
static const char *ls_node_name(const char *id)
{
	json_t *node;
	size_t i;

	json_array_foreach(ls_nodes, i, node) if (api_client_int(node, "number", -2) ==
						  id_node(id)) return api_client_text(node, "name");
	return "-";
}

static void ls_row(struct table *t, json_t *box)
{
	char text[24];

	table_cell(t, "%s", api_client_text(box, "id"));
	if (ls_nodes)
		table_cell(t, "%s", ls_node_name(api_client_text(box, "id")));
	table_cell(t, "%s", api_client_text(box, "name"));
	table_cell(t, "%s", api_client_state(box));
	table_cell(t, "%s", api_client_text(box, "template"));
	table_cell(t, "%lld", (long long)api_client_int(box, "running", 0));
	table_cell(t, "%s", api_client_since(text, box, "created"));
	if (json_is_string(json_object_get(box, "kept_until")))
		table_cell(t, "%s", api_client_until(text, box, "kept_until"));
	else if (!strcmp(api_client_state(box), "deleted"))
		table_cell(t, "%s", api_client_text(box, "cause"));
	else
		table_cell(t, "%s", api_client_until(text, box, "ends"));
}

static int ls_list(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "BOX",       "NAME", "STATE",    "TEMPLATE",
					       ">PROGRAMS", ">AGE", ">ENDS IN", NULL };
	static const char *const of_gateway[] = { "BOX",   "NODE",     "NAME",
						  "STATE", "TEMPLATE", ">PROGRAMS",
						  ">AGE",  ">ENDS IN", NULL };
	auto_buf struct buf path = { 0 };
	json_t *nodes = NULL;
	int status;

	if (!r->cli->json && !r->cli->quiet)
		nodes = api_client_get(r, "/v1/nodes");
	ls_nodes = json_object_get(nodes, "items");
	ls_filter(&path, a);
	status = list_output_show(r, buf_str(&path),
				  &(struct list_output){ ls_nodes ? of_gateway : columns, "id",
							 ls_row });
	json_decref(nodes);
	ls_nodes = NULL;
	return status;
}

static int run_ls(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, ls_list);
}

static const struct example examples[] = {
	{ "atoll ls", "list all boxes" },
	{ "atoll ls -a", "list all boxes, also deleted ones" },
	{ "atoll ls --meta user=alice -q", "print the ids of boxes with this metadata" },
	{ 0 },
};

const struct command command_ls = {
	.name = "ls",
	.group = "Boxes",
	.usage = "[FLAGS]",
	.summary = "list the boxes of the daemon",
	.flags = flags,
	.nflags = LS_NFLAGS,
	.examples = examples,
	.run = run_ls,
};
