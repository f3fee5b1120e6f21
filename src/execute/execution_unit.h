/* execution_unit.h - what one box of an execution has to do, and what its end is worth.
 * Owns:         its job, and the rows that tell how it went.
 * Does not own: the artifact; when it begins, and whether it is tried again (execute.c). */
#pragma once
#include "execute/harness.h"
#include "execute/artifact_packages.h"
#include "batch/job.h"

enum unit_kind { UNIT_MAIN, UNIT_EXAMPLE, UNIT_TEST };

struct unit {
	struct batch_job job;
	struct execution *x;
	const json_t *artifact; /* borrowed */
	enum unit_kind kind;
	size_t n;                    /* of examples, or tests */
	char mark[HARNESS_MARK + 1]; /* a call; "": none */
	unsigned tries;
	int begun, over, ran, pass; /* ran: to a good end, whatever it said */
	json_t *behind;             /* commands that the item points to */
	json_t *row;                /* of examples or checks */
	json_t *phase;              /* how it ended */
};

/* Sets the job's item. */
must_check int unit_make(struct unit *u, const struct needs *needs,
			 const struct fleet_conf *conf, struct err *e);
/* Its job is over; the program's own checks are added to those there are. */
void unit_judge(struct unit *u, const struct batch_job_end *end, json_t *checks);
void unit_refuse(struct unit *u, unsigned why, const struct err *e); /* it could not even begin */
void unit_fini(struct unit *u); /* whose job has not begun, or is no more */
