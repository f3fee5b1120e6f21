/* seccomp.c - see seccomp.h. The list of calls is in syscall_table.h; this file compiles it.
 *
 * The kernel runs the program for every system call of a box, from top to bottom:
 *
 *   the ABI                another one than ours: the process is killed
 *   the number             a search tree over ranges of numbers with the same answer
 *   the arguments          for the few calls that are decided by them
 *   the answers            one instruction each, shared by all that leads there
 *
 * Every box loads it again, so it should be small and shallow: the kernel verifies, translates
 * and compiles each instruction, then walks the program once per call number, to remember those
 * that pass whatever their arguments. libseccomp would compile the list, too, to three times the
 * size, because it tests for calls where this code tests for ranges; it is used for their
 * numbers only.
 *
 * Compiling allocates and is slow; it happens once, in the keeper. Applying is one system call
 * on memory that is never written again. */
#include "jail/seccomp.h"
#include "base/cleanup.h"

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
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/syscall_table.h"

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

/* ---- writing a program ----
 *
 * A program is written from its end. A jump of classic BPF only goes forward, so the target of a
 * step exists already: a place, counted from the end, which never changes and whose distance is
 * known. And a step that has been written before is not written again: several steps lead to it
 * and share all that follows. */

enum {
	ROOM = 1024, /* steps; the kernel would take 4096 */
	REACH = 250, /* a branch skips 255; the difference leaves room for its own hops */
};

struct launch_step {
	uint16_t code;
	uint32_t k;
	unsigned yes, no; /* places. Without a branch only yes counts, and a RET leads nowhere */
};

struct seccomp_program {
	struct launch_step steps[ROOM]; /* the last one first */
	unsigned len;
	int overflow;
};

static unsigned seccomp_append(struct seccomp_program *p, struct launch_step s)
{
	if (p->len == ROOM) {
		p->overflow = 1; /* seccomp_finish() reports it; until then any target is valid */
		return 0;
	}
	p->steps[p->len] = s;
	return p->len++;
}

static int seccomp_find(const struct seccomp_program *p, struct launch_step s, unsigned *out_place)
{
	for (unsigned i = p->len; i > 0 && p->len - i < REACH; i--) {
		const struct launch_step *t = &p->steps[i - 1];

		if (t->code == s.code && t->k == s.k && t->yes == s.yes && t->no == s.no) {
			*out_place = i - 1;
			return 1;
		}
	}
	return 0;
}

static unsigned find_or_append(struct seccomp_program *p, struct launch_step s)
{
	unsigned place;

	return seccomp_find(p, s, &place) ? place : seccomp_append(p, s);
}

/* The jump that replaces the step at `to` where that is too far away for a branch. */
static struct launch_step seccomp_hop(const struct seccomp_program *p, unsigned to)
{
	if (BPF_CLASS(p->steps[to].code) == BPF_RET)
		return p->steps[to];
	return (struct launch_step){ BPF_JMP | BPF_JA, 0, to, 0 };
}

static unsigned within_reach(struct seccomp_program *p, unsigned to)
{
	return p->len - to <= REACH ? to : find_or_append(p, seccomp_hop(p, to));
}

static unsigned seccomp_answer(struct seccomp_program *p, uint32_t action)
{
	return find_or_append(p, (struct launch_step){ BPF_RET | BPF_K, action, 0, 0 });
}

static unsigned seccomp_branch(struct seccomp_program *p, uint16_t test, uint32_t k, unsigned yes,
			       unsigned no)
{
	yes = within_reach(p, yes);
	no = within_reach(p, no);
	return find_or_append(p, (struct launch_step){ BPF_JMP | BPF_K | test, k, yes, no });
}

/* Loads and masks cannot jump: they fall into the step written just before them. */
static unsigned seccomp_fall(struct seccomp_program *p, uint16_t code, uint32_t k, unsigned next)
{
	unsigned place;

	if (seccomp_find(p, (struct launch_step){ code, k, next, 0 }, &place))
		return place;
	if (next + 1 != p->len)
		next = seccomp_append(p, seccomp_hop(p, next));
	return seccomp_append(p, (struct launch_step){ code, k, next, 0 });
}

static unsigned bpf_load(struct seccomp_program *p, uint32_t where, unsigned next)
{
	return seccomp_fall(p, BPF_LD | BPF_W | BPF_ABS, where, next);
}

static unsigned keep_bits(struct seccomp_program *p, uint32_t mask, unsigned next)
{
	return seccomp_fall(p, BPF_ALU | BPF_AND | BPF_K, mask, next);
}

static uint8_t seccomp_skip(unsigned from, unsigned to)
{
	assert(to < from && from - 1 - to <= UINT8_MAX);
	return (uint8_t)(from - 1 - to);
}

