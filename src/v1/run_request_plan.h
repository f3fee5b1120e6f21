/* run_request_plan.h - what a request asks for, as programs in a row.
 * Owns:         their words and variables.
 * Does not own: the request, which texts point into; boxes, and what runs in them (flow.c). */
#pragma once
#include "v1/program.h"

#define FLOW_VERSION "version" /* is it the one that was asked for? Nobody is told of this step */

enum { FLOW_STEPS = 4 };

struct flow_step {
	const char *what;       /* FLOW_VERSION, "install", "compile", "run" or "test" */
	const char **argv;      /* NULL until it starts, with a row: */
	const char *const *row; /* of the language */
	uint32_t wall_ms;
};

struct flow_plan {
	const json_t *body; /* borrowed */
	const char **env;
	const char *cwd;
	struct program program;
	struct flow_step steps[FLOW_STEPS];
	unsigned nsteps;
	int background, pty, root;
	int layered; /* set before: its box has layers of packages */
	uint16_t rows, cols;
};

/* body: checked by flow_exec_fields or flow_run_fields. run_ms: of this machine; 0: the language's. */
must_check int flow_plan_read(struct flow_plan *p, const json_t *body, uint64_t run_ms,
			      struct err *e);
void flow_plan_fini(struct flow_plan *p); /* fine on a half-read one */
