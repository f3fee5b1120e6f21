/* cause.c - see cause.h. The rules are a table, checked from top to bottom; the first that matches
 * wins. */
#include "record/cause.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "mux/packet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define UNKNOWN UINT64_MAX /* a counter that this host does not have */

enum { DISK_FULL_BELOW = 64 * 1024 };

static const char *const names[] = {
	[CAUSE_EXIT] = "exit",
	[CAUSE_SIGNAL] = "signal",
	[CAUSE_MEMORY] = "memory",
	[CAUSE_PROCESSES] = "processes",
	[CAUSE_DISK] = "disk",
	[CAUSE_CPU] = "cpu",
	[CAUSE_WALL] = "wall",
	[CAUSE_LIFETIME] = "lifetime",
	[CAUSE_IDLE] = "idle",
	[CAUSE_POLICY] = "policy",
	[CAUSE_OPERATOR] = "operator",
	[CAUSE_HOST] = "host",
	[CAUSE_SUPERSEDED] = "superseded",
	[CAUSE_ROLLBACK] = "rollback",
};
_Static_assert(ARRAY_LEN(names) == CAUSE_COUNT, "a cause without a name");

const char *cause_name(enum cause cause)
{
	return names[cause];
}

int cause_parse(const char *name, enum cause *out)
{
	for (unsigned i = 0; i < CAUSE_COUNT; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum cause)i;
			return 0;
		}
	return -1;
}

int cause_has_cgroup_cpu(const struct exit_info *x)
{
	return x->evidence && x->figures.cpu_us != UNKNOWN;
}

uint64_t cause_cpu_us(const struct exit_info *x)
{
	if (cause_has_cgroup_cpu(x))
		return x->figures.cpu_us;
	return x->exited ? x->exit.user_us + x->exit.system_us : UNKNOWN;
}

/* ---- evidence ---- */

int cause_is_of_guest(const struct exit_info *x)
{
	return x->exited && x->exit.head.flags & WIRE_EXIT_GUEST;
}

static int cause_some(const struct exit_info *x, uint64_t value)
{
	return x->evidence && value != UNKNOWN && value > 0;
}

/* Of the kernel that ran the program: that of the host, or that of its guest. */
static uint64_t cause_kills(const struct exit_info *x)
{
	uint32_t guest = x->exited ? wire_exit_kills(x->exit.head.flags) : 0;

	return guest ? guest : cause_some(x, x->figures.oom_kills) ? x->figures.oom_kills : 0;
}

static uint64_t cause_refused(const struct exit_info *x)
{
	uint32_t guest = x->exited ? wire_exit_refused(x->exit.head.flags) : 0;

	return guest ? guest : cause_some(x, x->figures.pids_hits) ? x->figures.pids_hits : 0;
}

static const char *cause_kernel(const struct exit_info *x)
{
	return cause_is_of_guest(x) ? "the kernel of the guest" : "the kernel";
}

static int by_signal(const struct exit_info *x, int signo)
{
	return x->exited && x->exit.why == WIRE_WHY_SIGNAL && x->exit.status == signo;
}

static int exited_badly(const struct exit_info *x)
{
	return x->exited && x->exit.why == WIRE_WHY_EXIT && x->exit.status != 0;
}

static int ended_from_outside(const struct exit_info *x)
{
	return !x->exited && x->evidence && x->figures.by_operator == 1;
}

static int we_killed(const struct exit_info *x)
{
	int wanted = x->end == STREAM_KILLED || x->end == STREAM_HUNG_UP;

	return ended_from_outside(x) || (wanted && (!x->exited || x->exit.why == WIRE_WHY_SIGNAL));
}

/* The whole box was ended, and this program with it. */
static int ended_with_box(const struct exit_info *x, enum cause why)
{
	return x->because == why && (!x->exited || by_signal(x, SIGKILL));
}

static int over_lifetime(const struct exit_info *x)
{
	return ended_with_box(x, CAUSE_LIFETIME);
}

static int over_idle(const struct exit_info *x)
{
	return ended_with_box(x, CAUSE_IDLE);
}

static int by_operator(const struct exit_info *x)
{
	return ended_with_box(x, CAUSE_OPERATOR) || we_killed(x);
}

static int by_rollback(const struct exit_info *x)
{
	return ended_with_box(x, CAUSE_ROLLBACK);
}

static int cause_unread(const struct exit_info *x)
{
	return x->end == STREAM_UNREAD && (!x->exited || x->exit.why == WIRE_WHY_SIGNAL);
}

static int over_cpu(const struct exit_info *x)
{
	return (x->evidence && x->figures.over_cpu == 1) || by_signal(x, SIGXCPU);
}

