/* ps.c - `atoll ps`: the boxes there are. */
#include "base/clock.h"
#include "base/own.h"
#include "base/units.h"
#include "box/box.h"
#include "cli/session.h"
#include "cli/verbs.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

enum { PAGE = 200 };

static void print_row(struct keeper_link *k, const struct wire_box *b)
{
	char age[UNITS_TEXT], used[UNITS_TEXT], limit[UNITS_TEXT];
	struct wire_counted n = { 0 };
	struct err e;

	if (box_counters(k, b->id, &n, &e) < 0)
		return; /* it ended while we were looking */
	printf("%-14s %-8s %12s %12s / %-9s %5lld / %u\n", b->id, b->template,
	       units_time(age, (clock_ns(CLOCK_REALTIME) - b->created_ns) / 1000),
	       units_size(used, n.mem_now), units_size(limit, b->limits.mem_bytes),
	       (long long)n.pids_now, b->limits.pids);
}

static json_t *json_row(struct keeper_link *k, const struct wire_box *b)
{
	struct wire_counted n = { 0 };
	struct err e;

	if (box_counters(k, b->id, &n, &e) < 0)
		return NULL;
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "id", b->id, "template",
			 b->template, "created_ns", (json_int_t)b->created_ns, "mem",
			 (json_int_t)n.mem_now, "mem_limit", (json_int_t)b->limits.mem_bytes,
			 "pids", (json_int_t)n.pids_now, "pids_limit", (json_int_t)b->limits.pids,
			 "cpu_us", (json_int_t)n.cpu_us, "pid", b->init_pid);
}

static int list(const struct cli *cli, struct keeper_link *k, json_t *rows, struct err *e)
{
	struct wire_box page[PAGE];
	char after[WIRE_ID] = "";
	int n;

	if (!cli->json && !cli->quiet && isatty(1))
		printf("%-14s %-8s %12s %24s %13s\n", "BOX", "TEMPLATE", "AGE", "MEMORY / LIMIT",
		       "PROCESSES");
	while ((n = keeper_boxes(k, after, page, PAGE, e)) > 0) {
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

static int ps(const struct cli *cli, const struct args *a)
{
	struct keeper_link k;
	json_t *rows = json_array();
	struct err e;
	int bad;

	(void)a;
	bad = keeper_open(&k, 0, &e) < 0;
	if (bad && (e.sys == ENOENT || e.sys == ECONNREFUSED))
		bad = 0; /* no keeper, no boxes */
	else if (!bad)
		bad = list(cli, &k, rows, &e) < 0;
	if (!bad && cli->json) {
		json_dumpf(rows, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(rows);
	keeper_close(&k);
	return bad ? (session_failed(cli, &e), STATUS_FAILED) : 0;
}

static const struct example examples[] = {
	{ "atoll ps", "age, memory and processes of every box" },
	{ "atoll ps -q", "ids only" },
	{ 0 },
};

const struct verb verb_ps = {
	.name = "ps",
	.group = "Run",
	.usage = "",
	.summary = "list the boxes",
	.examples = examples,
	.run = ps,
};
