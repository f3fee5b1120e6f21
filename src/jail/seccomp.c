/* seccomp.c - see seccomp.h. The list of calls is in syscalls.h; this file makes it a program.
 *
 * The program has two parts, run in this order for every system call of a box:
 *
 *   the gate, written here       what libseccomp cannot say: other ABIs die, numbers beyond our
 *                                knowledge do not exist, a few argument values are refused
 *   the tree, by libseccomp      the allowlist, as a binary search over call numbers; what is
 *                                not in it gets EPERM
 *
 * Both are position-independent, so the whole is a concatenation. The tree matters for the cost of
 * loading: the kernel runs a new filter once for every call number, to remember those that pass
 * whatever their arguments, and short paths make that three times cheaper than a linear list.
 *
 * Compiling takes a millisecond or two and allocates; it happens once, in the keeper. Applying is
 * one system call on memory that is never written again. */
#include "jail/seccomp.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h> /* libseccomp's */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/syscalls.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "name this machine's AUDIT_ARCH, and read its system call table for other ABIs first"
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "LOW32 is the first half of an argument");

int seccomp_number(const char *call)
{
	int nr;

	for (size_t i = 0; i < ARRAY_LEN(newer_calls); i++)
		if (!strcmp(newer_calls[i].call, call))
			return newer_calls[i].number;
	nr = seccomp_syscall_resolve_name(call);
	return nr < 0 ? -1 : nr; /* below -1: known, but not on this architecture */
}

static unsigned newest_number(void)
{
	int newest = 0, nr;

	for (unsigned i = 0; i < seccomp_nrows; i++)
		if ((nr = seccomp_number(seccomp_rows[i].call)) > newest)
			newest = nr;
	return (unsigned)newest;
}

/* ---- the gate ---- */

#define LOAD(where) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where)
#define NR offsetof(struct seccomp_data, nr)
#define ARCH offsetof(struct seccomp_data, arch)
#define LOW32(n) offsetof(struct seccomp_data, args[n])
#define HIGH32(n) (LOW32(n) + 4)
/* How many instructions to skip if it holds, and if not. */
#define IF_EQ(value, holds, not) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, holds, not)
#define IF_GE(value, holds, not) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, holds, not)
#define IF_GT(value, holds, not) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, holds, not)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	unsigned len;
};

static void append(struct program *p, const struct sock_filter *code, unsigned len)
{
	assert(p->len + len <= BPF_MAXINSNS);
	memcpy(p->code + p->len, code, len * sizeof(*code));
	p->len += len;
}

