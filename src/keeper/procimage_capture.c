/* procimage_capture.c - see procimage_capture.h. */
#include "keeper/procimage_capture.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/launch.h"
#include "jail/seccomp.h"
#include "procimage/capture.h"
#include "procimage/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPTURE_SOCK = 3, CAPTURE_BOX = 4, STOP_MS = 2000, RELEASE_MS = 10000, END_MS = 130000 };

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* ---- messages ---- */

int procimage_send(int sock, const struct procimage_message *m, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(nfds * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
		h.msg_control = control.room;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL) == (ssize_t)sizeof(*m) ? 0 : -1;
}

int procimage_receive(int sock, int timeout_ms, struct procimage_message *m, int out_fds[2],
		      struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct cmsghdr *c;
	ssize_t n;
	int ready;

	out_fds[0] = out_fds[1] = -1;
	do
		ready = poll(&p, 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return err_set(e, ERR_CONFLICT, "no answer within %d ms", timeout_ms);
	n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(out_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n != (ssize_t)sizeof(*m)) {
		own_close_fd(&out_fds[0]);
		own_close_fd(&out_fds[1]);
		return err_set(e, ERR_SYS, "the process has ended");
	}
	m->err.msg[sizeof(m->err.msg) - 1] = 0;
	return 0;
}

/* ---- confinement ---- */

/* It reads processes and makes snapshot children in them; it makes no process, opens no file outside of its procfs
 * and mounts nothing. */
static const char capture_calls[] =
	"read pread64 write pwrite64 close close_range fstat newfstatat stat statx lseek openat open readlink readlinkat "
	"getdents64 fcntl ioctl munmap mremap madvise brk futex exit exit_group rt_sigaction rt_sigprocmask "
	"rt_sigreturn restart_syscall getpid gettid getuid geteuid sched_yield nanosleep clock_nanosleep "
	"clock_gettime getrandom poll ppoll sendmsg recvmsg sendto recvfrom socket bind getsockname getpeername "
	"getsockopt ptrace wait4 waitid kill tgkill process_vm_readv process_vm_writev pidfd_open pidfd_getfd kcmp "
	"memfd_create ftruncate pipe2 tee prlimit64 access faccessat faccessat2 sysinfo";
/* None of its memory is executable but its own text. */
static const struct seccomp_zero capture_zero[] = { SECCOMP_NO_EXEC };
static struct seccomp capture_filter;

int procimage_capture_prepare(struct err *e)
{
	return seccomp_compile_list(&capture_filter, capture_calls, capture_zero,
				    ARRAY_LEN(capture_zero), e);
}

/* The procfs of the pid namespace, in which this process was born, and nothing else. */
static int capture_enter_root(struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0755") <
		    0 ||
	    mkdir("/tmp/proc", 0555) < 0 ||
	    mount("proc", "/tmp/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, "root folder with a procfs of the box");
	return 0;
}

static int capture_confine(int box, struct err *e)
{
	const uint64_t keep = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_OVERRIDE |
			      UINT64_C(1) << CAP_CHECKPOINT_RESTORE;
	const struct rlimit none = { 0, 0 };

	if (capture_enter_root(e) < 0)
		return -1;
	if (setgroups(0, NULL) < 0 || setns(box, CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return err_sys(e, "enter the namespaces of the box");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_sys(e, "become root of the box");
	/* After the ids have changed, because the kernel clears it then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(e, "end with the parent");
	if (caps_bound(keep, e) < 0 || caps_only(keep, e) < 0 || caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(&capture_filter, e);
}

static int capture_place(int sock, int box, struct err *e)
{
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 64), high_box = fcntl(box, F_DUPFD_CLOEXEC, 64);

	if (high < 0 || high_box < 0 || dup3(high, CAPTURE_SOCK, O_CLOEXEC) < 0 ||
	    dup3(high_box, CAPTURE_BOX, O_CLOEXEC) < 0 || close_range(CAPTURE_BOX + 1, ~0U, 0) < 0)
		return err_sys(e, "descriptors of the capture");
	return 0;
}

/* ---- the processes of the box ---- */

static int capture_status_number(int pid, const char *name, int out[4])
{
	char path[64], text[4096];
	const char *at;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = 0;
	at = strstr(text, name);
	return at ? sscanf(at + strlen(name), "%d %d %d %d", out, out + 1, out + 2, out + 3) : 0;
}

static const struct procimage_source *capture_find_source(const struct procimage_source *v,
							  unsigned n, int pid)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i].state.pid == pid)
			return &v[i];
	return NULL;
}

/* File workers of init are not part of an image; their program is that of init, which no process may read. */
static int capture_is_worker(int pid)
{
	char path[64];
	struct stat st;
	int parent[4] = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) < 0 && errno == EACCES &&
	       capture_status_number(pid, "PPid:\t", parent) > 0 && parent[0] == 1;
}

/* It has been killed, as the warm interpreter that waited. */
static int capture_is_ending(int pid)
{
	char path[64], text[4096];
	const char *state, *pending;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	state = strstr(text, "State:\t");
	pending = strstr(text, "SigPnd:\t");
	return !state || !pending || state[7] == 'Z' || state[7] == 'X' ||
	       strtoull(pending + 8, NULL, 16) >> (SIGKILL - 1) & 1;
}

/* A process that no exec leads would be missing in the copy. */
static int capture_check_others(const struct procimage_source *v, unsigned n, struct err *e)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int pid, parent[4] = { 0 }, rc = 0;

	if (!d)
		return err_sys(e, "list the processes of the box");
	while (rc == 0 && (de = readdir(d))) {
		pid = atoi(de->d_name);
		if (pid < 2 || pid == getpid() || capture_find_source(v, n, pid) ||
		    capture_is_worker(pid) || capture_is_ending(pid))
			continue;
		/* Otherwise it has ended meanwhile, or its parent is refused with its name. */
		if (capture_status_number(pid, "PPid:\t", parent) > 0 && parent[0] == 1)
			rc = keep_refuse(e, KEEP_CHILDREN, pid, -1,
					 "its exec has ended, or it left the exec");
	}
	closedir(d);
	return rc;
}

