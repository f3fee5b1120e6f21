/* processes.c - every process of a box, read from /proc of the host: its ids, capabilities, filter and namespaces, and the
 * system calls that its filters let through. */
#include "base/cleanup.h"
#include "jail/launch.h"
#include "prove/prove_internal.h"
#include "prove/thread_filters.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_PROCESSES = 256, SCAN_ROLES = 7 };

struct scan_status {
	pid_t pid, parent, tracer;
	char name[32];
	unsigned uid[4], gid[4];
	unsigned long long cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	int no_new_privs, seccomp;
};

/* What a process of an outer box is, by its name; its budget of system calls. */
struct scan_role {
	const char *name;
	unsigned most; /* 0: no such process is expected */
};
enum scan_role_id {
	ROLE_PROGRAM,
	ROLE_MUX,
	ROLE_SENTRY,
	ROLE_GOFER,
	ROLE_VMM,
	ROLE_SUPERVISOR,
	ROLE_MODULE
};

struct scan_count { /* of one role */
	unsigned processes, threads, unread;
	unsigned numbers, distinct; /* the largest of one thread */
	unsigned other;             /* of the other table of system calls */
	char why_unread[120];
};

struct scan {
	struct prove_run *r;
	struct thread_filters filters;
	struct scan_count count[SCAN_ROLES];
	unsigned processes;
	char bad[6][160]; /* the first violation of each kind */
};
enum { BAD_IDS, BAD_CAPS, BAD_PRIVS, BAD_FILTER, BAD_NAMESPACES, BAD_UNKNOWN, BAD_KINDS };

static const struct scan_role *scan_roles(const struct prove_run *r)
{
	static const struct scan_role container[SCAN_ROLES] = {
		[ROLE_PROGRAM] = { "programs", 245 },
	};
	static const struct scan_role plain[SCAN_ROLES] = {
		[ROLE_PROGRAM] = { "programs", 245 },
		[ROLE_MUX] = { "mux", 245 },
	};
	static const struct scan_role process[SCAN_ROLES] = {
		[ROLE_PROGRAM] = { "programs", 245 },
		[ROLE_SUPERVISOR] = { "supervisor", UINT_MAX },
	};
	static const struct scan_role wasm[SCAN_ROLES] = {
		[ROLE_PROGRAM] = { "init", 245 },
		[ROLE_MODULE] = { "WASM host", 28 },
	};
	static const struct scan_role gvisor[SCAN_ROLES] = {
		[ROLE_PROGRAM] = { "programs", 20 },
		[ROLE_MUX] = { "mux", 65 },
		[ROLE_SENTRY] = { "sentry", 90 },
		[ROLE_GOFER] = { "gofer", 50 },
	};
	static const struct scan_role microvm[SCAN_ROLES] = {
		[ROLE_MUX] = { "mux", 65 },
		[ROLE_VMM] = { "VMM", 65 },
	};

	switch (r->want->tier) {
	case WIRE_TIER_WASM:
		return wasm;
	case WIRE_TIER_GVISOR:
		return gvisor;
	case WIRE_TIER_MICROVM:
		return microvm;
	case WIRE_TIER_PLAIN:
		return plain;
	case WIRE_TIER_PROCESS:
		return process;
	default:
		return container;
	}
}

/* ---- /proc ---- */

static int scan_read_status(struct scan_status *s, const char *dir)
{
	char path[80], line[256];
	FILE *f;

	*s = (struct scan_status){ .no_new_privs = -1, .seccomp = -1 };
	snprintf(path, sizeof(path), "%s/status", dir);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31[^\n]", s->name);
		sscanf(line, "Pid: %d", &s->pid);
		sscanf(line, "PPid: %d", &s->parent);
		sscanf(line, "TracerPid: %d", &s->tracer);
		sscanf(line, "Uid: %u %u %u %u", &s->uid[0], &s->uid[1], &s->uid[2], &s->uid[3]);
		sscanf(line, "Gid: %u %u %u %u", &s->gid[0], &s->gid[1], &s->gid[2], &s->gid[3]);
		sscanf(line, "CapInh: %llx", &s->cap_inh);
		sscanf(line, "CapPrm: %llx", &s->cap_prm);
		sscanf(line, "CapEff: %llx", &s->cap_eff);
		sscanf(line, "CapBnd: %llx", &s->cap_bnd);
		sscanf(line, "CapAmb: %llx", &s->cap_amb);
		sscanf(line, "NoNewPrivs: %d", &s->no_new_privs);
		sscanf(line, "Seccomp: %d", &s->seccomp);
	}
	fclose(f);
	return s->pid ? 0 : -1;
}

static int scan_in_range(unsigned id, const struct wire_box *box)
{
	return id >= box->uid_base && id - box->uid_base < JAIL_RANGE;
}

