/* filter_eval_test.c - which calls a filter can let through: hand-made filters, the filter of boxes, and random ones
 * beside an interpreter that tries arguments. */
#include "base/cleanup.h"
#include "jail/seccomp.h"
#include "prove/filter_eval.h"
#include "prove/thread_filters.h"
#include "tap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define JUMP(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, k, yes, no)

/* ---- an interpreter of one call ---- */

static uint32_t alu(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a;
	}
}

static int branch(uint16_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ   ? a == b
	       : op == BPF_JGT ? a > b
	       : op == BPF_JGE ? a >= b
			       : (a & b) != 0;
}

static int lets_pass(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG ||
	       action == SECCOMP_RET_TRACE || action == SECCOMP_RET_USER_NOTIF;
}

static int interpret(const struct sock_filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0, x = 0, m[BPF_MEMWORDS] = { 0 };

	for (;; f++) {
		uint32_t operand = BPF_SRC(f->code) == BPF_X ? x : f->k;
		uint32_t word = 0;

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
		case BPF_LDX:
			if (BPF_MODE(f->code) == BPF_ABS)
				memcpy(&word, (const char *)d + f->k, 4);
			else if (BPF_MODE(f->code) == BPF_MEM)
				word = m[f->k];
			else
				word = BPF_MODE(f->code) == BPF_IMM ? f->k : sizeof(*d);
			*(BPF_CLASS(f->code) == BPF_LD ? &a : &x) = word;
			break;
		case BPF_ST:
			m[f->k] = a;
			break;
		case BPF_STX:
			m[f->k] = x;
			break;
		case BPF_ALU:
			a = alu(BPF_OP(f->code), a, operand);
			break;
		case BPF_JMP:
			if (BPF_OP(f->code) == BPF_JA)
				f += f->k;
			else
				f += branch(BPF_OP(f->code), a, operand) ? f->jt : f->jf;
			break;
		case BPF_RET:
			return lets_pass(BPF_RVAL(f->code) == BPF_A ? a : f->k);
		default:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				x = a;
			else
				a = x;
		}
	}
}

static uint64_t seed = 88172645463325252u;
static uint32_t random_number(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % below;
}

/* A value that a filter may test for: one of its constants, one beside it, or an extreme. */
static uint32_t likely_value(const struct sock_filter *f, unsigned len)
{
	switch (random_number(6)) {
	case 0:
		return 0;
	case 1:
		return ~0u;
	default:
		return f[random_number(len)].k + random_number(3) - 1;
	}
}

/* 1: with some of the tried arguments the call passes. */
static int brute_force(const struct sock_filter *f, unsigned len, uint32_t arch, uint32_t nr,
		       unsigned tries)
{
	while (tries--) {
		struct seccomp_data d = { .nr = (int)nr, .arch = arch };

		for (unsigned i = 0; i < 6; i++)
			d.args[i] = (uint64_t)likely_value(f, len) << 32 | likely_value(f, len);
		if (interpret(f, &d))
			return 1;
	}
	return 0;
}

/* ---- hand-made filters ---- */

#define EVAL(f, nr) filter_eval(f, ARRAY_LEN(f), filter_native_arch, nr)

TEST(a_number_passes_by_its_own_branch_only)
{
	const struct sock_filter f[] = { LOAD(nr), JUMP(BPF_JEQ, SYS_read, 0, 1), ALLOW, DENY };

	CHECK(EVAL(f, SYS_read));
	CHECK(!EVAL(f, SYS_write));
}

TEST(a_call_that_passes_with_some_arguments_passes)
{
	const struct sock_filter f[] = { LOAD(nr),      JUMP(BPF_JEQ, SYS_ioctl, 0, 2),
					 LOAD(args[1]), JUMP(BPF_JEQ, 0x5413, 1, 0),
					 DENY,          ALLOW };

	CHECK(EVAL(f, SYS_ioctl));
	CHECK(!EVAL(f, SYS_read));
}

TEST(a_call_of_another_architecture_is_judged_by_its_own_branch)
{
	const struct sock_filter f[] = { LOAD(arch), JUMP(BPF_JEQ, filter_native_arch, 1, 0), DENY,
					 ALLOW };

	CHECK(EVAL(f, 1));
	CHECK(!filter_eval(f, ARRAY_LEN(f), filter_other_arch, 1));
}

