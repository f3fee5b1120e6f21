/* layer_erofs.c - see layer_erofs.h. */
#include "keeper/layer_erofs.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/mnt.h"
#include "jail/user.h"
#include "tier/image.h"
#include "wire/vm_start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EROFS_TOOL "/usr/bin/mkfs.erofs"
#define EROFS_TREE "/tmp" /* where the process sees the layer */

enum { EROFS_PACK_S = 600, EROFS_NAME = 96, PROCESS_IMAGE = 3, PROCESS_SOCK };

static void erofs_name(const char *id, char out[EROFS_NAME])
{
	snprintf(out, EROFS_NAME, LAYER_EROFS_PREFIX "%.80s", id);
}

/* ---- the process ---- */

/* The parent sends a byte when the ids are mapped and the layer is a mount, which is descriptor 5. */
static _Noreturn void erofs_process(int image, int sock, int tree)
{
	static char *const argv[] = { "mkfs.erofs",
				      "--quiet",
				      "--preserve-mtime",
				      "-U00000000-0000-0000-0000-000000000000",
				      "/proc/self/fd/3",
				      EROFS_TREE,
				      NULL };
	static char *const env[] = { "PATH=/usr/bin", "LC_ALL=C.UTF-8", NULL };
	const uint64_t read_all = UINT64_C(1) << CAP_DAC_READ_SEARCH;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct err e;
	char byte;

	if (recv(sock, &byte, 1, 0) != 1 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    dup2(null, 2) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
	    setgroups(0, NULL) < 0)
		_exit(126);
	/* After the ids have changed, which clears it. The parent may have ended before. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		_exit(126);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    move_mount(tree, "", AT_FDCWD, EROFS_TREE, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    (image == PROCESS_IMAGE ? fcntl(image, F_SETFD, 0) : dup2(image, PROCESS_IMAGE)) < 0 ||
	    close_range(PROCESS_SOCK, ~0u, 0) < 0 || chdir("/") < 0 ||
	    caps_bound(read_all, &e) < 0 || caps_only(read_all, &e) < 0 ||
	    caps_no_new_privs(&e) < 0)
		_exit(126);
	alarm(EROFS_PACK_S);
	execve(EROFS_TOOL, argv, env);
	_exit(127);
}

/* ---- the parent ---- */

/* A mount of the layer, whose owners are shifted into the ids of the process. */
static int erofs_admit(pid_t pid, int sock, int tree, uint32_t uid_base, struct err *e)
{
	auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), userns = -1;
	char name[32];

	snprintf(name, sizeof(name), "%d/ns/user", (int)pid);
	if (proc < 0)
		return err_sys(e, "open /proc");
	if (user_write_maps(proc, pid, uid_base, e) < 0)
		return -1;
	userns = openat(proc, name, O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return err_sys(e, "user namespace of mkfs.erofs");
	if (mnt_shift(tree, userns, e) < 0)
		return -1;
	return send(sock, "m", 1, MSG_NOSIGNAL) == 1 ? 0 : err_sys(e, "start mkfs.erofs");
}

static int erofs_wait(pid_t pid, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_NOT_FOUND,
			       "mkfs.erofs is not installed: apt install erofs-utils");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return err_set(e, ERR_LIMIT, "mkfs.erofs did not end within %d s", EROFS_PACK_S);
	return status ? err_set(e, ERR_SYS, "mkfs.erofs failed (%s %d)",
				WIFSIGNALED(status) ? "signal" : "status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))
		      : 0;
}

static int erofs_clone_layer(int layers, const char *id, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	auto_fd int tree =
		open_tree(layers, id, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	if (tree < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no layer %.12s", id);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mount layer %.12s", id);
	return steal_fd(&tree);
}

static int erofs_pack(int layers, const char *id, int image, uint32_t uid_base, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET |
					    CLONE_NEWIPC | CLONE_NEWUTS,
				   .exit_signal = SIGCHLD };
	auto_fd int tree = erofs_clone_layer(layers, id, e), ours = -1;
	struct err ignored;
	int pair[2], done;
	pid_t pid;

	if (tree < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to mkfs.erofs");
	ours = pair[0];
	signal(SIGCHLD, SIG_DFL);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args)); /* no stack: as fork() */
	if (pid == 0) {
		close(pair[0]);
		erofs_process(image, pair[1], tree);
	}
	close(pair[1]);
	if (pid < 0)
		return err_sys(e, "start mkfs.erofs");
	done = erofs_admit(pid, ours, tree, uid_base, e);
	if (done < 0)
		kill(pid, SIGKILL);
	return erofs_wait(pid, done < 0 ? &ignored : e) < 0 ? -1 : done;
}

