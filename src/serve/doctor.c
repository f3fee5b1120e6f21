/* doctor.c - `atoll doctor`: can this machine hold boxes, and how well.
 * One row per question. A question is answered by trying, not by reading a version number, where
 * that is possible; the fix is what to type. */
#include "base/own.h"
#include "base/units.h"
#include "box/box.h"
#include "jail/layer.h"
#include "jail/probe.h"
#include "lang/lang.h"
#include "serve/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

enum verdict { GOOD, POOR, BAD };

struct patient { /* looked at once, asked about many times */
	struct probe host;
	int has_keeper;
	struct err keeper_err;
	struct wire_about keeper;
};

struct finding {
	enum verdict verdict;
	char value[256], fix[240];
};

#define SAY(f, v, ...) ((f)->verdict = (v), snprintf((f)->value, sizeof((f)->value), __VA_ARGS__))
#define FIX(f, ...) snprintf((f)->fix, sizeof((f)->fix), __VA_ARGS__)

static int read_text(const char *path, char *out, size_t size)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	return n > 0 ? 0 : -1;
}

static void kernel(const struct patient *p, struct finding *f)
{
	int old = p->host.kernel_major < 5 ||
		  (p->host.kernel_major == 5 && p->host.kernel_minor < 10);
	struct utsname u;

	uname(&u);
	SAY(f, old ? BAD : GOOD, "%.60s %.20s", u.release, u.machine);
	if (old)
		FIX(f, "Linux 5.10 or newer is needed");
}

static void user_namespaces(const struct patient *p, struct finding *f)
{
	char text[16];

	SAY(f, p->host.userns ? GOOD : BAD, p->host.userns ? "can be made" : "switched off");
	if (p->host.userns)
		return;
	if (read_text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", text,
		      sizeof(text)) == 0 &&
	    *text == '1')
		FIX(f,
		    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run atoll as root");
	else if (read_text("/proc/sys/kernel/unprivileged_userns_clone", text, sizeof(text)) == 0 &&
		 *text == '0')
		FIX(f, "sudo sysctl kernel.unprivileged_userns_clone=1, or run atoll as root");
	else
		FIX(f,
		    "sudo sysctl user.max_user_namespaces=65536; an outer container may forbid it too");
}

static void identity(const struct patient *p, struct finding *f)
{
	SAY(f, p->host.is_root ? GOOD : POOR,
	    p->host.is_root ? "root: own uid range and cgroups per box" : "not root");
	if (!p->host.is_root)
		FIX(f,
		    "boxes share your uid and cgroup limits need delegation; sudo atoll has all walls");
}

/* v2 names its controllers in one file; on v1 each is a mount. */
static int has_controller(const char *name)
{
	char all[256], path[64];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", name);
	if (access(path, F_OK) == 0)
		return 1;
	return read_text("/sys/fs/cgroup/cgroup.controllers", all, sizeof(all)) == 0 &&
	       strstr(all, name);
}

static void cgroups(const struct patient *p, struct finding *f)
{
	static const char *const wanted[] = { "memory", "pids", "cpu" };
	char have[64] = "", lack[64] = "";

	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		char *list = has_controller(wanted[i]) ? have : lack;

		snprintf(list + strlen(list), sizeof(have) - strlen(list), " %s", wanted[i]);
	}
	SAY(f,
	    !*have  ? BAD
	    : *lack ? POOR
		    : GOOD,
	    "v%u:%s%s%s",
	    p->has_keeper                                            ? p->keeper.cgroup_version
	    : access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? 2
								     : 1,
	    *have ? have : " none", *lack ? "; missing:" : "", lack);
	if (*lack)
		FIX(f,
		    "without them those limits cannot be enforced; boot with systemd and cgroup v2");
}

static void overlay(const struct patient *p, struct finding *f)
{
	SAY(f, p->host.overlay_userns ? GOOD : POOR,
	    p->host.overlay_userns ? "mounts inside a box" : "not inside a box");
	if (!p->host.overlay_userns)
		FIX(f,
		    "each box gets a private copy of the template: slower, same walls (Linux 5.11 has it)");
}

