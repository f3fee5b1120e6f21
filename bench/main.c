/* main.c - compares Atoll with a plain process and its peers, in one run on one machine.
 *
 *   latency   p50, p90, p99 of "run /bin/true" for every subject, in turns
 *   rates     the same per second, by 1, 2 and 8 workers
 *   density   the memory of 1,000 and 5,000 boxes at once
 *
 * Numbers do not affect the exit status: a slow machine is not a failed test. The exit status is 0
 * unless nothing could be measured (1) or the flags are invalid (2). */
#include "base/cleanup.h"
#include "density.h"
#include "facts.h"
#include "latency.h"
#include "mine.h"
#include "peers.h"
#include "rate.h"
#include "report.h"
#include "spawn.h"
#include "subject.h"
#include <ftw.h>
#include <getopt.h>
#include <linux/magic.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>

struct options {
	unsigned rounds, density;
	double seconds;
	const char *json, *atoll;
	int latency, rates, boxes; /* which parts */
};

char bench_dir[64];

static const char help[] =
	"usage: atoll-bench [flags]\n"
	"  --rounds N       rounds of latency, every subject in each (120)\n"
	"  --seconds S      per subject and number of workers, for rates (3)\n"
	"  --density N      how many boxes at once at most (5000; 0: leave it out)\n"
	"  --only A,B,...   of: latency rates density, fork pooled exec cold typed_version typed_true typed_python python bwrap crun runc runsc\n"
	"  --json FILE      the findings for programs\n"
	"  --atoll FILE     the executable to measure (default: the one beside this program)\n"
	"  --quick          15 rounds, half a second, 200 boxes: to see that it works\n";

