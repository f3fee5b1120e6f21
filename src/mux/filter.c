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

int filter_load(void)
{
	const struct {
		unsigned short len;
		const struct sock_filter *code;
	} prog = { ARRAY_LEN(filter_code), filter_code };
	long err = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);

	if (err >= 0)
		err = SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
	return (int)err;
}
