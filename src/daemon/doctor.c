/* doctor.c - `atoll doctor`: can this machine run boxes, and how well.
 * One row per check. Where possible the check tries the feature and does not read a version
 * number (jail/probe.h); the fix is a command to type. */
#include "base/cleanup.h"
#include "base/units.h"
#include "client/box_handle.h"
#include "jail/feature.h"
#include "jail/probe.h"
#include "keeper/checkpoint_mount.h"
#include "lang/lang.h"
#include "daemon/commands.h"
#include "daemon/doctor.h"
#include "daemon/doctor_cluster.h"
#include "daemon/doctor_tiers.h"

#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>

/* As enum doctor_verdict. */
enum verdict { GOOD, POOR, BAD };

/* Measured once, used by many checks. */
struct doctor_host {
	struct probe host;
	struct wire_info keeper;
	int has_keeper;
	struct err keeper_err;
};

struct finding {
	enum verdict verdict;
	char value[256];
	char fix[240];
};

static void doctor_say(struct finding *f, enum verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void doctor_say(struct finding *f, enum verdict v, const char *fmt, ...)
{
	va_list ap;

	f->verdict = v;
	va_start(ap, fmt);
	vsnprintf(f->value, sizeof(f->value), fmt, ap);
	va_end(ap);
}

static void doctor_fix(struct finding *f, const char *text)
{
	snprintf(f->fix, sizeof(f->fix), "%s", text);
}

static int read_text(const char *path, char *out, size_t size)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	return n > 0 ? 0 : -1;
}

static int file_says(const char *path, char first)
{
	char text[16];

	return read_text(path, text, sizeof(text)) == 0 && *text == first;
}

/* ---- questions ---- */

static void doctor_kernel(const struct doctor_host *p, struct finding *f)
{
	int number = p->host.kernel_major * 1000 + p->host.kernel_minor;
	struct utsname u;

	uname(&u);
	doctor_say(f, number < 5010 ? BAD : GOOD, "%.60s %.20s", u.release, u.machine);
	if (number < 5010)
		doctor_fix(f, "Linux 5.10 or newer is required");
}