static void idmap(const struct patient *p, struct finding *f)
{
	SAY(f, p->host.idmap ? GOOD : POOR, p->host.idmap ? "work" : "not here");
	if (!p->host.idmap)
		FIX(f, "template files belong to nobody inside; root in a box cannot change them");
}

static void seccomp(const struct patient *p, struct finding *f)
{
	SAY(f, p->host.seccomp ? GOOD : BAD, p->host.seccomp ? "filters load" : "not here");
	if (!p->host.seccomp)
		FIX(f, "a kernel with CONFIG_SECCOMP_FILTER; untrusted code is refused without it");
}

static void landlock(const struct patient *p, struct finding *f)
{
	int abi = p->host.landlock_abi;

	if (abi)
		SAY(f, GOOD, "ABI %d", abi);
	else
		SAY(f, POOR, "none");
	if (!abi)
		FIX(f, "one wall fewer; boot with lsm=landlock,... in the kernel's command line");
}

static void core_pattern(const struct patient *p, struct finding *f)
{
	char text[128];

	read_text("/proc/sys/kernel/core_pattern", text, sizeof(text));
	SAY(f, p->host.core_piped ? POOR : GOOD, "%.100s", text);
	if (p->host.core_piped)
		FIX(f,
		    "crashes start a program as host root: sudo sysctl kernel.core_pattern=core");
}

static void merged_usr(const struct patient *p, struct finding *f)
{
	SAY(f, p->host.merged_usr ? GOOD : BAD,
	    p->host.merged_usr ? "/bin is in /usr" : "/bin is not in /usr");
	if (!p->host.merged_usr)
		FIX(f, "sudo apt-get install usrmerge; a box shows /usr only");
}

static void disk(const struct patient *p, struct finding *f)
{
	char size[UNITS_TEXT];
	struct sysinfo s;

	(void)p;
	sysinfo(&s);
	SAY(f, GOOD, "tmpfs per box, bytes and files bounded; %s of memory free",
	    units_size(size, (uint64_t)s.freeram * s.mem_unit));
}

static void descriptors(const struct patient *p, struct finding *f)
{
	char pids[24] = "";
	struct rlimit r;

	(void)p;
	getrlimit(RLIMIT_NOFILE, &r);
	read_text("/proc/sys/kernel/pid_max", pids, sizeof(pids));
	SAY(f, r.rlim_max < 4096 || strtoul(pids, NULL, 10) < 32768 ? POOR : GOOD,
	    "%llu descriptors, %s pids", (unsigned long long)r.rlim_max, pids);
	if (f->verdict != GOOD)
		FIX(f, "ulimit -Hn 65536; sudo sysctl kernel.pid_max=4194304");
}

static void keeper(const struct patient *p, struct finding *f)
{
	if (p->has_keeper)
		SAY(f, GOOD, "pid %u, %u boxes, pool %u of %u", p->keeper.pid, p->keeper.boxes,
		    p->keeper.pooled, p->keeper.pool_depth);
	else
		SAY(f, BAD, "%.190s", p->keeper_err.msg);
	if (!p->has_keeper)
		FIX(f,
		    "the other rows say what is missing; its log is keeper.log in the run folder");
}

static void walls(const struct patient *p, struct finding *f)
{
	unsigned have = 0, missing = LAYER_COUNT;

	for (unsigned i = 0; p->has_keeper && i < LAYER_COUNT; i++) {
		if (p->keeper.layers & LAYER_BIT(i))
			have++;
		else if (missing == LAYER_COUNT ||
			 jail_layers[i].mandatory > jail_layers[missing].mandatory)
			missing = i;
	}
	SAY(f,
	    have == LAYER_COUNT                                        ? GOOD
	    : missing < LAYER_COUNT && !jail_layers[missing].mandatory ? POOR
								       : BAD,
	    "%u of %u in force", have, LAYER_COUNT);
	if (missing < LAYER_COUNT)
		FIX(f, "%s: %s", jail_layers[missing].name, jail_layers[missing].missing);
}

