/* gvisor.c - boxes of the isolation tier gvisor beside `runsc run` and `runsc exec`, in one run: `make
 * bench-tiers`. Prints times and ratios; each ratio has a limit. Needs root and runsc. */
#include "system/wirebox.h"

#include <dirent.h>

enum { ROUNDS = 12, BOXES = 10 };
#define AT "/dev/shm/atoll-bench-gvisor"
/* Boxes have a quarter of a usual weight and one processor; runsc alone gets the same. */
#define GROUP                                                                                                         \
	"if [ -d /sys/fs/cgroup/cpu ]; then g=/sys/fs/cgroup/cpu/atoll-bench; mkdir -p $g; echo 256 >$g/cpu.shares; " \
	"echo 100000 >$g/cpu.cfs_quota_us; echo 0 >$g/tasks; else g=/sys/fs/cgroup/atoll-bench; mkdir -p $g; "        \
	"echo 25 >$g/cpu.weight; echo '100000 100000' >$g/cpu.max; echo 0 >$g/cgroup.procs; fi; "
#define RUNSC                                                                                      \
	GROUP "exec runsc --root=" AT                                                              \
	      "/root --network=none --ignore-cgroups --overlay2=none --platform="

static struct keeper_sync keeper;
static char platform[24];

static double now_ms(void)
{
	return (double)now_ns() / 1e6;
}

/* The best of all rounds: other work on the machine only adds. */
static double best(const double *v, unsigned n)
{
	double least = v[0];

	for (unsigned i = 1; i < n; i++)
		least = v[i] < least ? v[i] : least;
	return least;
}

static int learn_platform(void)
{
	struct wire_tier_facts f;

	if (learn_tier(keeper.fd, WIRE_TIER_GVISOR, 0, &f) < 0)
		return -1;
	if (f.state != WIRE_TIER_OFFERED)
		printf("# gvisor: %s\n", f.reason);
	printf("# %s %s, platform %s\n", f.engine, f.version, f.platform);
	snprintf(platform, sizeof(platform), "%s", f.platform);
	return f.state == WIRE_TIER_OFFERED ? 0 : -1;
}

static double timed(const char *command)
{
	double began = now_ms();

	return system(command) == 0 ? now_ms() - began : -1;
}

static int make_bundle(const char *name, const char *args)
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "mkdir -p " AT "/%s", name);
	if (system(path) != 0)
		return -1;
	snprintf(path, sizeof(path), AT "/%s/config.json", name);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fprintf(f,
		"{\"ociVersion\":\"1.0.0\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[%s],"
		"\"env\":[\"PATH=/usr/bin\"],\"cwd\":\"/\"},\"root\":{\"path\":\"/\",\"readonly\":true},"
		"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"mount\"}]}}",
		args);
	return fclose(f);
}

static int make_box(unsigned flags, struct made *m)
{
	struct wire_create w = wish(wire_tier_flags(WIRE_TIER_GVISOR) | flags, 1);

	return make_as(keeper.fd, &w, m);
}

/* Without a shell: runsc exec has none either. */
static int run_true(const struct made *m)
{
	static const char tail[] = "/\0/bin/true";
	static uint32_t ref = 1;
	struct wire_start st = { .head = sock_head(WIRE_START, ref++),
				 .argc = 1,
				 .tail_bytes = sizeof(tail),
				 .credit = { UINT64_MAX, UINT64_MAX } };

	return ask(m->init, &st, sizeof(st), tail, sizeof(tail)) == WIRE_EXIT &&
			       GOT(wire_exit)->status == 0
		       ? 0
		       : -1;
}

static double cold(void)
{
	struct frame stat = sock_head(WIRE_STAT, 4);
	double began = now_ms(), took;
	struct made m;

	if (make_box(WIRE_CREATE_COLD, &m) < 0 ||
	    ask(m.init, &stat, sizeof(stat), NULL, 0) != WIRE_STATUS)
		return -1;
	took = now_ms() - began;
	return end(keeper.fd, &m) < 0 ? -1 : took;
}

static double pooled(void)
{
	double began = now_ms(), took;
	struct made m;

	if (make_box(0, &m) < 0 || run_true(&m) < 0)
		return -1;
	took = now_ms() - began;
	return end(keeper.fd, &m) < 0 ? -1 : took;
}

/* A tenth of the time of runsc exec, so it is tried more often. */
static double in_box(const struct made *m)
{
	double took[5];

	for (unsigned i = 0; i < ARRAY_LEN(took); i++) {
		double began = now_ms();

		if (run_true(m) < 0)
			return -1;
		took[i] = now_ms() - began;
	}
	return best(took, ARRAY_LEN(took));
}

