/* race.h - the answer of a race, for `atoll race` and `atoll agent run --attempts`. */
#pragma once
#include "cli/api_client.h"

/* Sends the body to the race of this box, and prints the answer. Returns the exit status: 1 if no attempt has passed. */
int race_run(struct api_client *r, const char *box, json_t *take_body);
