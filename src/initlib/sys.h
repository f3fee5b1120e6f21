/* sys.h - system calls without a C library.
 * Init has no libc: every call it makes is a line here, so this list is also what the box's
 * system call filter must allow it. All return the kernel's value: negative is -errno. */
#pragma once
#include <asm/errno.h>
#include <asm/fcntl.h>
#include <asm/ioctls.h>
#include <asm/signal.h>
#include <asm/socket.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/eventpoll.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/limits.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/signalfd.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* For large arrays that an idle init never touches: linked after all others (the linker sorts
 * sections by name), they do not spread its few used variables over many pages. */
#define LAZY __attribute__((section(".bss.lazy")))
#define LAST                                                                                       \
	__attribute__((section(".bss.last"))) /* after the live variables, before the lazy ones */

/* Declarations of the C library that the kernel's headers do not have. */
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };
enum { SOCK_STREAM = 1, SOCK_SEQPACKET = 5, SOCK_NONBLOCK = O_NONBLOCK, SOCK_CLOEXEC = O_CLOEXEC };
enum {
	MSG_PEEK = 0x2,
	MSG_CTRUNC = 0x8,
	MSG_TRUNC = 0x20,
	MSG_DONTWAIT = 0x40,
	MSG_NOSIGNAL = 0x4000
};
enum { SCM_RIGHTS = 1, MSG_CMSG_CLOEXEC = 0x40000000 };
enum { CLOCK_MONOTONIC_ID = 1, SIG_SETMASK_HOW = 2, SIGSET_BYTES = 8 };

struct msghdr {
	void *msg_name;
	uint32_t msg_namelen;
	uint32_t pad1;
	struct iovec *msg_iov;
	size_t msg_iovlen;
	void *msg_control;
	size_t msg_controllen;
	uint32_t msg_flags;
	uint32_t pad2;
};

struct cmsghdr {
	size_t cmsg_len;
	int32_t cmsg_level, cmsg_type;
};

struct pollfd;

struct dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};
enum { DIRENT_DIR = 4 }; /* d_type */
enum { SEEK_SET = 0, SEEK_DATA = 3, SEEK_HOLE = 4 };

#if defined(__aarch64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}
#elif defined(__x86_64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "+a"(nr)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory", "cc");
	return nr;
}
#else
#error "init knows aarch64 and x86_64"
#endif

/* SYS(read, fd, p, n): the arguments as the kernel takes them, missing ones zero. */
#define SYS_PICK(nr, a, b, c, d, e, f, ...)                                                        \
	sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define SYS(name, ...) SYS_PICK(__NR_##name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* ---- descriptors ---- */

static inline long sys_read(int fd, void *to, size_t n)
{
	return SYS(read, fd, to, n);
}

static inline long sys_write(int fd, const void *from, size_t n)
{
	return SYS(write, fd, from, n);
}

static inline long sys_pread(int fd, void *to, size_t n, uint64_t at)
{
	return SYS(pread64, fd, to, n, at);
}

static inline long sys_pwrite(int fd, const void *from, size_t n, uint64_t at)
{
	return SYS(pwrite64, fd, from, n, at);
}

static inline long sys_random(void *to, size_t n)
{
	return SYS(getrandom, to, n, 0);
}

static inline void sys_close(int fd)
{
	if (fd >= 0)
		SYS(close, fd);
}

enum { SYS_LAST_FD = 0x7fffffff }; /* gVisor rejects larger numbers */
static inline long sys_close_range(unsigned first, unsigned last)
{
	return SYS(close_range, first, last, 0);
}

static inline long sys_sendfile(int to, int from, uint64_t *at, size_t n)
{
	return SYS(sendfile, to, from, at, n);
}

static inline long sys_fcntl(int fd, int command, long arg)
{
	return SYS(fcntl, fd, command, arg);
}

static inline long sys_dup3(int from, int to, int flags)
{
	return SYS(dup3, from, to, flags);
}

static inline long sys_pipe(int out_pair[2], int flags)
{
	return SYS(pipe2, out_pair, flags);
}

static inline long sys_ioctl(int fd, unsigned long request, void *arg)
{
	return SYS(ioctl, fd, request, arg);
}

static inline long sys_lseek(int fd, int64_t to, int whence)
{
	return SYS(lseek, fd, to, whence);
}

static inline long sys_ftruncate(int fd, uint64_t size)
{
	return SYS(ftruncate, fd, size);
}

static inline long sys_fallocate(int fd, int mode, uint64_t from, uint64_t n)
{
	return SYS(fallocate, fd, mode, from, n);
}

static inline long sys_memfd_create(const char *name, unsigned flags)
{
	return SYS(memfd_create, name, flags);
}

static inline long sys_epoll_create(void)
{
	return SYS(epoll_create1, EPOLL_CLOEXEC);
}

static inline long sys_epoll_ctl(int ep, int op, int fd, struct epoll_event *ev)
{
	return SYS(epoll_ctl, ep, op, fd, ev);
}

static inline long sys_epoll_wait(int ep, struct epoll_event *evs, int max, int timeout_ms)
{
	return SYS(epoll_pwait, ep, evs, max, timeout_ms, 0, SIGSET_BYTES);
}

static inline long sys_ppoll(struct pollfd *fds, unsigned n, long timeout_ns) /* -1: no limit */
{
	struct __kernel_timespec ts = { timeout_ns / 1000000000, timeout_ns % 1000000000 };

	return SYS(ppoll, fds, n, timeout_ns < 0 ? NULL : &ts, 0, SIGSET_BYTES);
}

static inline long sys_inotify_init(int flags)
{
	return SYS(inotify_init1, flags);
}

static inline long sys_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	return SYS(inotify_add_watch, fd, path, mask);
}

