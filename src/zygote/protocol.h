/* protocol.h - messages between the keeper and a zygote.
 *
 * A zygote is an interpreter with its libraries loaded and this code inside (LD_PRELOAD). The keeper
 * sends it orders on ZYGOTE_ORDERS; each makes it fork a child into a box. The child seals itself
 * (seal.c), reports, and then waits on its end of a socket whose other end init has: first for
 * three descriptors, then for the words it is to live by.
 * Owns: the layout of these messages. Both ends are of one build. */
#pragma once
#include "base/err.h"
#include "zygote/start_msg.h"
#include <stdint.h>

enum {
	ZYGOTE_ORDERS = 3,
	ZYGOTE_FILTER = 4
}; /* descriptors of a zygote: socket, compiled filter */
enum { ZYGOTE_TASKS = 6 };
/* Bits of `without` in test builds: the child fails and reports it; the child dies without a
 * report. */
#define ZYGOTE_FAULT_REPORTED (UINT64_C(1) << 62)
#define ZYGOTE_FAULT_SILENT (UINT64_C(1) << 63)

struct zygote_fork_order { /* fds: pidfd of the box's init, the child's socket, a pipe for the report, and
		     * the box's cgroup (v2) or its `tasks` files (v1) */
	uint64_t layers;  /* bits of enum jail_feature that the box has */
	uint64_t without; /* test builds: steps of confine_child.c to leave out */
	int32_t landlock_abi;
	uint32_t born_in; /* 1: the fourth descriptor is the cgroup in which the child is created */
	uint32_t ntasks;
	uint32_t waits; /* 1: for the pool: it may prepare before it is used */
};

struct zygote_report { /* from the child when it is isolated, or from the process whose step failed */
	struct err err; /* kind 0: all is well */
	int32_t pid;    /* in the box's pid namespace */
};
