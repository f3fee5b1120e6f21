/* filter_eval.c - see filter_eval.h.
 *
 * Jumps of classic BPF only go forward, so one pass over the program from its first to its last instruction suffices: the
 * states that reach an instruction are complete when it is executed. A state has the accumulator, the index register and
 * the 16 words of memory, each a known number or unknown. At most FILTER_STATES different states are kept for one
 * instruction; if there are more, they are joined: what differs becomes unknown. */
#include "prove/filter_eval.h"

#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
const uint32_t filter_native_arch = AUDIT_ARCH_X86_64, filter_other_arch = AUDIT_ARCH_I386;
#elif defined(__aarch64__)
const uint32_t filter_native_arch = AUDIT_ARCH_AARCH64, filter_other_arch = AUDIT_ARCH_ARM;
#else
#error "name this machine's AUDIT_ARCH, and that of its other table of system calls"
#endif

enum { FILTER_STATES = 4, FILTER_LONGEST = 4096 };

struct filter_value {
	uint32_t known; /* 1: n is its value; else n is 0 */
	uint32_t n;
};

struct filter_state {
	struct filter_value a, x, m[BPF_MEMWORDS];
};

struct filter_place {
	struct filter_state s[FILTER_STATES];
	unsigned n;
};

struct filter_run {
	const struct sock_filter *code;
	unsigned len;
	uint32_t arch, number;
	struct filter_place *at; /* one for each instruction */
	int passes, invalid;
};

static struct filter_value filter_known(uint32_t n)
{
	return (struct filter_value){ 1, n };
}

static const struct filter_value filter_unknown = { 0, 0 };

static void filter_join_value(struct filter_value *to, struct filter_value with)
{
	if (!to->known || !with.known || to->n != with.n)
		*to = filter_unknown;
}

static void filter_reach(struct filter_run *r, uint64_t to, const struct filter_state *s)
{
	struct filter_place *p;

	if (to >= r->len) {
		r->invalid = 1;
		return;
	}
	p = &r->at[to];
	for (unsigned i = 0; i < p->n; i++)
		if (!memcmp(&p->s[i], s, sizeof(*s)))
			return;
	if (p->n < FILTER_STATES) {
		p->s[p->n++] = *s;
		return;
	}
	for (unsigned i = 1; i < p->n; i++) {
		filter_join_value(&p->s[0].a, p->s[i].a);
		filter_join_value(&p->s[0].x, p->s[i].x);
		for (unsigned w = 0; w < BPF_MEMWORDS; w++)
			filter_join_value(&p->s[0].m[w], p->s[i].m[w]);
	}
	p->n = 1;
	filter_join_value(&p->s[0].a, s->a);
	filter_join_value(&p->s[0].x, s->x);
	for (unsigned w = 0; w < BPF_MEMWORDS; w++)
		filter_join_value(&p->s[0].m[w], s->m[w]);
}

static struct filter_value filter_data(const struct filter_run *r, uint32_t offset)
{
	if (offset == offsetof(struct seccomp_data, nr))
		return filter_known(r->number);
	if (offset == offsetof(struct seccomp_data, arch))
		return filter_known(r->arch);
	return filter_unknown;
}

static struct filter_value filter_alu(uint16_t op, struct filter_value a, struct filter_value b,
				      int *invalid)
{
	/* Known whatever the other operand is. */
	if (op == BPF_AND && ((a.known && !a.n) || (b.known && !b.n)))
		return filter_known(0);
	if (op == BPF_NEG)
		return a.known ? filter_known(-a.n) : filter_unknown;
	if (!a.known || !b.known)
		return filter_unknown;
	switch (op) {
	case BPF_ADD:
		return filter_known(a.n + b.n);
	case BPF_SUB:
		return filter_known(a.n - b.n);
	case BPF_MUL:
		return filter_known(a.n * b.n);
	case BPF_DIV:
		return b.n ? filter_known(a.n / b.n) : filter_unknown;
	case BPF_AND:
		return filter_known(a.n & b.n);
	case BPF_OR:
		return filter_known(a.n | b.n);
	case BPF_XOR:
		return filter_known(a.n ^ b.n);
	case BPF_LSH:
		return b.n < 32 ? filter_known(a.n << b.n) : filter_unknown;
	case BPF_RSH:
		return b.n < 32 ? filter_known(a.n >> b.n) : filter_unknown;
	default:
		*invalid = 1;
		return filter_unknown;
	}
}

