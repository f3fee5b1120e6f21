/* checkpoint_process.c - see checkpoint_process.h. */
#include "keeper/checkpoint_process.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/seccomp.h"
#include "jail/user.h"
#include "layer/erofs_check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPTURE_S = 900, CHECK_S = 300, CAPTURE_FILES = 8192 };
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Descriptors of both processes. */
enum { PROCESS_SOCK = 3, PROCESS_LAYER, PROCESS_INDEX, PROCESS_BASE, PROCESS_UPPER };
enum { PROCESS_FDS = 2 + 16 }; /* the most that one has: of a merge the output and its layers */

/* ---- confinement ---- */

#define CALLS_OF_BOTH                                                                                \
	"read pread64 close fstat newfstatat lseek munmap mremap madvise brk futex exit exit_group " \
	"rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall getpid gettid tgkill "             \
	"clock_gettime getrandom sendmsg "
#ifdef SANITIZED
#define CALLS_OF_SANITIZER                                                                         \
	"mmap mprotect readlink open openat stat getrlimit prlimit64 sched_getaffinity prctl "     \
	"clone process_vm_readv pipe ptrace wait4 write sigaltstack sched_yield "
#else
#define CALLS_OF_SANITIZER ""
#endif

static const char capture_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER
	"openat getdents64 readlinkat flistxattr fgetxattr sendfile pwrite64 fallocate "
	"recvmsg";
static const char check_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER;
static const char merge_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER "pwrite64 copy_file_range";

static int process_rules(scmp_filter_ctx ctx, const char *names)
{
	char calls[sizeof(capture_calls)], *rest = NULL;
	int rc = 0;

	strcpy(calls, names);
	for (char *c = strtok_r(calls, " ", &rest); c && rc == 0; c = strtok_r(NULL, " ", &rest)) {
		int nr = seccomp_syscall_resolve_name(c);

		if (nr != __NR_SCMP_ERROR && nr >= 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
#ifndef SANITIZED
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
#endif
	return rc;
}

/* Compiled once, in the layer store: this takes longer than a small checkpoint. */
static struct process_filter {
	const char *calls;
	struct seccomp code;
} capture_filter = { .calls = capture_calls }, check_filter = { .calls = check_calls },
  merge_filter = { .calls = merge_calls };

static int process_compile(struct process_filter *f, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	int rc = ctx && fd >= 0 ? process_rules(ctx, f->calls) : -ENOMEM;
	off_t size;

	if (rc == 0)
		rc = seccomp_export_bpf(ctx, fd);
	seccomp_release(ctx);
	size = rc == 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (rc == 0 && size <= 0)
		rc = -EIO;
	if (rc < 0) {
		errno = -rc;
		return err_sys(e, "the system call filter");
	}
	f->code.code = malloc((size_t)size);
	if (!f->code.code)
		abort();
	if (pread(fd, f->code.code, (size_t)size, 0) != size)
		return err_sys(e, "the system call filter");
	f->code.len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	return 0;
}

int checkpoint_process_prepare(struct err *e)
{
	struct process_filter *const all[] = { &capture_filter, &check_filter, &merge_filter };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (!all[i]->code.len && process_compile(all[i], e) < 0)
			return -1;
	return 0;
}

/* fds: in the order of the enumeration; -1: none. */
static int process_only_these(const int *fds, int n, struct err *e)
{
	int high[PROCESS_FDS];

	for (int i = 0; i < n; i++) {
		high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
		if (fds[i] >= 0 && high[i] < 0)
			return err_sys(e, "descriptors of the process");
	}
	for (int i = 0; i < n; i++) {
		close(PROCESS_SOCK + i);
		if (high[i] >= 0 && dup3(high[i], PROCESS_SOCK + i, O_CLOEXEC) < 0)
			return err_sys(e, "descriptors of the process");
	}
	if (close_range(PROCESS_SOCK + (unsigned)n, ~0U, 0) < 0)
		return err_sys(e, "descriptors of the process");
	return 0;
}

static int process_limit(unsigned seconds, struct err *e)
{
	const struct rlimit none = { 0, 0 }, files = { CAPTURE_FILES, CAPTURE_FILES },
			    cpu = { seconds, seconds };

	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    setrlimit(RLIMIT_CPU, &cpu) < 0)
		return err_sys(e, "set limits");
	alarm(seconds);
	return 0;
}

/* After the ids have changed, because the kernel clears PDEATHSIG then. */
static int process_end_with(pid_t parent, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "end with the parent");
	return getppid() == parent ? 0 : err_set(e, ERR_SYS, "the parent has ended");
}

/* ---- capture ---- */

