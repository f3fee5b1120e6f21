/* top.c - `atoll top`: shows the resource usage of all boxes, updated every second. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/table.h"
#include "commands/commands.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TOP_COUNT, TOP_NFLAGS };
enum { TICK_MS = 1000, MOST = 200 };

static const struct flag flags[TOP_NFLAGS] = {
	[TOP_COUNT] = { "count", 'n', FLAG_COUNT, "N",
			"number of updates (on a terminal: no limit)" },
};

struct seen { /* of the tick before */
	char id[16];
	int64_t cpu_us;
	uint64_t at_ns;
};

struct top {
	struct api_client *r;
	json_t *boxes;
	struct seen before[MOST];
	unsigned nbefore;
};

static int top_collect(void *ctx, json_t *box)
{
	struct top *t = ctx;

	json_array_append(t->boxes, box);
	return json_array_size(t->boxes) == MOST;
}

/* Per cent of one processor since the previous update; -1: unknown. */
static double load_of(struct top *t, const char *id, int64_t cpu_us)
{
	uint64_t now = now_ns();
	struct seen *s = NULL;
	double load = -1;

	for (unsigned i = 0; i < t->nbefore && !s; i++)
		if (!strcmp(t->before[i].id, id))
			s = &t->before[i];
	if (s && s->cpu_us >= 0 && cpu_us >= s->cpu_us && now > s->at_ns)
		load = (double)(cpu_us - s->cpu_us) * 1e5 / (double)(now - s->at_ns);
	if (!s && t->nbefore < MOST)
		s = &t->before[t->nbefore++];
	if (s) {
		snprintf(s->id, sizeof(s->id), "%s", id);
		s->cpu_us = cpu_us;
		s->at_ns = now;
	}
	return load;
}

static void add_row(struct top *t, struct table *table, json_t *box, json_t *rows)
{
	const char *id = api_client_text(box, "id");
	json_t *stats = api_client_get(t->r, "/v1/boxes/%s/stats", id);
	const json_t *memory = json_object_get(stats, "memory");
	char used[UNITS_TEXT], limit[UNITS_TEXT], ends[24];
	double load;

	if (!stats)
		return; /* it ended after the list was read */
	load = load_of(t, id, api_client_int(json_object_get(stats, "cpu"), "us", -1));
	if (rows) {
		json_object_set_new(stats, "name", json_string(api_client_text(box, "name")));
		json_object_set_new(stats, "state", json_string(api_client_state(box)));
		json_object_set_new(stats, "cpu_percent", load < 0 ? json_null() : json_real(load));
		json_array_append_new(rows, stats);
		return;
	}
	table_cell(table, "%s", id);
	table_cell(table, "%s", api_client_text(box, "name"));
	table_cell(table, "%s", api_client_state(box));
	if (load < 0)
		table_cell(table, "-");
	else
		table_cell(table, "%.0f %%", load);
	table_cell(table, "%s / %s", units_size(used, (uint64_t)api_client_int(memory, "now", 0)),
		   units_size(limit, (uint64_t)api_client_int(memory, "limit", 0)));
	table_cell(table, "%lld",
		   (long long)api_client_int(json_object_get(stats, "pids"), "now", 0));
	table_cell(table, "%s",
		   units_size(used,
			      (uint64_t)api_client_int(json_object_get(stats, "disk"), "used", 0)));
	table_cell(table, "%s", api_client_until(ends, box, "ends"));
	json_decref(stats);
}

static int top_tick(struct top *t, int live)
{
	static const char *const columns[] = { "BOX",        "NAME",  "STATE",    ">CPU", ">MEMORY",
					       ">PROCESSES", ">DISK", ">ENDS IN", NULL };
	json_t *rows = t->r->cli->json ? json_array() : NULL, *box;
	struct table table;
	size_t i;
	int status;

	t->boxes = json_array();
	table_init(&table, columns);
	status = api_client_list(t->r, "/v1/boxes", top_collect, t);
	json_array_foreach(t->boxes, i, box) if (!status) add_row(t, &table, box, rows);
	json_decref(t->boxes);
	if (!status && rows) {
		json_t *doc = json_pack("{s:O}", "items", rows);

		api_client_print(doc);
		json_decref(doc);
	} else if (!status) {
		if (live)
			fputs("\033[H\033[2J", stdout);
		table_print(&table, isatty(1));
	}
	buf_fini(&table.cells);
	json_decref(rows);
	return status;
}

static int top_top(struct api_client *r, const struct args *a)
{
	int live = isatty(1) && !r->cli->json && !args_has(a, TOP_COUNT);
	uint64_t left = args_value(a, TOP_COUNT, live ? UINT64_MAX : 1);
	struct top t = { .r = r };
	int status;

	for (;;) {
		status = top_tick(&t, live);
		/* Continues while the daemon restarts. */
		if (status && !(live && r->lost && !r->never))
			return status;
		if (fflush(stdout) != 0 || --left == 0)
			return 0;
		poll(NULL, 0, TICK_MS);
	}
}

static int run_top(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, top_top);
}

static const struct example examples[] = {
	{ "atoll top", "show all boxes, every second" },
	{ "atoll top -n 3 --json", "print three updates, one line of JSON each" },
	{ 0 },
};

const struct command command_top = {
	.name = "top",
	.group = "Observe",
	.usage = "[-n N]",
	.summary = "show the resource usage of all boxes, every second",
	.notes = "On a terminal, updates until Ctrl-C; otherwise prints once, or N times.",
	.flags = flags,
	.nflags = TOP_NFLAGS,
	.examples = examples,
	.run = run_top,
};
