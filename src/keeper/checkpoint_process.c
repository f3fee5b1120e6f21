/* checkpoint_process.c - see checkpoint_process.h. */
#include "keeper/checkpoint_process.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/seccomp.h"
#include "jail/user.h"
#include "layer/chain_pick.h"
#include "layer/erofs_check.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
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
enum {
	PROCESS_SOCK = 3,
	PROCESS_LAYER,
	PROCESS_INDEX,
	PROCESS_UPPER,
	PROCESS_USERNS,
	PROCESS_BASE
};
enum {
	PROCESS_FDS = 3 + 16
}; /* the most that one has: of a merge the output, the index and its layers */

/* ---- confinement ---- */

#define CALLS_OF_BOTH                                                                                \
	"read pread64 close fstat newfstatat lseek munmap mremap madvise brk futex exit exit_group " \
	"rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall getpid gettid tgkill "             \
	"clock_gettime getrandom sendmsg recvmsg "
#ifdef SANITIZED
#define CALLS_OF_SANITIZER                                                                         \
	"mmap mprotect readlink open openat stat getrlimit prlimit64 sched_getaffinity prctl "     \
	"clone process_vm_readv pipe ptrace wait4 write sigaltstack sched_yield "
static const struct seccomp_zero process_zero[] = {};
#else
#define CALLS_OF_SANITIZER ""
static const struct seccomp_zero process_zero[] = { SECCOMP_NO_EXEC };
#endif

static const char capture_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER
	"openat getdents64 readlinkat flistxattr fgetxattr sendfile pwrite64 fallocate "
	"clock_nanosleep nanosleep";
static const char check_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER;
static const char merge_calls[] = CALLS_OF_BOTH CALLS_OF_SANITIZER "pwrite64 copy_file_range";

/* Compiled once, in the layer store: this takes longer than a small checkpoint. */
static struct process_filter {
	const char *calls;
	struct seccomp code;
} capture_filter = { .calls = capture_calls }, check_filter = { .calls = check_calls },
  merge_filter = { .calls = merge_calls };

