/* disk.c - see disk.h. */
#include "keeper/disk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DISK_FD = 3 };

struct order {
	uint64_t bytes, files;
	uint32_t uid;
};

/* ---- in the disk process ---- */

static int image(const char *dir, uint64_t bytes, struct err *e)
{
	auto_fd int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "image in %s", dir);
	if (ftruncate(fd, (off_t)bytes) < 0)
		return err_sys(e, "image of %llu bytes", (unsigned long long)bytes);
	return steal_fd(&fd);
}

/* No journal: a box's disk does not outlive its box. */
static int make_filesystem(int fd, const struct order *o, struct err *e)
{
	char path[40], files[24], owner[64];
	char *argv[] = { "mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", "-N", files,
			 "-E", owner, path, NULL };
	char *env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	int status, bad;
	pid_t pid;

	/* O_CLOEXEC descriptors are closed in mkfs; it opens ours by our own pid. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	snprintf(files, sizeof(files), "%llu", (unsigned long long)o->files);
	snprintf(owner, sizeof(owner), "nodiscard,lazy_itable_init=1,root_owner=%u:%u", o->uid, o->uid);
	bad = posix_spawn(&pid, "/usr/sbin/mkfs.ext4", NULL, NULL, argv, env);
	if (bad)
		return err_set(e, ERR_SYS, "mkfs.ext4: %s", strerror(bad));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return err_set(e, ERR_INVALID, "mkfs.ext4 refuses %llu bytes with %llu files",
			       (unsigned long long)o->bytes, (unsigned long long)o->files);
	return 0;
}

/* Another process may take the free number between our two calls; then there is another one. */
static int attach_loop(int fd, char *out_path, size_t size, struct err *e)
{
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config c = { .fd = (uint32_t)fd, .info.lo_flags = LO_FLAGS_AUTOCLEAR };

	for (int tries = 0; control >= 0 && tries < 64; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		auto_fd int dev = -1;

		if (n < 0)
			return err_sys(e, "no free loop device");
		snprintf(out_path, size, "/dev/loop%d", n);
		dev = open(out_path, O_RDWR | O_CLOEXEC);
		if (dev < 0)
			return err_sys(e, "open %s", out_path);
		if (ioctl(dev, LOOP_CONFIGURE, &c) == 0)
			return steal_fd(&dev); /* held until the mount holds it */
		if (errno != EBUSY)
			return err_sys(e, "attach %s", out_path);
	}
	return err_sys(e, "open /dev/loop-control");
}

static int mount_detached(const char *device, struct err *e)
{
	auto_fd int fs = fsopen("ext4", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "mount %s", device);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? err_sys(e, "mount %s", device) : fd;
}

static int fulfil(const char *dir, const struct order *o, struct err *e)
{
	auto_fd int img = image(dir, o->bytes, e), dev = -1;
	char device[32];

	if (img < 0 || make_filesystem(img, o, e) < 0)
		return -1;
	dev = attach_loop(img, device, sizeof(device), e);
	return dev < 0 ? -1 : mount_detached(device, e);
}

static int send_answer(int sock, const struct err *e, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)e, sizeof(*e) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static _Noreturn void disk_process(int sock, const char *dir)
{
	struct order o;

	/* The keeper's lock among others: it must be free when the keeper is gone. */
	if (dup3(sock, DISK_FD, O_CLOEXEC) < 0 || close_range(DISK_FD + 1, ~0U, 0) < 0)
		_exit(1);
	sock = DISK_FD;
	signal(SIGTERM, SIG_IGN); /* we end with the keeper's end of the socket */
	signal(SIGINT, SIG_IGN);
	while (recv(sock, &o, sizeof(o), 0) == (ssize_t)sizeof(o)) {
		struct err e = { 0 };
		auto_fd int fd = fulfil(dir, &o, &e);

		if (send_answer(sock, &e, fd) < 0)
			break;
	}
	_exit(0);
}

/* ---- in the keeper ---- */

int disk_process_start(const char *state_dir, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (mkdir(state_dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make state folder %s", state_dir);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the disk process");
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_sys(e, "start the disk process");
	}
	if (pid == 0) {
		close(pair[0]);
		disk_process(pair[1], state_dir);
	}
	close(pair[1]);
	return pair[0];
}

static int receive_answer(int sock, struct err *out_e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { out_e, sizeof(*out_e) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd = -1;

	if (n != (ssize_t)sizeof(*out_e))
		return err_set(out_e, ERR_SYS, "the disk process is gone");
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int disk_make(int process, uint64_t bytes, uint64_t files, uint32_t uid, int *out_mount, struct err *e)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	struct order o = { bytes, files, uid };
	struct err answer = { 0 };
	int fd = -1;

	pthread_mutex_lock(&turn);
	if (send(process, &o, sizeof(o), MSG_NOSIGNAL) == (ssize_t)sizeof(o))
		fd = receive_answer(process, &answer);
	else
		err_set(&answer, ERR_SYS, "the disk process is gone");
	pthread_mutex_unlock(&turn);
	if (fd < 0) {
		*e = answer;
		return err_in(e, "disk");
	}
	*out_mount = fd;
	return 0;
}
