/* filter_eval.h - which system calls a seccomp filter can let through, whatever their arguments.
 *
 * The filter is executed with a known number and architecture; the arguments and the instruction pointer are unknown.
 * A jump that depends on an unknown value is followed both ways. The answer may be too large, never too small: values that
 * were computed from unknown ones are unknown. */
#pragma once
#include <stdint.h>

struct sock_filter;

enum { FILTER_NUMBERS = 512 };

struct filter_numbers {
	uint64_t bits[FILTER_NUMBERS / 64];
};
void filter_numbers_all(struct filter_numbers *n);
unsigned filter_numbers_count(const struct filter_numbers *n);
/* The same without the older forms of calls whose newer form is there, too: x86-64 has open beside openat and fork beside
 * clone, which lead to the same code of the kernel; other machines have the newer form only. Budgets apply to this. */
unsigned filter_numbers_distinct(const struct filter_numbers *n);
int filter_numbers_has(const struct filter_numbers *n, unsigned number);

/* 1: some path with this number ends in ALLOW, LOG, TRACE or USER_NOTIF. A program that the kernel would not have
 * accepted lets everything through. */
int filter_eval(const struct sock_filter *code, unsigned len, uint32_t arch, uint32_t number);
/* Removes the numbers that this filter lets through in no case: for each of several filters of a thread. */
void filter_eval_reduce(const struct sock_filter *code, unsigned len, uint32_t arch,
			struct filter_numbers *io);

extern const uint32_t filter_native_arch; /* AUDIT_ARCH_* of this build ... */
extern const uint32_t filter_other_arch;  /* ... and of the other table that its kernel may have */
