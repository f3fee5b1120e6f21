/* stats.c - `atoll stats`: prints the resource usage of a box, now, every second, or its
 * history; or the figures of the server. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	STATS_FOLLOW,
	STATS_SINCE,
	STATS_FIGURES,
	STATS_METRIC,
	STATS_BY,
	STATS_WHERE,
	STATS_STEP,
	STATS_NFLAGS
};

static const struct flag flags[STATS_NFLAGS] = {
	[STATS_FOLLOW] = { "follow", 'f', FLAG_SWITCH, NULL, "print every second" },
	[STATS_SINCE] = { "since", 0, FLAG_TEXT, "WHEN",
			  "past usage since: 15m, or a point in time" },
	[STATS_FIGURES] = { "figures", 0, FLAG_SWITCH, NULL, "print all figures of the server" },
	[STATS_METRIC] = { "metric", 0, FLAG_TEXT, "NAME",
			   "one figure over time, since --since (1h)" },
	[STATS_BY] = { "by", 0, FLAG_TEXT, "LABEL",
		       "of --metric: one row for each value of a label" },
	[STATS_WHERE] = { "where", 0, FLAG_TEXT, "LABELS",
			  "of --metric: only with these labels: language=python,outcome!=ok" },
	[STATS_STEP] = { "step", 0, FLAG_TIME, "TIME", "of --metric: time between two rows" },
};

static void stats_amount(const char *name, const json_t *doc, const char *used, const char *most,
			 int bytes)
{
	char now[UNITS_TEXT] = "-", limit[UNITS_TEXT] = "-";
	int64_t n = api_client_int(doc, used, -1), m = api_client_int(doc, most, -1);

	if (bytes && n >= 0)
		units_size(now, (uint64_t)n);
	else if (n >= 0)
		snprintf(now, sizeof(now), "%lld", (long long)n);
	if (bytes && m >= 0)
		units_size(limit, (uint64_t)m);
	else if (m >= 0)
		snprintf(limit, sizeof(limit), "%lld", (long long)m);
	printf("%-10s %12s of %s\n", name, now, limit);
}

static void stats_bytes(const char *name, const json_t *doc, const char *key)
{
	int64_t n = api_client_int(doc, key, -1);
	char text[UNITS_TEXT] = "-";

	printf("%-10s %12s\n", name, n < 0 ? text : units_size(text, (uint64_t)n));
}

static void print_now(const json_t *s)
{
	int64_t us = api_client_int(json_object_get(s, "cpu"), "us", -1);
	char text[UNITS_TEXT] = "-";

	stats_amount("memory", json_object_get(s, "memory"), "now", "limit", 1);
	stats_amount("peak", json_object_get(s, "memory"), "peak", "limit", 1);
	stats_amount("processes", json_object_get(s, "pids"), "now", "limit", 0);
	stats_amount("disk", json_object_get(s, "disk"), "used", "limit", 1);
	stats_amount("files", json_object_get(s, "disk"), "files", "files_limit", 0);
	printf("%-10s %12s\n", "cpu", us < 0 ? text : units_time(text, (uint64_t)us));
	stats_bytes("received", json_object_get(s, "network"), "bytes_in");
	stats_bytes("sent", json_object_get(s, "network"), "bytes_out");
	printf("%-10s %12lld\n", "programs", (long long)api_client_int(s, "running", 0));
}

static int each_second(void *ctx, json_t *line)
{
	const struct cli *cli = ctx;
	char mem[UNITS_TEXT] = "-", disk[UNITS_TEXT] = "-";
	const json_t *memory = json_object_get(line, "memory"), *d = json_object_get(line, "disk");

	if (strcmp(api_client_text(line, "type"), "stats") != 0)
		return 0;
	if (cli->json)
		api_client_print(line);
	else
		printf("%s  memory %s  processes %lld  disk %s\n", api_client_text(line, "at"),
		       units_size(mem, (uint64_t)api_client_int(memory, "now", 0)),
		       (long long)api_client_int(json_object_get(line, "pids"), "now", 0),
		       units_size(disk, (uint64_t)api_client_int(d, "used", 0)));
	return fflush(stdout) != 0;
}

static int stats_follow(struct api_client *r, const char *box)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/stats?follow=true", box);

	return api_client_lines(r, "GET", path, NULL, each_second, (void *)r->cli);
}

static int stats_do_show(struct api_client *r, const char *box, const char *since)
{
	json_t *doc = since ? api_client_get(r, "/v1/boxes/%s/stats/history?since=%s", box, since)
			    : api_client_get(r, "/v1/boxes/%s/stats", box);
	size_t i;
	json_t *v;

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else if (!since)
		print_now(doc);
	else
		json_array_foreach(json_object_get(doc, "items"), i, v) api_client_print(v);
	json_decref(doc);
	return 0;
}

/* ---- figures of the server ---- */