static int capture_confine(int userns, pid_t parent, struct err *e)
{
	const uint64_t read_all = UINT64_C(1) << CAP_DAC_READ_SEARCH;

	if (fchdir(PROCESS_UPPER) < 0 || chroot(".") < 0 || setgroups(0, NULL) < 0)
		return err_sys(e, "enter the writable layer");
	if (setns(userns, CLONE_NEWUSER) < 0)
		return err_sys(e, "enter the user namespace of the box");
	close(userns);
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_sys(e, "become root of the box");
	if (process_end_with(parent, e) < 0 || process_limit(CAPTURE_S, e) < 0 ||
	    caps_bound(read_all, e) < 0 || caps_only(read_all, e) < 0 || caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(&capture_filter.code, e);
}

static int capture_send(const struct checkpoint_message *m)
{
	struct iovec iov = { (void *)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(PROCESS_SOCK, &h, MSG_NOSIGNAL) == (ssize_t)sizeof(*m) ? 0 : -1;
}

static int capture_receive(struct checkpoint_message *m, int *out_fd, struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(PROCESS_SOCK, &h, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n == (ssize_t)sizeof(*m) ? CMSG_FIRSTHDR(&h) : NULL;

	*out_fd = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(out_fd, CMSG_DATA(c), sizeof(*out_fd));
	return n == (ssize_t)sizeof(*m) ? 0 : err_set(e, ERR_SYS, "the layer store has ended");
}

static int capture_ask(unsigned what, struct delta_mapped *out, struct err *e)
{
	struct checkpoint_message m = { .what = what };
	auto_fd int fd = -1;

	if (capture_send(&m) < 0 || capture_receive(&m, &fd, e) < 0)
		return err_set(e, ERR_SYS, "the layer store has ended");
	if (m.err.kind) {
		*e = m.err;
		return -1;
	}
	if (fd < 0)
		return 0;
	out->inodes = malloc(m.ninodes * sizeof(*out->inodes) + 1);
	out->paths = malloc(m.paths_bytes + 1);
	if (!out->inodes || !out->paths)
		abort();
	out->ninodes = m.ninodes;
	out->paths_bytes = m.paths_bytes;
	if (pread(fd, out->inodes, m.ninodes * 8, 0) != (ssize_t)m.ninodes * 8 ||
	    pread(fd, out->paths, m.paths_bytes, (off_t)m.ninodes * 8) != (ssize_t)m.paths_bytes)
		return err_sys(e, "read the list of mapped files");
	return 0;
}

static int capture_stop(void *ctx, struct delta_mapped *out, struct err *e)
{
	(void)ctx;
	return capture_ask(CHECKPOINT_STOP, out, e);
}

static int capture_list(void *ctx, struct delta_mapped *out, struct err *e)
{
	(void)ctx;
	return capture_ask(CHECKPOINT_LIST, out, e);
}

static void capture_release(void *ctx)
{
	struct checkpoint_message m = { .what = CHECKPOINT_RELEASE };

	(void)ctx;
	(void)!capture_send(&m);
}

static _Noreturn void capture_process(const struct delta *of, int userns, int sock, pid_t parent)
{
	const int fds[] = { sock, of->layer, of->index, of->base, of->upper };
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };
	struct delta d = *of;
	int high = fcntl(userns, F_DUPFD_CLOEXEC, 32);
	uint8_t sum[32];

	delta_warm_up(sum); /* loads what the library needs, before the filter */
	d.layer = PROCESS_LAYER;
	d.index = PROCESS_INDEX;
	d.base = of->base < 0 ? -1 : PROCESS_BASE;
	d.upper = PROCESS_UPPER;
	d.stop = capture_stop;
	d.list = capture_list;
	d.release = capture_release;
	if (high < 0) {
		err_sys(&m.err, "descriptors of the process");
	} else {
		/* Below the others that are kept, until it was used. */
		int ns = dup2(high, 0);

		if (ns == 0 && process_only_these(fds, ARRAY_LEN(fds), &m.err) == 0 &&
		    capture_confine(0, parent, &m.err) == 0 && delta_write(&d, &m.sum, &m.err) == 0)
			m.err.kind = ERR_NONE;
		else if (!m.err.kind)
			err_sys(&m.err, "start the capture");
	}
	_exit(capture_send(&m) < 0);
}

pid_t checkpoint_capture_start(const struct delta *d, int userns, int *out_sock, struct err *e)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the capture");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		capture_process(d, userns, pair[1], parent);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the capture");
	}
	*out_sock = pair[0];
	return pid;
}

/* ---- check ---- */

static int check_layer(int fd, uint64_t files_most, struct err *e)
{
	struct erofs_sum sum;
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "size of the layer");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return err_sys(e, "read the layer");
	return erofs_check(map, (size_t)st.st_size, files_most, &sum, e);
}

static int check_index(int fd, struct err *e)
{
	struct layer_index_reader r;
	struct layer_index_entry x;
	int got = layer_index_open(&r, fd, e);

	while (got >= 0 && (got = layer_index_next(&r, &x, e)) > 0)
		;
	layer_index_close(&r);
	return got;
}

