/* verbs.h - the verbs of this folder. main.c puts them into the one table. */
#pragma once
#include "cli/args.h"

extern const struct verb verb_run;
extern const struct verb verb_shell;
extern const struct verb verb_ps;
extern const struct verb verb_kill;
extern const struct verb verb_bench;
extern const struct verb verb_version;
extern const struct verb verb_help;
