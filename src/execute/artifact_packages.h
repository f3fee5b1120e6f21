/* artifact_packages.h - the packages that an artifact names, as layers for its boxes.
 * Owns:         a set for each manager, the name of its layer, and that somebody waits for it.
 * Does not own: the layers (packages/packages.h); the clock: who has waited for too long lets go. */
#pragma once
#include "batch/item.h"
#include "packages/packages.h"

struct artifact_packages {
	struct fleet *fleet;
	struct need {
		struct packages_wait wait;
		struct artifact_packages *all;
		struct packages set;
		char layer[WIRE_LAYER_ID];
	} list[WIRE_LAYERS];
	unsigned count, missing;
	/* Some of what a manager says. */
	void (*said)(struct artifact_packages *n, unsigned stream, const char *bytes, size_t len);
	/* All are there and it took that long, or the first that failed. */
	void (*done)(struct artifact_packages *n, uint64_t ms, const struct packages_failure *f);
};

/* 1: all are there. 0: done() will be called, never from within. -1: there are none such. */
must_check int artifact_packages_begin(struct artifact_packages *n, const json_t *artifact,
				       const char *team, struct err *e);
void artifact_packages_put(const struct artifact_packages *n,
			   struct batch_item *item); /* the layers */
void artifact_packages_env(const struct artifact_packages *n,
			   json_t *env); /* what they want, where it is not set */
void artifact_packages_lost(
	struct artifact_packages
		*n); /* the keeper has no such layers: nobody is given them again */
void artifact_packages_fini(
	struct artifact_packages *n); /* nothing is waited for; it can begin again */
