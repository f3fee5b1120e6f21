/* zygote.h - the process from which interpreters of boxes are forked: the side of the keeper.
 * Owns:         how a zygote is started, in a box of its own, and how it is requested to fork.
 * Does not own: when a zygote is needed; warm_pool.c decides that. Both run on builder threads. */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include <sys/types.h>

struct spec;

struct zygote_handle { /* the keeper's data of a started zygote */
	pid_t pid;
	int orders; /* socket; readable when it has loaded ("R"), end of file when it has died */
};

/* Starts program (a path in the box) in the namespaces of `home`, a box that no client gets. It is
 * not ready when this returns, because loading takes time. */
must_check int zygote_start(const struct host_state *h, const struct keeper_box *home,
			    const char *program, const char *name, struct zygote_handle *out,
			    struct err *e);

struct zygote_fork_args {
	int orders;          /* of the zygote */
	const char *program; /* the program of the child */
	const struct keeper_box *box;
	const struct spec *spec; /* the parameters with which the box was created */
	int waits;               /* no client waits for it: there is time to warm it up */
	uint64_t without;        /* test builds */
};
/* Forks a child into the box and notifies init; blocks until the child is confined. */
must_check int zygote_fork(const struct zygote_fork_args *p, struct err *e);
