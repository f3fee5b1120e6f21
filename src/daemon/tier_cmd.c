/* tier_cmd.c - `atoll tier`: prepares what an isolation tier needs (docs/tiers.md). */
#include "base/cleanup.h"
#include "cli/list_output.h"
#include "daemon/commands.h"
#include "daemon/prepare.h"

#include <stdio.h>
#include <string.h>

enum { TIER_FROM, TIER_MODULE, TIER_INTO, TIER_FORCE, TIER_STATE, TIER_CONFIG, TIER_NFLAGS };

static const struct flag flags[TIER_NFLAGS] = {
	[TIER_FROM] = { "from", 0, FLAG_TEXT, "DIR",
			"prepare: a node_modules folder with the packages; npm is not started" },
	[TIER_MODULE] = { "module", 0, FLAG_TEXT, "FILE",
			  "prepare wasm: compile this WASI module instead of the interpreters" },
	[TIER_INTO] = { "into", 0, FLAG_TEXT, "DIR",
			"prepare wasm: folder of compiled modules (default: /usr/local/lib/atoll/wasm)" },
	[TIER_FORCE] = { "force", 'f', FLAG_SWITCH, NULL, "prepare: again, although it is done" },
	[TIER_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[TIER_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
};

static const struct preparation *const preparations[] = { &preparation_microvm, &preparation_play,
							  &preparation_wasm };

static const struct preparation *tier_find_preparation(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(preparations); i++)
		if (!strcmp(preparations[i]->name, name))
			return preparations[i];
	return NULL;
}

static int tier_usage(const struct cli *cli, const char *name)
{
	char shown[SHOWN];
	struct cli_error t;

	if (name)
		cli_error_what(&t, "not_found", "tier prepare: there is nothing named '%s'",
			       cli_error_shown(name, shown));
	else
		cli_error_what(&t, "usage", "tier prepare: name what to prepare");
	for (unsigned i = 0; i < ARRAY_LEN(preparations) && i < ARRAY_LEN(t.hints); i++)
		cli_error_hint(&t, i ? "or" : "type", "atoll tier prepare %s",
			       preparations[i]->name);
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

/* The daemon, if one runs, examines the tiers again. */
static void tier_notify(const struct cli *cli)
{
	struct api_client r;

	if (api_client_open(&r, cli) == 0)
		json_decref(api_client_json(&r, "POST", "/v1/tiers/refresh", json_object()));
	api_client_close(&r);
}

static int tier_prepare(const struct cli *cli, const struct args *a)
{
	const struct preparation *p = a->nwords == 2 ? tier_find_preparation(a->words[1]) : NULL;
	struct prepare_how how = { .from = args_text(a, TIER_FROM, NULL),
				   .module = args_text(a, TIER_MODULE, NULL),
				   .into = args_text(a, TIER_INTO, NULL),
				   .force = args_has(a, TIER_FORCE),
				   .quiet = cli->quiet };
	struct state_dir dir;
	struct cli_error t;
	struct err e = { 0 };

	if (!p)
		return tier_usage(cli, a->nwords == 2 ? a->words[1] : NULL);
	if (state_dir_find(&dir, args_text(a, TIER_STATE, NULL), args_text(a, TIER_CONFIG, NULL),
			   &e) == 0 &&
	    p->run(&dir, &how, &e) == 0) {
		tier_notify(cli);
		if (cli->json)
			printf("{\"prepared\":\"%s\"}\n", p->name);
		return 0;
	}
	cli_error_what(&t, err_kind_name(e.kind), "tier prepare %s failed", p->name);
	cli_error_why(&t, "%s", e.msg);
	return cli_error_print(&t, cli->json, STATUS_FAILED);
}

/* ---- list ---- */

static void tier_row(struct table *t, json_t *x)
{
	const char *proven = api_client_text(x, "proven");

	table_cell(t, "%s", api_client_text(x, "tier"));
	table_cell(t, "%lld", (long long)api_client_int(x, "rank", 0));
	table_cell(t, "%s", api_client_text(x, "engine"));
	table_cell(t, "%s", api_client_text(x, "version"));
	table_cell(t, "%s%s", api_client_text(x, "platform"),
		   json_is_true(json_object_get(x, "emulated")) ? " (emulated)" : "");
	table_cell(t, "%s", *proven ? proven : "-");
	table_cell(t, "%s",
		   json_is_true(json_object_get(x, "offered")) ? "offered"
							       : api_client_text(x, "reason"));
}

static int tier_list(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "TIER",     ">RANK",  "ENGINE", "VERSION",
					       "PLATFORM", "PROVEN", "STATE",  NULL };

	(void)a;
	return list_output_show(r, "/v1/tiers", &(struct list_output){ columns, "tier", tier_row });
}

static int run_tier(const struct cli *cli, const struct args *a)
{
	struct cli_error t;

	if (a->nwords > 0 && !strcmp(a->words[0], "prepare"))
		return tier_prepare(cli, a);
	if (a->nwords == 1 && !strcmp(a->words[0], "list"))
		return api_client_command(cli, a, tier_list);
	cli_error_what(&t, "usage", "tier: say what to do");
	cli_error_hint(&t, "type", "atoll tier list");
	cli_error_hint(&t, "or", "atoll tier prepare play");
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static const struct example examples[] = {
	{ "atoll tier list", "which isolation tiers the daemon offers, and what the others need" },
	{ "sudo atoll tier prepare microvm",
	  "save one guest of each memory class, so that boxes start from it" },
	{ "atoll tier prepare play", "install the interpreters that /play/ executes in browsers" },
	{ "atoll tier prepare wasm",
	  "compile the interpreters of the tier wasm: then `atoll run --lang python-wasm x.py`" },
	{ NULL, NULL },
};

const struct command command_tier = {
	/* clang-format off */
	.name = "tier",
	.group = "Machine",
	.usage = "list | prepare NAME",
	.summary = "list the isolation tiers, prepare what one needs",
	.notes = "play: interpreters for programs in the browser (Pyodide, QuickJS), npm packages that are compared\n"
		 "with known hashes and stored in the state folder.\n"
		 "microvm: needs QEMU, a kernel and erofs-utils (docs/tiers.md). Repeat it after packages of the host have changed.\n"
		 "wasm: interpreters as WebAssembly modules from npm, translated by wasm2c and compiled by gcc (minutes).",
	.words = "list prepare",
	.flags = flags,
	.nflags = TIER_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_tier,
	/* clang-format on */
};