static int capture_check_ids(int pid, struct err *e)
{
	static const char *const names[] = { "Uid:\t", "Gid:\t" };
	int ids[4];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (capture_status_number(pid, names[i], ids) != 4)
			return err_set(e, ERR_CONFLICT, "process %d has ended", pid);
		for (unsigned k = 0; k < 4; k++)
			if (ids[k] != JAIL_USER)
				return keep_refuse(e, KEEP_USER, pid, -1, "another id");
	}
	return 0;
}

/* ---- capture ---- */

struct capture_set {
	struct capture c[PROCIMAGE_PROGRAMS];
	unsigned n;
};

static int capture_hold_one(struct capture *c, const struct procimage_source *s, int filters,
			    uint64_t usr_dev, struct err *e)
{
	struct capture_outside outside[4] = { 0 };
	struct capture_options o = { .timeout_ms = STOP_MS,
				     .outside = outside,
				     .noutside = 4,
				     .filters = filters,
				     .shared_below = "/usr/",
				     .shared_dev = usr_dev };

	if (s->state.tty)
		return keep_refuse(e, KEEP_TERMINAL, s->state.pid, 0, "an exec with a terminal");
	if (s->state.pid < 2)
		return keep_refuse(e, KEEP_CHILDREN, s->state.group, -1,
				   "the first process of its exec has ended");
	for (unsigned i = 0; i < 4; i++)
		outside[i].inode = s->state.inode[i] ? s->state.inode[i] : UINT64_MAX;
	/* The socket of a warm interpreter was made outside of the network namespace. */
	o.foreign = s->state.open & WIRE_OPEN_CHANNEL ? 3 : 0;
	if (capture_check_ids(s->state.pid, e) < 0)
		return -1;
	return capture_hold(c, s->state.pid, &o, e);
}

