/* calls.c - see probe.h. System calls that no program in a box needs. The arguments are chosen such
 * that a call that is not blocked fails or has no effect. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* From 424 on a call has the same number everywhere; older headers stop before these. */
enum {
	NR_memfd_secret = 447,
	NR_cachestat = 451,
	NR_statmount = 457,
	NR_listmount = 458,
	NR_lsm_list_modules = 461,
	NR_future = 600
};

/* ---- plain calls: name, number, arguments ---- */

static char page[4096];
static struct iovec here = { page, 1 };

static const struct plain {
	const char *name;
	long number;
	unsigned long args[6];
} plain[] = {
#define PTR(p) (unsigned long)(p)
	{ "bpf", SYS_bpf, { BPF_MAP_CREATE, 0, 0 } },
	{ "perf_event_open", SYS_perf_event_open, { 0, 0, -1ul, -1ul, 0 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 0, 0 } },
	{ "io_uring_enter", SYS_io_uring_enter, { -1ul } },
	{ "io_uring_register", SYS_io_uring_register, { -1ul } },
	{ "io_setup", SYS_io_setup, { 0, 0 } },
	{ "userfaultfd", SYS_userfaultfd, { 1 /* user mode only */ } },
	{ "keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID, (unsigned)KEY_SPEC_SESSION_KEYRING, 0 } },
	{ "add_key", SYS_add_key, { 0, 0, 0, 0, (unsigned)KEY_SPEC_PROCESS_KEYRING } },
	{ "request_key", SYS_request_key, { 0, 0, 0, 0 } },
	{ "memfd_secret", NR_memfd_secret, { 0 } },
	{ "remap_file_pages", SYS_remap_file_pages, { 0, 0, 0, 0, 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { 0, PTR(&here), 1, PTR(&here), 1, 0 } },
	{ "process_madvise", SYS_process_madvise, { -1ul, 0, 0, 0, 0 } },
	{ "kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 } },
	{ "mbind", SYS_mbind, { PTR(page), 0, 0, 0, 0, 0 } },
	{ "get_mempolicy", SYS_get_mempolicy, { 0, 0, 0, 0, 0 } },
	{ "set_mempolicy", SYS_set_mempolicy, { 0, 0, 0 } },
	{ "migrate_pages", SYS_migrate_pages, { -1ul, 0, 0, 0 } },
	{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
	{ "cachestat", NR_cachestat, { -1ul, 0, 0, 0 } },
	{ "quotactl", SYS_quotactl, { -1ul, 0, 0, 0 } },
	{ "syslog", SYS_syslog, { 10 /* size of the buffer */, 0, 0 } },
	{ "acct", SYS_acct, { PTR("/none") } },
	{ "swapon", SYS_swapon, { PTR("/none"), 0 } },
	{ "swapoff", SYS_swapoff, { PTR("/none") } },
	{ "reboot", SYS_reboot, { 0, 0, 0, 0 /* no magic: EINVAL */ } },
	{ "kexec_load", SYS_kexec_load, { 0, -1ul, 0, -1ul } },
	{ "init_module", SYS_init_module, { 0, 0, 0 } },
	{ "finit_module", SYS_finit_module, { -1ul, 0, 0 } },
	{ "delete_module", SYS_delete_module, { 0, 0 } },
	{ "settimeofday", SYS_settimeofday, { 0, 0 } },
	{ "clock_settime", SYS_clock_settime, { -1ul, 0 } },
	{ "clock_adjtime", SYS_clock_adjtime, { -1ul, 0 } },
	{ "adjtimex", SYS_adjtimex, { 0 } },
	{ "fanotify_init", SYS_fanotify_init, { 0x200 /* FAN_REPORT_FID */, 0 } },
	{ "fanotify_mark", SYS_fanotify_mark, { -1ul, 0, 0, 0, 0 } },
	{ "name_to_handle_at", SYS_name_to_handle_at, { (unsigned)AT_FDCWD, PTR("/"), 0, 0, 0 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1ul, 0, 0 } },
	{ "setdomainname", SYS_setdomainname, { 0, -1ul } },
	{ "vhangup", SYS_vhangup, { 0 } },
	{ "vmsplice", SYS_vmsplice, { -1ul, 0, 0, 0 } },
	{ "lsm_list_modules", NR_lsm_list_modules, { 0, 0, 0 } },
	{ "listmount", NR_listmount, { 0, 0, 0, 0 } },
	{ "statmount", NR_statmount, { 0, 0, 0, 0 } },
	{ "fsopen", SYS_fsopen, { 0, 0 } },
	{ "fsmount", SYS_fsmount, { -1ul, 0, 0 } },
	{ "fspick", SYS_fspick, { -1ul, 0, 0 } },
	{ "open_tree", SYS_open_tree, { -1ul, 0, 0 } },
	{ "move_mount", SYS_move_mount, { -1ul, 0, -1ul, 0, 0 } },
	{ "mount_setattr", SYS_mount_setattr, { -1ul, 0, 0, 0, 0 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { -1ul, 0, 0 } },
	{ "future", NR_future, { 0 } },
#ifdef __x86_64__
	{ "iopl", SYS_iopl, { 0 } },
	{ "ioperm", SYS_ioperm, { 0, 0, 0 } },
	{ "modify_ldt", SYS_modify_ldt, { 0, 0, 0 } },
	{ "uselib", SYS_uselib, { 0 } },
	{ "ustat", SYS_ustat, { 0, 0 } },
	{ "sysfs", SYS_sysfs, { 3 } },
#endif
#undef PTR
};

/* `call=NAME`. EPERM and ENOSYS are the filter's words; any other is the kernel's own. */
static int call(const char *name)
{
	for (size_t i = 0; i < COUNT(plain); i++) {
		const unsigned long *a = plain[i].args;

		if (strcmp(plain[i].name, name))
			continue;
		if (syscall(plain[i].number, a[0], a[1], a[2], a[3], a[4], a[5]) >= 0)
			return 0;
		return errno == EPERM || errno == ENOSYS ? -1 : 0;
	}
	fprintf(stderr, "probe: no call named %s\n", name);
	errno = EINVAL;
	return -1;
}

/* `calls`: tries all of them; prints the first that is not blocked. */
static int all_calls(const char *arg)
{
	int got_in = 0;

	(void)arg;
	for (size_t i = 0; i < COUNT(plain); i++)
		if (call(plain[i].name) == 0) {
			printf("gets-in %s\n", plain[i].name);
			got_in++;
		}
	errno = EPERM;
	return got_in ? 0 : -1;
}

/* ---- what a program would do with some of them ---- */

/* A key of the session that started us, found and read. */
static int key(const char *description)
{
	char secret[64];
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", description,
			  0);

	if (id < 0)
		return -1;
	return syscall(SYS_keyctl, KEYCTL_READ, id, secret, sizeof(secret)) < 0 ? -1 : 0;
}

static int personality_(const char *value)
{
	return syscall(SYS_personality, strtoul(value, NULL, 0)) < 0 ? -1 : 0;
}

/* Types into a terminal of our own. EIO: the kernel has it switched off, but we got there. */
static int terminal_ioctl(unsigned long number)
{
	int master, slave;
	char c = 'x';

	if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
		errno = ENOTTY;
		return -1;
	}
	setsid();
	ioctl(slave, TIOCSCTTY, 0);
	if (syscall(SYS_ioctl, slave, number, &c) == 0)
		return 0;
	return errno == EPERM ? -1 : 0;
}

static int type_in(const char *high)
{
	return terminal_ioctl(TIOCSTI | strtoul(high ? high : "0", NULL, 0) << 32);
}

static int console_menu(const char *high)
{
	return terminal_ioctl(TIOCLINUX | strtoul(high ? high : "0", NULL, 0) << 32);
}

static int console_take(const char *high)
{
	return terminal_ioctl(TIOCCONS | strtoul(high ? high : "0", NULL, 0) << 32);
}

/* `socket=FAMILY,TYPE,PROTO[,HIGH]`: HIGH goes into the upper half of each. */
static int open_socket(const char *arg)
{
	unsigned long n[4] = { 0 };
	char *end = (char *)arg;

	for (int i = 0; i < 4 && *end; i++, end += *end == ',')
		n[i] = strtoul(end, &end, 0);
	if (syscall(SYS_socket, n[3] << 32 | n[0], n[3] << 32 | n[1], n[3] << 32 | n[2]) >= 0)
		return 0;
	/* For audit the filter answers as a kernel without it does. */
	return errno == (n[0] == AF_NETLINK && n[2] == NETLINK_AUDIT ? EPROTONOSUPPORT : EPERM) ? -1
												: 0;
}

static int core_limit(const char *arg)
{
	struct rlimit none = { 0, 0 };

	return (void)arg, setrlimit(RLIMIT_CORE, &none);
}

/* sync() would wait for every disk of the host; a no-op is back at once whatever the disks do. */
static int does_sync(const char *arg)
{
	(void)arg;
	/* A descriptor that is none: only the real syncfs looks at it. */
	if (syscall(SYS_syncfs, -1) < 0)
		return 0;
	errno = EPERM;
	return -1;
}

/* ---- other ABIs ---- */

#if defined(__aarch64__)
/* An ARM program of three instructions: mov r7, #1; mov r0, #0; svc 0, which is exit(0). */
static const unsigned char arm_program[] = {
	0x7f, 'E',  'L',  'F',  1,    1,    1,    0,    0,    0,    0,    0,    0,    0,
	0,    0,    2,    0,    40,   0,    1,    0,    0,    0,    0x54, 0x00, 0x01, 0x00,
	52,   0,    0,    0,    0,    0,    0,    0,    0x00, 0x02, 0x00, 0x05, 52,   0,
	32,   0,    1,    0,    40,   0,    0,    0,    0,    0,    1,    0,    0,    0,
	0,    0,    0,    0,    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x60, 0,
	0,    0,    0x60, 0,    0,    0,    5,    0,    0,    0,    0x00, 0x00, 0x01, 0x00,
	0x01, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef,
};

static int other_abi(const char *arg)
{
	char *argv[] = { "arm", NULL }, *env[] = { NULL };
	int fd = open("arm", O_WRONLY | O_CREAT | O_TRUNC, 0700);

	(void)arg;
	if (fd < 0 || write(fd, arm_program, sizeof(arm_program)) != (ssize_t)sizeof(arm_program) ||
	    close(fd) < 0)
		return -1;
	return execve("arm", argv, env);
}

static int x32(const char *arg)
{
	(void)arg;
	errno = ENOEXEC;
	return -1;
}
#elif defined(__x86_64__)
static int other_abi(const char *arg)
{
	long result;

	(void)arg;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(20 /* getpid */) : "memory");
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : 0;
}

static int x32(const char *arg)
{
	(void)arg;
	return syscall(0x40000000 | SYS_getpid) < 0 ? -1 : 0;
}
#endif

const struct probe_action calls_actions[] = {
	{ "call", call },
	{ "calls", all_calls },
	{ "key", key },
	{ "personality", personality_ },
	{ "type-in", type_in },
	{ "console-menu", console_menu },
	{ "console-take", console_take },
	{ "socket", open_socket },
	{ "core-limit", core_limit },
	{ "sync", does_sync },
	{ "other-abi", other_abi },
	{ "x32", x32 },
};
const size_t calls_nactions = COUNT(calls_actions);
