/* syscall_table.h - every system call that a box may make, and those that are known and
 * rejected, with the reason. Included by seccomp.c only, which turns rows into rules.
 *
 * The list was taken from strace of fifteen toolchains (135 calls) and extended to what their
 * manuals document. A name that an architecture lacks costs nothing there. */
#pragma once
#include "jail/seccomp.h"

#define ALLOW(call)                                                                                \
	{                                                                                          \
		call, SECCOMP_ALLOWED, 0, NULL                                                     \
	}
#define ALLOW_FOR(call, why)                                                                       \
	{                                                                                          \
		call, SECCOMP_ALLOWED, 0, why                                                      \
	}
#define LOOSE(call, why)                                                                           \
	{                                                                                          \
		call, SECCOMP_ALLOWED, 1, why                                                      \
	} /* strict boxes do without */
#define BY_ARGUMENT(call, why)                                                                     \
	{                                                                                          \
		call, SECCOMP_BY_ARGUMENT, 0, why                                                  \
	}
#define NOOP(call, why)                                                                            \
	{                                                                                          \
		call, SECCOMP_NOOP, 0, why                                                         \
	}
#define FALL_BACK(call, why)                                                                       \
	{                                                                                          \
		call, SECCOMP_ENOSYS, 0, why                                                       \
	}
#define REFUSE(call, why)                                                                          \
	{                                                                                          \
		call, SECCOMP_REFUSED, 0, why                                                      \
	}

