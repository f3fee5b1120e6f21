/* ps.c - `atoll ps`: lists the programs that run in the daemon's boxes; without a daemon, the
 * keeper's boxes. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "client/box_handle.h"
#include "cli/api_client.h"
#include "cli/local_run.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PS_ALL, PS_LOCAL, PS_NFLAGS };
enum { PAGE = 200 };

static const struct flag flags[PS_NFLAGS] = {
	[PS_ALL] = { "all", 'a', FLAG_SWITCH, NULL, "include programs that have exited" },
	[PS_LOCAL] = { "local", 0, FLAG_SWITCH, NULL, "list the boxes of this machine's keeper" },
};

/* ---- the keeper's boxes ---- */

static void print_row(struct keeper_sync *k, const struct wire_box *b)
{
	char age[UNITS_TEXT], used[UNITS_TEXT], limit[UNITS_TEXT];
	struct wire_counters n = { 0 };
	struct err e;

	if (boxh_counters(k, b->id, &n, &e) < 0)
		return; /* it ended after the list was read */
	printf("%-15s %-8s %12s %12s / %-9s %5lld / %u\n", b->id, b->template,
	       units_time(age, (clock_ns(CLOCK_REALTIME) - b->created_ns) / 1000),
	       units_size(used, n.mem_now), units_size(limit, b->limits.mem_bytes),
	       (long long)n.pids_now, b->limits.pids);
}

static json_t *json_row(struct keeper_sync *k, const struct wire_box *b)
{
	struct wire_counters n = { 0 };
	struct err e;

	if (boxh_counters(k, b->id, &n, &e) < 0)
		return NULL;
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "id", b->id, "template",
			 b->template, "created_ns", (json_int_t)b->created_ns, "mem",
			 (json_int_t)n.mem_now, "mem_limit", (json_int_t)b->limits.mem_bytes,
			 "pids", (json_int_t)n.pids_now, "pids_limit", (json_int_t)b->limits.pids,
			 "cpu_us", (json_int_t)n.cpu_us, "pid", b->init_pid);
}

static int ps_list(const struct cli *cli, struct keeper_sync *k, json_t *rows, struct err *e)
{
	struct wire_box page[PAGE];
	char after[WIRE_ID] = "";
	int n;

	if (!cli->json && !cli->quiet && isatty(1))
		printf("%-15s %-8s %12s %24s %13s\n", "BOX", "TEMPLATE", "AGE", "MEMORY / LIMIT",
		       "PROCESSES");
	while ((n = keeper_sync_boxes(k, after, page, PAGE, e)) > 0) {
		for (int i = 0; i < n; i++) {
			if (cli->json)
				json_array_append_new(rows, json_row(k, &page[i]));
			else if (cli->quiet)
				puts(page[i].id);
			else
				print_row(k, &page[i]);
		}
		snprintf(after, sizeof(after), "%s", page[n - 1].id);
	}
	return n;
}

static int ps_local(const struct cli *cli)
{
	struct keeper_sync k;
	json_t *rows = json_array();
	struct err e;
	int bad;

	bad = keeper_sync_open(&k, 0, &e) < 0;
	if (bad && (e.sys == ENOENT || e.sys == ECONNREFUSED))
		bad = 0; /* no keeper, no boxes */
	else if (!bad)
		bad = ps_list(cli, &k, rows, &e) < 0;
	if (!bad && cli->json) {
		json_dumpf(rows, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(rows);
	keeper_sync_close(&k);
	return bad ? (local_run_failed(cli, &e), STATUS_FAILED) : 0;
}

/* ---- the daemon's programs ---- */

struct list_output {
	const struct cli *cli;
	struct table table;
	json_t *items;
};

static void command_cell(struct table *t, const json_t *words)
{
	auto_buf struct buf line = { 0 };
	size_t i;
	json_t *word;

	json_array_foreach(words, i, word)
		buf_printf(&line, "%s%.60s", i ? " " : "", json_string_value(word));
	table_cell(t, "%.60s", buf_str(&line));
}

static int ps_each(void *ctx, json_t *run)
{
	struct list_output *l = ctx;
	struct table *t = &l->table;
	int over = !strcmp(api_client_state(run), "exited");
	char text[24];

	if (l->cli->json) {
		json_array_append(l->items, run);
		return 0;
	}
	if (l->cli->quiet) {
		puts(api_client_text(run, "id"));
		return 0;
	}
	table_cell(t, "%s", api_client_text(run, "id"));
	table_cell(t, "%s", api_client_text(run, "box"));
	if (over)
		table_cell(t, "%s %lld", api_client_text(run, "cause"),
			   (long long)api_client_int(run, "status", 0));
	else
		table_cell(t, "running");
	table_cell(t, "%s", api_client_since(text, run, "started"));
	command_cell(t, json_object_get(run, "command"));
	return 0;
}

static int ps_programs(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "EXEC", "BOX", "STATE", ">AGE", "COMMAND", NULL };
	struct list_output l = { .cli = r->cli, .items = json_array() };
	const char *query = args_has(a, PS_ALL) ? "" : "?running=true";
	auto_buf struct buf path = { 0 };
	int status;

	table_init(&l.table, columns);
	buf_puts(&path, a->nwords ? "/v1/boxes/" : "/v1/runs");
	if (a->nwords) {
		api_client_escape(&path, a->words[0]);
		buf_puts(&path, "/execs");
	}
	buf_puts(&path, query);
	status = api_client_list(r, buf_str(&path), ps_each, &l);
	if (!status && r->cli->json)
		api_client_print(l.items);
	table_print(&l.table, !status && !r->cli->json && !r->cli->quiet && isatty(1));
	json_decref(l.items);
	if (status && a->nwords)
		api_client_explain_box(r, a->words[0]);
	return status;
}

static int ps_ps(const struct cli *cli, const struct args *a)
{
	struct api_client r;
	int status;

	if (args_has(a, PS_LOCAL) && !a->nwords)
		return ps_local(cli);
	status = api_client_open(&r, cli);
	if (!status)
		status = ps_programs(&r, a);
	api_client_close(&r);
	/* No daemon was named, and none runs: then the keeper's boxes are listed. */
	if (status && r.never && !r.reach.chosen && !a->nwords)
		return ps_local(cli);
	return status ? cli_error_print(&r.error, cli->json, status) : 0;
}

static const struct example examples[] = {
	{ "atoll ps", "list running programs" },
	{ "atoll ps -a demo", "list all programs of demo, also exited ones" },
	{ "atoll ps --local", "print age, memory and processes of every box of this machine" },
	{ 0 },
};

const struct command command_ps = {
	.name = "ps",
	.group = "Run",
	.usage = "[-a] [BOX] | --local",
	.summary = "list running programs",
	.notes =
		"Without a daemon, or with --local, lists the boxes of this machine's keeper, including those of\n"
		"`atoll run` and `atoll shell`.",
	.flags = flags,
	.nflags = PS_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = ps_ps,
};
