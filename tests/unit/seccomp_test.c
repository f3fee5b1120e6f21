/* seccomp_test.c - the filter, tried from inside.
 *
 * Most tests load it in a child and make the calls, with rubbish in the upper half of arguments.
 * A few ask the program itself, by a small interpreter of it: that way all numbers and many
 * arguments can be judged without making a single call. */
#include "jail/seccomp.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "forked.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RUBBISH ((long)(1UL << 32 | 1UL << 63))
#define NEWEST 470 /* listns, the newest call in the table */

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_I386
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_ARM
#endif

static int enter(unsigned flags)
{
	struct seccomp sc;
	struct err e = { 0 };
	int ok = caps_no_new_privs(&e) == 0 && seccomp_compile(&sc, flags, &e) == 0 &&
		 seccomp_apply(&sc, &e) == 0;

	if (!ok)
		printf("# %s\n", e.msg);
	return ok;
}

/* ---- asking the program ---- */

static struct seccomp compiled(unsigned flags)
{
	struct seccomp sc = { 0 };
	struct err e;

	if (seccomp_compile(&sc, flags, &e) < 0)
		printf("# %s\n", e.msg);
	return sc;
}

/* The result of the kernel for this call; ~0 for an instruction that no filter of Atoll has. */
static uint32_t judge(const struct seccomp *sc, const struct seccomp_data *call)
{
	uint32_t acc = 0;

	for (const struct sock_filter *i = sc->code; i < sc->code + sc->len; i++) {
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&acc, (const char *)call + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			i += acc == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			i += acc >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JA:
			i += i->k;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			return ~0u;
		}
	}
	return ~0u;
}

/* Does this number pass with any arguments? All arguments 0 or all 1 satisfy every rule of the
 * table. */
static int passes(const struct seccomp *sc, int nr)
{
	const struct seccomp_data zeroes = { .nr = nr, .arch = NATIVE };
	const struct seccomp_data ones = { nr, NATIVE, 0, { 1, 1, 1, 1, 1, 1 } };
	const struct seccomp_data unix_socket = { nr, NATIVE, 0, { AF_UNIX, SOCK_STREAM, 0 } };

	return judge(sc, &zeroes) == SECCOMP_RET_ALLOW || judge(sc, &ones) == SECCOMP_RET_ALLOW ||
	       judge(sc, &unix_socket) == SECCOMP_RET_ALLOW;
}

TEST(every_row_names_a_system_call_of_a_supported_architecture)
{
	for (unsigned i = 0; i < seccomp_nrows; i++) {
		const char *call = seccomp_rows[i].call;
		int here = seccomp_number(call);

		if (here < 0 && seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, call) < 0)
			printf("# %s\n", call);
		CHECK(here >= 0 || seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, call) >= 0);
		CHECK(here <= NEWEST);
	}
}

TEST(no_call_has_two_rows)
{
	for (unsigned i = 0; i < seccomp_nrows; i++)
		for (unsigned k = 0; k < i; k++)
			CHECK(strcmp(seccomp_rows[i].call, seccomp_rows[k].call) != 0);
}

TEST(every_row_that_is_not_allowed_has_a_reason)
{
	for (unsigned i = 0; i < seccomp_nrows; i++)
		CHECK(seccomp_rows[i].verdict == SECCOMP_ALLOWED || seccomp_rows[i].why);
}

TEST(exactly_the_allowed_system_calls_pass)
{
	struct seccomp sc = compiled(0);
	unsigned passed = 0, rows = 0;

	for (int nr = 0; nr < 2000; nr++)
		passed += (unsigned)passes(&sc, nr);
	for (unsigned i = 0; i < seccomp_nrows; i++) {
		const struct seccomp_row *row = &seccomp_rows[i];
		int nr = seccomp_number(row->call);
		int want = row->verdict == SECCOMP_ALLOWED || row->verdict == SECCOMP_BY_ARGUMENT;

		if (nr < 0)
			continue;
		if (passes(&sc, nr) != want)
			printf("# %s\n", row->call);
		CHECK_INT(passes(&sc, nr), want);
		rows += (unsigned)want;
	}
	CHECK_INT(passed, rows);
	printf("# %u call numbers pass\n", passed);
	seccomp_fini(&sc);
}

