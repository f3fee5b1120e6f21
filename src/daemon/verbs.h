/* verbs.h - the verbs that look below the library: they may include everything. */
#pragma once
#include "cli/args.h"

extern const struct verb verb_config;
extern const struct verb verb_doctor;
extern const struct verb verb_policy;
extern const struct verb verb_serve;
extern const struct verb verb_stop;
extern const struct verb verb_key;
extern const struct verb verb_upgrade;

/* Adds the bit of the row with this name, in the launcher's table or in init's; -1: no such row. */
int policy_without(const char *row, uint64_t *launch, uint64_t *init);
