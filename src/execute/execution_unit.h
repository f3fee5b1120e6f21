/* execution_unit.h - the work of one box of an execution, and the evaluation of its result.
 * Owns: its job, and the result rows.
 * Does not own: the artifact; its start and retries (execute.c). */
#pragma once
#include "execute/harness.h"
#include "execute/artifact_packages.h"
#include "batch/job.h"

enum execution_unit_kind { UNIT_MAIN, UNIT_EXAMPLE, UNIT_TEST };

struct execution_unit {
	struct batch_job job;
	struct execution *x;
	const json_t *artifact; /* borrowed */
	const json_t *env;      /* variables besides those of the artifact, borrowed; NULL: none */
	enum execution_unit_kind kind;
	size_t n;                    /* of examples, or tests */
	char mark[HARNESS_MARK + 1]; /* a call; "": none */
	unsigned tries;
	int begun, over, ran, pass; /* ran: exited normally, with any output */
	json_t *behind;             /* commands that the item points to */
	json_t *row;                /* of examples or checks */
	json_t *phase;              /* how it ended */
};

/* Sets the job's item. */
must_check int execution_unit_make(struct execution_unit *u, const struct artifact_packages *needs,
				   const struct fleet_conf *conf, struct err *e);
/* Its job has ended; adds the checks of the program to the result. */
void execution_unit_judge(struct execution_unit *u, const struct batch_job_end *end,
			  json_t *checks);
void execution_unit_refuse(struct execution_unit *u, unsigned why,
			   const struct err *e);    /* it could not start */
void execution_unit_fini(struct execution_unit *u); /* whose job has not started, or has ended */
