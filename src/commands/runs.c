/* runs.c - `atoll runs`: lists runs, or prints the record of one. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_BOX, RUNS_CAUSE, RUNS_RUNNING, RUNS_COUNT, RUNS_NFLAGS };

static const struct flag flags[RUNS_NFLAGS] = {
	[RUNS_BOX] = { "box", 'b', FLAG_TEXT, "BOX", "only runs of this box" },
	[RUNS_CAUSE] = { "cause", 0, FLAG_TEXT, "CAUSE",
			 "only runs with this cause: exit, memory, wall, ..." },
	[RUNS_RUNNING] = { "running", 'r', FLAG_SWITCH, NULL, "only running programs" },
	[RUNS_COUNT] = { "count", 'n', FLAG_COUNT, "N",
			 "maximum number of runs, newest first (100)" },
};

struct list_output {
	const struct cli *cli;
	struct table table;
	json_t *items;
	uint64_t left;
};

static void command_text(struct buf *out, const json_t *words)
{
	size_t i;
	json_t *word;

	json_array_foreach(words, i, word)
		buf_printf(out, "%s%s", i ? " " : "", json_string_value(word));
}

static const char *runs_took(char out[UNITS_TEXT], const json_t *run)
{
	int64_t from = api_client_when_ms(api_client_text(run, "started")),
		to = api_client_when_ms(api_client_text(run, "ended"));

	return from < 0 || to < from ? strcpy(out, "-")
				     : units_time(out, (uint64_t)(to - from) * 1000);
}

static int runs_each(void *ctx, json_t *run)
{
	struct list_output *l = ctx;
	struct table *t = &l->table;
	auto_buf struct buf line = { 0 };
	char text[UNITS_TEXT];

	if (l->cli->json) {
		json_array_append(l->items, run);
	} else if (l->cli->quiet) {
		puts(api_client_text(run, "id"));
	} else {
		command_text(&line, json_object_get(run, "command"));
		table_cell(t, "%s", api_client_text(run, "id"));
		table_cell(t, "%s", api_client_text(run, "box"));
		table_cell(t, "%s",
			   *api_client_text(run, "cause") ? api_client_text(run, "cause")
							  : "running");
		if (json_is_integer(json_object_get(run, "status")))
			table_cell(t, "%lld", (long long)api_client_int(run, "status", 0));
		else
			table_cell(t, "-");
		table_cell(t, "%s", api_client_since(text, run, "started"));
		table_cell(t, "%s", runs_took(text, run));
		table_cell(t, "%.60s", buf_str(&line));
	}
	return --l->left == 0;
}

static void runs_filter(struct buf *path, const struct args *a)
{
	uint64_t n = args_value(a, RUNS_COUNT, 100);

	buf_printf(path, "/v1/runs?limit=%llu", (unsigned long long)(n < 100 ? n : 100));
	if (args_has(a, RUNS_BOX)) {
		buf_puts(path, "&box=");
		api_client_escape(path, args_text(a, RUNS_BOX, ""));
	}
	if (args_has(a, RUNS_CAUSE)) {
		buf_puts(path, "&cause=");
		api_client_escape(path, args_text(a, RUNS_CAUSE, ""));
	}
	if (args_has(a, RUNS_RUNNING))
		buf_puts(path, "&running=true");
}

static int runs_do_list(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "RUN",  "BOX",   "CAUSE",   ">STATUS",
					       ">AGO", ">TOOK", "COMMAND", NULL };
	struct list_output l = { .cli = r->cli,
				 .items = json_array(),
				 .left = args_value(a, RUNS_COUNT, 100) };
	auto_buf struct buf path = { 0 };
	int status;

	table_init(&l.table, columns);
	runs_filter(&path, a);
	status = api_client_list(r, buf_str(&path), runs_each, &l);
	if (!status && r->cli->json)
		api_client_print(l.items);
	table_print(&l.table, !status && !r->cli->json && !r->cli->quiet && isatty(1));
	json_decref(l.items);
	return status;
}

/* Prints the sentence first, then figures. */
static void print_record(const json_t *run)
{
	auto_buf struct buf line = { 0 };
	const json_t *mem = json_object_get(run, "mem_peak"), *cpu = json_object_get(run, "cpu_s");
	char text[UNITS_TEXT], shown[SHOWN];
	const char *summary = api_client_text(run, "summary");

	command_text(&line, json_object_get(run, "command"));
	printf("%s in %s: %s\n", api_client_text(run, "id"), api_client_text(run, "box"),
	       *summary                                   ? summary
	       : !strcmp(api_client_state(run), "exited") ? "ended by itself"
							  : "running");
	printf("%-12s %s\n", "command", cli_error_shown(buf_str(&line), shown));
	if (*api_client_text(run, "cause"))
		printf("%-12s %s, exit %lld\n", "cause", api_client_text(run, "cause"),
		       (long long)api_client_int(run, "status", 0));
	printf("%-12s %s\n", "started", api_client_text(run, "started"));
	printf("%-12s %s\n", "took", runs_took(text, run));
	if (json_is_number(cpu))
		printf("%-12s %s\n", "cpu",
		       units_time(text, (uint64_t)(json_number_value(cpu) * 1e6)));
	if (json_is_integer(mem))
		printf("%-12s %s\n", "memory", units_size(text, (uint64_t)json_integer_value(mem)));
	if (*api_client_text(run, "hint"))
		printf("%-12s %s\n", "hint", api_client_text(run, "hint"));
}

static int runs_do_show(struct api_client *r, const char *id)
{
	json_t *run = api_client_get(r, "/v1/runs/%s", id);
	char shown[SHOWN];

	if (!run && r->http == 404) {
		cli_error_what(&r->error, "not_found", "no run \"%s\"", cli_error_shown(id, shown));
		cli_error_hint(&r->error, "list", "atoll runs");
	}
	if (!run)
		return r->status;
	if (r->cli->json)
		api_client_print(run);
	else
		print_record(run);
	json_decref(run);
	return 0;
}

static int runs_runs(struct api_client *r, const struct args *a)
{
	if (!a->nwords || (a->nwords == 1 && !strcmp(a->words[0], "ls")))
		return runs_do_list(r, a);
	if (a->nwords == 2 && !strcmp(a->words[0], "show"))
		return runs_do_show(r, a->words[1]);
	api_client_usage(r, "runs: unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll runs | atoll runs show ID");
	return r->status;
}

static int run_runs(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, runs_runs);
}

static const struct example examples[] = {
	{ "atoll runs", "list the newest hundred runs" },
	{ "atoll runs --cause memory", "list runs that reached their memory limit" },
	{ "atoll runs show k3v7qe2xn4ab --json", "print the complete record of one run" },
	{ 0 },
};

const struct command command_runs = {
	.name = "runs",
	.group = "Observe",
	.usage = "[FLAGS] | show ID",
	.summary = "list past and running programs",
	.words = "ls show",
	.flags = flags,
	.nflags = RUNS_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_runs,
};