static void runtimes(const struct patient *p, struct finding *f)
{
	char have[120] = "", lack[100] = "";

	(void)p;
	for (unsigned i = 0; i < lang_nrows; i++) {
		char *list = lang_present(&lang_rows[i]) ? have : lack;
		size_t room = list == have ? sizeof(have) : sizeof(lack), n = strlen(list);

		snprintf(list + n, room - n, "%s%s", n ? " " : "", lang_rows[i].name);
	}
	SAY(f, *have ? GOOD : POOR, "%s%s%s", *have ? have : "none", *lack ? "; not here: " : "",
	    lack);
	if (!*have)
		FIX(f, "sudo apt-get install python3 nodejs gcc libc6-dev");
}

static const struct question {
	const char *name;
	void (*ask)(const struct patient *p, struct finding *f);
} questions[] = {
	{ "kernel", kernel },
	{ "identity", identity },
	{ "user namespaces", user_namespaces },
	{ "cgroups", cgroups },
	{ "overlayfs", overlay },
	{ "idmapped mounts", idmap },
	{ "seccomp", seccomp },
	{ "landlock", landlock },
	{ "core pattern", core_pattern },
	{ "merged /usr", merged_usr },
	{ "disk limit", disk },
	{ "descriptors, pids", descriptors },
	{ "runtimes", runtimes },
	{ "keeper", keeper },
	{ "walls", walls },
};

static void print(const struct cli *cli, const char *name, const struct finding *f)
{
	static const char *const marks[] = { [GOOD] = "✓", [POOR] = "!", [BAD] = "✗" };
	static const char *const colors[] = {
		[GOOD] = "\033[32m", [POOR] = "\033[33m", [BAD] = "\033[31m"
	};

	if (cli->quiet && f->verdict == GOOD)
		return;
	printf("%s%s%s %-18s %s%s%s\n", cli->color ? colors[f->verdict] : "", marks[f->verdict],
	       cli->color ? "\033[0m" : "", name, f->value, *f->fix ? "  → " : "", f->fix);
}

static json_t *as_json(const char *name, const struct finding *f)
{
	static const char *const words[] = { [GOOD] = "ok", [POOR] = "warn", [BAD] = "fail" };

	return json_pack("{s:s, s:s, s:s, s:s}", "name", name, "status", words[f->verdict], "value",
			 f->value, "fix", f->fix);
}

static void examine(struct patient *p)
{
	struct keeper_link k;

	probe_host(&p->host, geteuid() == 0);
	p->has_keeper = keeper_open(&k, 1, &p->keeper_err) == 0 &&
			keeper_about(&k, &p->keeper, &p->keeper_err) == 0;
	keeper_close(&k);
}

static int doctor(const struct cli *cli, const struct args *a)
{
	struct patient p = { 0 };
	json_t *rows = json_array();
	int status = 0;

	(void)a;
	examine(&p);
	for (unsigned i = 0; i < ARRAY_LEN(questions); i++) {
		struct finding f = { 0 };

		questions[i].ask(&p, &f);
		status |= f.verdict == BAD;
		if (cli->json)
			json_array_append_new(rows, as_json(questions[i].name, &f));
		else
			print(cli, questions[i].name, &f);
	}
	if (cli->json) {
		json_dumpf(rows, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(rows);
	return status;
}

static const struct example examples[] = {
	{ "atoll doctor", "one line per question" },
	{ "atoll doctor -q", "only what is not well" },
	{ 0 },
};

const struct verb verb_doctor = {
	.name = "doctor",
	.group = "Machine",
	.usage = "",
	.summary = "can this machine hold boxes, and how well",
	.notes = "Exit status 1 if something is missing without which no box can be made.",
	.examples = examples,
	.run = doctor,
};
