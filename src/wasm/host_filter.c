/* host_filter.c - the system calls that the process may still make once the module runs. Written by
 * hand: a program that exploits the host has these calls, in a box, and no others. */
#include "wasm/host.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

/* mprotect is in the list with a condition: never executable. */
static const int filter_list[] = {
	SYS_readv,         SYS_writev,    SYS_preadv,     SYS_pwritev,    SYS_close,
	SYS_newfstatat,    SYS_lseek,     SYS_openat2,    SYS_getdents64, SYS_mkdirat,
	SYS_unlinkat,      SYS_renameat2, SYS_symlinkat,  SYS_linkat,     SYS_readlinkat,
	SYS_ftruncate,     SYS_fallocate, SYS_fsync,      SYS_utimensat,  SYS_ppoll,
	SYS_clock_gettime, SYS_getrandom, SYS_exit_group, SYS_fcntl,
};
enum { FILTER_N = sizeof filter_list / sizeof *filter_list };
const unsigned host_filter_calls = FILTER_N + 1;

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

void host_filter_load(void)
{
	struct sock_filter f[FILTER_N + 16];
	unsigned n = 0;
	struct sock_fprog prog;

	f[n++] = (struct sock_filter)LOAD(arch);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)LOAD(nr);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
	f[n++] = (struct sock_filter)LOAD(args[2]);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
					      ~(unsigned)(PROT_READ | PROT_WRITE), 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	for (unsigned i = 0; i < FILTER_N; i++)
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (unsigned)filter_list[i],
						      (unsigned char)(FILTER_N - i), 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog = (struct sock_fprog){ (unsigned short)n, f };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		host_fail("cannot load the filter of system calls", NULL);
}
