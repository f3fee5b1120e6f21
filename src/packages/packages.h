/* packages.h - sets of packages: known ones, and those being installed.
 * Owns: the installs in progress: one install box per set, for all callers that wait for it.
 * Does not own: the layers (the keeper), the rows (store/packages.h), what may be asked for
 *               (lang/package.h) and how it is installed (lang/install.h).
 *
 *   set -> key -> row: layer                                    known: a millisecond
 *               -> install box -> manager -> LAYER_MAKE -> row   else
 *
 * An install continues when no caller waits for it: a later request will use it. */
#pragma once
#include "fleet/fleet.h"
#include "lang/install.h"

struct packages_failure {
	struct install_diagnosis d;
	char message[300];
	const char *near[3]; /* common packages with such names */
	unsigned nnear;
	const char *said; /* the end of the output of the manager */
};

struct packages_wait {
	struct packages_wait *next;
	struct install *install; /* NULL: waits for nothing */
	/* A part of the output of the manager. */
	void (*said)(struct packages_wait *w, unsigned stream, const char *bytes, size_t n);
	/* The result: the layer and the time it took, or the error. */
	void (*done)(struct packages_wait *w, const char *layer, uint64_t ms,
		     const struct packages_failure *f);
};

/* 1: known, out_layer is set. 0: w will be called, never from within this call. -1: not
 * possible. */
must_check int packages_get(struct fleet *f, const struct packages *set, const char *team,
			    struct packages_wait *w, char out_layer[STORE_HASH + 1], struct err *e);
void packages_wait_cancel(struct packages_wait *w);
void packages_set_key(const struct fleet *f, const struct packages *set,
		      char out_key[STORE_HASH + 1]);
int packages_configured(const struct fleet *f, const struct packages *set);
/* The keeper has no such layer: its sets are removed. */
void packages_forget(struct fleet *f, const char *layer);
/* Drops the least recently used layers until the rest fits. */
void packages_collect(struct fleet *f);
extern const struct box_hooks
	packages_hooks; /* ends installs with the fleet: called by fleet_conf.hooks */
