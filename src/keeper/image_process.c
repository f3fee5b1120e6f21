/* image_process.c - see image_process.h. */
#include "keeper/image_process.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/mnt.h"
#include "jail/seccomp.h"
#include "jail/user.h"
#include "keeper/libarchive.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

enum { UNPACK_S = 900, UNPACK_CPU_S = 600, UNPACK_FILES = 256 };
/* A window of zstd is up to 128 MiB; the mapped libraries count, too. */
#define UNPACK_MEMORY (UINT64_C(768) << 20)
#define UNPACK_CAPS                                                                                \
	(UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER |  \
	 UINT64_C(1) << CAP_FSETID)
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Descriptors of the process. */
enum { PROCESS_ARCHIVE = 3, PROCESS_SOCK };

struct process_result {
	struct err err;
	struct image_sum sum;
};

/* ---- in the process ---- */

static const char process_calls[] =
	"read pread64 write pwrite64 close lseek fstat newfstatat fcntl openat openat2 mkdirat "
	"symlinkat linkat unlinkat readlinkat fchown fchownat fchmod fchmodat fchmodat2 utimensat "
	"fsetxattr ftruncate getdents64 munmap mremap madvise brk futex exit exit_group "
	"rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall getpid gettid tgkill "
	"clock_gettime gettimeofday getrandom sched_yield "
#ifdef SANITIZED
	"mmap mprotect readlink open stat getrlimit prlimit64 sched_getaffinity prctl clone "
	"process_vm_readv pipe ptrace wait4 "
#endif
	;

static const struct seccomp_zero process_zero[] = {
#ifndef SANITIZED
	SECCOMP_NO_EXEC,
#endif
	/* Named pipes and deletions. The kernel reads 32 bits of the device number. */
	{ "mknodat", 3, 0xffffffff },
};

/* Makes the mount that the parent sends the root, and drops everything else. */
static int process_own_root(int mount_fd, struct err *e)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    /* Onto a folder that always exists: all of it is removed with the old root. */
	    move_mount(mount_fd, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    chdir("/usr") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, "own root");
	return 0;
}

static int process_limit(const struct image_limits *limits, struct err *e)
{
	const struct rlimit none = { 0, 0 }, files = { UNPACK_FILES, UNPACK_FILES },
			    cpu = { UNPACK_CPU_S, UNPACK_CPU_S },
			    size = { limits->bytes_most, limits->bytes_most };
#ifndef SANITIZED
	const struct rlimit memory = { UNPACK_MEMORY, UNPACK_MEMORY };

	if (setrlimit(RLIMIT_AS, &memory) < 0)
		return err_sys(e, "limit the memory");
#endif
	signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
	signal(SIGALRM, SIG_DFL);
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    setrlimit(RLIMIT_CPU, &cpu) < 0 || setrlimit(RLIMIT_FSIZE, &size) < 0 ||
	    /* No process of these ids may remain: what it wrote is read next. */
	    setrlimit(RLIMIT_NPROC, &none) < 0)
		return err_sys(e, "set limits");
	alarm(UNPACK_S);
	return 0;
}

