/* artifact_packages.h - the packages that an artifact names, as layers for its boxes.
 * Owns:         a set for each manager, the name of its layer, and that somebody waits for it.
 * Does not own: the layers (packages/packages.h); the clock: who has waited for too long lets go. */
#pragma once
#include "batch/item.h"
#include "packages/packages.h"

struct needs {
	struct fleet *fleet;
	struct need {
		struct packages_wait wait;
		struct needs *all;
		struct packages set;
		char layer[WIRE_LAYER_ID];
	} list[WIRE_LAYERS];
	unsigned count, missing;
	/* Some of what a manager says. */
	void (*said)(struct needs *n, unsigned stream, const char *bytes, size_t len);
	/* All are there and it took that long, or the first that failed. */
	void (*done)(struct needs *n, uint64_t ms, const struct packages_failure *f);
};

/* 1: all are there. 0: done() will be called, never from within. -1: there are none such. */
must_check int needs_begin(struct needs *n, const json_t *artifact, const char *team,
			   struct err *e);
void needs_put(const struct needs *n, struct batch_item *item); /* the layers */
void needs_env(const struct needs *n, json_t *env);       /* what they want, where it is not set */
void needs_lost(struct needs *n); /* the keeper has no such layers: nobody is given them again */
void needs_fini(struct needs *n); /* nothing is waited for; it can begin again */
