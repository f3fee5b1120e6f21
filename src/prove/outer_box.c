/* outer_box.c - what an engine that was taken over would find in its outer box: the steps of the launch table that its guest
 * does not notice, read from outside. Every row is about the first process of a box (mux); the engine has its namespaces,
 * mounts and limits. */
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/mnt.h"
#include "jail/rlimits.h"
#include "prove/prove_internal.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

enum { OUTER_NAMESPACES = 3, OUTER_INOTIFY = 64, OUTER_POINTS = 256 };

static FILE *outer_open(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/* ---- capabilities, signals, resource limits ---- */

static void outer_note_status(struct prove_run *r, pid_t pid)
{
	uint64_t most = r->want->tier == WIRE_TIER_GVISOR ? caps_gvisor_mask() : 0;
	unsigned long long bound = ~0ull, ignored = ~0ull, has = 0, part;
	unsigned uid = r->a.handle.about.uid_base;
	FILE *f = outer_open(pid, "status");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Uid: %u", &uid);
		sscanf(line, "CapBnd: %llx", &bound);
		sscanf(line, "SigIgn: %llx", &ignored);
		if (sscanf(line, "CapPrm: %llx", &part) == 1 ||
		    sscanf(line, "CapEff: %llx", &part) == 1 ||
		    sscanf(line, "CapInh: %llx", &part) == 1)
			has |= part;
	}
	if (f)
		fclose(f);
	prove_note(r, bound & ~most ? PROVE_FAILS : PROVE_PASSED, "outer box", "capability bounds",
		   "", "%llx, at most %llx", bound, (unsigned long long)most);
	prove_note(r, has ? PROVE_FAILS : PROVE_PASSED, "outer box", "capabilities", "",
		   "%llx of its first process", has);
	if (r->want->tier == WIRE_TIER_MICROVM) /* runsc is root of its box */
		prove_note(r, uid == r->a.handle.about.uid_base ? PROVE_FAILS : PROVE_PASSED,
			   "outer box", "identity", "", "uid %u of the box",
			   uid - r->a.handle.about.uid_base);
	prove_note(r, ignored ? PROVE_FAILS : PROVE_PASSED, "outer box", "inherited signals", "",
		   "%llx are ignored", ignored);
}

/* From /proc, because prlimit() takes CAP_SYS_RESOURCE. -1: the line is missing. */
static int outer_has_rlimit(const char *text, const char *title, unsigned long long most)
{
	const char *line = strstr(text, title);
	char hard[24] = "";

	if (!line || strlen(line) < 47 || sscanf(line + 47, "%23s", hard) != 1)
		return -1;
	return strcmp(hard, "unlimited") != 0 && strtoull(hard, NULL, 10) <= most;
}

static const char *outer_rlimit_title(int resource)
{
	static const struct {
		int resource;
		const char *title;
	} titles[] = {
		{ RLIMIT_NOFILE, "Max open files" },
		{ RLIMIT_NPROC, "Max processes" },
		{ RLIMIT_CORE, "Max core file size" },
		{ RLIMIT_SIGPENDING, "Max pending signals" },
		{ RLIMIT_MSGQUEUE, "Max msgqueue size" },
		{ RLIMIT_MEMLOCK, "Max locked memory" },
		{ RLIMIT_RTPRIO, "Max realtime priority" },
		{ RLIMIT_NICE, "Max nice priority" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(titles); i++)
		if (titles[i].resource == resource)
			return titles[i].title;
	return "a limit without a title";
}

static void outer_note_rlimits(struct prove_run *r, pid_t pid)
{
	FILE *f = outer_open(pid, "limits");
	const char *above = NULL;
	char text[4096] = "";

	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
	}
	for (unsigned i = 0; i < limits_nrows; i++)
		if (outer_has_rlimit(text, outer_rlimit_title(limits_rows[i].resource),
				     limits_rows[i].hard) != 1)
			above = limits_rows[i].name;
	prove_note(r, above ? PROVE_FAILS : PROVE_PASSED, "outer box", "resource limits", "",
		   above ? "%s is higher than its row" : "%s", above ? above : "as in their table");
}

