/* probe.c - see probe.h. */
#include "jail/capture.h"
#include "jail/probe.h"
#include "base/cleanup.h"
#include "jail/landlock.h"
#include "jail/feature.h"
#include "jail/rlimits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OVERLAY_OK = 1 << 0, USERNS_OK = 1 << 1 };

static void probe_note(struct probe *p, const char *what)
{
	if (!p->why_not[0])
		snprintf(p->why_not, sizeof(p->why_not), "%s: %s", what, strerror(errno));
}

static int put_map(pid_t pid, const char *which, unsigned long long first)
{
	char path[40], map[64];
	auto_fd int fd = -1;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = snprintf(map, sizeof(map), "0 %llu 1\n", first);
	return fd >= 0 && write(fd, map, (size_t)n) == n ? 0 : -1;
}

static int try_overlay(void)
{
	return mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && chdir("/tmp") == 0 &&
	       mkdir("l", 0755) == 0 && mkdir("u", 0755) == 0 && mkdir("w", 0755) == 0 &&
	       mkdir("m", 0755) == 0 &&
	       mount("overlay", "m", "overlay", 0,
		     "lowerdir=l,upperdir=u,workdir=w,userxattr,volatile") == 0;
}

/* In a child: makes the namespaces, reports that, waits until ids are mapped, tries an overlay. */
static int probe_child(int say, int hear)
{
	int done = 0;
	char c = 'u';

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 0;
	done |= USERNS_OK;
	if (write(say, &c, 1) != 1 || read(hear, &c, 1) != 1)
		return done;
	/* Until the child becomes root of the namespace its uid is unmapped: mkdir() returns
	 * EOVERFLOW. */
	if (setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && try_overlay())
		done |= OVERLAY_OK;
	return done;
}

static int try_idmap_of(int tree, int userns)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns };

	return tree >= 0 && userns >= 0 &&
	       mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0;
}

static int try_idmap(pid_t pid)
{
	auto_fd int userns = -1, fs = -1, tmp = -1, usr = -1;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	userns = open(path, O_RDONLY | O_CLOEXEC);
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs >= 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		tmp = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	usr = open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return try_idmap_of(tmp, userns) && try_idmap_of(usr, userns);
}

static void probe_namespaces(struct probe *p)
{
	int up[2] = { -1, -1 }, down[2] = { -1, -1 }, status = 0;
	char c;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC) < 0 || pipe2(down, O_CLOEXEC) < 0) {
		probe_note(p, "pipe");
		return;
	}
	pid = fork();
	if (pid == 0) {
		/* The child closes the caller's ends: then it reads an end of file if the caller is
		 * killed. */
		close(up[0]);
		close(down[1]);
		_exit(probe_child(up[1], down[0]));
	}
	close(up[1]);
	close(down[0]);
	if (pid > 0 && read(up[0], &c, 1) == 1) {
		if (p->is_root && put_map(pid, "gid_map", 100000) == 0 &&
		    put_map(pid, "uid_map", 100000) == 0)
			p->idmap = try_idmap(pid);
		if (write(down[1], "g", 1) != 1)
			probe_note(p, "pipe");
	}
	close(up[0]);
	close(down[1]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
		p->userns = !!(WEXITSTATUS(status) & USERNS_OK);
		p->overlay_userns = !!(WEXITSTATUS(status) & OVERLAY_OK);
	}
}

static int has_seccomp(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

static int usr_is_merged(void)
{
	char to[32];
	ssize_t n = readlink("/bin", to, sizeof(to) - 1);

	return n > 0 && (to[n] = 0, strstr(to, "usr/bin") != NULL);
}

static uint64_t layers_of(const struct probe *p)
{
	uint64_t l = FEATURE_BIT(FEATURE_MOUNTS) | FEATURE_BIT(FEATURE_PIDS_NS) |
		     FEATURE_BIT(FEATURE_NET) | FEATURE_BIT(FEATURE_IPC) |
		     FEATURE_BIT(FEATURE_UTS) | FEATURE_BIT(FEATURE_CGROUP_NS) |
		     FEATURE_BIT(FEATURE_CAPS) | FEATURE_BIT(FEATURE_NNP) |
		     FEATURE_BIT(FEATURE_DISK);

	if (p->userns)
		l |= FEATURE_BIT(FEATURE_USERNS);
	if (p->userns && p->is_root)
		l |= FEATURE_BIT(FEATURE_UIDRANGE);
	if (p->idmap)
		l |= FEATURE_BIT(FEATURE_IDMAP);
	if (p->idmap && p->overlay_userns)
		l |= FEATURE_BIT(FEATURE_OVERLAY);
	if (p->seccomp)
		l |= FEATURE_BIT(FEATURE_SECCOMP);
	if (p->landlock_abi > 0)
		l |= FEATURE_BIT(FEATURE_LANDLOCK);
	return l;
}

void probe_host(struct probe *out, int as_root)
{
	struct utsname u;

	*out = (struct probe){ .is_root = as_root };
	if (uname(&u) == 0 &&
	    sscanf(u.release, "%d.%d", &out->kernel_major, &out->kernel_minor) != 2)
		out->kernel_major = 0;
	out->landlock_abi = landlock_abi();
	out->seccomp = has_seccomp();
	out->capture = as_root && capture_check(&(struct err){ 0 }) == 0;
	out->core_piped = limits_core_has_handler();
	out->merged_usr = usr_is_merged();
	probe_namespaces(out);
	out->layers = layers_of(out);
}