static int check_confine(uint32_t uid, const struct process_filter *f, pid_t parent, struct err *e)
{
	/* /proc/self/fdinfo: a folder without files for this process that always exists. */
	if (chroot("/proc/self/fdinfo") < 0 || chdir("/") < 0)
		return err_sys(e, "empty root of the check");
	if (caps_bound(0, e) < 0 || user_become(uid, e) < 0 || process_end_with(parent, e) < 0 ||
	    process_limit(CHECK_S, e) < 0 || caps_only(0, e) < 0 || caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(&f->code, e);
}

static void check_do(const int *fds, uint32_t uid, uint64_t files_most, pid_t parent,
		     struct checkpoint_message *m)
{
	int layer = fds[1] < 0 ? -1 : PROCESS_LAYER, index = fds[2] < 0 ? -1 : PROCESS_INDEX;

	if (process_only_these(fds, 3, &m->err) == 0 &&
	    check_confine(uid, &check_filter, parent, &m->err) == 0 &&
	    (layer < 0 || check_layer(layer, files_most, &m->err) == 0) &&
	    (index < 0 || check_index(index, &m->err) == 0))
		m->err.kind = ERR_NONE;
}

/* Read-only, and with a position of its own. */
static int check_reopen(int fd, struct err *e)
{
	char path[40];
	int out;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	out = open(path, O_RDONLY | O_CLOEXEC);
	return out < 0 ? err_sys(e, "open the file again") : out;
}

/* Waits for the message of the process. */
static int check_result(pid_t pid, int sock, struct checkpoint_message *m, struct err *e)
{
	ssize_t n = pid < 0 ? -1 : recv(sock, m, sizeof(*m), 0);
	int status = 0;

	close(sock);
	if (pid < 0)
		return err_sys(e, "start the check");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(*m) || status)
		return err_set(e, ERR_SYS, "the check of the checkpoint ended early (status %#x)",
			       (unsigned)status);
	if (m->err.kind) {
		m->err.msg[sizeof(m->err.msg) - 1] = 0;
		*e = m->err;
		return -1;
	}
	return 0;
}

int checkpoint_check_run(int layer, int index, uint32_t uid, uint64_t files_most, struct err *e)
{
	auto_fd int ro_layer = layer < 0 ? -1 : check_reopen(layer, e);
	auto_fd int ro_index = index < 0 ? -1 : check_reopen(index, e);
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };
	pid_t parent = getpid(), pid;
	int pair[2];

	if ((layer >= 0 && ro_layer < 0) || (index >= 0 && ro_index < 0))
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the check");
	pid = fork();
	if (pid == 0) {
		const int fds[] = { pair[1], ro_layer, ro_index };

		check_do(fds, uid, files_most, parent, &m);
		_exit(capture_send(&m) < 0);
	}
	close(pair[1]);
	return check_result(pid, pair[0], &m, e);
}

/* ---- merge ---- */

static int merge_open(int fd, struct erofs_image *out, struct err *e)
{
	struct erofs_sum sum;
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "size of a layer");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return err_sys(e, "read a layer");
	*out = (struct erofs_image){ map, (size_t)st.st_size, fd };
	return erofs_check(map, (size_t)st.st_size, UINT64_MAX, &sum, e);
}

static void merge_do(const int *fds, unsigned n, uint32_t uid, uint64_t bytes_most,
		     uint64_t files_most, pid_t parent, struct checkpoint_message *m)
{
	struct erofs_image from[PROCESS_FDS];

	if (process_only_these(fds, (int)n + 2, &m->err) < 0 ||
	    check_confine(uid, &merge_filter, parent, &m->err) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		if (merge_open(PROCESS_SOCK + 2 + (int)i, &from[i], &m->err) < 0)
			return;
	if (chain_merge_write(from, n, 1, PROCESS_SOCK + 1, bytes_most, files_most, &m->merged,
			      &m->err) == 0)
		m->err.kind = ERR_NONE;
}

int checkpoint_merge_run(const int *layers, unsigned n, int out, uint32_t uid, uint64_t bytes_most,
			 uint64_t files_most, struct chain_sum *sum, struct err *e)
{
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };
	pid_t parent = getpid(), pid;
	int pair[2];

	if (n + 2 > PROCESS_FDS)
		return err_set(e, ERR_INVALID, "%u layers cannot be merged", n);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the merge");
	pid = fork();
	if (pid == 0) {
		int fds[PROCESS_FDS] = { pair[1], out };

		memcpy(fds + 2, layers, n * sizeof(*layers));
		merge_do(fds, n, uid, bytes_most, files_most, parent, &m);
		_exit(capture_send(&m) < 0);
	}
	close(pair[1]);
	if (check_result(pid, pair[0], &m, e) < 0)
		return -1;
	*sum = m.merged;
	return 0;
}