/* clang-format off */
const struct seccomp_row seccomp_rows[] = {
	/* ---- files, by descriptor ---- */
	ALLOW("close"), ALLOW("close_range"), ALLOW("dup"), ALLOW("dup3"), ALLOW("fcntl"),
	ALLOW("flock"), ALLOW("lseek"), ALLOW("read"), ALLOW("readv"), ALLOW("pread64"),
	ALLOW("preadv"), ALLOW("preadv2"), ALLOW("write"), ALLOW("writev"), ALLOW("pwrite64"),
	ALLOW("pwritev"), ALLOW("pwritev2"), ALLOW("sendfile"), ALLOW("copy_file_range"),
	ALLOW("readahead"), ALLOW("fadvise64"), ALLOW("fallocate"), ALLOW("ftruncate"),
	ALLOW("fsync"), ALLOW("fdatasync"), ALLOW("sync_file_range"), ALLOW("fstat"),
	ALLOW("fstatfs"), ALLOW("fchdir"), ALLOW("fchmod"), ALLOW("fchown"), ALLOW("fgetxattr"),
	ALLOW("flistxattr"), ALLOW("fremovexattr"), ALLOW("fsetxattr"), ALLOW("getdents64"),
	ALLOW("memfd_create"), ALLOW("pipe2"),
	LOOSE("splice", "zero-copy pipes have a history (Dirty Pipe); cp and cat do without"),
	LOOSE("tee", "as splice"),
	BY_ARGUMENT("ioctl", "not TIOCSTI, TIOCLINUX, TIOCCONS: they type into terminals"),

	/* ---- files, by path: the mounts decide what can be reached ---- */
	ALLOW("openat"), ALLOW("openat2"), ALLOW("faccessat"), ALLOW("faccessat2"),
	ALLOW("newfstatat"), ALLOW("statx"), ALLOW("statfs"), ALLOW("chdir"), ALLOW("getcwd"),
	ALLOW("mkdirat"), ALLOW("unlinkat"), ALLOW("linkat"), ALLOW("symlinkat"),
	ALLOW("readlinkat"), ALLOW("renameat"), ALLOW("renameat2"), ALLOW("fchmodat"),
	ALLOW("fchmodat2"), ALLOW("fchownat"), ALLOW("truncate"), ALLOW("utimensat"),
	ALLOW("umask"), ALLOW("getxattr"), ALLOW("lgetxattr"), ALLOW("setxattr"),
	ALLOW("lsetxattr"), ALLOW("listxattr"), ALLOW("llistxattr"), ALLOW("removexattr"),
	ALLOW("lremovexattr"), ALLOW("inotify_init1"), ALLOW("inotify_add_watch"),
	ALLOW("inotify_rm_watch"),
	BY_ARGUMENT("mknodat", "FIFO, regular file, socket; never a device"),
	NOOP("sync", "would flush every file system of the host; fsync stays"),
	NOOP("syncfs", "as sync"),

	/* ---- waiting ---- */
	ALLOW("epoll_create1"), ALLOW("epoll_ctl"), ALLOW("epoll_pwait"), ALLOW("epoll_pwait2"),
	ALLOW("eventfd2"), ALLOW("ppoll"), ALLOW("pselect6"), ALLOW("signalfd4"),

	/* ---- memory ---- */
	ALLOW("brk"), ALLOW("mmap"), ALLOW("munmap"), ALLOW("mprotect"), ALLOW("mremap"),
	ALLOW("madvise"), ALLOW("mincore"), ALLOW("msync"), ALLOW("mseal"), ALLOW("mlock"),
	ALLOW("mlock2"), ALLOW("munlock"), ALLOW("munlockall"), ALLOW("membarrier"),
	ALLOW("pkey_alloc"), ALLOW("pkey_free"), ALLOW("pkey_mprotect"),
	ALLOW_FOR("map_shadow_stack", "libc makes shadow stacks for its threads"),
	LOOSE("mlockall", "RLIMIT_MEMLOCK bounds it; few programs ask"),

	/* ---- processes and threads ---- */
	BY_ARGUMENT("clone", "no CLONE_NEW*: a box makes no namespaces"),
	FALL_BACK("clone3", "flags are in memory that a filter cannot read; libc uses clone"),
	ALLOW("execve"), ALLOW("execveat"), ALLOW("exit"), ALLOW("exit_group"), ALLOW("wait4"),
	ALLOW("waitid"), ALLOW("pidfd_open"), ALLOW("pidfd_send_signal"), ALLOW("getpid"),
	ALLOW("getppid"), ALLOW("gettid"), ALLOW("getpgid"), ALLOW("setpgid"), ALLOW("getsid"),
	ALLOW("setsid"), ALLOW("set_tid_address"), ALLOW("set_robust_list"),
	ALLOW("get_robust_list"), ALLOW("rseq"), ALLOW("futex"), ALLOW("futex_wait"),
	ALLOW("futex_wake"), ALLOW("futex_waitv"), ALLOW("futex_requeue"), ALLOW("prctl"),
	ALLOW("getrusage"), ALLOW("getrlimit"), ALLOW("getpriority"), ALLOW("setpriority"),
	ALLOW_FOR("setrlimit", "hard limits only fall; RLIMIT_CORE stays where cores are piped"),
	ALLOW_FOR("prlimit64", "as setrlimit"),
	BY_ARGUMENT("personality", "0, 8, 0x20000, 0x20008, query: address randomisation stays on"),
	ALLOW("sched_yield"), ALLOW("sched_getaffinity"), ALLOW("sched_setaffinity"),
	ALLOW("sched_getattr"), ALLOW("sched_setattr"), ALLOW("sched_getparam"),
	ALLOW("sched_setparam"), ALLOW("sched_getscheduler"), ALLOW("sched_setscheduler"),
	ALLOW("sched_get_priority_max"), ALLOW("sched_get_priority_min"),
	ALLOW("sched_rr_get_interval"), ALLOW("ioprio_get"), ALLOW("getcpu"),
	LOOSE("ioprio_set", "bounded by the cgroup; few programs ask"),
	LOOSE("ptrace", "gdb and strace; reaches only processes of the same user in the same box"),
	LOOSE("process_vm_readv", "gdb and strace; same check as ptrace"),

	/* ---- signals and time ---- */
	ALLOW("kill"), ALLOW("tkill"), ALLOW("tgkill"), ALLOW("rt_sigaction"),
	ALLOW("rt_sigpending"), ALLOW("rt_sigprocmask"), ALLOW("rt_sigqueueinfo"),
	ALLOW("rt_sigreturn"), ALLOW("rt_sigsuspend"), ALLOW("rt_sigtimedwait"),
	ALLOW("rt_tgsigqueueinfo"), ALLOW("sigaltstack"), ALLOW("restart_syscall"),
	ALLOW("nanosleep"), ALLOW("clock_nanosleep"), ALLOW("clock_gettime"),
	ALLOW("clock_getres"), ALLOW("gettimeofday"), ALLOW("times"), ALLOW("getitimer"),
	ALLOW("setitimer"), ALLOW("timer_create"), ALLOW("timer_delete"),
	ALLOW("timer_getoverrun"), ALLOW("timer_gettime"), ALLOW("timer_settime"),
	ALLOW("timerfd_create"), ALLOW("timerfd_gettime"), ALLOW("timerfd_settime"),

	/* ---- identity and facts: an image's root has ids to change, inside its own range ---- */
	ALLOW("getuid"), ALLOW("geteuid"), ALLOW("getgid"), ALLOW("getegid"), ALLOW("getgroups"),
	ALLOW("getresuid"), ALLOW("getresgid"), ALLOW("setuid"), ALLOW("setgid"),
	ALLOW("setreuid"), ALLOW("setregid"), ALLOW("setresuid"), ALLOW("setresgid"),
	ALLOW("setfsuid"), ALLOW("setfsgid"), ALLOW("setgroups"), ALLOW("capget"),
	ALLOW("capset"), ALLOW("uname"), ALLOW("sysinfo"), ALLOW("getrandom"),

	/* ---- sockets ---- */
	BY_ARGUMENT("socket", "UNIX; INET and INET6 with TCP, UDP, ping; NETLINK ROUTE"),
	BY_ARGUMENT("socketpair", "UNIX; others would fail, but only after loading their module"),
	ALLOW("accept"), ALLOW("accept4"), ALLOW("bind"), ALLOW("connect"), ALLOW("listen"),
	ALLOW("shutdown"), ALLOW("getsockname"), ALLOW("getpeername"), ALLOW("getsockopt"),
	ALLOW("setsockopt"), ALLOW("sendto"), ALLOW("sendmsg"), ALLOW("sendmmsg"),
	ALLOW("recvfrom"), ALLOW("recvmsg"), ALLOW("recvmmsg"),

	/* ---- System V and POSIX ipc: the box has its own namespace for these ---- */
	LOOSE("msgctl", NULL), LOOSE("msgget", NULL), LOOSE("msgrcv", NULL), LOOSE("msgsnd", NULL),
	LOOSE("semctl", NULL), LOOSE("semget", NULL), LOOSE("semop", NULL),
	LOOSE("semtimedop", NULL), LOOSE("shmat", "PostgreSQL"), LOOSE("shmctl", "PostgreSQL"),
	LOOSE("shmdt", "PostgreSQL"), LOOSE("shmget", "PostgreSQL"), LOOSE("mq_getsetattr", NULL),
	LOOSE("mq_notify", NULL), LOOSE("mq_open", NULL), LOOSE("mq_timedreceive", NULL),
	LOOSE("mq_timedsend", NULL), LOOSE("mq_unlink", NULL),

	/* ---- a box may lock itself further ---- */
	LOOSE("seccomp", "filters only ever add up"),
	LOOSE("landlock_create_ruleset", "domains only ever add up"),
	LOOSE("landlock_add_rule", "as landlock_create_ruleset"),
	LOOSE("landlock_restrict_self", "as landlock_create_ruleset"),

	/* ---- x86-64 only: the older forms of calls above ---- */
	ALLOW("open"), ALLOW("creat"), ALLOW("stat"), ALLOW("lstat"), ALLOW("access"),
	ALLOW("mkdir"), ALLOW("rmdir"), ALLOW("unlink"), ALLOW("link"), ALLOW("symlink"),
	ALLOW("readlink"), ALLOW("rename"), ALLOW("chmod"), ALLOW("chown"), ALLOW("lchown"),
	ALLOW("utime"), ALLOW("utimes"), ALLOW("futimesat"), ALLOW("getdents"), ALLOW("dup2"),
	ALLOW("pipe"), ALLOW("poll"), ALLOW("select"), ALLOW("epoll_create"), ALLOW("epoll_wait"),
	ALLOW("eventfd"), ALLOW("signalfd"), ALLOW("inotify_init"), ALLOW("fork"), ALLOW("vfork"),
	ALLOW("getpgrp"), ALLOW("pause"), ALLOW("alarm"), ALLOW("time"),
	ALLOW_FOR("arch_prctl", "thread-local storage"),
	BY_ARGUMENT("mknod", "as mknodat"),

	/* ---- newer forms that programs try first ---- */
	FALL_BACK("setxattrat", "newer form of lsetxattr"),
	FALL_BACK("getxattrat", "newer form of lgetxattr"),
	FALL_BACK("listxattrat", "newer form of llistxattr"),
	FALL_BACK("removexattrat", "newer form of lremovexattr"),
	FALL_BACK("file_getattr", "newer form of an ioctl"),
	FALL_BACK("file_setattr", "newer form of an ioctl"),

	/* ---- rejected. Nothing below makes a rule: a call without one is rejected anyway. The rows
	 * have the reason, and the tests try each of them. ---- */
	REFUSE("io_uring_setup", "does the work of other calls where no filter sees it"),
	REFUSE("io_uring_enter", "as io_uring_setup"),
	REFUSE("io_uring_register", "as io_uring_setup"),
	REFUSE("io_setup", "kernel surface; libraries fall back to threads"),
	REFUSE("io_submit", "as io_setup"), REFUSE("io_cancel", "as io_setup"),
	REFUSE("io_destroy", "as io_setup"), REFUSE("io_getevents", "as io_setup"),
	REFUSE("io_pgetevents", "as io_setup"),

	REFUSE("unshare", "no namespaces within a box: they open most of the kernel to its user"),
	REFUSE("setns", "as unshare"),
	REFUSE("mount", "the tree is final when a box starts"),
	REFUSE("umount2", "would uncover what a mount masks"),
	REFUSE("pivot_root", "as mount"), REFUSE("chroot", "as mount; used for escapes"),
	REFUSE("open_tree", "as mount"), REFUSE("open_tree_attr", "as mount"),
	REFUSE("move_mount", "as mount"), REFUSE("mount_setattr", "as mount"),
	REFUSE("fsopen", "as mount"), REFUSE("fsconfig", "as mount"), REFUSE("fsmount", "as mount"),
	REFUSE("fspick", "as mount"), REFUSE("statmount", "shows the host's mounts"),
	REFUSE("listmount", "as statmount"), REFUSE("listns", "shows the host's namespaces"),
	REFUSE("name_to_handle_at", "handles name files past every mount"),
	REFUSE("open_by_handle_at", "as name_to_handle_at; the 'shocker' escape"),

	REFUSE("keyctl", "keyrings are not namespaced"), REFUSE("add_key", "as keyctl"),
	REFUSE("request_key", "as keyctl"),
	REFUSE("bpf", "kernel surface"), REFUSE("perf_event_open", "kernel surface, side channels"),
	REFUSE("userfaultfd", "stops the kernel in mid-copy: the tool of many exploits"),
	REFUSE("memfd_secret", "memory that the host cannot account for or inspect"),
	REFUSE("vmsplice", "maps foreign pages into pipes"),
	REFUSE("remap_file_pages", "kernel surface that no program uses"),
	REFUSE("modify_ldt", "kernel surface; 16-bit code"),
	REFUSE("cachestat", "shows what other processes have read: a side channel"),

	REFUSE("pidfd_getfd", "takes descriptors out of other processes"),
	REFUSE("process_vm_writev", "writes other processes' memory; gdb uses ptrace"),
	REFUSE("process_madvise", "acts on other processes' memory"),
	REFUSE("process_mrelease", "as process_madvise"),
	REFUSE("kcmp", "compares kernel pointers"),
	REFUSE("mbind", "memory placement is the host's; libnuma falls back"),
	REFUSE("get_mempolicy", "as mbind"), REFUSE("set_mempolicy", "as mbind"),
	REFUSE("set_mempolicy_home_node", "as mbind"), REFUSE("migrate_pages", "as mbind"),
	REFUSE("move_pages", "as mbind"),

	REFUSE("settimeofday", "the clock is the host's"),
	REFUSE("clock_settime", "as settimeofday"), REFUSE("adjtimex", "as settimeofday"),
	REFUSE("clock_adjtime", "as settimeofday"),
	REFUSE("sethostname", "given at start"), REFUSE("setdomainname", "given at start"),
	REFUSE("fanotify_init", "watches whole file systems"),
	REFUSE("fanotify_mark", "as fanotify_init"),
	REFUSE("quotactl", "the host's disks"), REFUSE("quotactl_fd", "as quotactl"),
	REFUSE("swapon", "the host's memory"), REFUSE("swapoff", "as swapon"),
	REFUSE("acct", "the host's log"), REFUSE("syslog", "the kernel's log; leaks addresses"),
	REFUSE("vhangup", "the host's terminals"), REFUSE("reboot", "no"),
	REFUSE("kexec_load", "another kernel"), REFUSE("kexec_file_load", "as kexec_load"),
	REFUSE("init_module", "kernel code"), REFUSE("finit_module", "as init_module"),
	REFUSE("delete_module", "as init_module"),
	REFUSE("lsm_get_self_attr", "labels are the host's"),
	REFUSE("lsm_set_self_attr", "as lsm_get_self_attr"),
	REFUSE("lsm_list_modules", "as lsm_get_self_attr"),
	REFUSE("iopl", "the machine's ports"), REFUSE("ioperm", "as iopl"),
	REFUSE("uselib", "kernel surface that no program uses"), REFUSE("ustat", "as uselib"),
	REFUSE("sysfs", "as uselib"), REFUSE("lookup_dcookie", "as uselib"),
	REFUSE("nfsservctl", "as uselib"),
};
/* clang-format on */
const unsigned seccomp_nrows = ARRAY_LEN(seccomp_rows);

