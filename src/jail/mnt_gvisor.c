/* mnt_gvisor.c - the root of an outer box with runsc.
 *
 *   /box                  the root of the box, built as in a container, without /dev, /proc and /sys
 *   /box/opt/atoll/engine mux, init and config.json: /e of the keeper root, read-only
 *   /usr /bin /lib ...    the host's programs, read-only: runsc is one of them
 *   /dev /proc            the six nodes; the processes of the outer box
 *   /upper                the writable layer of the box, read-only: init lists changed files by it
 *   /run /tmp             empty: state of runsc, its place for mounts
 *
 * runsc serves /box to the programs of the box and makes their /dev, /proc and /sys itself. No program
 * of the box ever sees this root. */
#include "base/cleanup.h"
#include "jail/mnt.h"
#include "jail/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* runsc makes namespaces for its two processes; the outer box has one of each kind itself. */
const struct mnt_row mnt_gvisor_ns_rows[] = {
	{ "max_mnt_namespaces", "3", "the outer box, the gofer, the sentry" },
	{ "max_ipc_namespaces", "3", "as max_mnt_namespaces" },
	{ "max_uts_namespaces", "3", "as max_mnt_namespaces" },
	{ "max_net_namespaces", "2",
	  "the gofer, the sentry; that of the outer box was made by the keeper" },
	{ "max_pid_namespaces", "2", "the outer box, the sentry" },
	{ "max_cgroup_namespaces", "0", "runsc makes none" },
	{ "max_time_namespaces", "0", "runsc makes none" },
};
const unsigned mnt_n_gvisor_ns_rows = ARRAY_LEN(mnt_gvisor_ns_rows);

int mnt_gvisor_files(struct launch_ctx *b, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };
	auto_fd int fd = open_tree(AT_FDCWD, "/e", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	auto_fd int at = fd < 0 ? -1 : mnt_open_place(b, "/opt/atoll/engine", e);

	if (fd < 0)
		return err_sys(e, "clone /e");
	if (at < 0)
		return -1;
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "make /e read-only");
	if (move_mount(fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "mount onto /opt/atoll/engine");
	return 0;
}

static int gvisor_folders(struct err *e)
{
	static const char *const dirs[] = { "/g/usr", "/g/dev", "/g/proc", "/g/run",
					    "/g/tmp", "/g/box", "/g/upper" };

	if (mount("engine", "/g", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k,nr_inodes=32") <
	    0)
		return err_sys(e, "mount the root of the engine");
	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return err_sys(e, "make %s", dirs[i]);
	if (chdir("/g") < 0)
		return err_sys(e, "enter /g");
	return mnt_link_usr(e);
}

int mnt_gvisor_root(struct launch_ctx *b, struct err *e)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (gvisor_folders(e) < 0)
		return -1;
	if (mount("/r", "/g/box", NULL, MS_MOVE, NULL) < 0)
		return err_sys(e, "move the root of the box to /box");
	own_close_fd(&b->root);
	b->root = open("/g", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->root < 0)
		return err_sys(e, "open the root of the engine");
	if (mnt_attach_clone(b, "/u", "usr", e) < 0 || mnt_attach_clone(b, "/d", "dev", e) < 0)
		return -1;
	if (mount("run", "/g/run", "tmpfs", flags, "mode=755,size=4m,nr_inodes=64") < 0 ||
	    mount("tmp", "/g/tmp", "tmpfs", flags, "mode=755,size=4m,nr_inodes=64") < 0)
		return err_sys(e, "mount the folders of runsc");
	if (mount("/b/u", "/g/upper", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "/g/upper", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL) < 0)
		return err_sys(e, "bind the writable layer");
	if (mount(NULL, "/g", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
	    0)
		return err_sys(e, "make the root of the engine read-only");
	return 0;
}

int mnt_gvisor_ns_limits(struct launch_ctx *b, struct err *e)
{
	if (mnt_engine_ns_limits(b, e) < 0)
		return -1;
	for (unsigned i = 0; i < mnt_n_gvisor_ns_rows; i++)
		if (mnt_write_ns_limit(mnt_gvisor_ns_rows[i].path, mnt_gvisor_ns_rows[i].what, e) <
		    0)
			return -1;
	return 0;
}

/* runsc writes the id maps of its sandbox, so the files of processes must be writable. */
int mnt_gvisor_sysctls(struct launch_ctx *b, struct err *e)
{
	const unsigned long flags = MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	(void)b;
	if (mount("sys", "sys", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "sys", NULL, MS_REMOUNT | flags, NULL) < 0)
		return err_sys(e, "make /proc/sys read-only");
	return 0;
}
