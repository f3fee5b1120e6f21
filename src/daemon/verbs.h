/* verbs.h - the commands that use internals of the daemon: they may include everything. */
#pragma once
#include "cli/args.h"

extern const struct command verb_config;
extern const struct command verb_doctor;
extern const struct command verb_policy;
extern const struct command verb_serve;
extern const struct command verb_stop;
extern const struct command verb_key;
extern const struct command verb_upgrade;

/* Adds the bit of the row with this name, in the launcher's table or in init's; -1: no such row. */
int policy_without(const char *row, uint64_t *launch, uint64_t *init);
