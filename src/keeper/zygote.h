/* zygote.h - the process that boxes' interpreters are forked from, seen from the keeper.
 * Owns:         how a zygote is started, in a box of its own, and how it is told to fork.
 * Does not own: when there should be one; seed.c knows. Both run on maker threads. */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include <sys/types.h>

struct spec;

struct zygote_birth { /* what a started zygote leaves with the keeper */
	pid_t pid;
	int orders; /* socket; readable once it is loaded ("R"), at its end when it has died */
};

/* Starts program (a path in the box) with the namespaces of `home`, which nobody else will get. It is
 * not ready when this returns: loading takes its time. */
must_check int zygote_start(const struct host_state *h, const struct keeper_box *home,
			    const char *program, const char *name, struct zygote_birth *out,
			    struct err *e);

struct zygote_fork_args {
	int orders;          /* the zygote's */
	const char *program; /* what the child can be */
	const struct keeper_box *box;
	const struct spec *spec; /* what the box was made of */
	int waits;               /* nobody needs it yet: there is time to practise */
	uint64_t without;        /* test builds */
};
/* Forks a child into the box and tells its init; blocks until it is sealed. */
must_check int zygote_fork(const struct zygote_fork_args *p, struct err *e);
