/* config_plans.h - [plan.NAME] of a settings file. Plans have no rows in the table: their names are free. */
#pragma once
#include "base/toml.h"
#include "daemon/config.h"

enum { CONFIG_PLANS = 64 };

/* Reads the table `plan`; path is the file, for errors. A plan of a farther file is extended. */
must_check int config_plans_take(struct config *c, const char *path, const struct toml_node *table,
				 struct err *e);