TEST(a_strict_filter_allows_a_subset_of_the_calls)
{
	struct seccomp loose = compiled(0), strict = compiled(SECCOMP_STRICT);
	unsigned passed = 0;

	for (int nr = 0; nr < 2000; nr++) {
		CHECK(passes(&loose, nr) >= passes(&strict, nr));
		passed += (unsigned)passes(&strict, nr);
	}
	for (unsigned i = 0; i < seccomp_nrows; i++)
		if (seccomp_rows[i].dropped_if_strict)
			CHECK(!passes(&strict, seccomp_number(seccomp_rows[i].call)));
	printf("# %u call numbers pass\n", passed);
	seccomp_fini(&loose);
	seccomp_fini(&strict);
}

/* Not taken from the table, which could be wrong: calls of escapes, and calls that PID 1 needs. */
TEST(system_calls_of_known_escapes_are_rejected)
{
	static const char *const tools[] = {
		"unshare",
		"setns",
		"mount",
		"umount2",
		"pivot_root",
		"chroot",
		"move_mount",
		"open_tree",
		"fsopen",
		"mount_setattr",
		"bpf",
		"perf_event_open",
		"userfaultfd",
		"io_uring_setup",
		"io_uring_enter",
		"io_uring_register",
		"keyctl",
		"add_key",
		"request_key",
		"open_by_handle_at",
		"name_to_handle_at",
		"pidfd_getfd",
		"process_vm_writev",
		"init_module",
		"finit_module",
		"kexec_load",
		"kexec_file_load",
		"vmsplice",
		"clone3",
		"fanotify_init",
		"syslog",
		"reboot",
		"swapon",
		"acct",
		"settimeofday",
		"clock_settime",
		"quotactl",
		"memfd_secret",
		"kcmp",
		"mbind",
	};
	struct seccomp sc = compiled(0);

	for (unsigned i = 0; i < ARRAY_LEN(tools); i++) {
		CHECK(seccomp_number(tools[i]) >= 0);
		if (passes(&sc, seccomp_number(tools[i])))
			printf("# %s\n", tools[i]);
		CHECK(!passes(&sc, seccomp_number(tools[i])));
	}
	seccomp_fini(&sc);
}

TEST(system_calls_that_init_needs_pass_a_strict_filter)
{
	static const char *const needs[] = {
		"accept4",        "recvmsg",         "sendmsg",      "epoll_create1", "epoll_ctl",
		"epoll_pwait",    "signalfd4",       "memfd_create", "fallocate",     "clone",
		"execve",         "wait4",           "waitid",       "kill",          "setresuid",
		"setresgid",      "setgroups",       "setfsuid",     "setfsgid",      "capset",
		"prctl",          "close_range",     "pipe2",        "setsid",        "dup3",
		"ioctl",          "openat",          "statfs",       "getdents64",    "prlimit64",
		"timerfd_create", "timerfd_settime", "renameat2",    "unlinkat",      "symlinkat",
		"fchmod",         "utimensat",       "socket",       "connect",       "ppoll",
	};
	struct seccomp sc = compiled(SECCOMP_STRICT | SECCOMP_NO_CORE);

	for (unsigned i = 0; i < ARRAY_LEN(needs); i++) {
		if (!passes(&sc, seccomp_number(needs[i])))
			printf("# %s\n", needs[i]);
		CHECK(passes(&sc, seccomp_number(needs[i])));
	}
	seccomp_fini(&sc);
}

TEST(every_other_abi_is_killed_whatever_it_calls)
{
	struct seccomp sc = compiled(0);
	const uint32_t others[] = { OTHER_ARCH, AUDIT_ARCH_RISCV64, 0, ~0u };

	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		for (int nr = -1; nr < 1000; nr++) {
			struct seccomp_data call = { .nr = nr, .arch = others[i] };

			CHECK_INT(judge(&sc, &call), SECCOMP_RET_KILL_PROCESS);
		}
	seccomp_fini(&sc);
}

/* The kernel reads these arguments as int, so the filter must ignore their upper half, too. */
static int upper_halves_matter(const struct seccomp *sc, const struct seccomp_data *call)
{
	const uint64_t uppers[] = { 1ull << 32, 1ull << 63, 0xffffffffull << 32 };
	uint32_t plain = judge(sc, call);

	for (unsigned arg = 0; arg < 3; arg++)
		for (unsigned i = 0; i < ARRAY_LEN(uppers); i++) {
			struct seccomp_data odd = *call;

			odd.args[arg] |= uppers[i];
			if (judge(sc, &odd) != plain)
				return 1;
		}
	return 0;
}