static int over_memory(const struct exit_info *x)
{
	return cause_kills(x) && (!x->exited || by_signal(x, SIGKILL) || exited_badly(x));
}

static int cause_vanished(const struct exit_info *x)
{
	return !x->exited;
}

static int never_ran(const struct exit_info *x)
{
	return x->exited && x->exit.why == WIRE_WHY_EXEC;
}

/* Some steps of init fail because of the request; other failures are internal. */
static int start_failed(const struct exit_info *x)
{
	static const char *const theirs[] = { "program", "arguments", "directory" };

	if (!never_ran(x))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(theirs); i++)
		if (!strcmp(x->exit.step, theirs[i]))
			return 0;
	return 1;
}

static int over_wall(const struct exit_info *x)
{
	return x->exited && x->exit.why == WIRE_WHY_WALL;
}

static int refused_call(const struct exit_info *x)
{
	return by_signal(x, SIGSYS);
}

static int over_processes(const struct exit_info *x)
{
	return exited_badly(x) && cause_refused(x);
}

/* The engine could not start a thread of its own. */
static int engine_over_processes(const struct exit_info *x)
{
	return x->engine && !x->exited && cause_some(x, x->figures.pids_hits);
}

static int over_disk(const struct exit_info *x)
{
	return exited_badly(x) && ((x->exit.disk_size && x->exit.disk_free < DISK_FULL_BELOW) ||
				   (x->exit.files_size && x->exit.files_free == 0));
}

static int any_signal(const struct exit_info *x)
{
	return x->exited && x->exit.why == WIRE_WHY_SIGNAL;
}

static const struct cause_rule {
	int (*holds)(const struct exit_info *x);
	enum cause cause;
} rules[] = {
	/* An action of the daemon explains its consequences. */
	{ over_lifetime, CAUSE_LIFETIME },
	{ over_idle, CAUSE_IDLE },
	{ by_rollback, CAUSE_ROLLBACK },
	{ by_operator, CAUSE_OPERATOR },
	{ cause_unread, CAUSE_SIGNAL },
	{ over_wall, CAUSE_WALL },
	{ over_cpu, CAUSE_CPU },
	{ refused_call, CAUSE_POLICY },
	/* Before processes and disk: here the kernel killed a process, there it only rejected
	 * something. */
	{ over_memory, CAUSE_MEMORY },
	{ engine_over_processes, CAUSE_PROCESSES },
	{ cause_vanished, CAUSE_HOST },
	{ start_failed, CAUSE_HOST },
	{ over_processes, CAUSE_PROCESSES },
	{ over_disk, CAUSE_DISK },
	{ any_signal, CAUSE_SIGNAL },
};

enum cause cause_of(const struct exit_info *x)
{
	for (unsigned i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].holds(x))
			return rules[i].cause;
	return CAUSE_EXIT;
}

/* ---- status ---- */

int cause_signal(const struct exit_info *x)
{
	if (x->exited && (x->exit.why == WIRE_WHY_SIGNAL || x->exit.why == WIRE_WHY_WALL) &&
	    !cause_unread(x))
		return x->exit.status;
	if (cause_unread(x))
		return SIGPIPE;
	if (x->end == STREAM_HUNG_UP)
		return SIGHUP;
	return x->exited ? 0 : SIGKILL;
}

int cause_status(const struct exit_info *x)
{
	enum cause cause = cause_of(x);
	int signo = cause_signal(x);

	if (cause == CAUSE_WALL)
		return 124;
	if (cause == CAUSE_HOST)
		return 125;
	if (never_ran(x))
		return x->exit.status == ENOENT ? 127 : 126;
	return signo ? 128 + signo : x->exit.status & 255;
}

/* ---- words ---- */

void cause_signal_name(int signo, char out[24])
{
	const char *name = signo > 0 && signo < NSIG ? sigabbrev_np(signo) : NULL;

	if (name)
		snprintf(out, 24, "SIG%s", name);
	else
		snprintf(out, 24, "signal %d", signo);
}

static void say_limit(struct buf *out, const char *what, uint64_t bytes)
{
	char size[UNITS_TEXT];

	buf_printf(out, "%s limit reached: %s", what, units_size(size, bytes));
}

static int no_folder(const struct exit_info *x)
{
	return never_ran(x) && x->cwd && !strcmp(x->exit.step, "directory");
}

static void say_exit(const struct exit_info *x, struct buf *out)
{
	if (no_folder(x))
		buf_printf(out, "cannot start in '%.80s': %s", x->cwd, strerror(x->exit.status));
	else if (never_ran(x))
		buf_printf(out, "cannot execute '%.40s': %s", x->program, strerror(x->exit.status));
}

