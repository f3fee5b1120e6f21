/* endpoint.h - which daemon the command line speaks with, and with which key: from the settings. */
#pragma once
#include "cli/args.h"

must_check int reach_find(struct reach *out, struct err *e);