int checkpoint_process_prepare(struct err *e)
{
	struct process_filter *const all[] = { &capture_filter, &check_filter, &merge_filter };
	uint8_t sum[32];

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (!all[i]->code.len &&
		    seccomp_compile_list(&all[i]->code, all[i]->calls, process_zero,
					 ARRAY_LEN(process_zero), e) < 0)
			return -1;
	delta_warm_up(sum); /* loads what the library needs, which takes longer, too */
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

static int capture_confine(pid_t parent, struct err *e)
{
	const uint64_t read_all = UINT64_C(1) << CAP_DAC_READ_SEARCH;

	if (fchdir(PROCESS_UPPER) < 0 || chroot(".") < 0 || setgroups(0, NULL) < 0)
		return err_sys(e, "enter the writable layer");
	if (setns(PROCESS_USERNS, CLONE_NEWUSER) < 0)
		return err_sys(e, "enter the user namespace of the box");
	close(PROCESS_USERNS);
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_sys(e, "become root of the box");
	if (process_end_with(parent, e) < 0 || process_limit(CAPTURE_S, e) < 0 ||
	    caps_bound(read_all, e) < 0 || caps_only(read_all, e) < 0 || caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(&capture_filter.code, e);
}

static int capture_send(const struct checkpoint_message *m)
{
	return sock_send_message(PROCESS_SOCK, m, sizeof(*m), NULL, 0);
}

static int capture_read_list(int fd, const struct checkpoint_message *m, struct delta_mapped *out,
			     struct err *e)
{
	size_t inodes = m->ninodes * sizeof(*out->inodes);
	size_t touched = m->ntouched * sizeof(*out->touched);

	out->inodes = malloc(inodes + 1);
	out->touched = malloc(touched + 1);
	out->paths = malloc(m->paths_bytes + 1);
	if (!out->inodes || !out->touched || !out->paths)
		abort();
	out->ninodes = m->ninodes;
	out->ntouched = m->ntouched;
	out->paths_bytes = m->paths_bytes;
	if (pread(fd, out->inodes, inodes, 0) != (ssize_t)inodes ||
	    pread(fd, out->touched, touched, (off_t)inodes) != (ssize_t)touched ||
	    pread(fd, out->paths, m->paths_bytes, (off_t)(inodes + touched)) !=
		    (ssize_t)m->paths_bytes)
		return err_sys(e, "read the list of mapped files");
	return 0;
}

static int capture_ask(unsigned what, struct delta_mapped *out, struct err *e)
{
	struct checkpoint_message m = { .what = what };
	auto_fd int fd = -1;

	if (capture_send(&m) < 0 ||
	    sock_recv_message(PROCESS_SOCK, &m, sizeof(m), &fd, 1) != (ssize_t)sizeof(m))
		return err_set(e, ERR_SYS, "the layer store has ended");
	if (m.err.kind) {
		*e = m.err;
		return -1;
	}
	out->is_tracked = (int)m.is_tracked;
	return fd < 0 ? 0 : capture_read_list(fd, &m, out, e);
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

struct capture_order { /* comes with the descriptors from PROCESS_LAYER on */
	char id[LAYER_INDEX_ID], box[LAYER_INDEX_ID], base_id[LAYER_INDEX_ID];
	uint64_t bytes_most, files_most, used_bytes;
	unsigned rules;
};

static int capture_receive_order(struct delta *d, struct err *e)
{
	int fds[PROCESS_BASE - PROCESS_SOCK + 1] = { PROCESS_SOCK };
	struct capture_order o;

	if (sock_recv_message(PROCESS_SOCK, &o, sizeof(o), fds + 1, ARRAY_LEN(fds) - 1) !=
	    (ssize_t)sizeof(o))
		return err_set(e, ERR_SYS, "the layer store has ended");
	*d = (struct delta){ .upper = PROCESS_UPPER,
			     .layer = PROCESS_LAYER,
			     .index = PROCESS_INDEX,
			     .base = fds[PROCESS_BASE - PROCESS_SOCK] < 0 ? -1 : PROCESS_BASE,
			     .bytes_most = o.bytes_most,
			     .files_most = o.files_most,
			     .used_bytes = o.used_bytes,
			     .rules = o.rules,
			     .stop = capture_stop,
			     .list = capture_list,
			     .release = capture_release };
	memcpy(d->id, o.id, sizeof(d->id));
	memcpy(d->box, o.box, sizeof(d->box));
	memcpy(d->base_id, o.base_id, sizeof(d->base_id));
	return process_only_these(fds, ARRAY_LEN(fds), e);
}

static _Noreturn void capture_process(int sock, pid_t parent)
{
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };
	struct delta d;

	/* It waits for its order as a copy of its parent, but without its descriptors. */
	if (process_only_these(&sock, 1, &m.err) < 0 || process_end_with(parent, &m.err) < 0 ||
	    capture_receive_order(&d, &m.err) < 0)
		_exit(1);
	if (capture_confine(parent, &m.err) == 0 && delta_write(&d, &m.sum, &m.err) == 0)
		m.err.kind = ERR_NONE;
	_exit(capture_send(&m) < 0);
}

pid_t checkpoint_capture_start(int *out_sock, struct err *e)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (sock_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		capture_process(pair[1], parent);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the capture");
	}
	*out_sock = pair[0];
	return pid;
}

int checkpoint_capture_begin(int sock, const struct delta *d, int userns, struct err *e)
{
	const int fds[] = { d->layer, d->index, d->upper, userns, d->base };
	struct capture_order o = { .bytes_most = d->bytes_most,
				   .files_most = d->files_most,
				   .used_bytes = d->used_bytes,
				   .rules = d->rules };

	memcpy(o.id, d->id, sizeof(o.id));
	memcpy(o.box, d->box, sizeof(o.box));
	memcpy(o.base_id, d->base_id, sizeof(o.base_id));
	if (sock_send_message(sock, &o, sizeof(o), fds, d->base < 0 ? 4 : 5) < 0)
		return err_sys(e, "start the capture");
	return 0;
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

struct check_order { /* comes with the files that are there, the layer first */
	uint64_t files_most;
	int has_layer, has_index;
};

static void check_do(struct checkpoint_message *m)
{
	struct check_order o;
	int fds[2];

	if (sock_recv_message(PROCESS_SOCK, &o, sizeof(o), fds, 2) != (ssize_t)sizeof(o))
		_exit(1);
	if ((!o.has_layer || check_layer(fds[0], o.files_most, &m->err) == 0) &&
	    (!o.has_index || check_index(fds[o.has_layer], &m->err) == 0))
		m->err.kind = ERR_NONE;
}

static _Noreturn void check_process(int sock, uint32_t uid, pid_t parent)
{
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };

	if (process_only_these(&sock, 1, &m.err) == 0 &&
	    check_confine(uid, &check_filter, parent, &m.err) == 0)
		check_do(&m);
	_exit(capture_send(&m) < 0);
}

int checkpoint_reopen(int fd, struct err *e)
{
	char path[40];
	int out;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	out = open(path, O_RDONLY | O_CLOEXEC);
	return out < 0 ? err_sys(e, "open the file again") : out;
}

/* Waits for the message of the process, which then has nothing left to do. */
static int check_result(pid_t pid, int sock, struct checkpoint_message *m, struct err *e)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int ready, status = 0;
	ssize_t n;

	do
		ready = poll(&p, 1, CHECK_S * 1000);
	while (ready < 0 && errno == EINTR);
	n = ready > 0 ? recv(sock, m, sizeof(*m), 0) : -1;
	close(sock);
	kill(pid, SIGKILL);
	if (n != (ssize_t)sizeof(*m)) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return err_set(e, ERR_SYS, "the check of the checkpoint %s (status %#x)",
			       ready ? "ended early" : "takes too long", (unsigned)status);
	}
	if (m->err.kind) {
		m->err.msg[sizeof(m->err.msg) - 1] = 0;
		*e = m->err;
		return -1;
	}
	return 0;
}