static int process_confine(int mount_fd, const struct image_limits *limits,
			   const struct seccomp *filter, struct err *e)
{
	char byte;

	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 || setgroups(0, NULL) < 0)
		return err_sys(e, "become root of the user namespace");
	/* After the ids have changed, because the kernel clears PDEATHSIG then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "end with the parent");
	/* It may have ended before. */
	if (recv(PROCESS_SOCK, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return err_set(e, ERR_SYS, "the parent has ended");
	umask(0);
	if (process_own_root(mount_fd, e) < 0 || process_limit(limits, e) < 0 ||
	    caps_bound(UNPACK_CAPS, e) < 0 || caps_only(UNPACK_CAPS, e) < 0 ||
	    caps_no_new_privs(e) < 0)
		return -1;
	return seccomp_apply(filter, e);
}

static int process_only_these(int archive, int sock, struct err *e)
{
	int a = fcntl(archive, F_DUPFD_CLOEXEC, 64), s = fcntl(sock, F_DUPFD_CLOEXEC, 64);

	if (a < 0 || s < 0 || dup3(a, PROCESS_ARCHIVE, O_CLOEXEC) < 0 ||
	    dup3(s, PROCESS_SOCK, O_CLOEXEC) < 0 || close_range(PROCESS_SOCK + 1, ~0U, 0) < 0)
		return err_sys(e, "descriptors of the process");
	return 0;
}

/* The parent sends it after it has written the id maps. */
static int process_receive_mount(struct err *e)
{
	char byte;
	int fd;

	if (sock_recv_message(PROCESS_SOCK, &byte, 1, &fd, 1) != 1 || fd < 0)
		return err_set(e, ERR_SYS, "the parent sent no folder");
	return fd;
}

static int process_unpack(const struct image_limits *limits, struct image_sum *out, struct err *e)
{
	auto_fd int mount_fd = -1, root = -1;
	struct seccomp filter; /* its memory ends with the process */

	/* Names are bytes: in this locale libarchive changes none. */
	setlocale(LC_ALL, "C");
	if (libarchive_load(e) < 0)
		return -1;
	/* Before the limits: the library writes the filter to a file. */
	if (seccomp_compile_list(&filter, process_calls, process_zero, ARRAY_LEN(process_zero), e) <
	    0)
		return -1;
	mount_fd = process_receive_mount(e);
	if (mount_fd < 0 || process_confine(mount_fd, limits, &filter, e) < 0)
		return -1;
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_sys(e, "open the new layer");
	return image_unpack(PROCESS_ARCHIVE, root, limits, out, e);
}

static _Noreturn void process_main(int archive, int sock, const struct image_limits *limits)
{
	struct process_result r = { 0 };

	if (process_only_these(archive, sock, &r.err) < 0)
		_exit(1);
	if (process_unpack(limits, &r.sum, &r.err) == 0)
		r.err.kind = ERR_NONE;
	_exit(write(PROCESS_SOCK, &r, sizeof(r)) != (ssize_t)sizeof(r));
}

/* ---- in the parent ---- */

/* A mount of the folder for the user namespace of the process. */
static int process_mount(int proc, pid_t pid, int dir, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC };
	auto_fd int tree = open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH),
		    userns = -1;
	char name[32];

	snprintf(name, sizeof(name), "%d/ns/user", (int)pid);
	userns = openat(proc, name, O_RDONLY | O_CLOEXEC);
	if (tree < 0 || userns < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mount the new layer");
	return mnt_shift(tree, userns, e) < 0 ? -1 : steal_fd(&tree);
}

static int process_admit(pid_t pid, int sock, int dir, uint32_t uid_base, struct err *e)
{
	auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), tree = -1;

	if (proc < 0)
		return err_sys(e, "open /proc");
	if (user_write_maps(proc, pid, uid_base, e) < 0)
		return -1;
	tree = process_mount(proc, pid, dir, e);
	if (tree < 0)
		return -1;
	return sock_send_message(sock, "m", 1, &tree, 1) < 0 ? err_sys(e, "send the folder") : 0;
}

static int process_wait(pid_t pid, int sock, struct image_sum *out, struct err *e)
{
	struct process_result r;
	ssize_t n;
	int status = 0;

	do
		n = read(sock, &r, sizeof(r));
	while (n < 0 && errno == EINTR);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(r) && WIFSIGNALED(status) &&
	    (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU ||
	     WTERMSIG(status) == SIGKILL))
		return err_set(e, ERR_LIMIT, "unpacking took more than %d s, or too much memory",
			       UNPACK_S);
	if (n != (ssize_t)sizeof(r) || status != 0)
		return err_set(e, ERR_INVALID, "the archive crashed its reader (status %#x)",
			       (unsigned)status);
	r.err.msg[sizeof(r.err.msg) - 1] = 0;
	r.sum.diff[sizeof(r.sum.diff) - 1] = 0;
	if (r.err.kind) {
		*e = r.err;
		return -1;
	}
	*out = r.sum;
	return 0;
}

int image_process_unpack(int dir, int archive, uint32_t uid_base, const struct image_limits *limits,
			 struct image_sum *out, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET |
					    CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
					    CLONE_NEWCGROUP,
				   .exit_signal = SIGCHLD };
	struct err ignored;
	int pair[2], done;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the unpacking process");
	signal(SIGCHLD, SIG_DFL);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args)); /* no stack: as fork() */
	if (pid == 0)
		process_main(archive, pair[1], limits);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the unpacking process");
	}
	done = process_admit(pid, pair[0], dir, uid_base, e);
	if (done < 0)
		kill(pid, SIGKILL);
	if (process_wait(pid, pair[0], out, done < 0 ? &ignored : e) < 0)
		done = -1;
	close(pair[0]);
	return done;
}
