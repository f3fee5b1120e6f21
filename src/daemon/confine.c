/* confine.c - see confine.h.
 * The server reads what unknown clients send. An attacker that takes the process over must not
 * get further: it cannot start a program, make a socket, see a file but the server's own, or
 * touch another process. */
#include "daemon/confine.h"
#include "base/cleanup.h"
#include "daemon/sanitizer_report.h"
#include "jail/landlock.h"
#include "schedule/zone.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

const struct confine_step confine_steps[] = {
	{ "read write readv writev pread64 pwrite64 preadv pwritev close lseek "
	  "splice",
	  "bytes; splice: files of a box, between a pipe and a connection" },
	{ "accept4 recvmsg sendmsg recvfrom sendto shutdown getsockopt setsockopt getsockname "
	  "getpeername",
	  "connections that others opened; not socket, connect, bind, listen" },
	{ "epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 pipe pipe2 poll ppoll select "
	  "pselect6 timerfd_create timerfd_settime",
	  "waiting" },
	{ "mmap munmap mprotect mremap madvise brk membarrier", "memory" },
	{ "openat open newfstatat fstat stat lstat statx access faccessat faccessat2 unlink unlinkat "
	  "ftruncate fsync fdatasync fallocate fchmod fchown readlink readlinkat getcwd mkdir mkdirat "
	  "geteuid getuid getegid getgid fcntl flock umask rename renameat renameat2 fstatfs",
	  "SQLite, in the one folder that landlock leaves; fstatfs: free space of that folder; and reading "
	  "time zones" },
	{ "futex set_robust_list rseq clone sched_yield sched_getaffinity gettid getpid exit "
	  "exit_group tgkill restart_syscall set_tid_address",
	  "its checkpoint thread (clone: CLONE_THREAD only), and its end" },
	{ "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack", "signals" },
	{ "clock_gettime clock_nanosleep clock_getres gettimeofday nanosleep time getrandom uname "
	  "sysinfo prlimit64 getrlimit memfd_create ioctl dup prctl getrusage madvise",
	  "time, randomness, long arguments; ioctl for FIONBIO" },
};
const unsigned confine_nsteps = ARRAY_LEN(confine_steps);

/* Egress connects to boxes and to the internet, and trusts neither. It has read the files that
 * it needs (resolv.conf, hosts) before. */
const struct confine_step confine_egress_steps[] = {
	{ "read write readv writev close", "bytes" },
	{ "socket connect accept4 recvmsg sendmsg recvfrom sendto shutdown getsockopt setsockopt "
	  "getsockname getpeername",
	  "connections (socket: AF_INET and AF_INET6 only); not bind, not listen" },
	{ "epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll timerfd_create "
	  "timerfd_settime",
	  "waiting" },
	{ "mmap munmap mprotect mremap madvise brk", "memory" },
	{ "fcntl ioctl futex getpid gettid tgkill exit exit_group restart_syscall rt_sigaction "
	  "rt_sigprocmask rt_sigreturn sigaltstack",
	  "descriptors that do not wait, its end" },
	{ "clock_gettime clock_nanosleep gettimeofday nanosleep time getrandom",
	  "time, randomness" },
};
const unsigned confine_negress_steps = ARRAY_LEN(confine_egress_steps);

/* The llm process has keys and connects to the internet, and so does the outbound process. They
 * resolve names themselves, on the loop: no thread, no file. Libraries for libcurl and OpenSSL were loaded before. */
const struct confine_step confine_llm_steps[] = {
	{ "read write readv writev close lseek fstat newfstatat", "bytes; fstat: of what is open" },
	{ "socket connect recvmsg sendmsg recvfrom sendto shutdown getsockopt setsockopt getsockname "
	  "getpeername",
	  "connections (socket: AF_INET and AF_INET6 only); not bind, not listen, not accept" },
	{ "epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll timerfd_create "
	  "timerfd_settime",
	  "waiting" },
	{ "mmap munmap mprotect mremap madvise brk", "memory" },
	{ "fcntl ioctl futex getpid gettid getuid geteuid getgid getegid tgkill exit exit_group "
	  "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack",
	  "descriptors that do not wait, its end" },
	{ "clock_gettime clock_nanosleep clock_getres gettimeofday nanosleep time getrandom",
	  "time, randomness" },
};
const unsigned confine_nllm_steps = ARRAY_LEN(confine_llm_steps);

/* The cluster process of a gateway has the passwords of engines and the key of the cluster's CA, and connects to
 * engines. */