static void user_namespaces(const struct doctor_host *p, struct finding *f)
{
	doctor_say(f, p->host.userns ? GOOD : BAD, p->host.userns ? "available" : "switched off");
	if (p->host.userns)
		return;
#define PROCESS "; for trusted code only: the tier process (isolation.process = true)"
	if (file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
		doctor_fix(
			f,
			"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or be root" PROCESS);
	else if (file_says("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		doctor_fix(f, "sudo sysctl kernel.unprivileged_userns_clone=1, or be root" PROCESS);
	else
		doctor_fix(
			f,
			"sudo sysctl user.max_user_namespaces=65536; a container may forbid it too" PROCESS);
#undef PROCESS
}

/* v2 names its controllers in one file; on v1 each is a mount. */
static int has_controller(const char *name)
{
	char all[256], path[64];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", name);
	if (access(path, F_OK) == 0)
		return 1;
	read_text("/sys/fs/cgroup/cgroup.controllers", all, sizeof(all));
	return strstr(all, name) != NULL;
}

static void add_word(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? " " : "", word);
}

/* The keeper knows which it may use; without one only the existing ones are known. */
static void doctor_cgroups(const struct doctor_host *p, struct finding *f)
{
	static const struct {
		const char *controller;
		enum jail_feature layer;
	} wanted[] = { { "memory", FEATURE_MEM },
		       { "pids", FEATURE_TASKS },
		       { "cpu", FEATURE_CPU } };
	char have[64] = "", lack[64] = "";

	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		int usable = p->has_keeper ? !!(p->keeper.layers & FEATURE_BIT(wanted[i].layer))
					   : has_controller(wanted[i].controller);

		add_word(usable ? have : lack, sizeof(have), wanted[i].controller);
	}
	doctor_say(f, *lack ? POOR : GOOD, "%s%s%s", have, *lack ? "not usable: " : "", lack);
	if (*lack)
		doctor_fix(
			f,
			"those limits cannot be enforced; as root, or with Delegate=yes on v2, they can");
	if (p->has_keeper && p->keeper.cgroup_version)
		add_word(f->value, sizeof(f->value),
			 p->keeper.cgroup_version == 2 ? "(v2)" : "(v1)");
}

/* The source of the CPU time in records, quotas and `atoll stats`. */
static void cpu_time(const struct doctor_host *p, struct finding *f)
{
	int can = p->has_keeper &&
		  ((p->keeper.cgroup_version == 2 && p->keeper.layers & FEATURE_BIT(FEATURE_CPU)) ||
		   (p->keeper.cgroup_version == 1 && has_controller("cpuacct")));

	doctor_say(f, can ? GOOD : POOR,
		   can ? "all processes of a box are counted"
		       : "only reaped processes are counted");
	if (!can)
		doctor_fix(
			f,
			"CPU time in records and quotas excludes background processes; mount the cgroup controller 'cpuacct' (v1) or 'cpu' (v2), or be root");
}

/* v2 freezes any cgroup; on v1 it is a controller like others. */
static void doctor_pausing(const struct doctor_host *p, struct finding *f)
{
	int can = p->has_keeper && (p->keeper.cgroup_version == 2 ||
				    (p->keeper.cgroup_version == 1 && has_controller("freezer")));

	doctor_say(f, can ? GOOD : POOR, can ? "boxes can be paused" : "no freezer");
	if (!can)
		doctor_fix(
			f,
			"atoll pause is rejected; mount the cgroup controller 'freezer', or be root");
}

static void doctor_landlock(const struct doctor_host *p, struct finding *f)
{
	if (p->host.landlock_abi) {
		doctor_say(f, GOOD, "ABI %d", p->host.landlock_abi);
		return;
	}
	doctor_say(f, POOR, "none");
	doctor_fix(f,
		   "one isolation feature less; add lsm=landlock,... to the kernel command line");
}

/* The limit of the keeper, which its boxes inherit; without a keeper the one that it would be
 * started with. */
static int core_limit_is_one(const struct doctor_host *p)
{
	char path[40], line[128];
	struct rlimit own;
	FILE *f;
	int one = 0;

	if (!p->has_keeper)
		return getrlimit(RLIMIT_CORE, &own) == 0 && own.rlim_max > 0;
	snprintf(path, sizeof(path), "/proc/%u/limits", p->keeper.pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Max core file size %d", &one) == 1)
			break;
	if (f)
		fclose(f);
	return one == 1;
}

static void core_pattern(const struct doctor_host *p, struct finding *f)
{
	static const char remedy[] = "sudo sysctl kernel.core_pattern=core";
	int one = core_limit_is_one(p);
	const char *what;
	char text[128];

	read_text("/proc/sys/kernel/core_pattern", text, sizeof(text));
	what = text[0] == '@' ? "connects to a socket of the host" : "starts a program as root";
	doctor_say(f,
		   p->host.core_piped && !one   ? BAD
		   : p->host.core_piped || !one ? POOR
						: GOOD,
		   "%.100s%s", text, one ? "" : "; RLIMIT_CORE of boxes is 0, not 1");
	if (p->host.core_piped && !one)
		snprintf(f->fix, sizeof(f->fix), "a crash %s, so no box starts: %s", what, remedy);
	else if (p->host.core_piped)
		snprintf(f->fix, sizeof(f->fix), "a crash %s: %s", what, remedy);
	else if (!one)
		doctor_fix(
			f,
			"no box starts once core_pattern names a handler; start the keeper with: prlimit --core=unlimited");
}

static void doctor_descriptors(const struct doctor_host *p, struct finding *f)
{
	char pids[24];
	struct rlimit r;
	int few;

	(void)p;
	getrlimit(RLIMIT_NOFILE, &r);
	read_text("/proc/sys/kernel/pid_max", pids, sizeof(pids));
	few = r.rlim_max < 4096 || strtoul(pids, NULL, 10) < 32768;
	doctor_say(f, few ? POOR : GOOD, "%llu descriptors, %s pids",
		   (unsigned long long)r.rlim_max, pids);
	if (few)
		doctor_fix(f, "ulimit -Hn 65536; sudo sysctl kernel.pid_max=4194304");
}

static void doctor_runtimes(const struct doctor_host *p, struct finding *f)
{
	char have[120] = "", lack[120] = "";

	(void)p;
	for (unsigned i = 0; i < lang_count(); i++)
		add_word(lang_present(lang_at(i)) ? have : lack, sizeof(have), lang_at(i)->name);
	doctor_say(f, *have ? GOOD : POOR, "%s%s%s", *have ? have : "none",
		   *lack ? "; not installed: " : "", lack);
	if (!*have)
		doctor_fix(f, "sudo apt-get install python3 nodejs gcc libc6-dev");
}

static void doctor_keeper(const struct doctor_host *p, struct finding *f)
{
	const struct wire_info *k = &p->keeper;

	if (p->has_keeper) {
		doctor_say(f, GOOD,
			   "pid %u, %u boxes, %u warm ones (keeper.pool = %u of each kind)", k->pid,
			   k->boxes, k->pooled, k->pool_depth);
		return;
	}
	doctor_say(f, BAD, "%s", p->keeper_err.msg);
	doctor_fix(f, "other rows may contain the reason; the log is keeper.log in the run folder");
}

static void doctor_walls(const struct doctor_host *p, struct finding *f)
{
	const struct feature_row *gap = NULL;
	unsigned have = 0;

	for (unsigned i = 0; i < FEATURE_COUNT; i++) {
		if (p->has_keeper && p->keeper.layers & FEATURE_BIT(i))
			have++;
		else if (!gap || jail_features[i].mandatory > gap->mandatory)
			gap = &jail_features[i];
	}
	doctor_say(f,
		   !gap             ? GOOD
		   : gap->mandatory ? BAD
				    : POOR,
		   "%u of %u active", have, FEATURE_COUNT);
	if (gap)
		snprintf(f->fix, sizeof(f->fix), "%s: %s", gap->name, gap->missing);
}

static void doctor_checkpoints(const struct doctor_host *p, struct finding *f)
{
	struct err e = { 0 };

	if (geteuid() != 0 || !p->host.overlay_userns) {
		doctor_say(f, POOR, "none: checkpoints need root and overlays");
		doctor_fix(f, "run the daemon as root");
	} else if (checkpoint_mount_possible(AT_FDCWD, "/var/tmp", &e) < 0) {
		doctor_say(f, POOR, "none: %.180s", e.msg);
		doctor_fix(f, "sudo modprobe erofs loop, or a kernel with CONFIG_EROFS_FS");
	} else {
		doctor_say(f, GOOD, "of files: EROFS");
	}
}

static void doctor_disk(const struct doctor_host *p, struct finding *f)
{
	if (p->has_keeper && p->keeper.layers & FEATURE_BIT(FEATURE_DISK)) {
		doctor_say(f, GOOD, "bytes and files of a box are bounded");
		return;
	}
	doctor_say(f, BAD, "cannot be enforced");
	doctor_fix(f, "one box could fill the host's disk, so no box is created");
}

/* Templates FROM an image of a registry. */
static void doctor_images(const struct doctor_host *p, struct finding *f)
{
	int can = access("/usr/bin/skopeo", X_OK) == 0;

	(void)p;
	doctor_say(f, can ? GOOD : POOR, can ? "skopeo is here" : "no skopeo");
	if (!can)
		doctor_fix(f, "templates cannot start from images; sudo apt-get install skopeo");
}

static const struct doctor_question {
	const char *name;
	void (*ask)(const struct doctor_host *p,
		    struct finding *f); /* or, if yes or no is enough: */
	size_t fact;                    /* an int of struct probe */
	enum verdict otherwise;
	const char *yes, *no, *fix;
} doctor_questions[] = {
	{ .name = "kernel", .ask = doctor_kernel },
	{ .name = "identity",
	  .fact = offsetof(struct probe, is_root),
	  .otherwise = POOR,
	  .yes = "root: own uid range and cgroups per box",
	  .no = "not root",
	  .fix = "boxes share your uid, and limits need delegation; as root, all isolation features are active" },
	{ .name = "user namespaces", .ask = user_namespaces },
	{ .name = "cgroups", .ask = doctor_cgroups },
	{ .name = "cpu time", .ask = cpu_time },
	{ .name = "pausing", .ask = doctor_pausing },
	{ .name = "overlayfs",
	  .fact = offsetof(struct probe, overlay_userns),
	  .otherwise = POOR,
	  .yes = "mounts inside a box",
	  .no = "does not mount inside a box",
	  .fix = "same isolation, slower; /etc and /opt/atoll are read-only in a box, package layers are rejected" },
	{ .name = "idmapped mounts",
	  .fact = offsetof(struct probe, idmap),
	  .otherwise = POOR,
	  .yes = "work",
	  .no = "not here",
	  .fix = "template files belong to the user nobody in a box: root in a box cannot change them" },
	{ .name = "seccomp",
	  .fact = offsetof(struct probe, seccomp),
	  .otherwise = BAD,
	  .yes = "filters load",
	  .no = "not here",
	  .fix = "use a kernel with CONFIG_SECCOMP_FILTER; no box starts without it" },
	{ .name = "landlock", .ask = doctor_landlock },
	{ .name = "outbound capture",
	  .fact = offsetof(struct probe, capture),
	  .otherwise = POOR,
	  .yes = "programs that know of no proxy reach allowed hosts",
	  .no = "not here",
	  .fix = "programs must use HTTP_PROXY; be root, on a kernel with BPF (CONFIG_BPF_SYSCALL, 5.9)" },
	{ .name = "core pattern", .ask = core_pattern },
	{ .name = "merged /usr",
	  .fact = offsetof(struct probe, merged_usr),
	  .otherwise = BAD,
	  .yes = "/bin is in /usr",
	  .no = "/bin is not in /usr",
	  .fix = "sudo apt-get install usrmerge; a box contains only /usr" },
	{ .name = "disk limit", .ask = doctor_disk },
	{ .name = "checkpoints", .ask = doctor_checkpoints },
	{ .name = "descriptors, pids", .ask = doctor_descriptors },
	{ .name = "runtimes", .ask = doctor_runtimes },
	{ .name = "images", .ask = doctor_images },
	{ .name = "keeper", .ask = doctor_keeper },
	{ .name = "walls", .ask = doctor_walls },
};

static void doctor_answer(const struct doctor_question *q, const struct doctor_host *p,
			  struct finding *f)
{
	const int *fact = (const int *)((const char *)&p->host + q->fact);

	if (q->ask) {
		q->ask(p, f);
	} else if (*fact) {
		doctor_say(f, GOOD, "%s", q->yes);
	} else {
		doctor_say(f, q->otherwise, "%s", q->no);
		doctor_fix(f, q->fix);
	}
}

/* ---- answers ---- */

static const struct {
	const char *mark, *color, *word;
} verdicts[] = {
	[GOOD] = { "✓", "\033[32m", "ok" },
	[POOR] = { "!", "\033[33m", "warn" },
	[BAD] = { "✗", "\033[31m", "fail" },
};

static void doctor_print(const struct cli *cli, const char *name, const struct finding *f)
{
	if (cli->quiet && f->verdict == GOOD)
		return;
	printf("%s%s%s %-18s %s%s%s\n", cli->color ? verdicts[f->verdict].color : "",
	       verdicts[f->verdict].mark, cli->color ? "\033[0m" : "", name, f->value,
	       *f->fix ? "  → " : "", f->fix);
}

static json_t *as_json(const char *name, const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "name", name, "status", verdicts[f->verdict].word,
			 "value", f->value, "fix", f->fix);
}

static void doctor_examine(struct doctor_host *p)
{
	struct keeper_sync k;

	probe_host(&p->host, geteuid() == 0);
	p->has_keeper = keeper_sync_open(&k, 1, &p->keeper_err) == 0 &&
			keeper_sync_info(&k, &p->keeper, &p->keeper_err) == 0;
	keeper_sync_close(&k);
}

struct doctor_output {
	json_t *rows;
	const struct cli *cli; /* NULL: rows only */
	int failed;
};

static void doctor_put(struct doctor_output *o, const char *name, const struct finding *f)
{
	o->failed |= f->verdict == BAD;
	json_array_append_new(o->rows, as_json(name, f));
	if (o->cli && !o->cli->json)
		doctor_print(o->cli, name, f);
}

static void doctor_put_cluster(void *user, const char *name, enum doctor_verdict v,
			       const char *value, const char *fix)
{
	struct finding f = { 0 };

	doctor_say(&f, (enum verdict)v, "%s", value);
	doctor_fix(&f, fix);
	doctor_put(user, name, &f);
}

/* Adds a row per check; prints them if the caller requests text. Returns 1 if a check failed. */
static int doctor_check(json_t *rows, const struct cli *cli)
{
	struct doctor_output o = { .rows = rows, .cli = cli };
	struct doctor_host p = { 0 };

	doctor_examine(&p);
	for (unsigned i = 0; i < ARRAY_LEN(doctor_questions); i++) {
		struct finding f = { 0 };

		doctor_answer(&doctor_questions[i], &p, &f);
		doctor_put(&o, doctor_questions[i].name, &f);
	}
	doctor_cluster(doctor_put_cluster, &o);
	if (p.has_keeper)
		doctor_tiers(rows, cli);
	return o.failed;
}

void doctor_report(void *ctx)
{
	enum { SECONDS_MAX = 15 };
	json_t *rows = json_array();
	char *text;

	(void)ctx;
	alarm(SECONDS_MAX);
	doctor_check(rows, NULL);
	text = json_dumps(rows, JSON_COMPACT);
	_exit(text && send(3, text, strlen(text), MSG_NOSIGNAL) > 0 ? 0 : 1);
}

static int doctor_doctor(const struct cli *cli, const struct args *a)
{
	json_t *rows = json_array();
	int status = doctor_check(rows, cli);

	(void)a;
	if (cli->json) {
		json_dumpf(rows, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(rows);
	return status;
}

static const struct example examples[] = {
	{ "atoll doctor", "print one line per check" },
	{ "atoll doctor -q", "print only failed checks" },
	{ 0 },
};

const struct command command_doctor = {
	.name = "doctor",
	.group = "Machine",
	.usage = "",
	.summary = "check host support for boxes",
	.notes = "The exit status is 1 if a required feature is missing.",
	.examples = examples,
	.run = doctor_doctor,
};
