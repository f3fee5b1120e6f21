/* version.c - `atoll version`. */
#include "commands/commands.h"

#include <stdio.h>

static int version_version(const struct cli *cli, const struct args *a)
{
	(void)a;
	printf(cli->json ? "{\"version\":\"%s\"}\n" : "atoll %s\n", ATOLL_VERSION);
	return 0;
}

const struct command command_version = {
	.name = "version",
	.group = "Machine",
	.usage = "",
	.summary = "print the version",
	.run = version_version,
};
