/* filter.c - see filter.h. A call that is not in the list ends mux, and with it the box. */
#include "mux/filter.h"
#include "initlib/sys.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#else
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

#define STOP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define FIELD(name)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, __builtin_offsetof(struct seccomp_data, name))
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                    \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* The calls of one frame come first. */
static const struct sock_filter filter_code[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
	STOP,
	FIELD(nr),
	ALLOW(epoll_pwait),
	ALLOW(clock_gettime),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(read),
	ALLOW(write),
	ALLOW(epoll_ctl),
	ALLOW(recvfrom),
	ALLOW(sendto),
	ALLOW(pread64),
	ALLOW(accept4),
	ALLOW(socketpair),
	ALLOW(close),
	ALLOW(shutdown),
	ALLOW(fcntl),
	ALLOW(fstat),
	ALLOW(getsockopt),
	ALLOW(getrandom),
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(wait4),
	ALLOW(socket),
	ALLOW(bind),
	ALLOW(listen),
	ALLOW(connect),
	ALLOW(getsockname),
	ALLOW(exit_group),
	STOP,
};

#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* From traces of QEMU 7.2: dynamic linker, boot, restore, programs in the guest; ioctl is KVM. A call
 * that is not in the list returns EPERM, or ENOSYS if QEMU knows another way. */
static const struct sock_filter filter_vm_code[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
	STOP,
	FIELD(nr),
	ALLOW(ioctl),
	ALLOW(futex),
	ALLOW(ppoll),
	ALLOW(read),
	ALLOW(write),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(preadv),
	ALLOW(pwritev),
	ALLOW(readv),
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(mprotect),
	ALLOW(madvise),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigreturn),
	ALLOW(restart_syscall),
	ALLOW(rt_sigtimedwait),
	ALLOW(gettid),
	ALLOW(tgkill),
	ALLOW(eventfd2),
	ALLOW(signalfd4),
	ALLOW(close),
	ALLOW(fcntl),
	ALLOW(lseek),
	ALLOW(pread64),
	ALLOW(openat),
	ALLOW(newfstatat),
	ALLOW(fstat),
	ALLOW(faccessat),
	ALLOW(readlinkat),
	ALLOW(getdents64),
	ALLOW(statfs),
	ALLOW(fstatfs),
	ALLOW(fadvise64),
	ALLOW(memfd_create),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(getsockname),
	ALLOW(getpeername),
	ALLOW(set_tid_address),
	ALLOW(set_robust_list),
	ALLOW(rseq),
	ALLOW(prlimit64),
	ALLOW(getrandom),
	ALLOW(sysinfo),
	ALLOW(sched_getaffinity),
	ALLOW(prctl),
	ALLOW(seccomp),
	ALLOW(clone),
	ALLOW(execve),
	ALLOW(exit),
	ALLOW(exit_group),
#ifdef __x86_64__
	ALLOW(poll),
	ALLOW(access),
	ALLOW(readlink),
	ALLOW(arch_prctl),
#endif
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	REFUSE,
};

#define ANSWER(name, action)                                                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)

/* What the lists of runsc allow its gofer, and neither it nor the sentry needs. The lists themselves cannot be changed from here, and one
 * filter holds for both. */
static const struct sock_filter filter_runsc_code[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
	STOP,
	FIELD(nr),
	/* The mode of a socket of the host, which the gofer does not make (--host-uds=none). */
	ANSWER(fchmodat, SECCOMP_RET_ERRNO | EPERM),
	/* When a connection is closed, which follows. */
	ANSWER(shutdown, SECCOMP_RET_ERRNO | EPERM),
	/* A regular file without opening it: preload.c creates it by open(). Sockets and FIFOs exist in the sentry only. */
	ANSWER(mknodat, SECCOMP_RET_ERRNO | EPERM),
	/* After a stop or a freeze: the call that was interrupted returns, and its caller repeats it. */
	ANSWER(restart_syscall, SECCOMP_RET_ERRNO | EINTR),
	/* Success: a yield may do nothing. */
	ANSWER(sched_yield, SECCOMP_RET_ERRNO),
	/* The thread ends as it asks. */
	ANSWER(exit, SECCOMP_RET_KILL_THREAD),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static int filter_apply(const struct sock_filter *code, unsigned len)
{
	const struct {
		unsigned short len;
		const struct sock_filter *code;
	} prog = { (unsigned short)len, code };
	long err = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);

	if (err >= 0)
		err = SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
	return (int)err;
}

int filter_load(void)
{
	return filter_apply(filter_code, ARRAY_LEN(filter_code));
}

int filter_load_vm(void)
{
	return filter_apply(filter_vm_code, ARRAY_LEN(filter_vm_code));
}

int filter_load_runsc(void)
{
	return filter_apply(filter_runsc_code, ARRAY_LEN(filter_runsc_code));
}
