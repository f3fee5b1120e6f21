/* cgroup_test.c - changes of the limits of a running box, on files in place of the kernel's. The
 * effect in the kernel is tested by tests/system/wirebox.c, for the one cgroup version of the
 * host; the order of the writes is the same everywhere. */
#include "jail/cgroup.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/cgroup-test-XXXXXX";

static const char *in_box(const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/box/%s", dir, file);
	return path;
}

static void set(const char *file, const char *value)
{
	auto_fd int fd = open(in_box(file), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	(void)!write(fd, value, strlen(value));
}

/* A file of the kernel holds the last written value; a plain file keeps the rest of a longer
 * one. */
static int is(const char *file, const char *value)
{
	auto_fd int fd = open(in_box(file), O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	return read(fd, text, sizeof(text) - 1) >= 0 && strncmp(text, value, strlen(value)) == 0;
}

static struct cgroups version_2(void)
{
	static int made; /* a name may well end in X */
	struct cgroups cs = { .version = 2 };
	int fd;

	if (!made++ && !mkdtemp(dir))
		abort();
	mkdir(in_box(""), 0700);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < CG_NCTL; i++)
		cs.dir[i] = fd;
	set("memory.max", "");
	set("memory.high", "");
	set("memory.current", "50000000\n");
	set("pids.max", "");
	set("cpu.max", "");
	return cs;
}

TEST(a_lower_memory_limit_is_set_only_if_it_fits)
{
	const struct box_limits was = { .mem_bytes = 200000000, .pids = 10, .cpu_milli = 1000 };
	struct box_limits want = { .mem_bytes = 100000000, .pids = 20, .cpu_milli = 500 };
	struct cgroups cs = version_2();
	struct err e;

	CHECK(cgroup_change(&cs, "box", &was, &want, &e) == 0);
	CHECK(is("memory.max", "100000000") && is("memory.high", "max"));
	CHECK(is("pids.max", "20") && is("cpu.max", "50000 100000"));

	set("memory.max", "200000000");
	set("pids.max", "10");
	want.mem_bytes = 40000000;
	CHECK(cgroup_change(&cs, "box", &was, &want, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK(strstr(e.msg, "the box uses 50000000"));
	CHECK(is("memory.max", "200000000") && is("memory.high", "max") && is("pids.max", "10"));
	close(cs.dir[0]);
}

TEST(a_change_that_fails_midway_is_undone)
{
	const struct box_limits was = { .mem_bytes = 200000000, .pids = 10, .cpu_milli = 1000 };
	const struct box_limits want = { .mem_bytes = 300000000, .pids = 20, .cpu_milli = 500 };
	struct cgroups cs = version_2();
	struct err e;

	unlink(in_box("cpu.max"));
	CHECK(cgroup_change(&cs, "box", &was, &want, &e) < 0);
	CHECK(strstr(e.msg, "cpu.max"));
	CHECK(is("memory.max", "200000000") && is("pids.max", "10"));
	close(cs.dir[0]);
}

TEST(a_box_is_frozen_when_the_kernel_reports_it)
{
	struct cgroups cs = version_2();
	struct err e;

	set("cgroup.freeze", "");
	set("cgroup.events", "populated 1\nfrozen 1\n");
	CHECK(cgroup_freeze(&cs, "box", &e) == 0);
	CHECK(is("cgroup.freeze", "1"));
	CHECK(cgroup_freeze(&cs, "box", &e) == 0);
	CHECK(cgroup_thaw(&cs, "box", &e) == 0);
	CHECK(is("cgroup.freeze", "0"));
	set("cgroup.events", "populated 1\nfrozen 0\n");
	CHECK(cgroup_freeze(&cs, "box", &e) < 0);
	CHECK(is("cgroup.freeze", "0"));
	close(cs.dir[0]);
}

TEST(freezing_without_a_freezer_controller_is_rejected)
{
	struct cgroups cs = { .version = 1 };
	struct err e;

	for (int i = 0; i < CG_NCTL; i++)
		cs.dir[i] = -1;
	CHECK(cgroup_freeze(&cs, "box", &e) < 0);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK(strstr(e.msg, "freezer") != NULL);
	CHECK(cgroup_thaw(&cs, "box", &e) < 0);
}

static struct cgroups version_1(void)
{
	struct cgroups cs = version_2();

	cs.version = 1;
	set("pids.current", "0\n");
	set("pids.events", "max 0\n");
	set("pids.peak", "3\n");
	set("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
	set("memory.failcnt", "0\n");
	set("memory.max_usage_in_bytes", "70000\n");
	set("tasks", "");
	set("cpuacct.usage", "123456789\n");
	set("memory.usage_in_bytes", "65536\n");
	set("cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
	return cs;
}

TEST(a_cgroup_is_clean_only_if_all_counters_are_zero)
{
	static const struct {
		const char *file, *dirty, *was;
	} rows[] = {
		{ "pids.current", "1\n", "0\n" },
		{ "pids.events", "max 1\n", "max 0\n" },
		{ "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		  "oom_kill 0\n" },
		{ "memory.failcnt", "1\n", "0\n" },
		{ "memory.usage_in_bytes", "9000000\n", "65536\n" },
		{ "cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 5\n",
		  "throttled_time 0\n" },
		{ "pids.peak", "", "3\n" },
	};
	struct cgroups cs = version_1();
	struct cgroup_counts named, again;
	struct cgroup_files files;
	struct err e;

	CHECK(cgroup_open(&cs, "box", &files, &e) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		set(rows[i].file, rows[i].dirty);
		cgroup_count(&cs, "box", &named);
		CHECK(!cgroup_is_clean(&cs, &named));
		cgroup_count_open(&files, &again);
		CHECK(memcmp(&named, &again, sizeof(named)) == 0);
		set(rows[i].file, rows[i].was);
	}
	cgroup_count_open(&files, &again);
	CHECK(cgroup_is_clean(&cs, &again));
	CHECK_INT(again.pids_peak, 3); /* the caller decides about it */
	CHECK_INT(again.mem_peak, 70000);
	CHECK_INT(again.cpu_us,
		  123457); /* rounded up from nanoseconds; another box counts from 0: */
	CHECK_INT(cgroup_memory_now(&files), 65536);
	CHECK(cgroup_reset(&files, &e) == 0);
	CHECK(is("memory.max_usage_in_bytes", "0") && is("cpuacct.usage", "023456789"));
	cgroup_close(&files);
	CHECK(cgroup_reset(&files, &e) < 0); /* closed is not forgotten */
	close(cs.dir[0]);
}

TEST(cpu_time_is_reset_or_its_base_value_is_returned)
{
	struct cgroups v1 = version_1(), v2;
	struct cgroup_files files;
	struct err e;

	CHECK(cgroups_can_count_cpu(&v1));
	CHECK(cgroup_open(&v1, "box", &files, &e) == 0);
	CHECK_INT(cgroup_restart_cpu(&v1, "box", &files), 0);
	CHECK(is("cpuacct.usage", "023456789"));
	set("cpuacct.usage", "5000000\n");
	CHECK_INT(cgroup_restart_cpu(&v1, "box", NULL), 0);
	CHECK(is("cpuacct.usage", "0000000"));
	unlink(in_box(
		"cpuacct.usage")); /* a box of an older keeper: nothing is known, nothing subtracted */
	CHECK_INT(cgroup_restart_cpu(&v1, "box", NULL), 0);
	cgroup_close(&files);
	close(v1.dir[0]);
	v2 = version_2();
	set("cpu.stat", "usage_usec 4321\nuser_usec 4000\nsystem_usec 321\n");
	CHECK_INT(cgroup_restart_cpu(&v2, "box", NULL), 4321);
	close(v2.dir[0]);
	v1.dir[CG_CPUACCT] = -1;
	CHECK(!cgroups_can_count_cpu(&v1));
}

/* Distributions mount cpu and cpuacct as one hierarchy. */
TEST(controllers_mounted_together_are_handled_once)
{
	const struct box_limits lim = { .mem_bytes = 200000000, .pids = 10, .cpu_milli = 1000 };
	struct cgroups cs = version_2();
	struct err e;

	cs.version = 1;
	cs.joined = 1u << CG_CPUACCT;
	for (int i = 0; i < CG_NCTL; i++)
		if (i != CG_CPU && i != CG_CPUACCT)
			cs.dir[i] = -1;
	CHECK(cgroup_make(&cs, "joined", &lim, &e) < 0 &&
	      strstr(e.msg, "cpu.cfs_quota_us")); /* made, once */
	CHECK(cgroup_remove(&cs, "joined", &e) == 0);
	close(cs.dir[CG_CPU]);
}

TEST(the_test_folders_are_removed)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0);
}
