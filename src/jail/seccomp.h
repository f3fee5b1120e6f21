/* seccomp.h - the system call allowlist.
 * Owns:         the table of calls (name, rule, why) and the filter compiled from it.
 * Does not own: the moment of loading; launch.c puts that last.
 * (Not seccomp_init and seccomp_load: those names are libseccomp's.) */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/mman.h>

struct sock_filter;

struct seccomp { /* compiled once, applied many times; plain memory, no library needed to apply */
	struct sock_filter *code;
	unsigned short len;
};

enum {
	SECCOMP_STRICT = 1 << 0,  /* also without ptrace, SysV ipc, mqueues, splice, ... */
	SECCOMP_NO_CORE = 1 << 1, /* core_pattern is a pipe: RLIMIT_CORE is not to be changed */
	SECCOMP_GVISOR = 1 << 2,  /* of an outer box: with seccomp_gvisor_rows */
	SECCOMP_MICROVM = 1 << 3, /* of an outer box: seccomp_microvm_rows and nothing else */
	/* Of the tier process, with STRICT: no sockets, and nothing that changes another process by its number. */
	SECCOMP_PROCESS = 1 << 4,
};

must_check int seccomp_compile(struct seccomp *sc, unsigned flags, struct err *e);
void seccomp_fini(struct seccomp *sc);
/* Raw system call, no allocation: runs between clone and exec. Needs no_new_privs. */
must_check int seccomp_apply(const struct seccomp *sc, struct err *e);

/* A filter for a process of the keeper that reads untrusted bytes: these calls, separated by spaces, and no others (EPERM).
 * Names that this machine does not have are left out. A call in `zero` is allowed if these bits of this argument are 0. */
struct seccomp_zero {
	const char *call;
	unsigned argument;
	uint64_t mask;
};
/* Memory is mapped, but not executable. */
#define SECCOMP_NO_EXEC                                                                            \
	{ "mmap", 2, PROT_EXEC },                                                                  \
	{                                                                                          \
		"mprotect", 2, PROT_EXEC                                                           \
	}
must_check int seccomp_compile_list(struct seccomp *out, const char *calls,
				    const struct seccomp_zero *zero, unsigned nzero, struct err *e);

/* One row per call, for `atoll policy` and for tests. A call without a row fails with EPERM up
 * to the newest number known here, and with ENOSYS above it. */
enum seccomp_verdict {
	SECCOMP_ALLOWED,
	SECCOMP_BY_ARGUMENT, /* why says which arguments */
	SECCOMP_NOOP,        /* does nothing and reports success */
	SECCOMP_ENOSYS,      /* libc then uses the older call */
	SECCOMP_REFUSED,     /* EPERM */
	SECCOMP_NO_PROTOCOL, /* EPROTONOSUPPORT, as a kernel without it: EPERM is a fault to callers */
};
struct seccomp_row {
	const char *call;
	enum seccomp_verdict verdict;
	int dropped_if_strict;
	const char *why; /* NULL if the name is sufficient */
};
extern const struct seccomp_row seccomp_rows[];
extern const unsigned seccomp_nrows;
/* Calls that runsc needs to build its sandbox, in place of their rows above. It then restricts its
 * own processes to far fewer. */
extern const struct seccomp_row seccomp_gvisor_rows[];
extern const unsigned seccomp_n_gvisor_rows;
/* All calls of QEMU and mux. */
extern const struct seccomp_row seccomp_microvm_rows[];
extern const unsigned seccomp_n_microvm_rows;

/* The call's number on this machine; -1 where the architecture has no such call (open on arm64). */
int seccomp_number(const char *call);