static int capture_hold_all(struct capture_set *set, const struct procimage_source *v, unsigned n,
			    uint64_t usr_dev, struct err *e)
{
	int filters[4] = { 0 };

	if (capture_status_number(1, "Seccomp_filters:\t", filters) < 0)
		return err_set(e, ERR_SYS, "cannot read the state of init");
	if (capture_check_others(v, n, e) < 0)
		return -1;
	for (; set->n < n; set->n++)
		if (capture_hold_one(&set->c[set->n], &v[set->n], filters[0], usr_dev, e) < 0)
			return -1;
	return 0;
}

static void capture_end_all(struct capture_set *set)
{
	while (set->n)
		capture_fini(&set->c[--set->n]);
}

static int capture_send_image(struct capture *c, struct err *e)
{
	struct procimage_message m = { .what = PROCIMAGE_IMAGE };
	auto_fd int file = memfd_create("image", MFD_CLOEXEC);
	auto_fd int child = (int)syscall(SYS_pidfd_open, capture_memory_pid(c), 0);
	struct stat st;

	if (file < 0 || child < 0)
		return err_sys(e, "hand over the image");
	if (procimage_encode(&c->image, file, e) < 0)
		return -1;
	if (fstat(file, &st) < 0)
		return err_sys(e, "size of the image");
	m.bytes = (uint64_t)st.st_size;
	return procimage_send(CAPTURE_SOCK, &m, (int[]){ file, child }, 2) < 0
		       ? err_sys(e, "send the image")
		       : 0;
}

static int capture_serve(struct capture_set *set, struct err *e)
{
	struct procimage_message m = { .what = PROCIMAGE_HELD };
	int fds[2];

	if (procimage_send(CAPTURE_SOCK, &m, NULL, 0) < 0)
		return err_sys(e, "answer");
	if (procimage_receive(CAPTURE_SOCK, RELEASE_MS, &m, fds, e) < 0)
		return -1;
	for (unsigned i = 0; i < set->n; i++)
		if (capture_release(&set->c[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < set->n; i++)
		if (capture_complete(&set->c[i], e) < 0 || capture_send_image(&set->c[i], e) < 0)
			return -1;
	/* Until the snapshot children are no longer needed. */
	(void)!poll(&(struct pollfd){ .fd = CAPTURE_SOCK, .events = POLLIN }, 1, END_MS);
	return 0;
}

static _Noreturn void capture_process(int sock, int box, const struct procimage_source *v,
				      unsigned n, uint64_t usr_dev)
{
	static struct capture_set set;
	struct procimage_message m = { .what = PROCIMAGE_IMAGE };
	int rc;

	if (capture_place(sock, box, &m.err) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "atoll-capture");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	rc = capture_confine(CAPTURE_BOX, &m.err);
	close(CAPTURE_BOX);
	if (rc == 0 && (rc = capture_hold_all(&set, v, n, usr_dev, &m.err)) == 0)
		rc = capture_serve(&set, &m.err);
	/* The programs continue first. */
	capture_end_all(&set);
	if (rc < 0)
		(void)!procimage_send(CAPTURE_SOCK, &m, NULL, 0);
	_exit(rc < 0);
}

pid_t procimage_capture_start(int box, const struct procimage_source *v, unsigned n,
			      uint64_t usr_dev, int *out_sock, struct err *e)
{
	auto_fd int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	int pair[2];
	pid_t pid;

	if (own < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "prepare the capture");
	if (setns(box, CLONE_NEWPID) < 0) {
		close(pair[0]);
		close(pair[1]);
		return err_sys(e, "enter the pid namespace of the box");
	}
	pid = fork();
	if (pid == 0)
		capture_process(pair[1], box, v, n, usr_dev);
	if (setns(own, CLONE_NEWPID) < 0)
		_exit(1); /* later processes would be in the box */
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the capture");
	}
	*out_sock = pair[0];
	return pid;
}