static void scan_command(pid_t pid, char *out, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	n = f ? fread(out, 1, size - 1, f) : 0;
	out[n] = 0; /* up to the first NUL: argv[0] */
	if (f)
		fclose(f);
}

static void scan_bad(struct scan *s, unsigned kind, const struct scan_status *p, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));
static void scan_bad(struct scan *s, unsigned kind, const struct scan_status *p, const char *fmt,
		     ...)
{
	char text[100];
	va_list ap;

	if (s->bad[kind][0])
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(s->bad[kind], sizeof(s->bad[kind]), "process %d (%s): %s", p->pid, p->name, text);
}

static void scan_namespaces(struct scan *s, const struct scan_status *p)
{
	static const char *const kinds[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		char own[64], its[64], a[64] = "", b[64] = "";

		snprintf(own, sizeof(own), "/proc/self/ns/%s", kinds[i]);
		snprintf(its, sizeof(its), "/proc/%d/ns/%s", p->pid, kinds[i]);
		if (readlink(own, a, sizeof(a) - 1) < 0 || readlink(its, b, sizeof(b) - 1) < 0)
			continue; /* it has just ended */
		if (!strcmp(a, b))
			scan_bad(s, BAD_NAMESPACES, p, "%s namespace of the host", kinds[i]);
	}
}

static void scan_check(struct scan *s, const struct scan_status *p, enum scan_role_id role,
		       const struct wire_box *box)
{
	unsigned long long all = p->cap_inh | p->cap_prm | p->cap_eff | p->cap_amb;

	for (unsigned i = 0; i < 4; i++) {
		if (!scan_in_range(p->uid[i], box))
			scan_bad(s, BAD_IDS, p, "uid %u", p->uid[i]);
		if (!scan_in_range(p->gid[i], box))
			scan_bad(s, BAD_IDS, p, "gid %u", p->gid[i]);
	}
	/* Programs have none at all; init and engines have some in the user namespace of their box. */
	if (p->uid[0] == box->uid_base + JAIL_USER && !prove_has_guest_kernel(s->r) &&
	    (all || p->cap_bnd))
		scan_bad(s, BAD_CAPS, p, "capabilities %llx, bounding set %llx", all, p->cap_bnd);
	scan_namespaces(s, p);
	/* It has the uid of its programs and no capability, and only waits for them: nothing of a client reaches it. */
	if (role == ROLE_SUPERVISOR)
		return;
	if (p->no_new_privs != 1)
		scan_bad(s, BAD_PRIVS, p, "no_new_privs is %d", p->no_new_privs);
	if (p->seccomp != 2)
		scan_bad(s, BAD_FILTER, p, "seccomp mode is %d", p->seccomp);
}

/* ---- filters ---- */

static void scan_thread(struct scan *s, struct scan_count *c, pid_t tid, pid_t tracer)
{
	struct filter_numbers native, other;

	if (thread_filters_read(&s->filters, tid, &native, &other) < 0) {
		if (errno == ESRCH)
			return; /* it has ended */
		snprintf(c->why_unread, sizeof(c->why_unread), "%s",
			 tracer ? "another process of the box traces them and answers their calls"
				: strerror(errno));
		c->threads++;
		c->unread++;
		return;
	}
	c->threads++;
	if (filter_numbers_distinct(&native) > c->distinct)
		c->distinct = filter_numbers_distinct(&native);
	if (filter_numbers_count(&native) > c->numbers)
		c->numbers = filter_numbers_count(&native);
	if (filter_numbers_count(&other) > c->other)
		c->other = filter_numbers_count(&other);
}

/* ---- roles ---- */

static int scan_is_sentry(pid_t pid)
{
	char command[256];

	scan_command(pid, command, sizeof(command));
	return strstr(command, "runsc-sandbox") != NULL;
}

static enum scan_role_id scan_role_of(const struct prove_run *r, const struct scan_status *p,
				      const struct wire_box *box)
{
	char command[256];

	if (r->want->tier == WIRE_TIER_WASM) {
		scan_command(p->pid, command, sizeof(command));
		return strncmp(command, r->want->modules, strlen(r->want->modules)) ? ROLE_PROGRAM
										    : ROLE_MODULE;
	}
	if (r->want->tier == WIRE_TIER_CONTAINER)
		return ROLE_PROGRAM;
	if (r->want->tier == WIRE_TIER_PROCESS)
		return p->pid == box->init_pid ? ROLE_SUPERVISOR : ROLE_PROGRAM;
	if (p->pid == box->init_pid || !strcmp(p->name, "mux") || !strcmp(p->name, "atoll-mux"))
		return ROLE_MUX;
	scan_command(p->pid, command, sizeof(command));
	if (strstr(command, "runsc-gofer"))
		return ROLE_GOFER;
	/* Processes that execute programs of the guest are forked from the sentry and have its command line. */
	if (scan_is_sentry(p->pid) && !scan_is_sentry(p->parent))
		return ROLE_SENTRY;
	return !strncmp(p->name, "qemu", 4) ? ROLE_VMM : ROLE_PROGRAM;
}