TEST(the_upper_half_of_an_argument_never_changes_a_verdict)
{
	struct seccomp sc = compiled(0);
	const uint64_t values[] = { 0,       1,       2,       3,       6,         8,
				    10,      16,      17,      38,      40,        58,
				    TIOCSTI, 0x541c,  0x541d,  0x1000,  0x2000,    0x6000,
				    0x20000, 0x20008, 0x80801, 1 << 28, 0xffffffff };

	for (int nr = 0; nr <= NEWEST; nr++)
		for (unsigned a = 0; a < ARRAY_LEN(values); a++)
			for (unsigned b = 0; b < ARRAY_LEN(values); b++) {
				struct seccomp_data call = { .nr = nr, .arch = NATIVE };

				call.args[0] = values[a];
				call.args[1] = call.args[2] = values[b];
				CHECK(!upper_halves_matter(&sc, &call));
			}
	seccomp_fini(&sc);
}

/* ---- sockets ---- */

static int socket_is_allowed(int family, int type, int protocol)
{
	switch (family) {
	case AF_UNIX:
		return 1;
	case AF_NETLINK:
		return protocol == NETLINK_ROUTE;
	case AF_INET:
	case AF_INET6:
		if (type == SOCK_STREAM)
			return protocol == 0 || protocol == IPPROTO_TCP;
		return type == SOCK_DGRAM &&
		       (protocol == 0 || protocol == IPPROTO_UDP ||
			protocol == (family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6));
	default:
		return 0;
	}
}

static const int types[] = { 0,        SOCK_STREAM,    SOCK_DGRAM, SOCK_RAW,
			     SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP,  SOCK_PACKET };
static const int protocols[] = { 0,
				 IPPROTO_ICMP,
				 IPPROTO_TCP,
				 9 /* NETLINK_AUDIT */,
				 12 /* NETLINK_NETFILTER */,
				 IPPROTO_UDP,
				 IPPROTO_ICMPV6,
				 115 /* L2TP */,
				 IPPROTO_SCTP,
				 IPPROTO_UDPLITE,
				 IPPROTO_RAW,
				 262 /* MPTCP */ };

/* Is the result of this socket() call the expected one? */
static int socket_as_promised(int family, int type, int protocol, long rubbish)
{
	long fd = syscall(SYS_socket, family | rubbish, type | rubbish, protocol | rubbish);
	int audit = family == AF_NETLINK && protocol == NETLINK_AUDIT;
	int refused = fd < 0 && errno == (audit ? EPROTONOSUPPORT : EPERM);

	if (fd >= 0)
		close((int)fd);
	if (refused == !socket_is_allowed(family, type, protocol))
		return 1;
	printf("# socket(%d, %d, %d) %s\n", family, type, protocol, refused ? "refused" : "passed");
	return 0;
}

TEST_FORKED(sockets_are_filtered_by_family_type_and_protocol)
{
	CHECK(enter(0));
	for (int family = 0; family <= 46; family++)
		for (unsigned t = 0; t < ARRAY_LEN(types); t++)
			for (unsigned p = 0; p < ARRAY_LEN(protocols); p++) {
				CHECK(socket_as_promised(family, types[t], protocols[p], 0));
				CHECK(socket_as_promised(family, types[t], protocols[p], RUBBISH));
			}
}

TEST_FORKED(known_socket_type_flags_are_allowed_and_unknown_ones_rejected)
{
	CHECK(enter(0));
	CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) >= 0);
	CHECK(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0) >= 0);
	CHECK_FAILS(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP), EPERM);
	CHECK_FAILS(socket(AF_INET, SOCK_STREAM | 1 << 20, 0), EPERM);
}

TEST_FORKED(socket_pairs_are_unix_only)
{
	int pair[2];

	CHECK(enter(0));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	for (int family = 0; family <= 46; family++)
		if (family != AF_UNIX)
			CHECK_FAILS(socketpair(family, SOCK_STREAM, 0, pair), EPERM);
}

/* ---- processes ---- */

static int exit_7(void)
{
	return 7;
}

TEST_FORKED(clone_may_create_processes_but_no_namespaces)
{
	const long flags[] = { CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
			       CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP };

	CHECK(enter(0));
	for (unsigned i = 0; i < ARRAY_LEN(flags); i++) {
		CHECK_FAILS(syscall(SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0), EPERM);
		CHECK_FAILS(syscall(SYS_clone, flags[i] | SIGCHLD | RUBBISH, 0, 0, 0, 0), EPERM);
	}
	CHECK_INT(WEXITSTATUS(forked_status(exit_7)), 7);
}