/* 1: the jump may be taken; 2: it may not be taken; 3: both. */
static unsigned filter_branch(uint16_t op, struct filter_value a, struct filter_value b,
			      int *invalid)
{
	int taken;

	if (!a.known || !b.known)
		return 3;
	switch (op) {
	case BPF_JEQ:
		taken = a.n == b.n;
		break;
	case BPF_JGT:
		taken = a.n > b.n;
		break;
	case BPF_JGE:
		taken = a.n >= b.n;
		break;
	case BPF_JSET:
		taken = (a.n & b.n) != 0;
		break;
	default:
		*invalid = 1;
		return 3;
	}
	return taken ? 1 : 2;
}

static int filter_lets_pass(struct filter_value action)
{
	if (!action.known)
		return 1;
	switch (action.n & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_USER_NOTIF:
		return 1;
	default: /* unknown actions kill the process */
		return 0;
	}
}

/* Loads and stores. */
static void filter_move(struct filter_run *r, const struct sock_filter *f, struct filter_state *s)
{
	int is_x = BPF_CLASS(f->code) == BPF_LDX || BPF_CLASS(f->code) == BPF_STX;
	struct filter_value *reg = is_x ? &s->x : &s->a;

	if (BPF_CLASS(f->code) == BPF_ST || BPF_CLASS(f->code) == BPF_STX) {
		if (f->k < BPF_MEMWORDS)
			s->m[f->k] = *reg;
		else
			r->invalid = 1;
		return;
	}
	switch (BPF_MODE(f->code)) {
	case BPF_IMM:
		*reg = filter_known(f->k);
		break;
	case BPF_ABS:
		*reg = filter_data(r, f->k);
		break;
	case BPF_LEN:
		*reg = filter_known(sizeof(struct seccomp_data));
		break;
	case BPF_MEM:
		if (f->k < BPF_MEMWORDS)
			*reg = s->m[f->k];
		else
			r->invalid = 1;
		break;
	default:
		r->invalid = 1;
	}
}

static void filter_step(struct filter_run *r, unsigned pc, struct filter_state s)
{
	const struct sock_filter *f = &r->code[pc];
	struct filter_value operand = BPF_SRC(f->code) == BPF_X ? s.x : filter_known(f->k);
	unsigned ways;

	switch (BPF_CLASS(f->code)) {
	case BPF_RET:
		r->passes |=
			filter_lets_pass(BPF_RVAL(f->code) == BPF_A ? s.a : filter_known(f->k));
		return;
	case BPF_JMP:
		if (BPF_OP(f->code) == BPF_JA) {
			filter_reach(r, (uint64_t)pc + 1 + f->k, &s);
			return;
		}
		ways = filter_branch(BPF_OP(f->code), s.a, operand, &r->invalid);
		if (ways & 1)
			filter_reach(r, (uint64_t)pc + 1 + f->jt, &s);
		if (ways & 2)
			filter_reach(r, (uint64_t)pc + 1 + f->jf, &s);
		return;
	case BPF_ALU:
		s.a = filter_alu(BPF_OP(f->code), s.a, operand, &r->invalid);
		break;
	case BPF_MISC:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			s.x = s.a;
		else
			s.a = s.x;
		break;
	default:
		filter_move(r, f, &s);
	}
	filter_reach(r, (uint64_t)pc + 1, &s);
}

static int filter_run_init(struct filter_run *r, const struct sock_filter *code, unsigned len,
			   uint32_t arch)
{
	*r = (struct filter_run){ .code = code, .len = len, .arch = arch };
	if (!len || len > FILTER_LONGEST)
		return -1;
	r->at = malloc(len * sizeof(*r->at));
	if (!r->at)
		abort();
	return 0;
}

