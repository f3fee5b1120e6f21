/* execution_unit.h - what one box of an execution has to do, and what its end is worth.
 * Owns:         its job, and the rows that tell how it went.
 * Does not own: the artifact; when it begins, and whether it is tried again (execute.c). */
#pragma once
#include "execute/harness.h"
#include "execute/artifact_packages.h"
#include "batch/job.h"

enum execution_unit_kind { UNIT_MAIN, UNIT_EXAMPLE, UNIT_TEST };

struct execution_unit {
	struct batch_job job;
	struct execution *x;
	const json_t *artifact; /* borrowed */
	enum execution_unit_kind kind;
	size_t n;                    /* of examples, or tests */
	char mark[HARNESS_MARK + 1]; /* a call; "": none */
	unsigned tries;
	int begun, over, ran, pass; /* ran: to a good end, whatever it said */
	json_t *behind;             /* commands that the item points to */
	json_t *row;                /* of examples or checks */
	json_t *phase;              /* how it ended */
};

/* Sets the job's item. */
must_check int execution_unit_make(struct execution_unit *u, const struct artifact_packages *needs,
				   const struct fleet_conf *conf, struct err *e);
/* Its job is over; the program's own checks are added to those there are. */
void execution_unit_judge(struct execution_unit *u, const struct batch_job_end *end,
			  json_t *checks);
void execution_unit_refuse(struct execution_unit *u, unsigned why,
			   const struct err *e);    /* it could not even begin */
void execution_unit_fini(struct execution_unit *u); /* whose job has not begun, or is no more */
