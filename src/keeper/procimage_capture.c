/* procimage_capture.c - see procimage_capture.h. */
#include "keeper/procimage_capture.h"
#include "base/clock.h"
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

enum {
	CAPTURE_SOCK = 3,
	CAPTURE_BOX = 4,
	STOP_MS = 2000,
	KILLED_MS = 500,
	RELEASE_MS = 10000,
	END_MS = 130000
};

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
	"memfd_create ftruncate pipe2 tee inotify_add_watch inotify_rm_watch prlimit64 access faccessat faccessat2 sysinfo";
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

struct capture_one {
	struct capture c;
	int pid, parent; /* in the box */
	int group, session;
	unsigned exec;
};

struct capture_set {
	struct capture_one one[PROCIMAGE_PROGRAMS];
	unsigned n;
	const struct procimage_source *source;
	unsigned nsource;
	int filters;
	uint64_t usr_dev;
};

static struct capture_one *capture_find(struct capture_set *set, int pid)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->one[i].pid == pid)
			return &set->one[i];
	return NULL;
}

static int capture_number(int pid, const char *name)
{
	int number[4] = { 0 };

	return capture_status_number(pid, name, number) > 0 ? number[0] : 0;
}

static int capture_stop_one(struct capture_set *set, int pid, int parent, unsigned exec,
			    struct err *e)
{
	const struct capture_options o = { .timeout_ms = STOP_MS };
	struct capture_one *x = &set->one[set->n];

	if (set->n == PROCIMAGE_PROGRAMS)
		return keep_refuse(e, KEEP_TOO_MANY, pid, -1, "more than 64 processes");
	if (capture_check_ids(pid, e) < 0 || capture_stop(&x->c, pid, &o, e) < 0)
		return -1;
	*x = (struct capture_one){ .c = x->c,
				   .pid = pid,
				   .parent = parent,
				   .group = capture_number(pid, "NSpgid:\t"),
				   .session = capture_number(pid, "NSsid:\t"),
				   .exec = exec };
	set->n++;
	return 0;
}

static int capture_stop_leaders(struct capture_set *set, struct err *e)
{
	for (unsigned i = 0; i < set->nsource; i++) {
		const struct procimage_source *s = &set->source[i];

		if (s->state.tty > WIRE_TERMINALS)
			return keep_refuse(e, KEEP_DEVICE, s->state.pid, 0,
					   "its terminal is hung up, or its number is above 63");
		if (s->state.pid < 2)
			return keep_refuse(e, KEEP_CHILDREN, s->state.group, -1,
					   "the first process of its exec has ended");
		if (capture_stop_one(set, s->state.pid, 0, i, e) < 0)
			return -1;
	}
	return 0;
}

/* The exec of a process whose parent has ended: the one with its session, else the first one. */
static unsigned capture_exec_of(const struct capture_set *set, int pid)
{
	int session = capture_number(pid, "NSsid:\t");

	for (unsigned i = 0; i < set->n; i++)
		if (set->one[i].session == session)
			return set->one[i].exec;
	return 0;
}

/* Init has killed the interpreter that waited in the box. Between the delivery of the signal and its last state a process
 * looks like any other. */
static int capture_ends_soon(int pid)
{
	const uint64_t until_ns = now_ns() + KILLED_MS * 1000000ull;

	while (!capture_is_ending(pid)) {
		if (now_ns() > until_ns)
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 1;
}

/* 1: it is stopped; 0: it has ended. */
static int capture_stop_child(struct capture_set *set, int pid, int parent, struct err *e)
{
	unsigned exec = parent == 1 ? capture_exec_of(set, pid) : capture_find(set, parent)->exec;

	if (capture_stop_one(set, pid, parent, exec, e) == 0)
		return 1;
	return (parent == 1 ? capture_ends_soon(pid) : capture_is_ending(pid)) ? 0 : -1;
}

/* One more process, whose parent is stopped; 0: there is none. Parents are stopped before their children, so that one
 * that waits in vfork() continues first. */
static int capture_stop_next(struct capture_set *set, struct err *e)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int found = 0;

	if (!d)
		return err_sys(e, "list the processes of the box");
	while (found == 0 && (de = readdir(d))) {
		int pid = atoi(de->d_name), parent;

		if (pid < 2 || pid == getpid() || capture_find(set, pid) ||
		    capture_is_worker(pid) || capture_is_ending(pid))
			continue;
		parent = capture_number(pid, "PPid:\t");
		if (parent == 1 && !set->nsource && capture_ends_soon(pid))
			continue;
		if (parent == 1 && !set->nsource)
			found = keep_refuse(e, KEEP_CHILDREN, pid, -1, "no exec runs, but it does");
		else if (parent == 1 || capture_find(set, parent))
			found = capture_stop_child(set, pid, parent, e);
	}
	closedir(d);
	return found;
}

