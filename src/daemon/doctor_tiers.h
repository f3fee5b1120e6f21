/* doctor_tiers.h - the isolation tiers of this host in `atoll doctor`, as the keeper has examined them. */
#pragma once
#include "cli/args.h"
#include <jansson.h>

/* Adds a row for each tier; prints a table if cli requests text and is not quiet. cli NULL: rows only. Does
 * nothing if the keeper knows no tiers or does not answer in time. */
void doctor_tiers(json_t *rows, const struct cli *cli);
