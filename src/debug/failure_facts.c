/* failure_facts.c - see failure_facts.h. */
#include "debug/failure_facts.h"
#include "base/cleanup.h"
#include "lang/install.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The last phase of that name: earlier ones succeeded. */
static const json_t *phase_named(const json_t *result, const char *name)
{
	const json_t *phases = json_object_get(result, "phases");

	for (size_t i = json_array_size(phases); i--;)
		if (!*name || !strcmp(doc_text(json_array_get(phases, i), "name"), name))
			return json_array_get(phases, i);
	return NULL;
}

const json_t *facts_phase(const json_t *result)
{
	const json_t *named = phase_named(result, doc_text(result, "phase"));

	/* A check may have no output: that of its run is used. */
	if (!named || (!*doc_text(named, "stderr") && !*doc_text(named, "stdout") &&
		       !strcmp(doc_text(named, "name"), "check")))
		named = phase_named(result, "run") ? phase_named(result, "run") : named;
	return named ? named : phase_named(result, "");
}

static const char *const *facts_found(struct failure_case *s, const char *category,
				      const char *name, const char *source, const char *why,
				      const char *const *fixes)
{
	s->category = category;
	s->name = name;
	s->confidence = 0.95;
	buf_puts(&s->why, why);
	failure_seen(s, source, 0, why);
	return fixes;
}

/* ---- before it ran ---- */

static const char *const *by_scan(struct failure_case *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(s->result, "scan"), i, one)
	{
		auto_buf struct buf why = { 0 };

		if (strcmp(doc_text(one, "action"), "block") != 0)
			continue;
		buf_printf(&why, "refused before it ran: %.200s", doc_text(one, "why"));
		s->line = (long)json_integer_value(json_object_get(one, "line"));
		snprintf(s->file, sizeof(s->file), "%s", doc_text(one, "file"));
		return facts_found(s, "policy", "scan", "scan", buf_str(&why), NULL);
	}
	return facts_found(s, "policy", "scan", "scan", "refused before it ran", NULL);
}

/* Categories for errors of package managers. */
static const struct {
	/* clang-format off */
	const char *category, *why;
	const char *const *fixes;
} faults[INSTALL_FAULTS] = {
	[INSTALL_UNKNOWN] = { "dependency_missing", "a package could not be installed", NULL },
	[INSTALL_NO_PACKAGE] = { "dependency_missing", "there is no such package",
				 (const char *const[]){ "package_drop", NULL } },
	[INSTALL_NO_VERSION] = { "version_conflict", "there is no such version",
				 (const char *const[]){ "unpin", NULL } },
	[INSTALL_BUILD] = { "dependency_missing", "a package could not be built", NULL },
	[INSTALL_UNREACHABLE] = { "network_denied", "no source of packages could be reached", NULL },
	[INSTALL_NOT_CONFIGURED] = { "network_denied", "there is no source of packages", NULL },
	[INSTALL_NO_MANAGER] = { "dependency_missing", "the package manager is not on this host", NULL },
	[INSTALL_TIMEOUT] = { "timeout_wall", "installing took too long",
			      (const char *const[]){ "raise_install", NULL } },
	[INSTALL_TOO_LARGE] = { "disk_full", "what was to be installed is too large", NULL },
	/* clang-format on */
};

/* The installer has usually classified the error already. */
static int fault_said(const json_t *phase, struct install_diagnosis *d)
{
	for (unsigned f = 0; f < INSTALL_FAULTS; f++)
		if (!strcmp(doc_text(phase, "fault"), install_fault_name((enum install_fault)f))) {
			d->fault = (enum install_fault)f;
			snprintf(d->package, sizeof(d->package), "%s", doc_text(phase, "package"));
			snprintf(d->line, sizeof(d->line), "%s", doc_text(phase, "message"));
			return 1;
		}
	return 0;
}

