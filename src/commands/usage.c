/* usage.c - `atoll usage`: prints what teams have used and what it cost. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { USAGE_BY, USAGE_FROM, USAGE_TO, USAGE_TEAM, USAGE_CSV, USAGE_NFLAGS };

static const struct flag flags[USAGE_NFLAGS] = {
	[USAGE_BY] = { "by", 0, FLAG_TEXT, "WORD",
		       "team, key, tag, template, runtime, day (default) or month" },
	[USAGE_FROM] = { "from", 0, FLAG_TEXT, "DAY",
			 "first day, like 2026-11-18, or a month, like 2026-11" },
	[USAGE_TO] = { "to", 0, FLAG_TEXT, "DAY", "last day or month, which is included" },
	[USAGE_TEAM] = { "team", 0, FLAG_TEXT, "TEAM",
			 "usage of another team, or * for all; only for operators" },
	[USAGE_CSV] = { "csv", 0, FLAG_SWITCH, NULL, "print comma-separated values" },
};

static void usage_path(struct buf *path, const struct args *a)
{
	static const struct {
		unsigned flag;
		const char *name;
	} all[] = { { USAGE_FROM, "from" }, { USAGE_TO, "to" }, { USAGE_TEAM, "team" } };

	buf_puts(path, "/v1/usage?by=");
	api_client_escape(path, args_text(a, USAGE_BY, "day"));
	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (args_has(a, all[i].flag)) {
			buf_printf(path, "&%s=", all[i].name);
			api_client_escape(path, args_text(a, all[i].flag, ""));
		}
	if (args_has(a, USAGE_CSV))
		buf_puts(path, "&format=csv");
}

static void usage_line(struct table *t, const char *value, const json_t *row)
{
	const json_t *use = json_object_get(row, "usage"), *cost = json_object_get(row, "cost");
	char cpu[UNITS_TEXT], sent[UNITS_TEXT];

	table_cell(t, "%s", *value ? value : "-");
	table_cell(t, "%lld", (long long)api_client_int(row, "runs", 0));
	table_cell(t, "%s", units_time(cpu, (uint64_t)api_client_int(use, "cpu_us", 0)));
	table_cell(t, "%.3f", (double)api_client_int(use, "memory_mib_ms", 0) / 1024 / 1000);
	table_cell(t, "%s", units_size(sent, (uint64_t)api_client_int(use, "network_bytes", 0)));
	table_cell(t, "%lld",
		   (long long)(api_client_int(use, "tokens_in", 0) +
			       api_client_int(use, "tokens_out", 0)));
	table_cell(t, "%s %s", api_client_text(cost, "amount"), api_client_text(cost, "currency"));
}

static void usage_print(const json_t *doc)
{
	static char title[32];
	const char *columns[] = { title,   ">RUNS",   ">CPU",  ">MEMORY GIB S",
				  ">SENT", ">TOKENS", ">COST", NULL };
	struct table t;
	json_t *row;
	size_t i;

	snprintf(title, sizeof(title), "%.20s", api_client_text(doc, "by"));
	for (char *c = title; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	table_init(&t, columns);
	json_array_foreach(json_object_get(doc, "items"), i, row)
	{
		const char *name = api_client_text(row, "name");

		usage_line(&t, *name ? name : api_client_text(row, "value"), row);
	}
	json_array_foreach(json_object_get(doc, "total"), i, row) usage_line(&t, "total", row);
	table_print(&t, isatty(1));
}

static int usage_show(struct api_client *r, const struct args *a)
{
	auto_buf struct buf path = { 0 };
	json_t *doc;

	usage_path(&path, a);
	if (args_has(a, USAGE_CSV)) {
		struct api_client_bytes get = {
			.method = "GET", .path = buf_str(&path), .from = -1, .to = 1
		};

		return api_client_bytes(r, &get);
	}
	doc = api_client_json(r, "GET", buf_str(&path), NULL);
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		usage_print(doc);
	json_decref(doc);
	return 0;
}

static int run_usage(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, usage_show);
}

static const struct example examples[] = {
	{ "atoll usage", "print the last 30 days of your team" },
	{ "atoll usage --by tag --from 2026-11", "print the cost of each tag since November" },
	{ "atoll usage --by team --csv >usage.csv", "write a file for a spreadsheet" },
	{ 0 },
};

const struct command command_usage = {
	.name = "usage",
	.group = "Observe",
	.usage = "[FLAGS]",
	.summary = "print what teams have used and what it cost",
	.flags = flags,
	.nflags = USAGE_NFLAGS,
	.examples = examples,
	.run = run_usage,
};