/* ---- cgroups ---- */

/* The path that counts processes: of cgroup v1, else of the only hierarchy. "": there is none. */
static void outer_read_cgroup(pid_t pid, char out[200])
{
	FILE *f = outer_open(pid, "cgroup");
	char line[512], *path;

	out[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		path = strstr(line, ":pids:");
		if (path)
			snprintf(out, 200, "%.199s", path + 6);
		else if (!strncmp(line, "0::", 3) && !out[0])
			snprintf(out, 200, "%.199s", line + 3);
	}
	if (f)
		fclose(f);
}

/* The names of cgroups are ids of their own; two boxes share none. */
static void outer_note_cgroups(struct prove_run *r)
{
	char a[200], b[200];

	outer_read_cgroup(r->a.handle.about.init_pid, a);
	outer_read_cgroup(r->b.handle.about.init_pid, b);
	prove_note(r, a[0] && strcmp(a, b) != 0 ? PROVE_PASSED : PROVE_FAILS, "outer box",
		   "cgroups", "", "%.80s and %.80s", a, b);
}

/* ---- mounts ---- */

struct outer_mounts {
	char point[OUTER_POINTS][80];
	unsigned n;
	int proc_ro, sys_ro, sysfs;
};

/* "36 35 98:0 /root /mount/point ro,noatime master:1 - type source options" */
static void outer_see_mount(struct outer_mounts *m, const char *line)
{
	char options[16] = "", type[40] = "", *point = m->point[m->n];
	const char *after = strstr(line, " - ");
	int read_only;

	if (!after || sscanf(line, "%*d %*d %*s %*s %79s %15s", point, options) != 2 ||
	    sscanf(after, " - %39s", type) != 1)
		return;
	m->n++;
	read_only = strncmp(options, "ro", 2) == 0 && (options[2] == ',' || !options[2]);
	if (strcmp(point, "/proc") == 0)
		m->proc_ro = read_only;
	if (strcmp(point, "/proc/sys") == 0)
		m->sys_ro = read_only;
	m->sysfs |= strcmp(type, "sysfs") == 0;
}

static void outer_read_mounts(pid_t pid, struct outer_mounts *m)
{
	FILE *f = outer_open(pid, "mountinfo");
	char line[1024];

	*m = (struct outer_mounts){ .n = 0 };
	while (f && m->n < OUTER_POINTS && fgets(line, sizeof(line), f))
		outer_see_mount(m, line);
	if (f)
		fclose(f);
}

static int outer_has_mount(const struct outer_mounts *m, const char *point)
{
	for (unsigned i = 0; i < m->n; i++)
		if (strcmp(m->point[i], point) == 0)
			return 1;
	return 0;
}

/* A file that every user of this host may read, and that the outer box shows; NULL: none. */
static const char *outer_unmasked(const struct outer_mounts *m)
{
	for (unsigned i = 0; i < mnt_nmasks; i++) {
		char path[80];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s", mnt_masks[i].path);
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0004) &&
		    !outer_has_mount(m, path))
			return mnt_masks[i].path;
	}
	return NULL;
}

static void outer_note_mounts(struct prove_run *r, pid_t pid)
{
	static struct outer_mounts m;
	const char *shown;
	int fixed;

	outer_read_mounts(pid, &m);
	shown = outer_unmasked(&m);
	fixed = m.proc_ro || m.sys_ro;
	prove_note(r, m.n && fixed ? PROVE_PASSED : PROVE_FAILS, "outer box",
		   "settings of the kernel", "",
		   fixed ? "/proc/sys is read-only" : "can be written");
	prove_note(r, shown ? PROVE_FAILS : PROVE_PASSED, "outer box", "lists of the kernel", "",
		   shown ? "/proc/%s is that of the host" : "masked%s", shown ? shown : "");
	prove_note(r,
		   outer_has_mount(&m, "/proc/sys/kernel/random/boot_id") ? PROVE_PASSED
									  : PROVE_FAILS,
		   "outer box", "boot id", "", "a file over that of the host is %s",
		   outer_has_mount(&m, "/proc/sys/kernel/random/boot_id") ? "mounted" : "missing");
	prove_note(r, m.sysfs ? PROVE_FAILS : PROVE_PASSED, "outer box", "sysfs", "", "%s",
		   m.sysfs ? "mounted" : "not mounted");
}

