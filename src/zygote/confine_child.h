/* confine_child.h - from a fork of the zygote to a process of the box.
 * Owns: the order of the steps. */
#pragma once
#include "base/err.h"
#include "jail/seccomp.h"
#include "zygote/protocol.h"

struct sealing {
	const struct zygote_fork_order *order;
	const struct seccomp *filter;
	int sock, report, box; /* box: pidfd of its init */
};

enum { SEAL_SOCK = 3, SEAL_REPORT = 4, SEAL_BOX = 5 }; /* their numbers in the child */

/* From top to bottom; a failed step ends the child. */
must_check int seal(struct sealing *s, struct err *e);