static const char *const *by_install(struct failure_case *s)
{
	auto_buf struct buf why = { 0 }, said = { 0 };
	struct install_diagnosis d = { .fault = INSTALL_UNKNOWN };
	const json_t *first = json_array_get(json_object_get(s->artifact, "packages"), 0);
	int m = package_manager_named(doc_text(first, "manager"));

	/* The last manager with output is checked first, then the others. */
	buf_printf(&said, "%s\n%s", doc_text(s->phase, "stdout"), doc_text(s->phase, "stderr"));
	for (int i = 0; !fault_said(s->phase, &d) && i < PM_COUNT && d.fault == INSTALL_UNKNOWN;
	     i++)
		install_diagnose((enum package_manager)((m + PM_COUNT + i) % PM_COUNT),
				 buf_str(&said), said.len, &d);
	if (!strcmp(doc_text(s->phase, "cause"), "wall"))
		d.fault = INSTALL_TIMEOUT;
	/* The settings of the operator do not allow the install; the error names the setting. */
	if (!strcmp(doc_text(s->phase, "cause"), "policy") && d.fault == INSTALL_UNKNOWN) {
		buf_printf(&why, "no package can be installed: %.200s",
			   doc_text(s->phase, "stderr"));
		snprintf(s->subject, sizeof(s->subject), "%s", doc_text(first, "name"));
		return facts_found(s, faults[INSTALL_NOT_CONFIGURED].category,
				   install_fault_name(INSTALL_NOT_CONFIGURED), "install",
				   buf_str(&why), NULL);
	}
	snprintf(s->subject, sizeof(s->subject), "%s", d.package);
	buf_printf(&why, "%s%s%s", faults[d.fault].why, *d.package ? ": " : "", d.package);
	if (*d.line)
		failure_seen(s, "install", 0, d.line);
	if (*d.versions)
		failure_seen(s, "install", 0, d.versions);
	return facts_found(s, faults[d.fault].category, install_fault_name(d.fault), "install",
			   buf_str(&why), faults[d.fault].fixes);
}

/* ---- the kernel ---- */

static const char *const raise_time[] = { "raise_time", NULL };
static const char *const raise_memory[] = { "raise_memory", NULL };
static const char *const locate[] = { "locate", NULL };

static const struct {
	/* clang-format off */
	const char *cause, *category, *why;
	const char *const *fixes;
} causes[] = {
	{ "memory", "oom", "it needed more memory than the limit", raise_memory },
	{ "processes", "pids", "it started more processes than the limit", NULL },
	{ "disk", "disk_full", "it wrote more than the disk limit", NULL },
	{ "cpu", "timeout_cpu", "it computed longer than the limit", raise_time },
	{ "output", "wrong_output", "it said far more than is kept", NULL },
	{ "policy", "policy", "it did what a box does not allow", NULL },
	{ "lifetime", "timeout_wall", "the box's time was over", NULL },
	{ "idle", "timeout_wall", "the box was idle for too long", NULL },
	{ "host", "unknown", "the host failed, not the program", NULL },
	{ "operator", "unknown", "it was ended from outside", NULL },
	/* clang-format on */
};

static const struct {
	/* clang-format off */
	const char *limit, *cause;
} limits[] = {
	{ "memory", "memory" }, { "time", "wall" }, { "pids", "processes" }, { "disk", "disk" },
	/* clang-format on */
};

static const struct {
	int number;
	const char *name, *category, *why;
} signals[] = {
	{ SIGSEGV, "SIGSEGV", "crash", "it used memory that it does not have (SIGSEGV)" },
	{ SIGBUS, "SIGBUS", "crash", "it used memory that it does not have (SIGBUS)" },
	{ SIGFPE, "SIGFPE", "zero_division",
	  "a division by zero or an overflow ended it (SIGFPE)" },
	{ SIGILL, "SIGILL", "crash", "it came to an instruction that is none (SIGILL)" },
	{ SIGABRT, "SIGABRT", "crash", "it gave up (SIGABRT)" },
	{ SIGTRAP, "SIGTRAP", "crash", "it stopped itself (SIGTRAP)" },
	{ SIGSYS, "SIGSYS", "policy", "it made a system call that is not allowed (SIGSYS)" },
	{ SIGXCPU, "SIGXCPU", "timeout_cpu", "it computed longer than the limit (SIGXCPU)" },
	{ SIGXFSZ, "SIGXFSZ", "disk_full", "it wrote more than the limit (SIGXFSZ)" },
};

static const char *cause_said(const struct failure_case *s)
{
	const char *cause = doc_text(s->phase, "cause");
	const json_t *hit = json_object_get(s->result, "limits_hit");

	if (*cause && strcmp(cause, "exit") != 0 && strcmp(cause, "signal") != 0)
		return cause;
	for (size_t i = 0; i < json_array_size(hit); i++)
		for (unsigned j = 0; j < ARRAY_LEN(limits); j++) {
			const char *limit = json_string_value(json_array_get(hit, i));

			if (limit && !strcmp(limit, limits[j].limit))
				return limits[j].cause;
		}
	return cause;
}

/* Signs of threads in a program, to distinguish a deadlock from a long wait. */
static int has_threads(const struct failure_case *s)
{
	static const char *const words[] = { "thread",    "Thread", "mutex", "Mutex",
					     "Lock",      "chan ",  "await", "Queue",
					     "Semaphore", "sync.",  "fork" };
	const char *path;
	const json_t *text;

	json_object_foreach(
		(json_t *)json_object_get(s->artifact, "files"), path,
		text) for (unsigned i = 0; i < ARRAY_LEN(words);
			   i++) if (strstr(json_string_value(text) ? json_string_value(text) : "",
					   words[i])) return 1;
	return 0;
}

