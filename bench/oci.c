/* oci.c - crun, runc and runsc, each with the smallest bundle that is still a sandbox: pid, net,
 * ipc, uts and mount namespaces, /usr and /etc read-only, tmpfs, a cgroup with memory, pids and
 * cpu limits, uid 1000 without capabilities. No seccomp, no user namespace, no masked paths: they
 * do less than Atoll.
 *
 * One bundle per runtime and worker, because the bundle names the cgroup. All lie in bench_dir;
 * runtimes remove container and cgroup themselves; oci_close() deletes what a killed one left. */
#include "base/cleanup.h"
#include "peers.h"
#include "spawn.h"
#include "subject.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NFLAGS 6
#define NWORKERS 8

/* Global flags before "run", best first; the first set that works is used. */
static const struct choice {
	const char *runtime, *note;
	const char *flags[NFLAGS];
} choices[] = {
	{ "crun", NULL, { NULL } },
	{ "runc", NULL, { NULL } },
	{ "runsc", "systrap", { "--network=none", "--platform=systrap" } },
	{ "runsc",
	  "systrap, no cgroup",
	  { "--network=none", "--platform=systrap", "--ignore-cgroups" } },
	{ "runsc", "ptrace", { "--network=none", "--platform=ptrace" } },
	{ "runsc",
	  "ptrace, no cgroup",
	  { "--network=none", "--platform=ptrace", "--ignore-cgroups" } },
};

static struct oci {
	const char *name;
	char path[PATH_MAX];
	char root[PATH_MAX]; /* its --root: container state */
	char bundle[PATH_MAX];
	char id[64];
	const struct choice *choice;
	int mnt_ns; /* where it must run, or -1 */
} runtimes[] = { { .name = "crun", .mnt_ns = -1 },
		 { .name = "runc", .mnt_ns = -1 },
		 { .name = "runsc", .mnt_ns = -1 } };

static struct oci *oci_of(const struct subject *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(runtimes); i++)
		if (strcmp(runtimes[i].name, s->name) == 0)
			return &runtimes[i];
	abort();
}

static const char config[] =
	"{\"ociVersion\":\"1.0.0\","
	"\"process\":{\"user\":{\"uid\":1000,\"gid\":1000},\"args\":[\"/bin/true\"],"
	"\"env\":[\"PATH=/usr/bin:/bin\"],\"cwd\":\"/\",\"noNewPrivileges\":true,"
	"\"capabilities\":{\"bounding\":[],\"effective\":[],\"permitted\":[]}},"
	"\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"hostname\":\"bench\","
	"\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"mode=755\",\"size=65536k\"]},"
	"{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"nodev\"]},"
	"{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/usr\","
	"\"options\":[\"rbind\",\"ro\"]},"
	"{\"destination\":\"/etc\",\"type\":\"bind\",\"source\":\"/etc\","
	"\"options\":[\"rbind\",\"ro\"]}],"
	"\"linux\":{\"cgroupsPath\":\"/%s\","
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"}],"
	"\"resources\":{\"memory\":{\"limit\":536870912},\"pids\":{\"limit\":256},"
	"\"cpu\":{\"quota\":100000,\"period\":100000}}}}\n";

static int make_dir(const char *path, struct err *e)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir %s", path);
	return 0;
}

/* Folders for the mounts, and /bin, /lib and others as links into /usr. */
static int make_rootfs(const char *bundle, struct err *e)
{
	static const char *const dirs[] = { "", "/proc", "/dev", "/tmp", "/usr", "/etc" };
	static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
	char path[PATH_MAX + 64], target[64];

	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/rootfs%s", bundle, dirs[i]);
		if (make_dir(path, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof(path), "/usr/%s", links[i]);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/rootfs/%s", bundle, links[i]);
		snprintf(target, sizeof(target), "usr/%s", links[i]);
		if (symlink(target, path) < 0 && errno != EEXIST)
			return err_sys(e, "symlink %s", path);
	}
	return 0;
}