static void *say_yes(void *arg)
{
	return arg;
}

TEST_FORKED(libc_falls_back_from_clone3_and_threads_work)
{
	char args[88] = { 0 };
	pthread_t thread;
	void *got = NULL;

	CHECK(enter(0));
	CHECK_FAILS(syscall(SYS_clone3, args, sizeof(args)), ENOSYS);
	CHECK_INT(pthread_create(&thread, NULL, say_yes, args), 0);
	CHECK_INT(pthread_join(thread, &got), 0);
	CHECK(got == args);
}

TEST_FORKED(unknown_system_calls_return_enosys)
{
	CHECK(enter(0));
	CHECK_FAILS(syscall(NEWEST + 1), ENOSYS);
	CHECK_FAILS(syscall(1000), ENOSYS);
	CHECK_FAILS(syscall(9999), ENOSYS);
	CHECK_FAILS(syscall(0x3fffffff), ENOSYS);
}

/* Without capabilities, so that a call that is not blocked fails in another way. */
TEST_FORKED(every_refused_row_is_refused)
{
	struct err e;

	CHECK(caps_only(0, &e) == 0);
	CHECK(enter(0));
	for (unsigned i = 0; i < seccomp_nrows; i++) {
		int nr = seccomp_number(seccomp_rows[i].call);

		if (nr < 0 || seccomp_rows[i].verdict != SECCOMP_REFUSED)
			continue;
		errno = 0;
		if (syscall(nr, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
			printf("# %s: %s\n", seccomp_rows[i].call, strerror(errno));
		CHECK(errno == EPERM);
	}
}

TEST_FORKED(newer_system_calls_return_enosys_so_that_libc_falls_back)
{
	CHECK(enter(0));
	for (unsigned i = 0; i < seccomp_nrows; i++)
		if (seccomp_rows[i].verdict == SECCOMP_ENOSYS)
			CHECK_FAILS(syscall(seccomp_number(seccomp_rows[i].call), 0, 0, 0, 0, 0, 0),
				    ENOSYS);
}

TEST_FORKED(sync_returns_success_without_effect)
{
	CHECK(enter(0));
	CHECK_INT(syscall(SYS_sync), 0);
	CHECK_INT(syscall(SYS_syncfs, -1), 0); /* a real one would return EBADF */
	CHECK_FAILS(fsync(-1), EBADF);
}

TEST_FORKED(injecting_input_into_a_terminal_is_denied)
{
	const long typing[] = { TIOCSTI, TIOCLINUX, TIOCCONS };
	int fds[2], bytes = -1;

	CHECK(pipe(fds) == 0);
	CHECK(enter(0));
	for (unsigned i = 0; i < ARRAY_LEN(typing); i++) {
		CHECK_FAILS(syscall(SYS_ioctl, fds[0], typing[i], 0), EPERM);
		CHECK_FAILS(syscall(SYS_ioctl, fds[0], typing[i] | RUBBISH, 0), EPERM);
	}
	CHECK_INT(ioctl(fds[0], FIONREAD, &bytes), 0);
	CHECK_INT(bytes, 0);
	CHECK_FAILS(ioctl(fds[0], TIOCGWINSZ, &bytes), ENOTTY);
}

static long make_node(const char *name, long mode)
{
	unlink(name);
	return syscall(SYS_mknodat, AT_FDCWD, name, mode, 0x103);
}

TEST_FORKED(mknod_may_create_fifos_files_and_sockets_only)
{
	char dir[] = "/tmp/seccomp-test.XXXXXX";

	CHECK(mkdtemp(dir) && chdir(dir) == 0);
	CHECK(enter(0));
	CHECK_FAILS(make_node("n", S_IFCHR | 0600), EPERM);
	CHECK_FAILS(make_node("n", S_IFBLK | 0600), EPERM);
	CHECK_FAILS(make_node("n", S_IFCHR | 0600 | RUBBISH), EPERM);
	CHECK_FAILS(make_node("n", S_IFCHR | 0600 | 1 << 16), EPERM); /* the kernel takes 16 bits */
	CHECK_INT(make_node("n", S_IFIFO | 0600), 0);
	CHECK_INT(make_node("n", S_IFSOCK | 0600), 0);
	CHECK_INT(make_node("n", S_IFREG | 0600), 0);
	CHECK_INT(make_node("n", 0600), 0);
	CHECK(unlink("n") == 0 && rmdir(dir) == 0);
}

TEST_FORKED(personality_accepts_five_values)
{
	const long good[] = { 0, 8, 0x20000, 0x20008, 0xffffffff, 0 };
	const long bad[] = { 0x0040000, 0x0400000, 0x0100000, 0x0000001, 0x40008 };

	CHECK(enter(0));
	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		errno = 0;
		syscall(SYS_personality, good[i]);
		CHECK(errno != EPERM);
	}
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_FAILS(syscall(SYS_personality, bad[i]), EPERM);
		CHECK_FAILS(syscall(SYS_personality, bad[i] | RUBBISH), EPERM);
	}
}