static void say_signal(const struct exit_info *x, struct buf *out)
{
	char name[24];

	cause_signal_name(cause_signal(x), name);
	buf_printf(out, "ended by %s", name);
}

static void say_memory(const struct exit_info *x, struct buf *out)
{
	unsigned long long n = cause_kills(x);

	say_limit(out, "memory", x->limits.mem_bytes);
	buf_printf(out, "; %s killed %llu process%s", cause_kernel(x), n, n == 1 ? "" : "es");
}

static void say_processes(const struct exit_info *x, struct buf *out)
{
	buf_printf(out, "process limit reached: %u; %s refused %llu more", x->limits.pids,
		   cause_kernel(x), (unsigned long long)cause_refused(x));
}

static void say_disk(const struct exit_info *x, struct buf *out)
{
	if (x->exit.files_size && x->exit.files_free == 0)
		buf_printf(out, "file limit reached: %llu files",
			   (unsigned long long)x->limits.disk_files);
	else
		say_limit(out, "disk", x->limits.disk_bytes);
}

static void say_cpu(const struct exit_info *x, struct buf *out)
{
	char time[UNITS_TEXT];

	buf_printf(out, "CPU time limit reached: %s", units_time(time, x->limits.cpu_ms * 1000));
}

static void say_wall(const struct exit_info *x, struct buf *out)
{
	char time[UNITS_TEXT];

	buf_printf(out, "time limit reached: %s", units_time(time, x->wall_ms * UINT64_C(1000)));
}

static void say_lifetime(const struct exit_info *x, struct buf *out)
{
	char time[UNITS_TEXT];

	buf_printf(out, "the box's lifetime was over: %s", units_time(time, x->because_ms * 1000));
}

static void say_idle(const struct exit_info *x, struct buf *out)
{
	char time[UNITS_TEXT];

	buf_printf(out, "nothing happened in the box for %s, its idle timeout",
		   units_time(time, x->because_ms * 1000));
}

static void say_policy(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "ended by the system call filter (SIGSYS)");
}

static void say_operator(const struct exit_info *x, struct buf *out)
{
	if (ended_from_outside(x) || x->because == CAUSE_OPERATOR)
		buf_puts(out, "ended from outside: a client or the operator requested it");
	else
		buf_puts(out, x->end == STREAM_HUNG_UP ? "ended because the terminal went away"
						       : "killed by a second Ctrl-C");
}

static void say_rollback(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "ended because the box went back to a checkpoint");
}

static void say_host(const struct exit_info *x, struct buf *out)
{
	if (never_ran(x))
		buf_printf(out, "the box could not start the program: %s: %s", x->exit.step,
			   strerror(x->exit.status));
	else if (x->evidence && packet_reason(x->figures.engine_status))
		buf_printf(out, "the box ended first: %s", packet_reason(x->figures.engine_status));
	else
		buf_puts(out, "the box ended first; no limit explains it: it was killed or broke");
}

/* A limit of the box: the field of a request that sets it, and the flag with its value. */
static void raise_limit(const struct exit_info *x, struct buf *out, const char *field, uint64_t to,
			const char *flag, const char *value)
{
	if (x->served)
		buf_printf(out, "raise: \"limits\": {\"%s\": %llu}, or atoll new --%s %s ...",
			   field, (unsigned long long)to, flag, value);
	else
		buf_printf(out, "raise: atoll run --%s %s ...", flag, value);
}

/* Twice as much, in the notation of the flag. */
static void raise_bytes(const struct exit_info *x, struct buf *out, const char *flag,
			uint64_t bytes)
{
	uint64_t mib = (2 * bytes + (1 << 20) - 1) >> 20;
	char value[32];

	snprintf(value, sizeof(value), "%lluM", (unsigned long long)mib);
	raise_limit(x, out, flag, mib << 20, flag, value);
}

static void raise_count(const struct exit_info *x, struct buf *out, const char *flag,
			uint64_t count)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)count);
	raise_limit(x, out, flag, count, flag, value);
}

static void way_exit(const struct exit_info *x, struct buf *out)
{
	struct utsname u;

	if (!never_ran(x))
		return;
	if (no_folder(x))
		buf_puts(out, "make that folder first, or start elsewhere");
	else if (x->exit.status == ENOENT)
		buf_printf(out, "a box has this machine's /usr, and what you bring: %s",
			   x->served ? "\"files\", or PUT .../files" : "-w DIR");
	else if (x->exit.status == ENOEXEC && uname(&u) == 0)
		buf_printf(out, "it has to be a program for %s, or begin with #!", u.machine);
	else if (x->exit.status == EACCES)
		buf_printf(out, "is it executable? or: %sbash FILE",
			   x->served ? "" : "atoll run -- ");
}

