/* config_checks.h - checks of settings against tables that only the daemon's executable has.
 * The small client accepts these values as they are: it does not use them. */
#pragma once
#include "base/err.h"

must_check int config_check_tool(const char *text, struct err *e);    /* the name of a tool */
must_check int config_check_tier(const char *text, struct err *e);    /* an isolation tier */
must_check int config_check_minimum(const char *text, struct err *e); /* the same, not process */
must_check int config_check_set(const char *text, struct err *e);     /* a set of packages */