const struct seccomp_row seccomp_gvisor_rows[] = {
	ALLOW_FOR("mount",
		  "runsc builds the roots of its processes, in their own mount namespaces"),
	ALLOW_FOR("umount2", "as mount: they leave the root of the outer box"),
	ALLOW_FOR("pivot_root", "as mount"),
	ALLOW_FOR("chroot", "as mount"),
	ALLOW_FOR("clone", "with namespaces, as many as the limits of the outer box permit"),
	/* In the lists of runsc, and never used: fewer calls for its gofer. */
	REFUSE("accept", "it accepts by accept4"),
	REFUSE("gettimeofday", "it reads clocks without a call, or by clock_gettime"),
#ifdef __x86_64__
	REFUSE("getcpu", "it reads a register for that"),
#endif
};
const unsigned seccomp_n_gvisor_rows = ARRAY_LEN(seccomp_gvisor_rows);

/* From traces of a boot, a restore and programs in the guest, with QEMU 7.2. */
/* clang-format off */
const struct seccomp_row seccomp_microvm_rows[] = {
	/* the dynamic linker, and QEMU until it runs the guest */
	ALLOW("execve"), ALLOW_FOR("execveat", "the launcher executes mux by descriptor"), ALLOW("brk"), ALLOW("arch_prctl"), ALLOW("access"), ALLOW("faccessat"), ALLOW("openat"),
	ALLOW("close"), ALLOW("read"), ALLOW("pread64"), ALLOW("newfstatat"), ALLOW("fstat"), ALLOW("lseek"),
	ALLOW("set_tid_address"), ALLOW("set_robust_list"), ALLOW("rseq"), ALLOW("prlimit64"),
	ALLOW("getrandom"), ALLOW("readlink"), ALLOW("readlinkat"), ALLOW("getdents64"), ALLOW("statfs"), ALLOW("fstatfs"),
	ALLOW("sysinfo"), ALLOW("sched_getaffinity"), ALLOW("fadvise64"), ALLOW("memfd_create"),
	ALLOW("prctl"),
	ALLOW_FOR("seccomp", "QEMU loads a filter of its own; filters only add up"),
	FALL_BACK("clone3", "its flags are in memory, where a filter cannot see them: libc uses clone"),
	BY_ARGUMENT("clone", "threads, and the engine as a child of mux; no namespaces"),
	/* the guest runs */
	ALLOW("futex"), ALLOW("ppoll"), ALLOW("poll"), ALLOW("write"), ALLOW("readv"), ALLOW("preadv"), ALLOW("pwritev"),
	ALLOW("mmap"), ALLOW("munmap"), ALLOW("mprotect"), ALLOW("madvise"), ALLOW("mremap"),
	ALLOW("rt_sigprocmask"), ALLOW("rt_sigaction"), ALLOW("rt_sigreturn"), ALLOW("rt_sigtimedwait"),
	ALLOW_FOR("restart_syscall", "after a stop, a freeze or a look by the checker of proofs"),
	ALLOW("clock_nanosleep"), ALLOW("clock_gettime"), ALLOW("eventfd2"), ALLOW("signalfd4"), ALLOW("gettid"), ALLOW("tgkill"),
	ALLOW("fcntl"), ALLOW("dup3"), ALLOW("sendmsg"), ALLOW("recvmsg"),
	ALLOW("getsockopt"), ALLOW("setsockopt"), ALLOW("getsockname"), ALLOW("getpeername"),
	BY_ARGUMENT("ioctl", "KVM; not TIOCSTI, TIOCLINUX, TIOCCONS"),
	ALLOW("exit"), ALLOW("exit_group"),
	FALL_BACK("io_uring_setup", "QEMU then uses threads"),
	/* mux */
	ALLOW("epoll_create1"), ALLOW("epoll_ctl"), ALLOW("epoll_pwait"), ALLOW("accept4"), ALLOW("recvfrom"), ALLOW("sendto"),
	ALLOW("socketpair"), ALLOW("shutdown"), ALLOW("wait4"), ALLOW("umask"), ALLOW("close_range"), ALLOW("capget"), ALLOW("capset"),
	BY_ARGUMENT("socket", "as in a box: egress"), ALLOW("bind"), ALLOW("listen"), ALLOW("connect"),
};
/* clang-format on */
const unsigned seccomp_n_microvm_rows = ARRAY_LEN(seccomp_microvm_rows);

