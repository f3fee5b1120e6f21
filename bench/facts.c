/* facts.c - see facts.h. */
#include "facts.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

/* The text after `key` and separators on its line of the file; unchanged if there is no such
 * line. */
static void value_of(const char *file, const char *key, char *out, size_t size)
{
	FILE *f = fopen(file, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *v = line + strlen(key);

		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		v += strspn(v, " \t:=\"");
		snprintf(out, size, "%.*s", (int)strcspn(v, "\"\n"), v);
		break;
	}
	if (f)
		fclose(f);
}

static const char *cgroup_kind(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[1024];
	int kinds = 0;

	while (f && fgets(line, sizeof(line), f)) {
		kinds |= strstr(line, " - cgroup ") ? 1 : 0;
		kinds |= strstr(line, " - cgroup2 ") ? 2 : 0;
	}
	if (f)
		fclose(f);
	return (const char *[]){ "none", "v1", "v2", "v1+v2" }[kinds];
}

struct facts facts_read(void)
{
	struct facts f = { .cpu = "unknown", .distro = "unknown", .cgroup = cgroup_kind() };
	struct utsname u;
	struct sysinfo si;
	cpu_set_t set;
	time_t now = time(NULL);
	struct tm tm;

	strftime(f.when, sizeof(f.when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	if (uname(&u) == 0) {
		snprintf(f.kernel, sizeof(f.kernel), "%s", u.release);
		snprintf(f.arch, sizeof(f.arch), "%.31s", u.machine);
	}
	/* Arm has no name, only a number. */
	value_of("/proc/cpuinfo", "CPU part", f.cpu, sizeof(f.cpu));
	value_of("/proc/cpuinfo", "model name", f.cpu, sizeof(f.cpu));
	value_of("/etc/os-release", "PRETTY_NAME", f.distro, sizeof(f.distro));
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		f.cpus = CPU_COUNT(&set);
	if (sysinfo(&si) == 0)
		f.memory_mib = (long)(si.totalram / 1024 * si.mem_unit / 1024);
	if (getloadavg(&f.load, 1) != 1)
		f.load = 0;
	return f;
}