/* ---- namespaces ---- */

struct outer_names {
	char host[65];      /* name of the host in its UTS namespace; "": not known */
	long user, inotify; /* limits of its user namespace; -1: not known */
	long other;         /* the highest one of the other kinds */
};

static long outer_read_limit(const char *name)
{
	char path[80], text[24] = "";
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/user/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ? -1 : strtol(text, NULL, 10);
}

/* In a child: the kernel shows these limits of the reader's own user namespace only. The child has no pid in the pid
 * namespace of the box, so that no process there can name it. */
static _Noreturn void outer_enter(int uts, int user, int to)
{
	struct outer_names seen = { .user = -1, .inotify = -1, .other = -1 };
	struct utsname name;

	if (setns(uts, CLONE_NEWUTS) == 0 && uname(&name) == 0)
		snprintf(seen.host, sizeof(seen.host), "%s", name.nodename);
	if (setns(user, CLONE_NEWUSER) == 0) {
		seen.user = outer_read_limit("max_user_namespaces");
		seen.inotify = outer_read_limit("max_inotify_instances");
		for (unsigned i = 0; i < mnt_n_gvisor_ns_rows; i++) {
			long limit = outer_read_limit(mnt_gvisor_ns_rows[i].path);

			seen.other = limit > seen.other ? limit : seen.other;
		}
	}
	_exit(write(to, &seen, sizeof(seen)) == sizeof(seen) ? 0 : 1);
}

static int outer_open_namespace(pid_t pid, const char *kind)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void outer_read_names(pid_t pid, struct outer_names *out)
{
	auto_fd int uts = outer_open_namespace(pid, "uts"),
		    user = outer_open_namespace(pid, "user");
	int pipes[2];
	pid_t child;

	*out = (struct outer_names){ .user = -1, .inotify = -1, .other = -1 };
	if (uts < 0 || user < 0 || pipe2(pipes, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (child == 0)
		outer_enter(uts, user, pipes[1]);
	close(pipes[1]);
	if (child > 0) {
		struct outer_names seen;

		if (read(pipes[0], &seen, sizeof(seen)) == sizeof(seen))
			*out = seen;
		waitpid(child, NULL, 0);
	}
	close(pipes[0]);
}

static void outer_note_namespaces(struct prove_run *r, pid_t pid)
{
	/* QEMU makes none, and has no capability by which it could make other kinds. */
	int every_kind = r->want->tier == WIRE_TIER_GVISOR;
	struct outer_names names;
	struct utsname host;
	int known, few;

	outer_read_names(pid, &names);
	known = uname(&host) == 0 && names.host[0];
	prove_note(r, known && strcmp(names.host, host.nodename) ? PROVE_PASSED : PROVE_FAILS,
		   "outer box", "host name", "", "%.64s", known ? names.host : "not known");
	few = names.user >= 0 && names.user <= OUTER_NAMESPACES &&
	      (!every_kind || names.other <= OUTER_NAMESPACES) && names.inotify <= OUTER_INOTIFY;
	prove_note(r, few ? PROVE_PASSED : PROVE_FAILS, "outer box", "namespace limits", "",
		   "user %ld, other kinds at most %ld%s; %ld inotify instances", names.user,
		   names.other, every_kind ? "" : " (which it has no capability for)",
		   names.inotify);
}

void prove_judge_outer_box(struct prove_run *r)
{
	pid_t pid = r->a.handle.about.init_pid;

	if (!prove_has_guest_kernel(r))
		return;
	outer_note_status(r, pid);
	outer_note_rlimits(r, pid);
	outer_note_cgroups(r);
	outer_note_mounts(r, pid);
	outer_note_namespaces(r, pid);
}