static int seccomp_finish(const struct seccomp_program *p, struct seccomp *sc, struct err *e)
{
	if (p->overflow)
		return err_set(e, ERR_LIMIT, "the filter is larger than %d instructions", ROOM);
	sc->code = calloc(p->len, sizeof(*sc->code));
	if (!sc->code)
		abort();
	sc->len = (unsigned short)p->len;
	for (unsigned i = 0; i < p->len; i++) {
		const struct launch_step *s = &p->steps[i];
		struct sock_filter *to = &sc->code[p->len - 1 - i];

		*to = (struct sock_filter){ .code = s->code, .k = s->k };
		if (s->code == (BPF_JMP | BPF_JA)) {
			to->k = i - 1 - s->yes;
		} else if (BPF_CLASS(s->code) == BPF_JMP) {
			to->jt = seccomp_skip(i, s->yes);
			to->jf = seccomp_skip(i, s->no);
		}
	}
	return 0;
}

/* ---- the arguments ---- */

static const uint32_t actions[] = {
	[SECCOMP_ALLOWED] = SECCOMP_RET_ALLOW,
	[SECCOMP_BY_ARGUMENT] = SECCOMP_RET_ERRNO | EPERM, /* where no rule matches */
	[SECCOMP_NOOP] = SECCOMP_RET_ERRNO | 0,
	[SECCOMP_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
	[SECCOMP_REFUSED] = SECCOMP_RET_ERRNO | EPERM,
	[SECCOMP_NO_PROTOCOL] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
};

static unsigned add_rules(struct seccomp_program *p, const struct argument_rule *r, unsigned n,
			  unsigned depth, unsigned otherwise);

/* The value of condition `depth` has been read. Rules that expect the same value share the test. */
static unsigned add_values(struct seccomp_program *p, const struct argument_rule *r, unsigned n,
			   unsigned depth, unsigned otherwise)
{
	unsigned same = 1, yes, no;

	if (n == 0)
		return otherwise;
	while (same < n && r[same].is[depth].value == r->is[depth].value)
		same++;
	no = add_values(p, r + same, n - same, depth, otherwise);
	yes = add_rules(p, r, same, depth + 1, otherwise);
	return seccomp_branch(p, BPF_JEQ, r->is[depth].value, yes, no);
}

/* The rules agree up to condition `depth`. Rules that read the same argument next share the
 * reading. */
static unsigned add_rules(struct seccomp_program *p, const struct argument_rule *r, unsigned n,
			  unsigned depth, unsigned otherwise)
{
	unsigned same = 1, place;

	if (n == 0)
		return otherwise;
	if (depth == ARRAY_LEN(r->is) || !r->is[depth].mask)
		return seccomp_answer(
			p, actions[r->then]); /* no condition is left, also for rules below */
	while (same < n && r[same].is[depth].where == r->is[depth].where &&
	       r[same].is[depth].mask == r->is[depth].mask)
		same++;
	otherwise = add_rules(p, r + same, n - same, depth, otherwise);
	place = add_values(p, r, same, depth, otherwise);
	if (r->is[depth].mask != UINT32_MAX)
		place = keep_bits(p, r->is[depth].mask, place);
	return bpf_load(p, r->is[depth].where, place);
}

/* The rules of this call in the tier process, if it has other ones there. */
static int seccomp_of_process(const char *call, const struct argument_rule **out_first,
			      unsigned *out_n)
{
	unsigned first = 0, n = 0;

	while (first < ARRAY_LEN(process_rules) && strcmp(process_rules[first].call, call) != 0)
		first++;
	while (first + n < ARRAY_LEN(process_rules) && !strcmp(process_rules[first + n].call, call))
		n++;
	if (n) {
		*out_first = &process_rules[first];
		*out_n = n;
	}
	return n > 0;
}

/* The jump target of a call with this row. */
static unsigned add_row(struct seccomp_program *p, const struct seccomp_row *row, unsigned flags)
{
	const struct argument_rule *r = argument_rules, *end = r + ARRAY_LEN(argument_rules);
	unsigned n = 0;

	if ((row->dropped_if_strict && flags & SECCOMP_STRICT) ||
	    (flags & SECCOMP_PROCESS && !strcmp(row->call, "socket")))
		return seccomp_answer(p, actions[SECCOMP_REFUSED]);
	if (flags & SECCOMP_PROCESS && seccomp_of_process(row->call, &r, &n))
		return add_rules(p, r, n, 0, seccomp_answer(p, actions[SECCOMP_REFUSED]));
	while (r < end && strcmp(r->call, row->call) != 0)
		r++;
	while (r + n < end && !strcmp(r[n].call, row->call))
		n++;
	if (n == 0 || (r->only_if & flags) != r->only_if)
		return seccomp_answer(p, actions[row->verdict]);
	return add_rules(p, r, n, 0, seccomp_answer(p, actions[SECCOMP_REFUSED]));
}

/* ---- the number ---- */

enum { NUMBERS = 1024 }; /* more than there are calls */

struct range {
	uint32_t first; /* up to the next range's first */
	unsigned place;
};

struct ranges { /* of all 32-bit numbers, in order; no two neighbours lead to the same place */
	struct range at[NUMBERS + 4];
	unsigned n;
	uint32_t end; /* of the numbers we know */
};

static void add_range(struct ranges *rs, uint32_t first, unsigned place)
{
	if (rs->n == 0 || rs->at[rs->n - 1].place != place)
		rs->at[rs->n++] = (struct range){ first, place };
}

static int add_numbers(struct seccomp_program *p, struct ranges *rs, unsigned flags, struct err *e)
{
	unsigned no_such_call = seccomp_answer(p, actions[SECCOMP_ENOSYS]);
	unsigned refused = seccomp_answer(p, actions[SECCOMP_REFUSED]);
	int microvm = !!(flags & SECCOMP_MICROVM);
	const struct seccomp_row *rows = microvm ? seccomp_microvm_rows : seccomp_rows;
	unsigned nrows = microvm ? seccomp_n_microvm_rows : seccomp_nrows, places[NUMBERS];
	int newest = 0;

	for (unsigned i = 0; i < NUMBERS; i++)
		places[i] = refused;
	for (unsigned i = 0; i < nrows; i++) {
		int nr = seccomp_number(rows[i].call);

		if (nr < 0)
			continue;
		if (nr >= NUMBERS)
			return err_set(e, ERR_LIMIT, "%s has number %d", rows[i].call, nr);
		places[nr] = add_row(p, &rows[i], flags);
		newest = nr > newest ? nr : newest;
	}
	for (unsigned i = 0; flags & SECCOMP_GVISOR && i < seccomp_n_gvisor_rows; i++)
		places[seccomp_number(seccomp_gvisor_rows[i].call)] =
			seccomp_answer(p, actions[seccomp_gvisor_rows[i].verdict]);
	for (int nr = 0; nr <= newest; nr++)
		add_range(rs, (uint32_t)nr, places[nr]);
	rs->end = (uint32_t)newest + 1;
	/* To a libc EPERM from a new call is an answer, ENOSYS a reason to use an older call. */
	add_range(rs, rs->end, no_such_call);
#ifdef __x86_64__
	/* x32 has the same arch, with bit 30 set. -1 is not a call: a tracer writes it to have a
	 * call skipped. */
	add_range(rs, 0x40000000, seccomp_answer(p, SECCOMP_RET_KILL_PROCESS));
	add_range(rs, 0xffffffff, no_such_call);
#endif
	return 0;
}

/* A single number within a range takes one test where a tree over range borders needs two: so
 * these three are handled together. Returns how many to take from the start. */
static unsigned with_single(const struct range *r, unsigned n)
{
	return n >= 3 && r[2].place == r[0].place && r[2].first == r[1].first + 1 ? 3 : 1;
}

/* Halves the numbers up to `end` and not the ranges: the kernel walks the tree once for each. */
static unsigned add_tree(struct seccomp_program *p, const struct range *r, unsigned n, uint32_t end)
{
	unsigned below = with_single(r, n), more = below, yes, no;

	if (n == 1)
		return r->place;
	if (below == n)
		return seccomp_branch(p, BPF_JEQ, r[1].first, r[1].place, r->place);
	while ((more += with_single(r + more, n - more)) < n &&
	       r[below].first + r[more].first <= r->first + end)
		below = more;
	yes = add_tree(p, r + below, n - below, end);
	no = add_tree(p, r, below, r[below].first);
	return seccomp_branch(p, BPF_JGE, r[below].first, yes, no);
}

/* ---- the whole ---- */

int seccomp_compile(struct seccomp *sc, unsigned flags, struct err *e)
{
	struct seccomp_program p = { .len = 0 };
	struct ranges rs = { .n = 0 };
	unsigned place;

	if (add_numbers(&p, &rs, flags, e) < 0)
		return -1;
	place = add_tree(&p, rs.at, rs.n, rs.end);
	place = bpf_load(&p, offsetof(struct seccomp_data, nr), place);
	/* Before the number, or it would be read by the wrong table: i386's socketcall has the
	 * number of getuid. */
	place = seccomp_branch(&p, BPF_JEQ, NATIVE, place,
			       seccomp_answer(&p, SECCOMP_RET_KILL_PROCESS));
	bpf_load(&p, offsetof(struct seccomp_data, arch), place);
	return seccomp_finish(&p, sc, e);
}

void seccomp_fini(struct seccomp *sc)
{
	if (!sc)
		return;
	free(sc->code);
	*sc = (struct seccomp){ 0 };
}
