/* dispatch.h - from main() to a command: common flags, help, the exit status. */
#pragma once
#include "cli/args.h"

/* Files that are opened later must not become a stdin, stdout or stderr that was closed. */
must_check int dispatch_fill_stdio(void);
/* Runs the command that argv names. Returns the exit status. */
int dispatch_main(struct cli *cli, int argc, char **argv);