pid_t checkpoint_check_start(uint32_t uid, int *out_sock, struct err *e)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (sock_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		check_process(pair[1], uid, parent);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the check");
	}
	*out_sock = pair[0];
	return pid;
}

int checkpoint_check_finish(pid_t pid, int take_sock, int layer, int index, uint64_t files_most,
			    struct err *e)
{
	auto_fd int ro_layer = layer < 0 ? -1 : checkpoint_reopen(layer, e);
	auto_fd int ro_index = index < 0 ? -1 : checkpoint_reopen(index, e);
	const struct check_order o = { files_most, layer >= 0, index >= 0 };
	const int fds[] = { layer >= 0 ? ro_layer : ro_index, ro_index };
	struct checkpoint_message m;

	if ((layer >= 0 && ro_layer < 0) || (index >= 0 && ro_index < 0) ||
	    sock_send_message(take_sock, &o, sizeof(o), fds,
			      (unsigned)(o.has_layer + o.has_index)) < 0) {
		close(take_sock);
		return err_sys(e, "start the check");
	}
	return check_result(pid, take_sock, &m, e);
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

	int done;

	if (process_only_these(fds, (int)n + 3, &m->err) < 0 ||
	    check_confine(uid, &merge_filter, parent, &m->err) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		if (merge_open(PROCESS_SOCK + 3 + (int)i, &from[i], &m->err) < 0)
			return;
	done = fds[2] < 0 ? chain_merge_write(from, n, 1, PROCESS_SOCK + 1, bytes_most, files_most,
					      &m->merged, &m->err)
			  : chain_pick_write(from, n, PROCESS_SOCK + 2, PROCESS_SOCK + 1,
					     bytes_most, files_most, &m->merged, &m->err);
	if (done == 0)
		m->err.kind = ERR_NONE;
}

int checkpoint_merge_run(const int *layers, unsigned n, int index, int out, uint32_t uid,
			 uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum,
			 struct err *e)
{
	struct checkpoint_message m = { .what = CHECKPOINT_RESULT };
	pid_t parent = getpid(), pid;
	int pair[2];

	if (n + 3 > PROCESS_FDS)
		return err_set(e, ERR_INVALID, "%u layers cannot be merged", n);
	if (sock_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int fds[PROCESS_FDS] = { pair[1], out, index };

		memcpy(fds + 3, layers, n * sizeof(*layers));
		merge_do(fds, n, uid, bytes_most, files_most, parent, &m);
		_exit(capture_send(&m) < 0);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the merge");
	}
	if (check_result(pid, pair[0], &m, e) < 0)
		return -1;
	*sum = m.merged;
	return 0;
}