static void scan_process(struct scan *s, const struct scan_status *p, const struct wire_box *box)
{
	enum scan_role_id role = scan_role_of(s->r, p, box);
	struct scan_count *c = &s->count[role];
	struct dirent *entry;
	char dir[64], path[128];
	DIR *d;

	s->processes++;
	c->processes++;
	if (!scan_roles(s->r)[role].most)
		scan_bad(s, BAD_UNKNOWN, p, "no such process is expected in this tier");
	snprintf(dir, sizeof(dir), "/proc/%d/task", p->pid);
	d = opendir(dir);
	while (d && (entry = readdir(d))) {
		struct scan_status t;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.20s", dir, entry->d_name);
		if (scan_read_status(&t, path) < 0)
			continue;
		scan_check(s, &t, role, box);
		if (role != ROLE_SUPERVISOR)
			scan_thread(s, c, atoi(entry->d_name), t.tracer);
	}
	if (d)
		closedir(d);
}

static pid_t scan_parent(pid_t pid)
{
	struct scan_status p;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return scan_read_status(&p, path) == 0 ? p.parent : 0;
}

/* In the pid namespace of the box, or below its first process: engines make namespaces of their own. */
static int scan_is_of(pid_t pid, const struct prove_box *x)
{
	char path[64], its[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	n = readlink(path, its, sizeof(its) - 1);
	its[n > 0 ? n : 0] = 0;
	if (n > 0 && !strcmp(its, x->pid_namespace))
		return 1;
	for (unsigned depth = 0; pid > 1 && depth < 64; depth++) {
		if (pid == x->handle.about.init_pid)
			return 1;
		pid = scan_parent(pid);
	}
	return 0;
}

static void scan_box(struct scan *s, const struct prove_box *x)
{
	struct scan_status p;
	char path[64];
	struct dirent *entry;
	DIR *d = opendir("/proc");

	while (d && (entry = readdir(d)) && s->processes < SCAN_PROCESSES) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s", entry->d_name);
		if (scan_is_of(atoi(entry->d_name), x) && scan_read_status(&p, path) == 0)
			scan_process(s, &p, &x->handle.about);
	}
	if (d)
		closedir(d);
}

/* ---- rows ---- */

static void scan_note_kinds(struct scan *s)
{
	static const struct {
		const char *way, *good;
	} kinds[BAD_KINDS] = {
		[BAD_IDS] = { "ids", "all user and group ids are in the range of the box" },
		[BAD_CAPS] = { "capabilities",
			       "none of a program, none in the user namespace of the host" },
		[BAD_PRIVS] = { "no_new_privs", "set in every thread" },
		[BAD_FILTER] = { "filter", "active in every thread" },
		[BAD_NAMESPACES] = { "namespaces", "none of the seven is that of the host" },
		[BAD_UNKNOWN] = { "kinds", "no process that the tier does not have" },
	};

	for (unsigned i = 0; i < BAD_KINDS; i++)
		prove_note(s->r, s->bad[i][0] ? PROVE_FAILS : PROVE_PASSED, "processes",
			   kinds[i].way, "", "%s", s->bad[i][0] ? s->bad[i] : kinds[i].good);
	prove_note(s->r, s->processes ? PROVE_PASSED : PROVE_FAILS, "processes", "found", "",
		   "%u processes of two boxes in /proc of the host", s->processes);
}

static void scan_note_role(struct scan *s, const struct scan_role *role, const struct scan_count *c)
{
	if (!c->threads)
		return;
	if (c->unread == c->threads) {
		prove_note(s->r, PROVE_SKIPPED, "system calls", role->name, "",
			   "the filters cannot be read: %s", c->why_unread);
		return;
	}
	prove_note(
		s->r, c->distinct <= role->most ? PROVE_PASSED : PROVE_FAILS, "system calls",
		role->name, "",
		"%u of at most %u reach the kernel of the host (%u numbers; %u threads, %u not readable)",
		c->distinct, role->most, c->numbers, c->threads, c->unread);
	prove_note(s->r, c->other ? PROVE_FAILS : PROVE_PASSED, "other system call table",
		   role->name, "", "%u reach the kernel of the host", c->other);
}

void prove_judge_processes(struct prove_run *r)
{
	const struct scan_role *roles = scan_roles(r);
	struct scan s = { .r = r };

	scan_box(&s, &r->a);
	scan_box(&s, &r->b);
	scan_note_kinds(&s);
	for (unsigned i = 0; i < SCAN_ROLES; i++)
		if (roles[i].most)
			scan_note_role(&s, &roles[i], &s.count[i]);
	thread_filters_fini(&s.filters);
}
