/* commands.h - the commands that use internals of the daemon: they may include everything. */
#pragma once
#include "cli/args.h"

extern const struct command command_cluster;
extern const struct command command_config;
extern const struct command command_doctor;
extern const struct command command_node;
extern const struct command command_policy;
extern const struct command command_prove;
extern const struct command command_serve;
extern const struct command command_stop;
extern const struct command command_support_bundle;
extern const struct command command_backup;
extern const struct command command_key;
extern const struct command command_receipt;
extern const struct command command_restore;
extern const struct command command_tier;
extern const struct command command_upgrade;

/* Adds the bit of the row with this name, in the launcher's table or in init's; -1: no such row. */
int policy_without(const char *row, uint64_t *launch, uint64_t *init);
