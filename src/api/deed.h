/* deed.h - what a request wants done: its program, and the steps to it.
 * Owns: the words of the steps, the variables. Borrows the request. Touches no box.
 *
 *   [version] -> [install] -> [compile] -> run, or test */
#pragma once
#include "api/api.h"
#include "api/program.h"

enum { DEED_STEPS = 4 };

#define DEED_VERSION "version" /* is it the one that was asked for? Nobody is told of this step */

struct deed_step {
	const char *what;       /* DEED_VERSION, "install", "compile", "run" or "test" */
	const char **argv;      /* NULL until it starts, with a row: */
	const char *const *row; /* of the language */
	uint32_t wall_ms;
};

struct deed {
	const char **env;
	const char *cwd;
	struct program program;
	struct deed_step steps[DEED_STEPS];
	unsigned nsteps;
	int background, pty, root;
	uint16_t rows, cols;
};

/* body: in the words of flow_exec_fields, checked. usual_ms: for a program that nobody has set a time
 * for; 0: its language's. deed_fini() in any case. */
must_check int deed_read(struct deed *x, const json_t *body, uint64_t usual_ms, struct err *e);
void deed_fini(struct deed *x); /* fine on a zeroed one */