static inline long sys_inotify_rm_watch(int fd, int wd)
{
	return SYS(inotify_rm_watch, fd, wd);
}

static inline long sys_signalfd(uint64_t set, int flags)
{
	return SYS(signalfd4, -1, &set, SIGSET_BYTES, flags);
}

/* ---- sockets ---- */

static inline long sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return SYS(sendmsg, fd, m, flags);
}

static inline long sys_recvmsg(int fd, struct msghdr *m, int flags)
{
	return SYS(recvmsg, fd, m, flags);
}

static inline long sys_peek(int fd, void *to, size_t n)
{
	return SYS(recvfrom, fd, to, n, MSG_PEEK | MSG_DONTWAIT);
}

static inline long sys_recv(int fd, void *to, size_t n)
{
	return SYS(recvfrom, fd, to, n, MSG_DONTWAIT);
}

static inline long sys_send(int fd, const void *from, size_t n)
{
	return SYS(sendto, fd, from, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static inline long sys_accept(int fd, int flags)
{
	return SYS(accept4, fd, 0, 0, flags);
}

static inline long sys_socketpair(int type, int out_pair[2])
{
	return SYS(socketpair, AF_UNIX, type, 0, out_pair);
}

enum { SHUT_READ, SHUT_WRITE };
static inline long sys_shutdown(int fd, int how)
{
	return SYS(shutdown, fd, how);
}

static inline long sys_socket(int family, int type)
{
	return SYS(socket, family, type, 0);
}

static inline long sys_connect(int fd, const void *addr, unsigned len)
{
	return SYS(connect, fd, addr, len);
}

static inline long sys_bind(int fd, const void *addr, unsigned len)
{
	return SYS(bind, fd, addr, len);
}

static inline long sys_listen(int fd, int backlog)
{
	return SYS(listen, fd, backlog);
}

static inline long sys_getsockname(int fd, void *out, uint32_t *len)
{
	return SYS(getsockname, fd, out, len);
}

static inline long sys_setsockopt(int fd, int level, int name, const void *value, unsigned len)
{
	return SYS(setsockopt, fd, level, name, value, len);
}

static inline long sys_getsockopt(int fd, int level, int name, void *out, unsigned *len)
{
	return SYS(getsockopt, fd, level, name, out, len);
}

/* ---- files ---- */

static inline long sys_openat(int dir, const char *path, int flags, unsigned mode)
{
	return SYS(openat, dir, path, flags, mode);
}

static inline long sys_fstat(int fd, struct stat *out)
{
	return SYS(fstat, fd, out);
}

static inline long sys_fstatat(int dir, const char *path, struct stat *out, int flags)
{
	return SYS(newfstatat, dir, path, out, flags);
}

static inline long sys_statfs(const char *path, struct statfs *out)
{
	return SYS(statfs, path, out);
}

static inline long sys_fstatfs(int fd, struct statfs *out)
{
	return SYS(fstatfs, fd, out);
}

static inline long sys_getdents(int fd, void *to, size_t n)
{
	return SYS(getdents64, fd, to, n);
}

static inline long sys_mkdirat(int dir, const char *path, unsigned mode)
{
	return SYS(mkdirat, dir, path, mode);
}

static inline long sys_unlinkat(int dir, const char *path, int flags)
{
	return SYS(unlinkat, dir, path, flags);
}

static inline long sys_renameat2(int from, const char *a, int to, const char *b, unsigned flags)
{
	return SYS(renameat2, from, a, to, b, flags);
}

static inline long sys_linkat(int from, const char *path, int dir, const char *as, int flags)
{
	return SYS(linkat, from, path, dir, as, flags);
}

static inline long sys_symlinkat(const char *target, int dir, const char *path)
{
	return SYS(symlinkat, target, dir, path);
}

static inline long sys_readlinkat(int dir, const char *path, char *to, size_t n)
{
	return SYS(readlinkat, dir, path, to, n);
}

static inline long sys_fchmodat(int dir, const char *path, unsigned mode)
{
	return SYS(fchmodat, dir, path, mode);
}

static inline long sys_fchmod(int fd, unsigned mode)
{
	return SYS(fchmod, fd, mode);
}

/* The same time for access and change of the content. */
static inline long sys_futimens(int fd, uint64_t ns)
{
	const int64_t part[2] = { (int64_t)(ns / 1000000000), (int64_t)(ns % 1000000000) },
		      times[4] = { part[0], part[1], part[0], part[1] };

	return SYS(utimensat, fd, NULL, times, 0);
}

static inline long sys_fchownat(int dir, const char *path, uint32_t uid, uint32_t gid, int flags)
{
	return SYS(fchownat, dir, path, uid, gid, flags);
}

static inline long sys_fchown(int fd, uint32_t id)
{
	return SYS(fchown, fd, id, id);
}

static inline long sys_fsetxattr(int fd, const char *name, const void *value, size_t n)
{
	return SYS(fsetxattr, fd, name, value, n, 0);
}

static inline long sys_listxattr(const char *path, char *to, size_t n)
{
	return SYS(listxattr, path, to, n);
}

static inline long sys_getxattr(const char *path, const char *name, void *to, size_t n)
{
	return SYS(getxattr, path, name, to, n);
}

static inline long sys_chdir(const char *path)
{
	return SYS(chdir, path);
}

static inline long sys_fchdir(int dir)
{
	return SYS(fchdir, dir);
}

static inline long sys_getcwd(char *to, size_t n)
{
	return SYS(getcwd, to, n);
}

static inline long sys_umask(unsigned mask)
{
	return SYS(umask, mask);
}

/* ---- memory ---- */

static inline void *sys_map(size_t n) /* zeroed, private; NULL if there is none */
{
	long at = SYS(mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static inline void sys_unmap(void *p, size_t n)
{
	if (p)
		SYS(munmap, p, n);
}

static inline void sys_madvise(void *p, size_t n, int advice)
{
	SYS(madvise, p, n, advice);
}

/* ---- processes ---- */

static inline long sys_fork(void)
{
	return SYS(clone, SIGCHLD, 0);
}

static inline _Noreturn void sys_exit(int status)
{
	for (;;)
		SYS(exit_group, status);
}

static inline long sys_execve(const char *path, char *const argv[], char *const env[])
{
	return SYS(execve, path, argv, env);
}

static inline long sys_wait4(int pid, int *status, int flags, struct rusage *out)
{
	return SYS(wait4, pid, status, flags, out);
}

static inline long sys_kill(int pid, int signo)
{
	return SYS(kill, pid, signo);
}

static inline long sys_getpid(void)
{
	return SYS(getpid, 0);
}

static inline long sys_setpgid(int pid, int group)
{
	return SYS(setpgid, pid, group);
}

static inline long sys_setsid(void)
{
	return SYS(setsid, 0);
}

static inline long sys_sigmask(uint64_t set)
{
	return SYS(rt_sigprocmask, SIG_SETMASK_HOW, &set, 0, SIGSET_BYTES);
}

static inline long sys_prctl(int what, unsigned long a, unsigned long b)
{
	return SYS(prctl, what, a, b);
}

static inline long sys_setrlimit(int resource, uint64_t soft, uint64_t hard)
{
	uint64_t limit[2] = { soft, hard };

	return SYS(prlimit64, 0, resource, limit, 0);
}

static inline uint64_t sys_now_ns(void)
{
	struct __kernel_timespec ts = { 0 };

	SYS(clock_gettime, CLOCK_MONOTONIC_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- identity ---- */

static inline long sys_getuid(void)
{
	return SYS(getuid, 0);
}

static inline long sys_getgid(void)
{
	return SYS(getgid, 0);
}

static inline long sys_setgroups(unsigned n, const uint32_t *gids)
{
	return SYS(setgroups, n, gids);
}

static inline long sys_getgroups(unsigned n, uint32_t *out_gids)
{
	return SYS(getgroups, n, out_gids);
}

static inline long sys_setresgid(uint32_t gid)
{
	return SYS(setresgid, gid, gid, gid);
}

static inline long sys_setresuid(uint32_t uid)
{
	return SYS(setresuid, uid, uid, uid);
}

static inline long sys_getresuid(uint32_t out[3])
{
	return SYS(getresuid, &out[0], &out[1], &out[2]);
}

static inline long sys_getresgid(uint32_t out[3])
{
	return SYS(getresgid, &out[0], &out[1], &out[2]);
}

/* gVisor has no ids for files alone: there the effective ones change. With an effective uid other than 0
 * the group cannot be changed, so on the way back the uid comes first. */
static inline void sys_setfsid(uint32_t uid, uint32_t gid)
{
	if (SYS(setfsgid, gid) != -ENOSYS) {
		SYS(setfsuid, uid);
		return;
	}
	if (SYS(setresgid, -1, gid, -1) >= 0) {
		SYS(setresuid, -1, uid, -1);
	} else {
		SYS(setresuid, -1, uid, -1);
		SYS(setresgid, -1, gid, -1);
	}
}

static inline long sys_capget(struct __user_cap_data_struct out[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return SYS(capget, &head, out);
}

static inline long sys_capset(const struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return SYS(capset, &head, data);
}
