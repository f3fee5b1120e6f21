/* run_request_plan.h - a request as a list of programs to run one after the other.
 * Owns:         their arguments and variables.
 * Does not own: the request, into which texts point; boxes and execs (run_request.c). */
#pragma once
#include "lang/program.h"
#include "wire/wire.h"

/* Checks the version of the language; clients do not see this step. */
#define RUN_REQUEST_VERSION PROGRAM_VERSION

enum { RUN_REQUEST_STEPS = 4 };

struct run_step {
	const char *what;       /* RUN_REQUEST_VERSION, "install", "compile", "run" or "test" */
	const char **argv;      /* NULL until the step starts, if it has a row: */
	const char *const *row; /* of the language */
	uint32_t wall_ms;
	int is_usual; /* the request does not name this time: isolation_usual_ms() applies */
};

struct run_request_plan {
	const json_t *body; /* borrowed */
	const char **env;
	const char *cwd;
	struct program program;
	struct run_step steps[RUN_REQUEST_STEPS];
	unsigned nsteps;
	int background, pty, root;
	int layered; /* set by the caller: the box has layers of packages */
	uint16_t rows, cols;
};

/* body: checked by run_request_exec_fields or run_request_fields. run_ms: default of this machine;
 * 0: default of the language. */
must_check int run_request_plan_read(struct run_request_plan *p, const json_t *body,
				     uint64_t run_ms, struct err *e);
void run_request_plan_fini(struct run_request_plan *p); /* fine on a half-read one */