TEST_FORKED(the_core_limit_may_be_read_but_not_set_where_cores_are_piped)
{
	struct rlimit core, files;

	CHECK(getrlimit(RLIMIT_CORE, &core) == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(enter(SECCOMP_NO_CORE));
	CHECK_FAILS(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &core, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_prlimit64, 0, RLIMIT_CORE | RUBBISH, &core, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_prlimit64, 0, RLIMIT_CORE, 1L << 40, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_setrlimit, RLIMIT_CORE, &core), EPERM);
	CHECK_FAILS(syscall(SYS_setrlimit, RLIMIT_CORE | RUBBISH, &core), EPERM);
	CHECK_INT(syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &core), 0);
	CHECK_INT(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &files, NULL), 0);
	CHECK_INT(syscall(SYS_setrlimit, RLIMIT_NOFILE, &files), 0);
}

TEST_FORKED(the_core_limit_may_be_set_elsewhere)
{
	struct rlimit core = { 0, 0 };

	CHECK(enter(0));
	CHECK_INT(setrlimit(RLIMIT_CORE, &core), 0);
}

/* ---- every number, many arguments: the program against the promise ---- */

/* The rules for arguments that the reasons of the rows describe, in C. */
static int arguments_suit(const char *call, const struct seccomp_data *d, unsigned flags)
{
	const uint32_t a[] = { (uint32_t)d->args[0], (uint32_t)d->args[1], (uint32_t)d->args[2] };

	if (!strcmp(call, "socket"))
		return socket_is_allowed((int)a[0], (int)a[1] & ~(SOCK_CLOEXEC | SOCK_NONBLOCK),
					 (int)a[2]);
	if (!strcmp(call, "socketpair"))
		return a[0] == AF_UNIX;
	if (!strcmp(call, "clone"))
		return !(a[0] & (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
				 CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP));
	if (!strcmp(call, "ioctl"))
		return a[1] != TIOCSTI && a[1] != TIOCLINUX && a[1] != TIOCCONS;
	if (!strcmp(call, "mknodat"))
		return !(a[2] & S_IFMT) || S_ISREG(a[2]) || S_ISFIFO(a[2]) || S_ISSOCK(a[2]);
	if (!strcmp(call, "mknod"))
		return !(a[1] & S_IFMT) || S_ISREG(a[1]) || S_ISFIFO(a[1]) || S_ISSOCK(a[1]);
	if (!strcmp(call, "personality"))
		return a[0] == 0 || a[0] == 8 || a[0] == 0x20000 || a[0] == 0x20008 || a[0] == ~0u;
	if (!strcmp(call, "setrlimit"))
		return !(flags & SECCOMP_NO_CORE) || a[0] != RLIMIT_CORE;
	if (!strcmp(call, "prlimit64")) /* only the pointer to the new limit has 64 bits */
		return !(flags & SECCOMP_NO_CORE) || a[1] != RLIMIT_CORE || !d->args[2];
	return 1;
}

static uint32_t promised(const struct seccomp_row *row, const struct seccomp_data *d,
			 unsigned flags)
{
#ifdef __x86_64__
	if ((uint32_t)d->nr >= 0x40000000 && d->nr != -1)
		return SECCOMP_RET_KILL_PROCESS;
#endif
	if (d->nr < 0 || d->nr > NEWEST || (row && row->verdict == SECCOMP_ENOSYS))
		return SECCOMP_RET_ERRNO | ENOSYS;
	if (!row || row->verdict == SECCOMP_REFUSED ||
	    (row->dropped_if_strict && flags & SECCOMP_STRICT))
		return SECCOMP_RET_ERRNO | EPERM;
	if (row->verdict == SECCOMP_NOOP)
		return SECCOMP_RET_ERRNO | 0;
	return arguments_suit(row->call, d, flags) ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM;
}