/* In a container only the process that reached the limit would have ended. */
static void way_engine(const struct exit_info *x, struct buf *out)
{
	if (x->engine && !x->exited)
		buf_puts(out, "   (in this isolation tier the limit ends the whole box)");
}

static void way_memory(const struct exit_info *x, struct buf *out)
{
	char peak[UNITS_TEXT];

	raise_bytes(x, out, "mem", x->limits.mem_bytes);
	/* That of a guest is the memory of its engine. */
	if (cause_some(x, x->figures.mem_peak) && !cause_is_of_guest(x))
		buf_printf(out, "   (peak was %s)", units_size(peak, x->figures.mem_peak));
	way_engine(x, out);
}

static void way_processes(const struct exit_info *x, struct buf *out)
{
	raise_count(x, out, "pids", 2 * x->limits.pids);
	way_engine(x, out);
}

static void way_disk(const struct exit_info *x, struct buf *out)
{
	if (x->exit.files_size && x->exit.files_free == 0)
		raise_count(x, out, "files", 2 * x->limits.disk_files);
	else
		raise_bytes(x, out, "disk", x->limits.disk_bytes);
}

static void way_cpu(const struct exit_info *x, struct buf *out)
{
	uint64_t s = (2 * x->limits.cpu_ms + 999) / 1000;
	char value[32];

	snprintf(value, sizeof(value), "%llus", (unsigned long long)s);
	raise_limit(x, out, "cpu_ms", s * 1000, "cpu-time", value);
}

static void way_wall(const struct exit_info *x, struct buf *out)
{
	unsigned long long s = (2 * (unsigned long long)x->wall_ms + 999) / 1000;

	if (x->served)
		buf_printf(out, "raise: \"timeout_ms\": %llu, or atoll exec --time %llus ...",
			   s * 1000, s);
	else
		buf_printf(out, "raise: atoll run --time %llus ...", s);
}

static void say_superseded(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "ended because its node was lost and the box was restarted on another node");
}

static void way_lifetime(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out,
		 "a longer one: PATCH /v1/boxes/ID {\"lifetime_ms\": N}, before the lifetime ends");
}

static void way_idle(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "any request to the box is activity; or a longer idle_ms");
}

static void way_policy(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "see what is refused and why: atoll policy seccomp");
}

static void way_host(const struct exit_info *x, struct buf *out)
{
	(void)x;
	buf_puts(out, "check this machine: atoll doctor");
}

static const struct {
	void (*say)(const struct exit_info *x, struct buf *out);
	void (*way)(const struct exit_info *x, struct buf *out);
	int timed; /* " after 2.1 s" adds something */
} words[] = {
	[CAUSE_EXIT] = { say_exit, way_exit, 0 },
	[CAUSE_SIGNAL] = { say_signal, NULL, 1 },
	[CAUSE_MEMORY] = { say_memory, way_memory, 1 },
	[CAUSE_PROCESSES] = { say_processes, way_processes, 1 },
	[CAUSE_DISK] = { say_disk, way_disk, 1 },
	[CAUSE_CPU] = { say_cpu, way_cpu, 0 },
	[CAUSE_WALL] = { say_wall, way_wall, 0 },
	[CAUSE_LIFETIME] = { say_lifetime, way_lifetime, 0 },
	[CAUSE_IDLE] = { say_idle, way_idle, 0 },
	[CAUSE_POLICY] = { say_policy, way_policy, 1 },
	[CAUSE_OPERATOR] = { say_operator, NULL, 1 },
	[CAUSE_HOST] = { say_host, way_host, 0 },
	[CAUSE_SUPERSEDED] = { say_superseded, NULL, 1 },
	[CAUSE_ROLLBACK] = { say_rollback, NULL, 1 },
};
_Static_assert(ARRAY_LEN(words) == CAUSE_COUNT, "a cause without words");

void cause_sentence(const struct exit_info *x, struct buf *out)
{
	enum cause cause = cause_of(x);
	size_t before = out->len;
	char time[UNITS_TEXT];

	words[cause].say(x, out);
	if (out->len > before && words[cause].timed)
		buf_printf(out, " after %s", units_time(time, x->run_us));
}

void cause_hint(const struct exit_info *x, struct buf *out)
{
	enum cause cause = cause_of(x);

	if (words[cause].way)
		words[cause].way(x, out);
}