TEST(each_action_counts_as_it_should)
{
	static const struct {
		uint32_t action;
		int passes;
	} rows[] = {
		{ SECCOMP_RET_ALLOW, 1 },
		{ SECCOMP_RET_LOG, 1 },
		{ SECCOMP_RET_TRACE | 7, 1 },
		{ SECCOMP_RET_USER_NOTIF, 1 },
		{ SECCOMP_RET_ERRNO | 1, 0 },
		{ SECCOMP_RET_TRAP, 0 },
		{ SECCOMP_RET_KILL_THREAD, 0 },
		{ SECCOMP_RET_KILL_PROCESS, 0 },
		{ 0x12340000, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct sock_filter f[] = { BPF_STMT(BPF_RET | BPF_K, rows[i].action) };

		CHECK_INT(EVAL(f, 0), rows[i].passes);
	}
}

TEST(a_returned_accumulator_is_judged_by_its_value)
{
	const struct sock_filter known[] = { BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ERRNO),
					     BPF_STMT(BPF_RET | BPF_A, 0) };
	const struct sock_filter unknown[] = { LOAD(args[0]), BPF_STMT(BPF_RET | BPF_A, 0) };

	CHECK(!EVAL(known, 0));
	CHECK(EVAL(unknown, 0));
}

TEST(arithmetic_of_known_values_is_exact)
{
	/* Passes if ((nr * 2 + 4) ^ 4) >> 1 is the number again: not for all. By way of memory and the index register. */
	const struct sock_filter f[] = {
		LOAD(nr),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_MEM, 3),
		BPF_STMT(BPF_LD | BPF_IMM, 2),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
		ALLOW,
		DENY,
	};

	for (uint32_t nr = 0; nr < 256; nr++)
		CHECK_INT(EVAL(f, nr), (((nr * 2 + 4) ^ 4) >> 1) == nr);
}

TEST(unknown_bits_that_are_masked_away_are_known)
{
	const struct sock_filter f[] = { LOAD(args[0]), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0),
					 JUMP(BPF_JEQ, 0, 0, 1), DENY, ALLOW };

	CHECK(!EVAL(f, 0));
}

TEST(a_program_that_the_kernel_would_reject_lets_everything_through)
{
	const struct sock_filter beyond[] = { LOAD(nr), JUMP(BPF_JEQ, 0, 9, 9) };
	const struct sock_filter endless[] = { LOAD(nr) };
	const struct sock_filter memory[] = { BPF_STMT(BPF_LD | BPF_MEM, 99), DENY };

	CHECK(EVAL(beyond, 1));
	CHECK(EVAL(endless, 1));
	CHECK(EVAL(memory, 1));
	CHECK(filter_eval(beyond, 0, filter_native_arch, 1));
}

TEST(several_filters_let_through_what_all_of_them_do)
{
	const struct sock_filter low[] = { LOAD(nr), JUMP(BPF_JGE, 10, 0, 1), DENY, ALLOW };
	const struct sock_filter even[] = { LOAD(nr), JUMP(BPF_JSET, 1, 0, 1), DENY, ALLOW };
	struct filter_numbers n;

	filter_numbers_all(&n);
	CHECK_INT(filter_numbers_count(&n), FILTER_NUMBERS);
	filter_eval_reduce(low, ARRAY_LEN(low), filter_native_arch, &n);
	CHECK_INT(filter_numbers_count(&n), 10);
	filter_eval_reduce(even, ARRAY_LEN(even), filter_native_arch, &n);
	CHECK_INT(filter_numbers_count(&n), 5);
	CHECK(filter_numbers_has(&n, 8) && !filter_numbers_has(&n, 9) &&
	      !filter_numbers_has(&n, FILTER_NUMBERS));
}

TEST(an_older_form_counts_where_its_newer_form_is_missing)
{
#ifdef __x86_64__
	struct filter_numbers n = { 0 };

	n.bits[SYS_open / 64] |= UINT64_C(1) << SYS_open % 64;
	CHECK_INT(filter_numbers_distinct(&n), 1);
	n.bits[SYS_openat / 64] |= UINT64_C(1) << SYS_openat % 64;
	CHECK_INT(filter_numbers_distinct(&n), 1);
	CHECK_INT(filter_numbers_count(&n), 2);
#else
	SKIP("this machine has no older forms");
#endif
}

/* ---- the filter of boxes ---- */

TEST(the_filter_of_boxes_lets_through_its_rows_and_at_most_245)
{
	struct filter_numbers n, other = { 0 };
	struct seccomp sc = { 0 };
	unsigned rows = 0;
	struct err e;

	CHECK(seccomp_compile(&sc, 0, &e) == 0);
	filter_numbers_all(&n);
	filter_eval_reduce(sc.code, sc.len, filter_native_arch, &n);
	filter_numbers_all(&other);
	filter_eval_reduce(sc.code, sc.len, filter_other_arch, &other);
	CHECK_INT(filter_numbers_count(&other), 0);
	for (unsigned i = 0; i < seccomp_nrows; i++) {
		int nr = seccomp_number(seccomp_rows[i].call);

		if (nr < 0 || nr >= FILTER_NUMBERS)
			continue;
		if (seccomp_rows[i].verdict == SECCOMP_ALLOWED ||
		    seccomp_rows[i].verdict == SECCOMP_BY_ARGUMENT) {
			if (!filter_numbers_has(&n, (unsigned)nr))
				printf("# %s\n", seccomp_rows[i].call);
			CHECK(filter_numbers_has(&n, (unsigned)nr));
			rows++;
		}
	}
	CHECK_INT(filter_numbers_count(&n), rows);
	CHECK(filter_numbers_distinct(&n) <= 245);
	for (unsigned nr = 0; nr < FILTER_NUMBERS; nr++)
		if (brute_force(sc.code, sc.len, filter_native_arch, nr, 20))
			CHECK(filter_numbers_has(&n, nr));
	seccomp_fini(&sc);
}

