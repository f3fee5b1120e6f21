/* keeper_root.c - the keeper's part of mnt.h, once per keeper, with all its privileges. */
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The only device nodes of a box. Created here, so that they do not depend on another /dev. */
static const struct node {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};
static const struct node kvm = { "kvm", 10, 232 };

static const struct root_link {
	const char *name, *target;
} links[] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static int make_dirs(int root, struct err *e)
{
	static const char *const dirs[] = { "u",     "d", "d/pts", "d/shm", "s",     "s/empty",
					    "s/sys", "t", "i",     "e",     "b",     "l",
					    "r",     "o", "g",     "v",     "v/pts", "v/shm" };
	static const char *const numbered[] = { "h", "a", "o" };
	char name[16];

	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(root, dirs[i], 0755) < 0)
			return err_sys(e, "mkdir %s", dirs[i]);
	for (unsigned i = 0; i < JAIL_LOWERS; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		if (mkdirat(root, name, 0755) < 0)
			return err_sys(e, "mkdir %s", name);
	}
	for (unsigned i = 0; i < ARRAY_LEN(numbered) * JAIL_HOST_FOLDERS; i++) {
		snprintf(name, sizeof(name), "%s%u", numbered[i / JAIL_HOST_FOLDERS],
			 i % JAIL_HOST_FOLDERS);
		if (mkdirat(root, name, 0755) < 0)
			return err_sys(e, "mkdir %s", name);
	}
	return 0;
}

/* Without the permission to make nodes, the host's own are bound; make_node() checks their
 * numbers. */
static int bind_node(int root, const char *path, const char *name, struct err *e)
{
	auto_fd int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char from[16];

	snprintf(from, sizeof(from), "/dev/%s", name);
	if (fd < 0 || fchdir(root) < 0 || mount(from, path, NULL, MS_BIND, NULL) < 0)
		return err_sys(e, "bind %s", from);
	return 0;
}

static int make_node(int root, const char *dev, const struct node *n, struct err *e)
{
	dev_t want = makedev(n->major, n->minor);
	char path[16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dev, n->name);
	if (mknodat(root, path, S_IFCHR | 0666, want) == 0) {
		if (fchmodat(root, path, 0666, 0) < 0)
			return err_sys(e, "mode of %s", n->name);
	} else if (errno != EPERM) {
		return err_sys(e, "mknod %s", n->name);
	} else if (bind_node(root, path, n->name, e) < 0) {
		return -1;
	}
	if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != want)
		return err_set(e, ERR_SYS, "%s is not device %u:%u", n->name, n->major, n->minor);
	return 0;
}

static int make_dev(int root, const char *dev, struct err *e)
{
	char path[16];

	for (unsigned i = 0; i < ARRAY_LEN(nodes); i++)
		if (make_node(root, dev, &nodes[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", dev, links[i].name);
		if (symlinkat(links[i].target, root, path) < 0)
			return err_sys(e, "link /dev/%s", links[i].name);
	}
	return 0;
}

/* The /dev of outer boxes with QEMU: /dev/kvm in addition, where the host has one. */
static int make_engine_dev(int root, struct err *e)
{
	struct stat st;
	int has_kvm = stat("/dev/kvm", &st) == 0 && S_ISCHR(st.st_mode) &&
		      st.st_rdev == makedev(kvm.major, kvm.minor);

	if (make_dev(root, "v", e) < 0)
		return -1;
	return has_kvm ? make_node(root, "v", &kvm, e) : 0;
}

/* Java, Go and glibc read the number of processors here and need nothing else of /sys. */
static int make_sys(int root, struct err *e)
{
	static const char *const dirs[] = { "s/sys/devices", "s/sys/devices/system",
					    "s/sys/devices/system/cpu" };
	static const char *const files[] = { "online", "possible", "present" };
	char path[64], text[128];

	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(root, dirs[i], 0755) < 0)
			return err_sys(e, "mkdir %s", dirs[i]);
	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		auto_fd int in = -1, out = -1;
		ssize_t n;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", files[i]);
		in = open(path, O_RDONLY | O_CLOEXEC);
		n = in < 0 ? 0 : read(in, text, sizeof(text));
		snprintf(path, sizeof(path), "s/sys/devices/system/cpu/%s", files[i]);
		out = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (out < 0 || n < 0 || write(out, text, (size_t)n) != n)
			return err_sys(e, "write %s", path);
	}
	return 0;
}

