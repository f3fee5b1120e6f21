/* bench.c - `atoll bench`: measures the cost of a box on this machine, compared with a plain
 * process. The subjects take turns, so that a slow moment of the machine affects all of them.
 * bench/ compares with other sandboxes; this needs only the executable. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "cli/local_run.h"
#include "commands/commands.h"

#include <errno.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { BENCH_COUNT, BENCH_NFLAGS };
enum { POOL = 4, USUAL = 200, MOST = 100000 };

static const struct flag flags[BENCH_NFLAGS] = {
	[BENCH_COUNT] = { "count", 'n', FLAG_COUNT, "N", "number of rounds (200)" },
};

struct bench {
	struct keeper_sync keeper;
	struct box_handle living;
};

static const char *const true_argv[] = { "/bin/true", NULL };
static const struct box_command true_command = { .argv = true_argv };

/* ---- subjects: one measured run each, in nanoseconds; 0: failed with e set ---- */

static uint64_t plain_process(struct bench *b, struct err *e)
{
	char *const env[] = { NULL };
	uint64_t began = now_ns();
	int status = 0;
	pid_t pid;

	(void)b;
	errno = posix_spawn(&pid, true_argv[0], NULL, NULL, (char *const *)true_argv, env);
	if (errno || waitpid(pid, &status, 0) < 0 || status) {
		err_sys(e, "run /bin/true");
		return 0;
	}
	return now_ns() - began;
}

static uint64_t run_true(struct box_handle *box, uint64_t began, struct err *e)
{
	struct wire_exit end;

	if (boxh_run(box, &true_command, &end, e) < 0)
		return 0;
	if (end.why != WIRE_WHY_EXIT || end.status) {
		err_set(e, ERR_SYS, "/bin/true failed in a box: %u, %d", end.why, end.status);
		return 0;
	}
	return now_ns() - began;
}

static uint64_t exec_living(struct bench *b, struct err *e)
{
	return run_true(&b->living, now_ns(), e);
}

static uint64_t fresh_box(struct bench *b, uint16_t flags_, struct err *e)
{
	struct wire_create want = { .head.flags = flags_,
				    .template = "base",
				    .limits = box_default_limits() };
	uint64_t began = now_ns(), took;
	struct box_handle box;

	if (boxh_create(&b->keeper, &box, &want, e) < 0)
		return 0;
	took = run_true(&box, began, e);
	boxh_close(&box);
	/* Outside the measured time, and to its end: the next round must not be slowed by this
	 * one. */
	if (boxh_kill(&b->keeper, box.about.id, NULL, e) < 0)
		return 0;
	return took;
}

static uint64_t pooled_box(struct bench *b, struct err *e)
{
	struct wire_info about;

	if (keeper_sync_set_pool(&b->keeper, POOL, &about, e) < 0)
		return 0;
	return fresh_box(b, 0, e);
}

static uint64_t cold_box(struct bench *b, struct err *e)
{
	return fresh_box(b, WIRE_CREATE_COLD, e);
}

static const struct subject {
	const char *name, *what;
	uint64_t (*go)(struct bench *b, struct err *e);
} subjects[] = {
	{ "process", "vfork, exec of /bin/true, wait", plain_process },
	{ "exec", "the same in a living box", exec_living },
	{ "pooled", "a waiting box, /bin/true, its status", pooled_box },
	{ "cold", "a box made from nothing, /bin/true, its status", cold_box },
};
enum { NSUBJECTS = ARRAY_LEN(subjects) };

/* ---- rounds ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int bench_measure(struct bench *b, unsigned rounds, uint64_t *took[NSUBJECTS], struct err *e)
{
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned s = 0; s < NSUBJECTS; s++) {
			took[s][r] = subjects[s].go(b, e);
			if (!took[s][r])
				return err_in(e, "%s", subjects[s].name);
		}
	}
	for (unsigned s = 0; s < NSUBJECTS; s++)
		qsort(took[s], rounds, sizeof(uint64_t), by_size);
	return 0;
}

static void bench_print(const struct cli *cli, unsigned rounds, uint64_t *took[NSUBJECTS])
{
	json_t *doc = json_object();

	if (!cli->json)
		printf("%-8s %10s %10s %10s   %u rounds, taking turns\n", "", "p50 us", "p99 us",
		       "x process", rounds);
	for (unsigned s = 0; s < NSUBJECTS; s++) {
		double p50 = (double)took[s][rounds / 2] / 1000,
		       p99 = (double)took[s][rounds * 99 / 100] / 1000;
		double ratio = p50 * 1000 / (double)took[0][rounds / 2];

		if (cli->json)
			json_object_set_new(doc, subjects[s].name,
					    json_pack("{s:f, s:f, s:f, s:i}", "p50_us", p50,
						      "p99_us", p99, "x_process", ratio, "rounds",
						      (int)rounds));
		else
			printf("%-8s %10.0f %10.0f %10.2f   %s\n", subjects[s].name, p50, p99,
			       ratio, subjects[s].what);
	}
	if (cli->json) {
		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(doc);
}

static int open_bench(struct bench *b, struct err *e)
{
	struct wire_create want = { .template = "base", .limits = box_default_limits() };

	*b = (struct bench){ .keeper.fd = -1, .living.init = -1 };
	if (keeper_sync_open(&b->keeper, 1, e) < 0 ||
	    boxh_create(&b->keeper, &b->living, &want, e) < 0)
		return -1;
	return boxh_kill_on_close(&b->living, e);
}

static int bench_bench(const struct cli *cli, const struct args *a)
{
	unsigned rounds = (unsigned)args_value(a, BENCH_COUNT, USUAL);
	auto_free uint64_t *all = NULL;
	uint64_t *took[NSUBJECTS];
	struct bench b;
	struct err e;
	int bad;

	rounds = rounds > MOST ? MOST : rounds;
	all = calloc((size_t)NSUBJECTS * rounds, sizeof(*all));
	if (!all)
		abort();
	for (unsigned s = 0; s < NSUBJECTS; s++)
		took[s] = all + (size_t)s * rounds;
	bad = open_bench(&b, &e) < 0 || bench_measure(&b, rounds, took, &e) < 0;
	if (!bad)
		bench_print(cli, rounds, took);
	boxh_close(&b.living);
	keeper_sync_close(&b.keeper);
	return bad ? local_run_failed(cli, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll bench", "measure the cost of a box" },
	{ "atoll bench -n 1000 --json", "run more rounds, print JSON" },
	{ 0 },
};

const struct command command_bench = {
	.name = "bench",
	.group = "Machine",
	.usage = "[-n N]",
	.summary = "measure the cost of a box on this machine",
	.flags = flags,
	.nflags = BENCH_NFLAGS,
	.examples = examples,
	.run = bench_bench,
};