/* "language=python outcome=ok" */
static void stats_label_cell(struct table *t, const json_t *labels)
{
	auto_buf struct buf text = { 0 };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)labels, name, value)
		buf_printf(&text, "%s%s=%s", text.len ? " " : "", name, json_string_value(value));
	table_cell(t, "%s", buf_str(&text));
}

/* The value of a counter or gauge; of a histogram its number of values, mean and a quantile. */
static void stats_value_cells(struct table *t, const json_t *v)
{
	double count = json_number_value(json_object_get(v, "count")),
	       sum = json_number_value(json_object_get(v, "sum"));
	const json_t *value = json_object_get(v, "value");

	table_cell(t, "%.10g", value ? json_number_value(value) : count);
	if (value) {
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		return;
	}
	table_cell(t, "%.4g", count > 0 ? sum / count : 0);
	table_cell(t, "%.4g", json_number_value(json_object_get(v, "p95")));
}

static int stats_figures(struct api_client *r)
{
	static const char *const names[] = { "FIGURE", "LABELS", ">VALUE", ">MEAN", ">P95", NULL };
	json_t *doc = api_client_get(r, "/v1/stats?figures=true"), *figure, *one;
	struct table t;
	size_t i, k;

	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(json_object_get(doc, "figures"));
		json_decref(doc);
		return 0;
	}
	table_init(&t, names);
	json_array_foreach(json_object_get(doc, "figures"), i, figure)
		json_array_foreach(json_object_get(figure, "series"), k, one)
	{
		table_cell(&t, "%s", api_client_text(figure, "name"));
		stats_label_cell(&t, json_object_get(one, "labels"));
		stats_value_cells(&t, one);
	}
	table_print(&t, isatty(STDOUT_FILENO));
	json_decref(doc);
	return 0;
}

static json_t *stats_get_series(struct api_client *r, const struct args *a)
{
	unsigned long long step_s = args_value(a, STATS_STEP, 0) / 1000;
	auto_free char *by = api_client_path("&by=%s", args_text(a, STATS_BY, ""));
	auto_free char *where = api_client_path("&where=%s", args_text(a, STATS_WHERE, ""));
	auto_free char *start =
		api_client_path("/v1/stats/series?metric=%s&from=%s",
				args_text(a, STATS_METRIC, ""), args_text(a, STATS_SINCE, "1h"));
	auto_buf struct buf path = { 0 };

	buf_puts(&path, start);
	if (args_has(a, STATS_BY))
		buf_puts(&path, by);
	if (args_has(a, STATS_WHERE))
		buf_puts(&path, where);
	if (step_s)
		buf_printf(&path, "&step=%llu", step_s);
	return api_client_json(r, "GET", buf_str(&path), NULL);
}

static int stats_series(struct api_client *r, const struct args *a)
{
	static const char *const names[] = { "TIME", "LABELS", ">VALUE", ">MEAN", ">P95", NULL };
	json_t *doc = stats_get_series(r, a), *item, *point;
	struct table t;
	size_t i, k;

	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
		json_decref(doc);
		return 0;
	}
	table_init(&t, names);
	json_array_foreach(json_object_get(doc, "items"), i, item)
		json_array_foreach(json_object_get(item, "points"), k, point)
	{
		table_cell(&t, "%s", api_client_text(point, "at"));
		stats_label_cell(&t, json_object_get(item, "labels"));
		stats_value_cells(&t, point);
	}
	table_print(&t, isatty(STDOUT_FILENO));
	json_decref(doc);
	return 0;
}

static int stats_stats(struct api_client *r, const struct args *a)
{
	int status;

	if (args_has(a, STATS_METRIC))
		return stats_series(r, a);
	if (args_has(a, STATS_FIGURES))
		return stats_figures(r);

	if (!a->nwords) {
		api_client_usage(r, "stats: missing box");
		cli_error_hint(&r->error, "list", "atoll ls");
		cli_error_hint(&r->error, "all", "atoll top");
		return r->status;
	}
	status = args_has(a, STATS_FOLLOW)
			 ? stats_follow(r, a->words[0])
			 : stats_do_show(r, a->words[0], args_text(a, STATS_SINCE, NULL));
	if (status)
		api_client_explain_box(r, a->words[0]);
	return status;
}

static int run_stats(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, stats_stats);
}

static const struct example examples[] = {
	{ "atoll stats demo", "print memory, CPU, processes and disk" },
	{ "atoll stats -f demo --json", "print a line of JSON every second" },
	{ "atoll stats demo --since 1h --json", "print the usage of the last hour" },
	{ "atoll stats --figures", "print all figures of the server" },
	{ "atoll stats --metric executions_total --by outcome --since 1d",
	  "print how many programs ended in which way, over time" },
	{ 0 },
};

const struct command command_stats = {
	.name = "stats",
	.group = "Observe",
	.usage = "[FLAGS] [BOX]",
	.summary = "print the resource usage of a box, or the figures of the server",
	.flags = flags,
	.nflags = STATS_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_stats,
};
