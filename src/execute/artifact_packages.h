/* artifact_packages.h - the packages that an artifact names, as layers for its boxes.
 * Owns: a set for each manager, the name of its layer, and the wait for it.
 * Does not own: the layers (packages/packages.h); the timeout: the caller cancels the wait. */
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
	/* A part of the output of a manager. */
	void (*said)(struct artifact_packages *n, unsigned stream, const char *bytes, size_t len);
	/* All are installed, with the time it took, or the first failure. */
	void (*done)(struct artifact_packages *n, uint64_t ms, const struct packages_failure *f);
};

/* 1: all are installed. 0: done() will be called, never from within this call. -1: invalid
 * packages. */
must_check int artifact_packages_begin(struct artifact_packages *n, const json_t *artifact,
				       const char *team, struct err *e);
void artifact_packages_put(const struct artifact_packages *n,
			   struct batch_item *item); /* the layers */
void artifact_packages_env(const struct artifact_packages *n,
			   json_t *env); /* variables that they need, if unset */
void artifact_packages_lost(
	struct artifact_packages *n); /* the keeper has no such layers: they are not used again */
void artifact_packages_fini(struct artifact_packages *n); /* cancels the wait; it can start again */