static const uint64_t samples[] = {
	/* clang-format off */
	0, 1, 2, 3, 4, 5, 6, 8, 10, 16, 17, 38, 40, 58, /* families, types, protocols, limits */
	TIOCSTI - 1, TIOCSTI, TIOCLINUX, TIOCCONS,
	0x10000, 0x20000, 0x20008, 0x40000, 0x10000000, 0x40000000, 0xffffffff, 0x7e020000,
	S_IFIFO, S_IFCHR, S_IFBLK | 0600, S_IFREG, S_IFLNK, S_IFSOCK | 1 << 16,
	SOCK_STREAM | SOCK_CLOEXEC, SOCK_DGRAM | SOCK_NONBLOCK, SOCK_STREAM | 1 << 20,
	1ull << 32, 1ull << 63 | 1, 40ull | 1ull << 32,
	/* clang-format on */
};

static const struct seccomp_row *row_of(int nr)
{
	for (unsigned i = 0; i < seccomp_nrows; i++)
		if (nr >= 0 && seccomp_number(seccomp_rows[i].call) == nr)
			return &seccomp_rows[i];
	return NULL;
}

/* All triples of samples where arguments count, all pairs elsewhere. */
static int number_as_promised(const struct seccomp *sc, int nr, unsigned flags)
{
	const struct seccomp_row *row = row_of(nr);
	int by_argument =
		row && (row->verdict == SECCOMP_BY_ARGUMENT || strstr(row->call, "rlimit"));
	unsigned n = ARRAY_LEN(samples);

	for (unsigned i = 0; i < n * n * (by_argument ? n : 1); i++) {
		uint64_t x = samples[i % n], y = samples[i / n % n], z = samples[i / n / n];
		struct seccomp_data d = { nr, NATIVE, 0, { x, y, z, y, x, z } };

		if (judge(sc, &d) == promised(row, &d, flags))
			continue;
		printf("# %d (%s) of %#llx, %#llx, %#llx, flags %u: %#x, not %#x\n", nr,
		       row ? row->call : "no row", (unsigned long long)x, (unsigned long long)y,
		       (unsigned long long)z, flags, judge(sc, &d), promised(row, &d, flags));
		return 0;
	}
	return 1;
}

TEST(the_bpf_program_matches_the_table_for_every_number)
{
	const unsigned odd[] = { 9999,       0x3fffffff, 0x40000000, 0x40000027, 0x7fffffff,
				 0x80000000, 0xbfffffff, 0xfffffffe, 0xffffffff };

	for (unsigned flags = 0; flags <= (SECCOMP_STRICT | SECCOMP_NO_CORE); flags++) {
		struct seccomp sc = compiled(flags);

		for (int nr = 0; nr < 1024; nr++)
			CHECK(number_as_promised(&sc, nr, flags));
		for (unsigned i = 0; i < ARRAY_LEN(odd); i++)
			CHECK(number_as_promised(&sc, (int)odd[i], flags));
		seccomp_fini(&sc);
	}
}

/* Loading costs a fifth of a microsecond for each. */
TEST(the_bpf_program_has_fewer_than_200_instructions)
{
	for (unsigned flags = 0; flags <= (SECCOMP_STRICT | SECCOMP_NO_CORE); flags++) {
		struct seccomp sc = compiled(flags);

		CHECK(sc.len > 0 && sc.len < 200);
		seccomp_fini(&sc);
	}
}

/* ---- other ABIs, for real ---- */

#if defined(__x86_64__)
static int getpid_as_i386(void)
{
	long result = 20; /* its getpid */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
	return result == getpid() ? 42 : 1;
}

static int getpid_as_i386_filtered(void)
{
	return enter(0) ? getpid_as_i386() : 1;
}

static int getpid_as_x32_filtered(void)
{
	return enter(0) ? (int)syscall(0x40000000 | SYS_getpid) : 1;
}