/* Of all processes that descend from this one, in MiB. */
static double pss_of(int top)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	double sum = 0;
	char path[300], line[200];
	FILE *f;

	while (d && (de = readdir(d)) != NULL) {
		int pid = atoi(de->d_name), at = pid;

		while (at > 1 && at != top) {
			int parent = 0;

			snprintf(path, sizeof(path), "/proc/%d/stat", at);
			f = fopen(path, "r");
			if (!f || fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1)
				parent = 0;
			if (f)
				fclose(f);
			at = parent;
		}
		if (at != top || pid < 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned kib;

			if (sscanf(line, "Pss: %u kB", &kib) == 1)
				sum += kib / 1024.0;
		}
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

static int ratio(const char *what, double got, double of, double most)
{
	printf("# %-52s %8.1f %8.1f   %.2f (at most %.2f)%s\n", what, got, of, got / of, most,
	       got / of > most ? "  EXCEEDED" : "");
	return got / of > most;
}

static int megabytes(const char *what, double got, double most)
{
	printf("# %-52s %8.1f            (at most %.0f)%s\n", what, got, most,
	       got > most ? "  EXCEEDED" : "");
	return got > most;
}

/* A box from the pool, in which Python waits. */
static int make_warm(struct made *m)
{
	for (unsigned i = 0; i < 40; i++) {
		if (make_box(0, m) < 0)
			return -1;
		if (m->about.warm)
			return 0;
		if (end(keeper.fd, m) < 0)
			return -1;
		poll(NULL, 0, 1000); /* the pool is filled */
	}
	return -1;
}

static int make_cold(struct made *m)
{
	return make_box(WIRE_CREATE_COLD, m);
}

static int idle_memory(const char *what, int (*make_one)(struct made *m))
{
	struct made m[BOXES];
	double first = 0, all = 0;
	char text[80];
	int bad;

	for (unsigned i = 0; i < BOXES; i++) {
		if (make_one(&m[i]) < 0)
			return -1;
		if (i == 0)
			first = pss_of(m[0].about.init_pid);
	}
	for (unsigned i = 0; i < BOXES; i++)
		all += pss_of(m[i].about.init_pid);
	snprintf(text, sizeof(text), "PSS of one idle box%s, MiB", what);
	bad = megabytes(text, first, 40);
	snprintf(text, sizeof(text), "PSS of each of ten idle boxes%s, MiB", what);
	bad |= megabytes(text, all / BOXES, 30);
	for (unsigned i = 0; i < BOXES; i++)
		if (end(keeper.fd, &m[i]) < 0)
			return -1;
	return bad;
}

static int measure(void)
{
	double run[ROUNDS], boxes[ROUNDS], taken[ROUNDS], exec[ROUNDS], ours[ROUNDS];
	char command[900];
	struct made m;
	int bad;

	snprintf(command, sizeof(command), RUNSC "%s run -detach -bundle " AT "/sleep s </dev/null",
		 platform);
	if (system(command) != 0 || make_box(WIRE_CREATE_COLD, &m) < 0 || pooled() < 0 ||
	    pooled() < 0)
		return -1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(command, sizeof(command),
			 RUNSC "%s run -bundle " AT "/true t%u </dev/null", platform, i);
		run[i] = timed(command);
		boxes[i] = cold();
		poll(NULL, 0, 4000); /* the pool is filled again */
		taken[i] = pooled();
		poll(NULL, 0, 3000);
		snprintf(command, sizeof(command), RUNSC "%s exec s /bin/true </dev/null",
			 platform);
		exec[i] = timed(command);
		ours[i] = in_box(&m);
		if (run[i] < 0 || boxes[i] < 0 || taken[i] < 0 || exec[i] < 0 || ours[i] < 0)
			return -1;
	}
	printf("# %-52s %8s %8s   ratio\n", "best of 12 interleaved rounds", "ms", "runsc");
	bad = ratio("create to first answer / runsc run /bin/true", best(boxes, ROUNDS),
		    best(run, ROUNDS), 1.0);
	bad |= ratio("pooled create and /bin/true / runsc run /bin/true", best(taken, ROUNDS),
		     best(run, ROUNDS), 0.15);
	bad |= ratio("/bin/true in a running box / runsc exec", best(ours, ROUNDS),
		     best(exec, ROUNDS), 0.25);
	snprintf(command, sizeof(command), RUNSC "%s delete -force s", platform);
	return system(command) != 0 || end(keeper.fd, &m) < 0 ? -1 : bad;
}

TEST(boxes_are_faster_than_runsc_alone)
{
	int bad;

	NEED_ROOT();
	CHECK(open_keeper(&keeper, 1) == 0);
	if (learn_platform() < 0)
		SKIP("gvisor is not available");
	CHECK(make_bundle("true", "\"/bin/true\"") == 0);
	CHECK(make_bundle("sleep", "\"/bin/sleep\",\"1000\"") == 0);
	bad = measure();
	CHECK(system("rm -rf " AT
		     "; rmdir /sys/fs/cgroup/cpu/atoll-bench /sys/fs/cgroup/atoll-bench 2>/dev/null; true") ==
	      0);
	CHECK_INT(bad, 0);
}

TEST(idle_boxes_are_small)
{
	if (!platform[0])
		SKIP("gvisor is not available");
	CHECK_INT(idle_memory("", make_cold), 0);
	CHECK_INT(idle_memory(" with a waiting Python", make_warm), 0);
}

TEST(nothing_is_left)
{
	NEED_ROOT();
	keeper_sync_close(&keeper);
	leave_nothing();
}
