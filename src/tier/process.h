/* process.h - the tier process: a child of the keeper without namespaces, for hosts that do not have them.
 * Owns:         whether this host offers it, its filter.
 * Does not own: the rows of its launch (jail/process.c), the end of its processes (mux/supervise.h). */
#pragma once
#include "tier/tier.h"

/* What decides whether it is offered, apart from the settings; a pure function. */
struct process_host {
	int allowed;      /* isolation.process of the operator */
	int namespaces;   /* the host has them: boxes are containers */
	int landlock_abi; /* 0: none */
	int seccomp;
	int lists_children; /* /proc/thread-self/children exists */
	int has_tmp;        /* every user may make and remove folders in /tmp */
};
/* -1: not offered; the message has the reason and what helps. */
must_check int process_judge(const struct process_host *h, struct err *e);

/* Of the row of the table. */
int process_probe(const struct tier_host *h, struct wire_tier_facts *out, struct err *e);
int process_outer_box(const struct tier_host *h, const struct wire_tier_facts *f,
		      const struct wire_box *about, struct spec *sp, struct jail_engine *out,
		      struct err *e);