const struct confine_step confine_engines_steps[] = {
	{ "read write readv writev close lseek fstat newfstatat", "bytes" },
	{ "socket socket:unix connect recvmsg sendmsg sendmmsg recvfrom sendto shutdown getsockopt "
	  "setsockopt getsockname getpeername",
	  "connections (socket: AF_INET, AF_INET6 and AF_UNIX); not bind, not listen, not accept" },
	{ "openat open stat lstat statx access faccessat faccessat2 readlink readlinkat uname",
	  "host names, in /etc; landlock leaves nothing else" },
	{ "epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll timerfd_create "
	  "timerfd_settime",
	  "waiting" },
	{ "mmap munmap mprotect mremap madvise brk", "memory" },
	{ "fcntl ioctl futex getpid gettid getuid geteuid getgid getegid tgkill exit exit_group "
	  "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "
	  "sigaltstack",
	  "descriptors that do not wait, SIGPIPE (libpq), its end" },
	{ "clock_gettime clock_nanosleep clock_getres gettimeofday nanosleep time getrandom",
	  "time, randomness" },
};
const unsigned confine_nengines_steps = ARRAY_LEN(confine_engines_steps);

static int allow_sockets(scmp_filter_ctx ctx, int nr)
{
	static const uint32_t families[] = { AF_INET, AF_INET6 };
	int rc = 0;

	/* The kernel reads 32 bits; so does this check. */
	for (unsigned i = 0; i < ARRAY_LEN(families) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, families[i]));
	return rc;
}

static int confine_allow(scmp_filter_ctx ctx, const char *name)
{
	int nr = seccomp_syscall_resolve_name(name), rc;

	if (!strcmp(name, "socket:unix"))
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, AF_UNIX));
	if (nr == __NR_SCMP_ERROR || nr < 0)
		return 0; /* not on this machine */
	if (!strcmp(name, "clone"))
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	else if (!strcmp(name, "socket"))
		rc = allow_sockets(ctx, nr);
	else
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	return rc == -EEXIST ? 0 : rc;
}

static int load_filter(const struct confine_step *rows, unsigned nrows, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = ctx ? 0 : -ENOMEM;

	for (unsigned i = 0; i < nrows && rc == 0; i++) {
		char calls[512], *rest = NULL;

		snprintf(calls, sizeof(calls), "%s", rows[i].calls);
		for (char *c = strtok_r(calls, " ", &rest); c && rc == 0;
		     c = strtok_r(NULL, " ", &rest))
			rc = confine_allow(ctx, c);
	}
	/* glibc falls back to clone, whose flags a filter can see. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc < 0) {
		errno = -rc;
		return err_sys(e, "the system call filter");
	}
	return 0;
}

static int confine_drop(uid_t uid, gid_t gid, struct err *e)
{
	uid_t r, ef, s;

	sanitizer_report_open();
	if (uid == (uid_t)-1)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(e, "become uid %u", (unsigned)uid);
	/* A drop not verified is a hope. */
	if (getresuid(&r, &ef, &s) < 0 || r != uid || ef != uid || s != uid || setuid(0) == 0)
		return err_set(e, ERR_SYS, "setresuid(%u) had no effect", (unsigned)uid);
	return 0;
}

int confine_enter(uid_t uid, gid_t gid, const char *folder, struct err *e)
{
	if (confine_drop(uid, gid, e) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "no new privileges");
	if (access(folder, W_OK) < 0) {
		err_sys(e, "uid %u cannot use %.100s", (unsigned)getuid(), folder);
		return e->sys == EACCES
			       ? err_in(e,
					"every folder above it must let others through (chmod o+x)")
			       : -1;
	}
	if (landlock_confine(folder, ZONE_FOLDER, e) < 0)
		return err_in(e, "server");
	return load_filter(confine_steps, confine_nsteps, e) < 0 ? err_in(e, "server") : 0;
}

/* No file but those of `readable`; NULL: none at all. */
static int enter_bare(uid_t uid, gid_t gid, const char *readable, const struct confine_step *rows,
		      unsigned nrows, struct err *e)
{
	if (confine_drop(uid, gid, e) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "no new privileges");
	return landlock_confine(NULL, readable, e) < 0 ? -1 : load_filter(rows, nrows, e);
}

int confine_enter_egress(uid_t uid, gid_t gid, struct err *e)
{
	return enter_bare(uid, gid, NULL, confine_egress_steps, confine_negress_steps, e) < 0
		       ? err_in(e, "egress")
		       : 0;
}

int confine_enter_llm(uid_t uid, gid_t gid, struct err *e)
{
	return enter_bare(uid, gid, NULL, confine_llm_steps, confine_nllm_steps, e) < 0
		       ? err_in(e, "model")
		       : 0;
}

int confine_enter_outbound(uid_t uid, gid_t gid, struct err *e)
{
	return enter_bare(uid, gid, NULL, confine_llm_steps, confine_nllm_steps, e) < 0
		       ? err_in(e, "outbound")
		       : 0;
}

int confine_enter_engines(uid_t uid, gid_t gid, struct err *e)
{
	return enter_bare(uid, gid, "/etc", confine_engines_steps, confine_nengines_steps, e) < 0
		       ? err_in(e, "cluster")
		       : 0;
}

void confine_clear_environment(void)
{
	sanitizer_report_store_path();
	for (char **v = environ; v && *v; v++)
		explicit_bzero(*v, strlen(*v));
	clearenv();
}