/* ---- the tree ---- */

/* Field 52 of stat: as wait() has it. */
static unsigned capture_exit_status(int pid)
{
	char path[64], text[2048], *at;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ' ');
	return at ? (unsigned)atoi(at + 1) & 0xff7f : 0;
}

static void capture_read_name(int pid, char name[16])
{
	char path[64];
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, name, 15);
	name[n > 0 && name[n - 1] == '\n' ? n - 1 : 0] = 0;
}

static int capture_add_zombies(struct capture_set *set, struct err *e)
{
	DIR *d = opendir("/proc");
	struct image_zombie *z;
	struct dirent *de;
	unsigned n = 0;

	if (!d)
		return err_sys(e, "list the processes of the box");
	while ((de = readdir(d))) {
		int pid = atoi(de->d_name);
		struct capture_one *parent =
			pid < 2 ? NULL : capture_find(set, capture_number(pid, "PPid:\t"));

		if (!parent || capture_find(set, pid) || !capture_is_ending(pid))
			continue;
		if (++n > IMAGE_ZOMBIES_MOST) {
			closedir(d);
			return keep_refuse(e, KEEP_TOO_MANY, pid, -1,
					   "more than 64 children that have ended");
		}
		z = procimage_add(&parent->c.image, TABLE_ZOMBIES, 1);
		*z = (struct image_zombie){ .pid = pid,
					    .group = capture_number(pid, "NSpgid:\t"),
					    .status = capture_exit_status(pid) };
		capture_read_name(pid, z->name);
	}
	closedir(d);
	return 0;
}

/* The session that a process was born in. */
static int capture_first_session(struct capture_set *set, const struct capture_one *x)
{
	const struct capture_one *parent = capture_find(set, x->parent);

	return parent ? parent->session : 0;
}

/* Sets what the image says about the place of the process in its tree. */
static int capture_place_one(struct capture_set *set, struct capture_one *x, struct err *e)
{
	const struct capture_one *parent = capture_find(set, x->parent);
	struct image_program *p = image_program(&x->c.image);

	p->parent = x->parent;
	if (!parent || x->session == x->pid || x->session == parent->session)
		return 0;
	if (x->session != capture_first_session(set, parent))
		return keep_refuse(e, KEEP_CHILDREN, x->pid, -1,
				   "its session is that of neither its parent nor its grandparent");
	p->early = 1;
	return 0;
}

static int capture_check_orphan(struct capture_set *set, const struct capture_one *x, struct err *e)
{
	const struct capture_one *leader = capture_find(set, x->session), *root = x;

	for (unsigned i = 0; i < set->n; i++)
		if (set->one[i].exec == x->exec && !set->one[i].parent)
			root = &set->one[i];
	if (x->parent != 1 || !leader || leader == x || leader->session == root->session)
		return 0;
	return keep_refuse(e, KEEP_CHILDREN, x->pid, -1,
			   "its parent has ended, and its session belongs to another process");
}

/* ---- images ---- */

static int capture_read_one(struct capture_set *set, struct capture_one *x,
			    struct capture *const *before, unsigned n, uint32_t *objects,
			    struct err *e)
{
	const struct procimage_source *s = &set->source[x->exec];
	struct capture_outside outside[4] = { 0 };
	struct capture_options o = { .outside = outside,
				     .noutside = 4,
				     .filters = set->filters,
				     .shared_below = "/usr/",
				     .shared_dev = set->usr_dev,
				     .before = before,
				     .nbefore = n,
				     .objects = objects,
				     .direct = n > 0 };
	int rc;