/* Calls too new for Debian 12's libseccomp. From 424 on a call has the same number everywhere. */
static const struct {
	const char *call;
	int number;
} newer_calls[] = {
	{ "cachestat", 451 },         { "fchmodat2", 452 },        { "map_shadow_stack", 453 },
	{ "futex_wake", 454 },        { "futex_wait", 455 },       { "futex_requeue", 456 },
	{ "statmount", 457 },         { "listmount", 458 },        { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 },        { "getxattrat", 464 },       { "listxattrat", 465 },
	{ "removexattrat", 466 },     { "open_tree_attr", 467 },   { "file_getattr", 468 },
	{ "file_setattr", 469 },      { "listns", 470 },
};

/* What BY_ARGUMENT means. The rules of one call are consecutive, and the first one that matches
 * decides; where none does, the call is rejected. In a rule all conditions must hold. A
 * condition takes one exact value: never "not equal", never a range. It reads the lower half of
 * an argument, because the kernel takes all of these as int and drops the upper one; a 64-bit
 * comparison would miss AF_VSOCK | 1 << 32. Rules that begin with the same conditions are
 * consecutive, too. */
#define LOW32(n) offsetof(struct seccomp_data, args[n])
#define HIGH32(n) (LOW32(n) + 4)
#define ARG(n, value)                                                                              \
	{                                                                                          \
		LOW32(n), 0xffffffff, value                                                        \
	}