/* In each piece a test that does not concern us falls through its end, to the next piece. */
static void append_gate(struct program *p, unsigned flags)
{
	const struct sock_filter abi[] = {
		/* Another ABI has another table: i386's socketcall has the number of our getuid. */
		LOAD(ARCH),
		IF_EQ(NATIVE, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(NR),
#ifdef __x86_64__
		/* x32 hides behind the same arch, with bit 30 set. -1 is not a call: a tracer
		 * writes it to have one skipped, and it falls into ENOSYS below. */
		IF_GE(0x40000000, 0, 2),
		IF_EQ(0xffffffff, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
#endif
		/* To a libc EPERM from a new call is an answer, ENOSYS a reason to fall back. */
		IF_GT(newest_number(), 0, 1),
		FAIL(ENOSYS),
	};
	/* All ioctls but three, where the tree can only list what is allowed. */
	const struct sock_filter terminals[] = {
		LOAD(NR),
		IF_EQ(SYS_ioctl, 0, 5),
		LOAD(LOW32(1)),
		IF_EQ(TIOCSTI, 2, 0),
		IF_EQ(TIOCLINUX, 1, 0),
		IF_EQ(TIOCCONS, 0, 1),
		FAIL(EPERM),
	};
	/* A core piped to a program runs that program as the host's root. RLIMIT_CORE 1 prevents
	 * it and 0, strangely, does not: so the limit may be read and not changed. */
	const struct sock_filter set_core[] = {
		LOAD(NR),
		IF_EQ(SYS_setrlimit, 0, 3),
		LOAD(LOW32(0)),
		IF_EQ(RLIMIT_CORE, 0, 1),
		FAIL(EPERM),
	};
	const struct sock_filter set_core_of_pid[] = {
		LOAD(NR),
		IF_EQ(SYS_prlimit64, 0, 7),
		LOAD(LOW32(1)),
		IF_EQ(RLIMIT_CORE, 0, 5),
		LOAD(LOW32(2)), /* the new limit's address: NULL only reads the old one */
		IF_EQ(0, 0, 2),
		LOAD(HIGH32(2)),
		IF_EQ(0, 1, 0),
		FAIL(EPERM),
	};

	append(p, abi, ARRAY_LEN(abi));
	append(p, terminals, ARRAY_LEN(terminals));
	if (flags & SECCOMP_NO_CORE) {
		append(p, set_core, ARRAY_LEN(set_core));
		append(p, set_core_of_pid, ARRAY_LEN(set_core_of_pid));
	}
}

/* ---- the tree ---- */

static void release(scmp_filter_ctx *ctx)
{
	seccomp_release(*ctx);
}

static int scmp_err(struct err *e, int rc, const char *what)
{
	errno = -rc;
	return err_sys(e, "libseccomp: %s", what);
}

static int add_row(scmp_filter_ctx ctx, const struct seccomp_row *row, unsigned flags,
		   struct err *e)
{
	static const uint32_t actions[] = {
		[SECCOMP_ALLOWED] = SCMP_ACT_ALLOW,
		[SECCOMP_NOOP] = SCMP_ACT_ERRNO(0),
		[SECCOMP_ENOSYS] = SCMP_ACT_ERRNO(ENOSYS),
	};
	int rc, nr = seccomp_number(row->call);

	if (nr < 0 || row->verdict == SECCOMP_REFUSED || row->verdict == SECCOMP_BY_ARGUMENT)
		return 0;
	if (row->dropped_if_strict && flags & SECCOMP_STRICT)
		return 0;
	rc = seccomp_rule_add(ctx, actions[row->verdict], nr, 0);
	return rc < 0 ? scmp_err(e, rc, row->call) : 0;
}

static int add_argument_rule(scmp_filter_ctx ctx, const struct argument_rule *rule, struct err *e)
{
	struct scmp_arg_cmp cmp[ARRAY_LEN(rule->is)];
	int rc, nr = seccomp_number(rule->call);
	unsigned n = 0;

	if (nr < 0)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(rule->is); i++)
		if (rule->is[i].mask)
			cmp[n++] = SCMP_CMP(rule->is[i].arg, SCMP_CMP_MASKED_EQ, rule->is[i].mask,
					    rule->is[i].value);
	rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, n, cmp);
	return rc < 0 ? scmp_err(e, rc, rule->call) : 0;
}

static int append_export(struct program *p, scmp_filter_ctx ctx, struct err *e)
{
	auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	size_t room = (BPF_MAXINSNS - p->len) * sizeof(*p->code);
	ssize_t got;
	int rc;

	if (fd < 0)
		return err_sys(e, "memfd for the filter");
	rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return scmp_err(e, rc, "export");
	got = pread(fd, p->code + p->len, room, 0);
	if (got < 0)
		return err_sys(e, "read the filter back");
	if ((size_t)got == room) /* then there may be more of it */
		return err_set(e, ERR_LIMIT, "the kernel takes %d instructions", BPF_MAXINSNS);
	p->len += (unsigned)((size_t)got / sizeof(*p->code));
	return 0;
}

static int append_tree(struct program *p, unsigned flags, struct err *e)
{
	__attribute__((cleanup(release))) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc;

	if (!ctx)
		return err_set(e, ERR_SYS, "libseccomp: no filter to begin with");
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc < 0)
		return scmp_err(e, rc, "action for other ABIs");
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc < 0)
		return scmp_err(e, rc, "binary tree");
	for (unsigned i = 0; i < seccomp_nrows; i++)
		if (add_row(ctx, &seccomp_rows[i], flags, e) < 0)
			return -1;
	for (unsigned i = 0; i < ARRAY_LEN(argument_rules); i++)
		if (add_argument_rule(ctx, &argument_rules[i], e) < 0)
			return -1;
	return append_export(p, ctx, e);
}

/* ---- both ---- */

int seccomp_compile(struct seccomp *sc, unsigned flags, struct err *e)
{
	struct program p = { .len = 0 };

	append_gate(&p, flags);
	if (append_tree(&p, flags, e) < 0)
		return -1;
	sc->code = malloc(p.len * sizeof(*sc->code));
	if (!sc->code)
		abort();
	memcpy(sc->code, p.code, p.len * sizeof(*sc->code));
	sc->len = (unsigned short)p.len;
	return 0;
}

void seccomp_fini(struct seccomp *sc)
{
	if (!sc)
		return;
	free(sc->code);
	*sc = (struct seccomp){ 0 };
}

int seccomp_apply(const struct seccomp *sc, struct err *e)
{
	const struct sock_fprog prog = { .len = sc->len, .filter = sc->code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_sys(e, "load a filter of %u instructions", sc->len);
	return 0;
}
