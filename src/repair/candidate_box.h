/* candidate_box.h - a box for a program of a repair: its files, layers and team.
 * Owns: only a copy of the names; the job belongs to the caller. Packages were installed when the
 * program ran, so their layers are known. A repair does not wait for an install. */
#pragma once
#include "document/document.h"
#include "batch/job.h"
#include "repair/repair.h"

struct candidate_box {
	struct fleet *fleet;
	char team[STORE_NAME + 1];
	const json_t *artifact;     /* the owner's */
	const char *key, *pipeline; /* charged for its programs; the owner's, or NULL */
	struct choose_request isolation;
	struct repair_owner *owner; /* whose files and variables it has; NULL: it has none */
	char layers[WIRE_LAYERS][WIRE_LAYER_ID];
	unsigned nlayers;
};

/* -1: its packages are not installed. */
must_check int candidate_box_init(struct candidate_box *s, struct fleet *f, const char *team,
				  const json_t *artifact, struct err *e);
/* The common part of every item: the files of the artifact without its entry, limits and
 * variables. */
json_t *candidate_box_item(const struct candidate_box *s, uint32_t run_ms);
/* Starts j, whose done (and said) are set. -1: an invalid item, or the quota of the team is
 * exhausted; then batch_job_fini() is not needed. */
must_check int candidate_box_start(const struct candidate_box *s, struct batch_job *j,
				   json_t *take_item, uint32_t max_output, struct err *e);
void candidate_box_ended(const struct candidate_box *s, const struct batch_job *j,
			 const struct batch_job_end *end); /* before batch_job_fini() */
unsigned candidate_box_boxes(const struct candidate_box *s,
			     unsigned wanted); /* parallel boxes, up to the quota of the team */