static int filter_run_number(struct filter_run *r, uint32_t number)
{
	static const struct filter_state start = { .a = { 1, 0 }, .x = { 1, 0 } };

	r->number = number;
	r->passes = r->invalid = 0;
	for (unsigned pc = 0; pc < r->len; pc++)
		r->at[pc].n = 0;
	filter_reach(r, 0, &start);
	for (unsigned pc = 0; pc < r->len && !r->passes && !r->invalid; pc++)
		for (unsigned i = 0; i < r->at[pc].n; i++)
			filter_step(r, pc, r->at[pc].s[i]);
	return r->passes || r->invalid;
}

int filter_eval(const struct sock_filter *code, unsigned len, uint32_t arch, uint32_t number)
{
	struct filter_run r;
	int passes;

	if (filter_run_init(&r, code, len, arch) < 0)
		return 1;
	passes = filter_run_number(&r, number);
	free(r.at);
	return passes;
}

void filter_eval_reduce(const struct sock_filter *code, unsigned len, uint32_t arch,
			struct filter_numbers *io)
{
	struct filter_run r;

	if (filter_run_init(&r, code, len, arch) < 0)
		return;
	for (unsigned nr = 0; nr < FILTER_NUMBERS; nr++)
		if (filter_numbers_has(io, nr) && !filter_run_number(&r, nr))
			io->bits[nr / 64] &= ~(UINT64_C(1) << nr % 64);
	free(r.at);
}

void filter_numbers_all(struct filter_numbers *n)
{
	memset(n->bits, 0xff, sizeof(n->bits));
}

int filter_numbers_has(const struct filter_numbers *n, unsigned number)
{
	return number < FILTER_NUMBERS && n->bits[number / 64] >> number % 64 & 1;
}

unsigned filter_numbers_count(const struct filter_numbers *n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < FILTER_NUMBERS / 64; i++)
		count += (unsigned)__builtin_popcountll(n->bits[i]);
	return count;
}

unsigned filter_numbers_distinct(const struct filter_numbers *n)
{
	unsigned count = filter_numbers_count(n);

#ifdef __x86_64__
	static const struct {
		uint16_t older, newer;
	} forms[] = {
		{ SYS_open, SYS_openat },
		{ SYS_creat, SYS_openat },
		{ SYS_stat, SYS_newfstatat },
		{ SYS_lstat, SYS_newfstatat },
		{ SYS_access, SYS_faccessat },
		{ SYS_mkdir, SYS_mkdirat },
		{ SYS_rmdir, SYS_unlinkat },
		{ SYS_unlink, SYS_unlinkat },
		{ SYS_link, SYS_linkat },
		{ SYS_symlink, SYS_symlinkat },
		{ SYS_readlink, SYS_readlinkat },
		{ SYS_rename, SYS_renameat },
		{ SYS_mknod, SYS_mknodat },
		{ SYS_chmod, SYS_fchmodat },
		{ SYS_chown, SYS_fchownat },
		{ SYS_lchown, SYS_fchownat },
		{ SYS_utime, SYS_utimensat },
		{ SYS_utimes, SYS_utimensat },
		{ SYS_futimesat, SYS_utimensat },
		{ SYS_getdents, SYS_getdents64 },
		{ SYS_dup2, SYS_dup3 },
		{ SYS_pipe, SYS_pipe2 },
		{ SYS_poll, SYS_ppoll },
		{ SYS_select, SYS_pselect6 },
		{ SYS_epoll_create, SYS_epoll_create1 },
		{ SYS_epoll_wait, SYS_epoll_pwait },
		{ SYS_eventfd, SYS_eventfd2 },
		{ SYS_signalfd, SYS_signalfd4 },
		{ SYS_inotify_init, SYS_inotify_init1 },
		{ SYS_fork, SYS_clone },
		{ SYS_vfork, SYS_clone },
		{ SYS_getpgrp, SYS_getpgid },
		{ SYS_pause, SYS_rt_sigsuspend },
		{ SYS_alarm, SYS_setitimer },
		{ SYS_time, SYS_gettimeofday },
	};

	for (unsigned i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		count -= filter_numbers_has(n, forms[i].older) &&
			 filter_numbers_has(n, forms[i].newer);
#endif
	return count;
}