#define BITS(n, mask, value)                                                                       \
	{                                                                                          \
		LOW32(n), mask, value                                                              \
	}
#define ALLOW_IF(call, ...)                                                                        \
	{                                                                                          \
		call, { __VA_ARGS__ }, SECCOMP_ALLOWED, 0                                          \
	}
#define REFUSE_IF(call, ...)                                                                       \
	{                                                                                          \
		call, { __VA_ARGS__ }, SECCOMP_REFUSED, 0                                          \
	}
#define ALLOW_ELSE(call) ALLOW_IF(call, { 0 })
#define TYPE(type) BITS(1, ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK), type) /* without its flags */
#define NAMESPACES 0x7e020000                                               /* CLONE_NEW*, all */

/* clang-format off */
static const struct argument_rule {
	const char *call;
	struct {
		uint32_t where, mask, value; /* mask 0: no condition */
	} is[3];
	enum seccomp_verdict then;
	unsigned only_if; /* SECCOMP_ flags; without them the row above applies */
} argument_rules[] = {
	ALLOW_IF("socket", ARG(0, AF_UNIX)),
	ALLOW_IF("socket", ARG(0, AF_INET), TYPE(SOCK_STREAM), ARG(2, 0)),
	ALLOW_IF("socket", ARG(0, AF_INET), TYPE(SOCK_STREAM), ARG(2, IPPROTO_TCP)),
	ALLOW_IF("socket", ARG(0, AF_INET), TYPE(SOCK_DGRAM), ARG(2, 0)),
	ALLOW_IF("socket", ARG(0, AF_INET), TYPE(SOCK_DGRAM), ARG(2, IPPROTO_UDP)),
	ALLOW_IF("socket", ARG(0, AF_INET), TYPE(SOCK_DGRAM), ARG(2, IPPROTO_ICMP)),
	ALLOW_IF("socket", ARG(0, AF_INET6), TYPE(SOCK_STREAM), ARG(2, 0)),
	ALLOW_IF("socket", ARG(0, AF_INET6), TYPE(SOCK_STREAM), ARG(2, IPPROTO_TCP)),
	ALLOW_IF("socket", ARG(0, AF_INET6), TYPE(SOCK_DGRAM), ARG(2, 0)),
	ALLOW_IF("socket", ARG(0, AF_INET6), TYPE(SOCK_DGRAM), ARG(2, IPPROTO_UDP)),
	ALLOW_IF("socket", ARG(0, AF_INET6), TYPE(SOCK_DGRAM), ARG(2, IPPROTO_ICMPV6)),
	ALLOW_IF("socket", ARG(0, AF_NETLINK), ARG(2, NETLINK_ROUTE)),
	{ "socket", { ARG(0, AF_NETLINK), ARG(2, NETLINK_AUDIT) }, SECCOMP_NO_PROTOCOL, 0 }, /* useradd ends at EPERM */
	ALLOW_IF("socketpair", ARG(0, AF_UNIX)),
	ALLOW_IF("clone", BITS(0, NAMESPACES, 0)),
	/* 0 is a regular file, too. The kernel takes the mode as 16 bits. */
	ALLOW_IF("mknodat", BITS(2, S_IFMT, 0)),
	ALLOW_IF("mknodat", BITS(2, S_IFMT, S_IFREG)),
	ALLOW_IF("mknodat", BITS(2, S_IFMT, S_IFIFO)),
	ALLOW_IF("mknodat", BITS(2, S_IFMT, S_IFSOCK)),
	ALLOW_IF("mknod", BITS(1, S_IFMT, 0)),
	ALLOW_IF("mknod", BITS(1, S_IFMT, S_IFREG)),
	ALLOW_IF("mknod", BITS(1, S_IFMT, S_IFIFO)),
	ALLOW_IF("mknod", BITS(1, S_IFMT, S_IFSOCK)),
	ALLOW_IF("personality", ARG(0, PER_LINUX)),
	ALLOW_IF("personality", ARG(0, PER_LINUX32)),
	ALLOW_IF("personality", ARG(0, UNAME26)),
	ALLOW_IF("personality", ARG(0, UNAME26 | PER_LINUX32)),
	ALLOW_IF("personality", ARG(0, 0xffffffff)), /* the query */
	/* The only list of rejected values: devices have more ioctls than can be listed. */
	REFUSE_IF("ioctl", ARG(1, TIOCSTI)),
	REFUSE_IF("ioctl", ARG(1, TIOCLINUX)),
	REFUSE_IF("ioctl", ARG(1, TIOCCONS)),
	ALLOW_ELSE("ioctl"),
	/* A core piped to a program runs that program as the host's root. RLIMIT_CORE 1 prevents
	 * it and 0 does not: so the limit may be read and not changed. prlimit64 only reads if
	 * the new limit's address is NULL, in both its halves. */
#define IF_NO_CORE(call, then, ...) { call, { __VA_ARGS__ }, then, SECCOMP_NO_CORE }
	IF_NO_CORE("setrlimit", SECCOMP_REFUSED, ARG(0, RLIMIT_CORE)),
	IF_NO_CORE("setrlimit", SECCOMP_ALLOWED, { 0 }),
	IF_NO_CORE("prlimit64", SECCOMP_ALLOWED, ARG(1, RLIMIT_CORE), ARG(2, 0),
		   { HIGH32(2), 0xffffffff, 0 }),
	IF_NO_CORE("prlimit64", SECCOMP_REFUSED, ARG(1, RLIMIT_CORE)),
	IF_NO_CORE("prlimit64", SECCOMP_ALLOWED, { 0 }),
},
/* Tier process: the processes of the host are in sight, and with the uid of the keeper only these conditions protect
 * them: each call changes the calling thread or process, which is number 0. RLIMIT_CORE stays as it is. */
process_rules[] = {
	ALLOW_IF("setpriority", ARG(0, PRIO_PROCESS), ARG(1, 0)),
	ALLOW_IF("sched_setaffinity", ARG(0, 0)),
	ALLOW_IF("sched_setattr", ARG(0, 0)),
	ALLOW_IF("sched_setparam", ARG(0, 0)),
	ALLOW_IF("sched_setscheduler", ARG(0, 0)),
	ALLOW_IF("ioprio_set", ARG(0, 1), ARG(1, 0)),
	REFUSE_IF("setrlimit", ARG(0, RLIMIT_CORE)),
	ALLOW_ELSE("setrlimit"),
	ALLOW_IF("prlimit64", ARG(1, RLIMIT_CORE), ARG(2, 0), { HIGH32(2), 0xffffffff, 0 }), /* only reads */
	REFUSE_IF("prlimit64", ARG(1, RLIMIT_CORE)),
	ALLOW_IF("prlimit64", ARG(0, 0)),
};
/* clang-format on */
