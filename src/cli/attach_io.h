/* attach_io.h - shared by `exec`, `shell BOX` and `attach`: a program in a box, connected to
 * this terminal. */
#pragma once
#include "cli/api_client.h"

void attach_env(json_t *env, const char *name_value); /* "NAME=VALUE" */
/* Starts it, follows it, prints how it ended. Returns its exit status. */
int attach_run(struct api_client *r, const char *box, json_t *take_body, int terminal, int twice,
	       int input);
/* The same for a program that is already running. */
int attach_join(struct api_client *r, const char *box, const char *exec, const uint64_t from[2],
		int terminal, int input);
/* The newest program of a box; running: of those that run. "": there is none; or r->status. */
must_check int attach_newest(struct api_client *r, const char *box, int running, char out[64]);