/* Adds flags and removes none: without root, those the host set are locked. */
static int bind_onto(int root, const char *from, const char *to, unsigned long below,
		     uint64_t flags, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | flags };

	if (fchdir(root) < 0)
		return err_sys(e, "enter the keeper root");
	if (mount(from, to, NULL, MS_BIND | below, NULL) < 0 ||
	    mount_setattr(root, to, AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_sys(e, "bind %s to the keeper root", from);
	return 0;
}

/* The list of what is installed in /usr, for boxes that add to it. Only with shifted ids, so only with root. */
static int show_dpkg(int root, struct err *e)
{
	if (access("/var/lib/dpkg/status", F_OK) < 0)
		return 0;
	if (mkdirat(root, "q", 0755) < 0)
		return err_sys(e, "mkdir q");
	return bind_onto(root, "/var/lib/dpkg", "q", 0, MOUNT_ATTR_NODEV, e);
}

/* Inside a user namespace a procfs may be mounted only where another one is fully visible. The
 * box's root covers it later, so that it cannot be reached. */
static int show_proc(int root, struct err *e)
{
	if (mkdirat(root, "p", 0700) < 0 || fchdir(root) < 0 ||
	    mount("/proc", "p", NULL, MS_BIND | MS_REC, NULL) < 0)
		return err_sys(e, "bind /proc to the keeper root");
	return 0;
}

int keeper_root_begin(const char *at, int rootless, int *out_root, struct err *e)
{
	auto_fd int root = -1;

	if (!rootless) /* without root, host root appears as the overflow uid, and owners cannot be checked */
		mnt_look_at_proc();
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, "new mount namespace");
	/* Before any mount, or the mounts below would appear on the host too. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "make mounts private");
	/* No nodev: the six nodes are here. No noexec: so are the programs of /opt/atoll, which
	 * boxes without an overlay see by a bind mount, and a box cannot clear that flag. Mounts
	 * without programs have it below. Root owns this file system, and only the keeper uses
	 * it as its root. */
	if (mount("tmpfs", at, "tmpfs", MS_NOSUID, "mode=755,size=64m") < 0)
		return err_sys(e, "mount the keeper root at %s", at);
	root = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_sys(e, "open the keeper root");
	if (make_dirs(root, e) < 0 || make_dev(root, "d", e) < 0 || make_sys(root, e) < 0)
		return -1;
	/* File systems that the host has mounted below /usr do not belong to boxes; but without
	 * root those mounts cannot be removed. */
	if (bind_onto(root, "/usr", "u", rootless ? MS_REC : 0, MOUNT_ATTR_NODEV, e) < 0 ||
	    bind_onto(root, "d", "d", MS_REC, MOUNT_ATTR_NOEXEC, e) < 0 ||
	    bind_onto(root, "s", "s", 0, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e) < 0)
		return -1;
	if (rootless ? show_proc(root, e) < 0 : show_dpkg(root, e) < 0)
		return -1;
	if (!rootless && (make_engine_dev(root, e) < 0 ||
			  bind_onto(root, "v", "v", MS_REC, MOUNT_ATTR_NOEXEC, e) < 0))
		return -1;
	*out_root = steal_fd(&root);
	return 0;
}

int keeper_root_end(int root, struct err *e)
{
	if (fchdir(root) < 0)
		return err_sys(e, "enter the keeper root");
	/* Once per keeper, so that the time for all tasks is not important. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(e, "pivot to the keeper root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_sys(e, "unmount the host's mounts");
	if (chdir("/") < 0)
		return err_sys(e, "chdir to the keeper root");
	return 0;
}

int mnt_layer(const char *path, int userns, int *out_mount, struct err *e)
{
	auto_fd int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };

	if (fd < 0)
		return err_sys(e, "clone %s", path);
	if (userns >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "read-only, %s ids on %s", userns >= 0 ? "shifted" : "plain",
			       path);
	*out_mount = steal_fd(&fd);
	return 0;
}

int mnt_shift(int mount, int userns, struct err *e)
{
	struct mount_attr attr = { .attr_set =
					   MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .userns_fd = (uint64_t)userns };

	if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "shift ids");
	return 0;
}