/* ---- random filters ---- */

static struct sock_filter random_step(unsigned left)
{
	static const uint16_t alus[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
					 BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG };
	static const uint16_t jumps[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	static const uint32_t offsets[] = { 0, 4, 16, 20, 24 };
	uint16_t source = random_number(3) ? BPF_K : BPF_X;
	uint32_t k = random_number(6);

	switch (random_number(8)) {
	case 0:
	case 1:
		return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						    offsets[random_number(5)]);
	case 2: {
		uint16_t op = alus[random_number(10)];

		if (op == BPF_LSH || op == BPF_RSH || op == BPF_DIV) {
			source = BPF_K;
			k = 1 + random_number(4);
		}
		return (struct sock_filter)BPF_STMT(BPF_ALU | op | source, k);
	}
	case 3:
		return (struct sock_filter)BPF_STMT(random_number(2) ? BPF_ST : BPF_STX, k);
	case 4:
		return (struct sock_filter)BPF_STMT((random_number(2) ? BPF_LD : BPF_LDX) | BPF_MEM,
						    k);
	case 5:
		return (struct sock_filter)BPF_STMT(
			BPF_MISC | (random_number(2) ? BPF_TAX : BPF_TXA), 0);
	default:
		return (struct sock_filter)BPF_JUMP(BPF_JMP | jumps[random_number(4)] | source, k,
						    (uint8_t)random_number(left),
						    (uint8_t)random_number(left));
	}
}

TEST(no_call_that_passes_a_random_filter_is_overlooked)
{
	enum { STEPS = 20, ENDS = 4 };
	unsigned passed = 0, refused = 0;

	for (unsigned round = 0; round < 3000; round++) {
		struct sock_filter f[STEPS + ENDS];
		uint32_t nr = random_number(6);

		for (unsigned i = 0; i < STEPS; i++)
			f[i] = random_step(STEPS + ENDS - i - 1 < 8 ? STEPS + ENDS - i - 1 : 8);
		for (unsigned i = STEPS; i < STEPS + ENDS; i++)
			f[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							    random_number(8) ? SECCOMP_RET_TRAP
									     : SECCOMP_RET_ALLOW);
		if (brute_force(f, STEPS + ENDS, filter_native_arch, nr, 30)) {
			CHECK(filter_eval(f, STEPS + ENDS, filter_native_arch, nr));
			passed++;
		} else {
			refused += !filter_eval(f, STEPS + ENDS, filter_native_arch, nr);
		}
	}
	/* The generator makes both kinds. */
	CHECK(passed > 100);
	CHECK(refused > 1000);
}

/* ---- from outside ---- */

/* A process with these filters, in the order in which they are loaded; it writes a byte to fd and waits. */
static pid_t filtered_process(const struct sock_fprog *const *filters, int fd)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (; *filters; filters++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, *filters) < 0)
			_exit(1);
	if (write(fd, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int numbers_of_process(const struct sock_fprog *const *filters,
			      struct filter_numbers *native)
{
	struct thread_filters cache = { 0 };
	struct filter_numbers other;
	int pair[2], rc;
	pid_t pid;
	char c;

	if (pipe(pair) < 0)
		return -1;
	pid = filtered_process(filters, pair[1]);
	close(pair[1]);
	rc = read(pair[0], &c, 1) == 1 ? thread_filters_read(&cache, pid, native, &other) : -1;
	close(pair[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	thread_filters_fini(&cache);
	return rc;
}

TEST(the_filters_of_a_process_are_read_from_outside)
{
	struct sock_filter low[] = { LOAD(nr), JUMP(BPF_JGE, 300, 0, 1), DENY, ALLOW };
	struct sock_filter no_mount[] = { LOAD(nr), JUMP(BPF_JEQ, SYS_mount, 0, 1), DENY, ALLOW };
	const struct sock_fprog first = { ARRAY_LEN(low), low },
				second = { ARRAY_LEN(no_mount), no_mount };
	const struct sock_fprog *const both[] = { &first, &second, NULL };
	const struct sock_fprog *const none[] = { NULL };
	struct filter_numbers n;

	if (geteuid() != 0)
		SKIP("not root");
	if (numbers_of_process(both, &n) < 0)
		SKIP("this host does not permit to read filters");
	CHECK_INT(filter_numbers_count(&n), 299);
	CHECK(!filter_numbers_has(&n, SYS_mount));
	CHECK_INT(numbers_of_process(none, &n), 0);
	CHECK_INT(filter_numbers_count(&n), FILTER_NUMBERS);
}