/* A sparse end: all disks of guests have one size. */
static int erofs_finish(int image, struct err *e)
{
	char head[2048];
	struct stat st;
	ssize_t n;

	if (fstat(image, &st) < 0 || (n = pread(image, head, sizeof(head), 0)) < 0)
		return err_sys(e, "read the image");
	if ((uint64_t)st.st_size > VM_LAYER_BYTES)
		return err_set(e, ERR_LIMIT, "the image has %lld bytes, more than %llu",
			       (long long)st.st_size, (unsigned long long)VM_LAYER_BYTES);
	if (image_check(head, (size_t)n, (uint64_t)st.st_size, e) < 0)
		return -1;
	if (ftruncate(image, (off_t)VM_LAYER_BYTES) < 0 || fchown(image, 0, 0) < 0 ||
	    fchmod(image, 0400) < 0 || fsync(image) < 0)
		return err_sys(e, "write the image");
	return 0;
}

static int erofs_make(int layers, const char *id, uint32_t uid_base, struct err *e)
{
	char made[32], name[EROFS_NAME];
	auto_fd int image = -1;

	snprintf(made, sizeof(made), LAYER_EROFS_PREFIX "new.%d", (int)getpid());
	erofs_name(id, name);
	unlinkat(layers, made, 0);
	image = openat(layers, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (image < 0 || flock(image, LOCK_EX | LOCK_NB) < 0 ||
	    fchown(image, uid_base, uid_base) < 0)
		err_sys(e, "make %s", made);
	else if (erofs_pack(layers, id, image, uid_base, e) == 0 && erofs_finish(image, e) == 0) {
		if (renameat(layers, made, layers, name) == 0)
			return 0;
		err_sys(e, "name the image");
	}
	unlinkat(layers, made, 0);
	return -1;
}

static int erofs_open_made(int layers, const char *id)
{
	char name[EROFS_NAME], head[2048];
	auto_fd int fd = -1;
	struct stat st;
	struct err e;
	ssize_t n;

	erofs_name(id, name);
	fd = openat(layers, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != VM_LAYER_BYTES ||
	    (n = pread(fd, head, sizeof(head), 0)) < 0 ||
	    image_check(head, (size_t)n, VM_LAYER_BYTES, &e) < 0)
		return -1; /* it is made again */
	return steal_fd(&fd);
}

int layer_erofs_open(int layers, const char *id, uint32_t uid_base, struct err *e)
{
	int fd = erofs_open_made(layers, id);

	if (fd >= 0)
		return fd;
	if (erofs_make(layers, id, uid_base, e) < 0)
		return err_in(e, "image of layer %.12s", id);
	fd = erofs_open_made(layers, id);
	return fd < 0 ? err_set(e, ERR_SYS, "image of layer %.12s: it cannot be read", id) : fd;
}

void layer_erofs_remove(int layers, const char *id)
{
	char name[EROFS_NAME];

	erofs_name(id, name);
	unlinkat(layers, name, 0);
}

void layer_erofs_sweep(int layers, const char *name)
{
	auto_fd int fd = -1;
	struct stat st;

	if (fstatat(layers, name + strlen(LAYER_EROFS_PREFIX), &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	fd = openat(layers, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(layers, name, 0);
}