TEST(an_x32_call_kills_the_process)
{
	int status = forked_status(getpid_as_x32_filtered);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static int skip_a_call_filtered(void)
{
	return enter(0) && syscall(-1) == -1 && errno == ENOSYS ? 42 : 1;
}

TEST(a_system_call_skipped_by_a_tracer_does_not_kill)
{
	CHECK_INT(WEXITSTATUS(forked_status(skip_a_call_filtered)), 42);
}
#define foreign getpid_as_i386
#define foreign_filtered getpid_as_i386_filtered
#else
/* The smallest A32 program: mov r7, #1; mov r0, #42; svc #0, that is exit(42). */
static const struct {
	/* clang-format off */
	unsigned char ident[16];
	uint16_t type, machine;
	uint32_t version, entry, phoff, shoff, flags;
	uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
	uint32_t p_type, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_flags, p_align;
	uint32_t code[3];
} arm_program = {
	.ident = { 0x7f, 'E', 'L', 'F', 1, 1, 1 },
	.type = 2, .machine = 40, .version = 1, .entry = 0x10054, .phoff = 52,
	.flags = 0x05000000, .ehsize = 52, .phentsize = 32, .phnum = 1,
	.p_type = 1, .p_vaddr = 0x10000, .p_paddr = 0x10000, .p_filesz = 96, .p_memsz = 96,
	.p_flags = 5, .p_align = 0x1000,
	.code = { 0xe3a07001, 0xe3a0002a, 0xef000000 },
	/* clang-format on */
};
static_assert(sizeof(arm_program) == 96 && offsetof(__typeof__(arm_program), code) == 0x54,
	      "entry and sizes in the header are those of the layout");

static int run_arm_program(int filtered)
{
	char *const argv[] = { (char *)"arm", NULL }, *const env[] = { NULL };
	int fd = memfd_create("arm", MFD_CLOEXEC);

	if (fd < 0 || write(fd, &arm_program, sizeof(arm_program)) != sizeof(arm_program))
		return 1;
	if (filtered && !enter(0))
		return 1;
	fexecve(fd, argv, env);
	return 1;
}

static int foreign(void)
{
	return run_arm_program(0);
}

static int foreign_filtered(void)
{
	return run_arm_program(1);
}
#endif

TEST(a_32_bit_call_kills_the_process)
{
	int status = forked_status(foreign);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
		SKIP("this machine runs no 32-bit programs");
	status = forked_status(foreign_filtered);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSYS);
}

/* ---- what people run ---- */