static const char *const *by_clock(struct failure_case *s)
{
	double ms = json_number_value(json_object_get(s->phase, "ms"));
	double cpu = json_number_value(json_object_get(s->phase, "cpu_ms"));

	if (2 * cpu >= ms && cpu > 0)
		return facts_found(s, "timeout_cpu", "wall", "kernel",
				   "the time limit was over, and it was computing", raise_time);
	if (has_threads(s) && !*doc_text(s->phase, "stdout"))
		return facts_found(
			s, "deadlock", "wall", "kernel",
			"the time limit was over, and its threads were waiting for each other",
			NULL);
	return facts_found(s, "timeout_wall", "wall", "kernel",
			   "the time limit was over, and it was waiting", raise_time);
}

static int signal_of(const struct failure_case *s)
{
	const json_t *v = json_object_get(s->phase, "signal");

	if (json_is_integer(v))
		return (int)json_integer_value(v);
	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		if (json_is_string(v) && !strcmp(json_string_value(v), signals[i].name))
			return signals[i].number;
	return 0;
}

static const char *const *by_signal(struct failure_case *s)
{
	int signo = signal_of(s);

	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		if (signo == signals[i].number)
			return facts_found(
				s, signals[i].category, signals[i].name, "kernel", signals[i].why,
				strcmp(signals[i].category, "crash") != 0 ? NULL : locate);
	return NULL;
}

/* The same example passed and failed in one result. */
static int is_flaky(const json_t *result)
{
	const json_t *all = json_object_get(result, "examples"), *one;
	size_t i;

	json_array_foreach(all, i, one) for (size_t j = 0; j < i; j++)
	{
		const json_t *other = json_array_get(all, j);

		if (json_object_get(one, "n") &&
		    json_equal(json_object_get(one, "n"), json_object_get(other, "n")) &&
		    json_is_true(json_object_get(one, "pass")) !=
			    json_is_true(json_object_get(other, "pass")))
			return 1;
	}
	return 0;
}

const char *const *facts_kernel(struct failure_case *s)
{
	const char *cause = cause_said(s), *phase = doc_text(s->result, "phase");

	if (!strcmp(phase, "scan"))
		return by_scan(s);
	if (!strcmp(phase, "install"))
		return by_install(s);
	if (is_flaky(s->result))
		return facts_found(s, "flaky", "flaky", "result",
				   "it failed once and passed once, unchanged", NULL);
	for (unsigned i = 0; i < ARRAY_LEN(causes); i++)
		if (!strcmp(cause, causes[i].cause))
			return facts_found(s, causes[i].category, cause, "kernel", causes[i].why,
					   causes[i].fixes);
	if (!strcmp(cause, "wall"))
		return by_clock(s);
	/* A program that aborts prints the reason, so its output is examined first. */
	return signal_of(s) == SIGABRT ? NULL : by_signal(s);
}

/* ---- checks ---- */

static const char *const call_main[] = { "call_main", NULL };

static const char *const *by_examples(struct failure_case *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(s->result, "examples"), i, one)
	{
		auto_buf struct buf why = { 0 };

		if (json_is_true(json_object_get(one, "pass")))
			continue;
		buf_printf(&why, "example %lld: expected '%.120s', got '%.120s'",
			   (long long)json_integer_value(json_object_get(one, "n")),
			   doc_text(one, "expected"), doc_text(one, "got"));
		return facts_found(s, "wrong_output", "example", "check", buf_str(&why), call_main);
	}
	return NULL;
}

static int is_test(const char *kind)
{
	return !strcmp(kind, "command") || !strcmp(kind, "test");
}

static const char *const *by_checks(struct failure_case *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(s->result, "checks"), i, one)
	{
		auto_buf struct buf why = { 0 };

		if (json_is_true(json_object_get(one, "pass")))
			continue;
		buf_printf(&why, "%.40s: %.700s", doc_text(one, "kind"), doc_text(one, "detail"));
		return facts_found(s, is_test(doc_text(one, "kind")) ? "assertion" : "wrong_output",
				   "check", "check", buf_str(&why), call_main);
	}
	return NULL;
}

int facts_went_well(const json_t *phase)
{
	const json_t *status = json_object_get(phase, "exit_code");
	const char *cause = doc_text(phase, "cause");

	return json_is_integer(status) && !json_integer_value(status) &&
	       (!*cause || !strcmp(cause, "exit"));
}

const char *const *facts_checks(struct failure_case *s)
{
	const char *const *fixes = by_signal(s);

	if (!s->category)
		fixes = by_examples(s);
	if (!s->category)
		fixes = by_checks(s);
	return fixes;
}