/* Names of parts and of subjects in one list; a kind without any name stays complete. */
static int parse_only(struct options *o, char *list)
{
	int parts = 0, some = 0;

	for (unsigned i = 0; i < nsubjects; i++)
		subjects[i].wanted = 0;
	o->latency = o->rates = o->boxes = 0;
	for (char *save, *name = strtok_r(list, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		struct subject *s = subject_named(name);
		int *part = !strcmp(name, "latency")   ? &o->latency
			    : !strcmp(name, "rates")   ? &o->rates
			    : !strcmp(name, "density") ? &o->boxes
						       : NULL;

		if (!s && !part) {
			fprintf(stderr, "atoll-bench: nothing is called '%.40s'\n%s", name, help);
			return -1;
		}
		*(part ? part : &s->wanted) = 1;
		parts += part != NULL;
		some += s != NULL;
	}
	for (unsigned i = 0; i < nsubjects && !some; i++)
		subjects[i].wanted = 1;
	if (!parts)
		o->latency = o->rates = o->boxes = 1;
	return 0;
}

static int number(const char *flag, const char *text, double least, double most, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && *out >= least && *out <= most)
		return 0;
	fprintf(stderr, "atoll-bench: --%s takes a number from %g to %g, not '%.40s'\n", flag,
		least, most, text);
	return -1;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option flags[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "density", required_argument, NULL, 'd' },
		{ "only", required_argument, NULL, 'o' },
		{ "json", required_argument, NULL, 'j' },
		{ "atoll", required_argument, NULL, 'a' },
		{ "quick", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	double v;
	int c;

	while ((c = getopt_long(argc, argv, "", flags, NULL)) != -1) {
		switch (c) {
		case 'r':
			if (number("rounds", optarg, 1, 1e6, &v) < 0)
				return -1;
			o->rounds = (unsigned)v;
			break;
		case 's':
			if (number("seconds", optarg, 0.1, 3600, &o->seconds) < 0)
				return -1;
			break;
		case 'd':
			if (number("density", optarg, 0, 30000, &v) < 0)
				return -1;
			o->density = (unsigned)v;
			break;
		case 'o':
			if (parse_only(o, optarg) < 0)
				return -1;
			break;
		case 'j':
			o->json = optarg;
			break;
		case 'a':
			o->atoll = optarg;
			break;
		case 'q':
			o->rounds = 15;
			o->seconds = 0.5;
			o->density = 200;
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			fputs(help, stderr);
			return -1;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "atoll-bench: unexpected '%.40s'\n%s", argv[optind], help);
		return -1;
	}
	return 0;
}

static void on_signal(int signo)
{
	(void)signo;
	stop_asked = 1;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	remove(path); /* on failure the folder remains, and remove_bench_dir() reports it */
	return 0;
}

/* Only this file system, so that nothing that is mounted below is deleted. */
static void remove_bench_dir(void)
{
	nftw(bench_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (access(bench_dir, F_OK) == 0)
		fprintf(stderr, "atoll-bench: could not remove all of %s\n", bench_dir);
}

static int is_in_memory(const char *folder)
{
	struct statfs fs;

	return statfs(folder, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* In /run, where Atoll and the compared runtimes keep their state. On a booted machine that is in
 * memory; in a container it may be on disk, and all subjects would measure its journal. */
static int make_bench_dir(struct err *e)
{
	const char *const folders[] = {
		is_in_memory("/run") || !is_in_memory("/dev/shm") ? "/run" : "/dev/shm", "/tmp"
	};

	for (unsigned i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(bench_dir, sizeof(bench_dir), "%s/atoll-bench-XXXXXX", folders[i]);
		if (mkdtemp(bench_dir))
			return 0;
	}
	return err_sys(e, "mkdtemp %s", bench_dir);
}

static void atoll_beside_us(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	snprintf(strrchr(out, '/') ? strrchr(out, '/') + 1 : out, 8, "atoll");
}

static int keeper_wanted(const struct options *o)
{
	int wanted = o->boxes && o->density;

	for (unsigned i = 0; i < nsubjects; i++)
		wanted |= subjects[i].wanted && subjects[i].is_ours;
	return wanted;
}

static void start_keeper(const struct options *o)
{
	char beside[PATH_MAX], run_dir[sizeof(bench_dir) + 8];
	struct err e;

	atoll_beside_us(beside, sizeof(beside));
	snprintf(run_dir, sizeof(run_dir), "%s/run", bench_dir);
	/* Not fatal: the peers are measured, and every row of Atoll has the reason. */
	if (mine_start(o->atoll ? o->atoll : beside, run_dir, &e) < 0)
		fprintf(stderr, "bench: no keeper: %s\n", e.msg);
}

static int measure(const struct options *o, struct findings *f)
{
	int something = 0;

	if (keeper_wanted(o))
		start_keeper(o);
	if (o->latency || o->rates)
		latency_open();
	if (o->latency)
		f->rounds = latency_measure(o->rounds);
	if (o->rates)
		rate_measure(o->seconds);
	f->with_density = o->boxes && o->density && !stop_asked;
	if (f->with_density && mine_missing())
		f->with_density = 0;
	for (unsigned i = 0; i < nsubjects; i++) {
		something |= subjects[i].opened;
		if (subjects[i].opened && subjects[i].close)
			subjects[i].close(&subjects[i]);
	}
	if (f->with_density)
		density_measure(f->density, o->density);
	mine_stop();
	return something || f->with_density ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = {
		.rounds = 120, .seconds = 3, .density = 5000, .latency = 1, .rates = 1, .boxes = 1
	};
	struct sigaction act = { .sa_handler = on_signal };
	struct density density = { 0 };
	struct facts facts = facts_read();
	struct findings found = { .facts = &facts, .density = &density };
	struct rlimit files;
	struct err e;
	int status = 0;

	for (unsigned i = 0; i < nsubjects; i++)
		subjects[i].wanted = 1;
	if (parse(&o, argc, argv) < 0)
		return 2;
	/* Keepers inherit it: the limit must not bound the number of boxes. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (spawn_setup(&e) < 0 || make_bench_dir(&e) < 0) {
		fprintf(stderr, "atoll-bench: %s\n", e.msg);
		return 1;
	}
	found.with_latency = o.latency;
	found.with_rates = o.rates;
	if (measure(&o, &found) < 0)
		status = 1;
	report_table(&found);
	if (o.json && report_json(&found, o.json, &e) < 0) {
		fprintf(stderr, "atoll-bench: %s\n", e.msg);
		status = 1;
	}
	remove_bench_dir();
	density_fini(&density);
	for (unsigned i = 0; i < nsubjects; i++) {
		samples_fini(&subjects[i].done);
		samples_fini(&subjects[i].total);
	}
	return status;
}