	for (unsigned i = 0; i < 4; i++)
		outside[i].inode =
			s->state.inode[i] && !s->state.tty ? s->state.inode[i] : UINT64_MAX;
	/* The socket of a warm interpreter was made outside of the network namespace. */
	o.foreign = s->state.open & WIRE_OPEN_CHANNEL ? 3 : 0;
	rc = capture_read(&x->c, &o, e);
	/* The list of outside ends is of this function. */
	x->c.options.outside = NULL;
	x->c.options.noutside = 0;
	return rc < 0 || capture_check_orphan(set, x, e) < 0 ? -1 : capture_place_one(set, x, e);
}

static int capture_read_tree(struct capture_set *set, unsigned exec, struct err *e)
{
	struct capture *tree[PROCIMAGE_PROGRAMS];
	uint32_t objects = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < set->n; i++) {
		if (set->one[i].exec != exec)
			continue;
		if (capture_read_one(set, &set->one[i], tree, n, &objects, e) < 0)
			return -1;
		tree[n++] = &set->one[i].c;
	}
	return capture_relate(tree, n, e);
}

static int capture_hold_all(struct capture_set *set, struct err *e)
{
	int filters[4] = { 0 }, more;

	if (capture_status_number(1, "Seccomp_filters:\t", filters) < 0)
		return err_set(e, ERR_SYS, "cannot read the state of init");
	set->filters = filters[0];
	if (capture_stop_leaders(set, e) < 0)
		return -1;
	while ((more = capture_stop_next(set, e)) > 0)
		;
	if (more < 0 || capture_add_zombies(set, e) < 0)
		return -1;
	for (unsigned i = 0; i < set->nsource; i++)
		if (capture_read_tree(set, i, e) < 0)
			return -1;
	return 0;
}

static void capture_end_all(struct capture_set *set)
{
	while (set->n)
		capture_fini(&set->one[--set->n].c);
}

static int capture_send_image(struct capture_one *x, struct err *e)
{
	struct capture *c = &x->c;
	struct procimage_message m = { .what = PROCIMAGE_IMAGE,
				       .exec = x->exec,
				       .direct = c->pages >= 0 };
	auto_fd int file = memfd_create("image", MFD_CLOEXEC);
	auto_fd int child = m.direct ? fcntl(c->pages, F_DUPFD_CLOEXEC, 0)
				     : (int)syscall(SYS_pidfd_open, capture_memory_pid(c), 0);
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

static int capture_release_all(struct capture_set *set, struct err *e)
{
	for (unsigned i = 0; i < set->n; i++)
		if (capture_release(&set->one[i].c, e) < 0)
			return -1;
	return 0;
}

static int capture_serve(struct capture_set *set, struct err *e)
{
	struct procimage_message m = { .what = PROCIMAGE_HELD, .count = set->n };
	int fds[2], stay;

	if (procimage_send(CAPTURE_SOCK, &m, NULL, 0) < 0)
		return err_sys(e, "answer");
	if (procimage_receive(CAPTURE_SOCK, RELEASE_MS, &m, fds, e) < 0)
		return -1;
	stay = m.keep_stopped != 0;
	if (!stay && capture_release_all(set, e) < 0)
		return -1;
	for (unsigned k = 0; k < set->nsource; k++)
		for (unsigned i = 0; i < set->n; i++)
			if (set->one[i].exec == k && (capture_complete(&set->one[i].c, e) < 0 ||
						      capture_send_image(&set->one[i], e) < 0))
				return -1;
	/* Until the snapshot children are no longer needed, and the programs may continue. */
	(void)!poll(&(struct pollfd){ .fd = CAPTURE_SOCK, .events = POLLIN }, 1,
		    stay ? -1 : END_MS);
	return stay ? capture_release_all(set, e) : 0;
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
	set.source = v;
	set.nsource = n;
	set.usr_dev = usr_dev;
	rc = capture_confine(CAPTURE_BOX, &m.err);
	close(CAPTURE_BOX);
	if (rc == 0 && (rc = capture_hold_all(&set, &m.err)) == 0)
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
