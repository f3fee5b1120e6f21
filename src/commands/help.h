/* help.h - help texts, printed from the tables of the commands. */
#pragma once
#include "cli/args.h"

void help_overview(
	const struct command *const *commands);        /* the output of `atoll` without arguments */
void help_command(const struct command *v, int whole); /* whole: with notes and examples */
const struct command *help_find(const struct command *const *commands, const char *name);
/* "no command named ..." with the closest one. Returns the exit status. */
int help_unknown(const struct command *const *commands, const char *typed, int json);
