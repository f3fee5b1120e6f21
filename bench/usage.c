/* usage.c - how long reports of usage and lists of runs take in a store with many runs.
 *
 * atoll-bench-usage FOLDER [RUNS]
 *
 * RUNS (10^6) runs of 20 teams in 30 days, with 5 keys, 40 tags, 3 templates and 6 runtimes: each is begun, ended and
 * charged as the server does it. Prints the median and
 * the maximum of each query and how long a run takes to write, in CPU time. */
#include "store/runs.h"
#include "store/teams.h"
#include "store/usage.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEAMS = 20,
	DAYS = 30,
	KEYS = 5,
	TAGS = 40,
	TEMPLATES = 3,
	RUNTIMES = 6,
	GROUP = 64,
	ROUNDS = 15
};
enum { FIRST_DAY = 20000 };
#define DAY_NS INT64_C(86400000000000)

static struct err err;

/* Time of this process on a processor: the same on a busy machine. */
static uint64_t bench_now(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "bench/usage: %s\n", err.msg);
		exit(1);
	}
}

static void bench_add(struct store *s, unsigned n)
{
	static const char record[] =
		"{\"id\":\"x\",\"cause\":\"exit\",\"status\":0,\"usage\":{\"cpu_us\":3000},\"cost\":{\"amount\":\"0.000000042\"}}";
	struct store_run r = { .kind = STORE_RUN_ONCE,
			       .started_ns = (FIRST_DAY + n / TEAMS % DAYS) * DAY_NS + n,
			       .command = (char *)"[\"true\"]" };
	struct store_charge c = { .day = FIRST_DAY + (int32_t)(n / TEAMS % DAYS),
				  .use = { .runs = 1,
					   .cpu_us = 3000,
					   .memory_mib_ms = 40,
					   .cost_nano = 42,
					   .currency = "EUR" } };
	unsigned mix = n * 2654435761u;

	must(id_new(r.id, &err));
	must(id_new(r.box, &err));
	snprintf(r.team, sizeof(r.team), "team%02u", n % TEAMS);
	snprintf(r.tag, sizeof(r.tag), "tag%u", (mix >> 8) % TAGS);
	snprintf(r.key, sizeof(r.key), "key%u", (mix >> 14) % KEYS);
	snprintf(r.runtime, sizeof(r.runtime), "runtime%u", (mix >> 17) % RUNTIMES);
	must(store_run_begin(s, &r, &err));
	r.ended_ns = r.started_ns + 5000000;
	snprintf(r.cause, sizeof(r.cause), "exit");
	r.record = (char *)record;
	must(store_run_end(s, &r, &err));
	memcpy(c.team, r.team, sizeof(c.team));
	memcpy(c.tag, r.tag, sizeof(c.tag));
	memcpy(c.key, r.key, sizeof(c.key));
	memcpy(c.runtime, r.runtime, sizeof(c.runtime));
	snprintf(c.template, sizeof(c.template), "template%u", (mix >> 21) % TEMPLATES);
	must(store_usage_charge(s, &c, &err));
}

static int bench_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void bench_print(const char *name, uint64_t *ns, unsigned rows)
{
	qsort(ns, ROUNDS, sizeof(*ns), bench_compare);
	printf("%-28s %8.2f ms median %8.2f ms maximum %7u rows\n", name,
	       (double)ns[ROUNDS / 2] / 1e6, (double)ns[ROUNDS - 1] / 1e6, rows);
}

static void bench_report(struct store *s, const char *team, enum store_usage_by by,
			 unsigned *out_runs)
{
	struct store_usage_filter f = {
		.team = team, .from_day = FIRST_DAY, .to_day = FIRST_DAY + DAYS - 1, .by = by
	};
	uint64_t ns[ROUNDS];
	unsigned rows = 0;
	char name[64];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct store_usage_rows l;

		ns[i] = bench_now();
		must(store_usage_list(s, &f, &l, &err));
		ns[i] = bench_now() - ns[i];
		rows = l.n;
		*out_runs = 0;
		for (unsigned k = 0; k < l.n; k++)
			*out_runs += (unsigned)l.v[k].use.runs;
		store_usage_rows_fini(&l);
	}
	snprintf(name, sizeof(name), "by %s, %s", store_usage_by_name(by),
		 team ? "one team" : "all teams");
	bench_print(name, ns, rows);
}

static void bench_list(struct store *s)
{
	struct store_run_filter f = { .team = "team07", .limit = 100 };
	uint64_t ns[ROUNDS];
	unsigned rows = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct store_runs l;

		ns[i] = bench_now();
		must(store_run_list(s, &f, &l, &err));
		ns[i] = bench_now() - ns[i];
		rows = l.n;
		store_runs_fini(&l);
	}
	bench_print("list of runs, one team", ns, rows);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000000, runs = 0;
	struct store *s;
	uint64_t began;

	if (argc < 2 || !n) {
		fprintf(stderr, "usage: atoll-bench-usage FOLDER [RUNS]\n");
		return 2;
	}
	must(store_open(&s, argv[1], &err));
	began = bench_now();
	for (unsigned i = 0; i < n; i++) {
		if (i % GROUP == 0)
			must(store_begin(s, &err));
		bench_add(s, i);
		if (i % GROUP == GROUP - 1 || i == n - 1)
			must(store_commit(s, &err));
	}
	printf("%u runs written, %.1f us each\n", n, (double)(bench_now() - began) / 1e3 / n);
	for (unsigned by = 0; by < STORE_BY_COUNT; by++) {
		unsigned one;

		bench_report(s, "team07", (enum store_usage_by)by, &one);
		bench_report(s, NULL, (enum store_usage_by)by, &runs);
		if (runs != n)
			printf("by %s: %u runs, not %u\n",
			       store_usage_by_name((enum store_usage_by)by), runs, n);
	}
	bench_list(s);
	store_close(s);
	return runs == n ? 0 : 1;
}