static void runs(const char *program, const char *script)
{
	char probe[80];
	int status;
	pid_t pid;

	snprintf(probe, sizeof(probe), "command -v %s >/dev/null 2>&1", program);
	if (system(probe) != 0)
		SKIP("not installed");
	pid = fork();
	if (pid == 0) {
		if (enter(0))
			execl("/bin/sh", "sh", "-ec", script, NULL);
		_exit(126);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

#define IN_TEMP "d=$(mktemp -d); trap 'rm -rf $d' EXIT; cd $d; "

TEST(python_runs_with_threads_processes_and_sockets)
{
	runs("python3", "python3 -c '\n"
			"import asyncio, multiprocessing, socket, sqlite3, subprocess, threading\n"
			"t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
			"with multiprocessing.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]\n"
			"assert subprocess.check_output([\"echo\", \"hi\"]) == b\"hi\\n\"\n"
			"sqlite3.connect(\":memory:\").execute(\"select 1\")\n"
			"s = socket.create_server((\"127.0.0.1\", 0)); s.close()\n"
			"asyncio.run(asyncio.create_subprocess_exec(\"true\"))'");
}

TEST(node_runs_with_workers_and_children)
{
	runs("node", "node -e '\n"
		     "const { Worker } = require(\"worker_threads\");\n"
		     "require(\"child_process\").execSync(\"true\");\n"
		     "new Worker(\"\", { eval: true }).on(\"exit\", (c) => process.exit(c));'");
}

TEST(gcc_compiles_a_program_that_runs)
{
	runs("gcc", IN_TEMP "echo 'int main(void){return 0;}' >a.c; gcc -O1 a.c -o a; ./a");
}

TEST(git_commits)
{
	runs("git", IN_TEMP "export HOME=$d; git init -q .; echo 1 >f; git add f; "
			    "git -c user.name=a -c user.email=a@b commit -qm one; "
			    "git log -1 >/dev/null");
}

TEST(bash_runs_jobs_pipes_and_fifos)
{
	runs("bash", IN_TEMP "bash -c 'set -e; mkfifo p; echo hi >p & read x <p; test $x = hi; "
			     "wait; test $(seq 9 | sort -r | head -1) = 9; diff <(echo) <(echo)'");
}

TEST(gdb_traces_a_program)
{
	runs("gdb", "gdb -q -nx -batch -ex run /bin/true >/dev/null 2>&1");
}

TEST(strace_traces_a_program)
{
	runs("strace", "strace -f -o /dev/null sh -c true");
}

/* ---- figures ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

TEST(loading_the_filter_is_one_system_call)
{
	uint64_t *took =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct seccomp sc = { 0 };
	struct err e;
	uint64_t begin = now_ns();
	enum { RUNS = 31 };

	CHECK(seccomp_compile(&sc, 0, &e) == 0);
	printf("# compiled in %llu us, %u instructions\n",
	       (unsigned long long)(now_ns() - begin) / 1000, sc.len);
	for (int i = 0; i < RUNS; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			if (caps_no_new_privs(&e) < 0)
				_exit(1);
			begin = now_ns();
			if (seccomp_apply(&sc, &e) < 0)
				_exit(1);
			took[i] = now_ns() - begin;
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	qsort(took, RUNS, sizeof(*took), by_size);
	printf("# loaded in %llu us (median of %d)\n", (unsigned long long)took[RUNS / 2] / 1000,
	       RUNS);
	seccomp_fini(&sc);
	seccomp_fini(&sc); /* twice is fine */
}

/* ---- the outer box of gVisor ---- */

static const struct seccomp_row *gvisor_row(int nr)
{
	for (unsigned i = 0; i < seccomp_n_gvisor_rows; i++)
		if (seccomp_number(seccomp_gvisor_rows[i].call) == nr)
			return &seccomp_gvisor_rows[i];
	return NULL;
}

TEST(the_outer_box_of_gvisor_differs_from_others_in_the_calls_of_its_list_only)
{
	struct seccomp box = compiled(0), outer = compiled(SECCOMP_GVISOR);

	for (int nr = 0; nr <= NEWEST + 40; nr++) {
		const struct seccomp_row *row = gvisor_row(nr);

		if (!row)
			CHECK_INT(passes(&outer, nr), passes(&box, nr));
		else
			CHECK_INT(!!passes(&outer, nr), row->verdict == SECCOMP_ALLOWED);
	}
	seccomp_fini(&box);
	seccomp_fini(&outer);
}

TEST(only_the_outer_box_of_gvisor_clones_namespaces)
{
	const struct seccomp_data call = {
		seccomp_number("clone"), NATIVE, 0, { CLONE_NEWUSER | CLONE_NEWNS }
	};
	struct seccomp box = compiled(0), outer = compiled(SECCOMP_GVISOR);

	CHECK_INT(judge(&box, &call), SECCOMP_RET_ERRNO | EPERM);
	CHECK_INT(judge(&outer, &call), SECCOMP_RET_ALLOW);
	seccomp_fini(&box);
	seccomp_fini(&outer);
}

TEST(every_call_of_the_list_of_gvisor_exists_here_and_has_a_reason)
{
	for (unsigned i = 0; i < seccomp_n_gvisor_rows; i++) {
		CHECK(seccomp_number(seccomp_gvisor_rows[i].call) >= 0);
		CHECK(seccomp_gvisor_rows[i].why);
	}
}

/* ---- the outer box of a virtual machine ---- */

TEST(the_outer_box_of_a_guest_has_only_the_calls_of_its_list)
{
	struct seccomp outer = compiled(SECCOMP_MICROVM);
	unsigned passed = 0;

	for (int nr = 0; nr <= NEWEST + 40; nr++)
		passed += passes(&outer, nr) ? 1 : 0;
	printf("# %u call numbers pass\n", passed);
	for (unsigned i = 0; i < seccomp_n_microvm_rows; i++) {
		int nr = seccomp_number(seccomp_microvm_rows[i].call);

		if (nr >= 0 && seccomp_microvm_rows[i].verdict == SECCOMP_ALLOWED)
			CHECK(passes(&outer, nr));
	}
	CHECK(!passes(&outer, seccomp_number("mount")));
	CHECK(!passes(&outer, seccomp_number("ptrace")));
	CHECK(!passes(&outer, seccomp_number("unlinkat")));
	CHECK(!passes(&outer, seccomp_number("bpf")));
	seccomp_fini(&outer);
}
