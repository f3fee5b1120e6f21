/* landlock.h - the second barrier after the mounts.
 * Owns: the ruleset's table of paths and rights. */
#pragma once
#include "base/err.h"
#include <stdint.h>

int landlock_abi(void); /* 0: the kernel has none */

/* Builds the ruleset from paths as they are now (call it inside the box's root) and restricts
 * the caller. No allocation; raw system calls. Succeeds without effect when the ABI is 0: the
 * caller has probed, and the box's record shows it. Needs no_new_privs. `layer`, if not -1, is a
 * folder outside all paths whose descriptor init holds, to list changed files: readable. `alone`
 * 0: without the scopes, because two processes of one box that have entered it separately are
 * not in one domain, and must be able to signal each other. */
must_check int landlock_apply(int abi, int layer, int alone, struct err *e);

/* Tier process: the rows of landlock_process_rows, and this folder to write. Fails where the kernel has no landlock:
 * nothing else hides the files of the host. Needs no_new_privs. */
must_check int landlock_process(int abi, const char *folder, struct err *e);

/* For a process of Atoll itself: nothing but this folder (NULL: nothing), of which nothing is executed,
 * and `readable` (NULL: none), which is only read. Succeeds where the kernel has no landlock. Needs
 * no_new_privs. */
must_check int landlock_confine(const char *folder, const char *readable, struct err *e);

/* The rights on files that a kernel of this ABI can deny. */
uint64_t landlock_handled(int abi);

struct landlock_row {
	const char *path;   /* NULL: a scope, not a path */
	uint64_t bits;      /* LANDLOCK_ACCESS_FS_* or _SCOPE_*; 0: a right that no process gets */
	const char *rights; /* the same in words */
	const char *why;
};
extern const struct landlock_row landlock_rows[];
extern const unsigned landlock_nrows;
extern const struct landlock_row landlock_process_rows[]; /* of the tier process */
extern const unsigned landlock_n_process_rows;
