/* run_remote.h - `atoll run` on a daemon that -H or ATOLL_HOST names: a box there, for one
 * program. */
#pragma once
#include "cli/run_inputs.h"

/* Did -H or ATOLL_HOST name a daemon? The settings do not count: without -H and ATOLL_HOST a
 * program runs on this machine. */
int run_remote_wanted(const struct cli *cli);
/* Variables that a box does not set by itself, for a program without a terminal. */
json_t *run_remote_env(const struct options *o);
/* argv: of the program; compiler: or NULL. Returns the exit status. */
int run_remote(const struct cli *cli, const struct args *a, const struct options *opt,
	       const struct run_inputs *in, const char *const *argv, const char *const *compiler);
