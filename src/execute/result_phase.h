/* result_phase.h - how a step of an execution ended, as a row of the result's `phases`.
 * Owns: nothing. Pure; docs/pipeline.md has the members. */
#pragma once
#include "document/document.h"
#include "batch/job.h"
#include "packages/packages.h"

enum {
	PHASE_HEAD = 32 * 1024, /* bytes of each stream in the result ... */
	PHASE_TAIL = 16 * 1024, /* ... and of its end */
};

/* An internal failure: no program ran. */
json_t *phase_plain(const char *name, const char *cause, uint64_t ms, const char *said);
json_t *phase_of(const struct batch_job *j, const struct batch_job_end *end);
json_t *phase_install(const struct packages_failure *f, uint64_t ms);
const char *phase_limit(unsigned why); /* the limit that was hit, or NULL */
