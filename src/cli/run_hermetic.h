/* run_hermetic.h - `atoll run --hermetic`: one request to the daemon with everything that the program gets, so that an
 * identical one can be answered with its result. */
#pragma once
#include "cli/run_inputs.h"

/* command NULL: the program of the plan. Returns the exit status. */
int run_hermetic(const struct cli *cli, const struct args *a, const struct options *opt,
		 const struct run_inputs *in, const char *const *command);