int oci_join(struct subject *s, int worker, struct err *e)
{
	struct oci *o = oci_of(s);
	char path[PATH_MAX + 64];
	FILE *f;

	snprintf(o->id, sizeof(o->id), "%s-%s-%d", strrchr(bench_dir, '/') + 1, o->name, worker);
	snprintf(o->bundle, sizeof(o->bundle), "%s/%s-%d", bench_dir, o->name, worker);
	if (make_dir(o->bundle, e) < 0 || make_rootfs(o->bundle, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/config.json", o->bundle);
	f = fopen(path, "we");
	if (!f)
		return err_sys(e, "write %s", path);
	fprintf(f, config, o->id);
	if (fclose(f) != 0)
		return err_sys(e, "write %s", path);
	return 0;
}

/* Calls a command of the runtime for the container. */
static int call(const struct oci *o, const char *const *command, struct err *e)
{
	const char *argv[NFLAGS + 10];
	struct spawn sp = { .path = o->path, .argv = argv, .quiet = 1, .mnt_ns = o->mnt_ns };
	unsigned n = 0;

	argv[n++] = o->name;
	argv[n++] = "--root";
	argv[n++] = o->root;
	for (unsigned i = 0; i < NFLAGS && o->choice->flags[i]; i++)
		argv[n++] = o->choice->flags[i];
	while (*command)
		argv[n++] = *command++;
	argv[n++] = o->id;
	argv[n] = NULL;
	return spawn_wait(&sp, e);
}

static int run(const struct oci *o, struct err *e)
{
	const char *const command[] = { "run", "--bundle", o->bundle, NULL };

	return call(o, command, e);
}

static void forget(const struct oci *o)
{
	const char *const command[] = { "delete", "--force", NULL };
	struct err ignored; /* in the usual case there is nothing left to delete */

	if (call(o, command, &ignored) < 0)
		return;
}

int oci_once(struct subject *s, struct err *e)
{
	const struct oci *o = oci_of(s);

	if (run(o, e) == 0)
		return 0;
	/* Otherwise the id stays in use and every later run fails. */
	forget(o);
	return -1;
}

/* crun refuses a host that has both cgroup v1 controllers and a cgroup2 mount. */
static int leave_cgroup2(void)
{
	char line[PATH_MAX], where[PATH_MAX];
	FILE *f;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %*s %s", where) == 1)
			umount2(where, MNT_DETACH);
	fclose(f);
	return 0;
}

static int is_hybrid(void)
{
	char line[PATH_MAX];
	int v1 = 0, v2 = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		v1 |= strstr(line, " - cgroup ") != NULL;
		v2 |= strstr(line, " - cgroup2 ") != NULL;
	}
	if (f)
		fclose(f);
	return v1 && v2;
}

/* A mount namespace without the cgroup2 mounts. A child creates it, so that this process and its
 * keeper stay in theirs; the descriptor keeps it alive. */
static int without_cgroup2(int *out_ns, struct err *e)
{
	int made[2], over[2], fd = -1;
	char path[64], byte = 0;
	pid_t pid;

	if (pipe2(made, O_CLOEXEC) < 0 || pipe2(over, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0) {
		close(over[1]);
		if (leave_cgroup2() == 0 && write(made[1], "y", 1) == 1 &&
		    read(over[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	close(made[1]);
	close(over[0]);
	if (read(made[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(made[0]);
	close(over[1]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (fd < 0)
		return err_set(e, ERR_SYS, "no mount namespace without cgroup2 could be made");
	*out_ns = fd;
	return 0;
}

static void note_version(struct subject *s, const struct oci *o)
{
	const char *const ask[] = { o->name, "--version", NULL };
	char first[64];

	spawn_first_line(o->path, ask, first, sizeof(first));
	snprintf(s->version, sizeof(s->version), "%s%s%s%s", first, o->choice->note ? " (" : "",
		 o->choice->note ? o->choice->note : "", o->choice->note ? ")" : "");
}

int oci_open(struct subject *s, struct err *e)
{
	struct oci *o = oci_of(s);

	if (spawn_find(o->name, o->path, sizeof(o->path), e) < 0)
		return -1;
	if (geteuid() != 0)
		return err_set(e, ERR_DENIED, "needs root");
	snprintf(o->root, sizeof(o->root), "%s/%s-state", bench_dir, o->name);
	if (make_dir(o->root, e) < 0 || oci_join(s, 0, e) < 0)
		return -1;
	if (strcmp(o->name, "crun") == 0 && is_hybrid() && without_cgroup2(&o->mnt_ns, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(choices); i++) {
		if (strcmp(choices[i].runtime, o->name) != 0)
			continue;
		o->choice = &choices[i];
		if (oci_once(s, e) == 0) {
			note_version(s, o);
			return 0;
		}
	}
	return -1;
}

void oci_close(struct subject *s)
{
	struct oci *o = oci_of(s);
	struct err ignored;

	for (int w = 0; w < NWORKERS && o->choice; w++) {
		char state[PATH_MAX + 80];

		if (oci_join(s, w, &ignored) < 0)
			continue;
		snprintf(state, sizeof(state), "%s/%s", o->root, o->id);
		if (access(state, F_OK) == 0)
			forget(o);
	}
	own_close_fd(&o->mnt_ns);
}
