/* version.c - `atoll version`. */
#include "cli/build_info.h"
#include "commands/commands.h"

#include <stdio.h>

static void version_print_text(const char *name, const char *text)
{
	if (*text)
		printf(",\"%s\":\"%s\"", name, text);
	else
		printf(",\"%s\":null", name);
}

static void version_print_json(const struct build_info *b)
{
	printf("{\"version\":\"%s\"", ATOLL_VERSION);
	version_print_text("commit", b->commit);
	printf(",\"changed\":%s", b->changed ? "true" : "false");
	version_print_text("date", b->date);
	version_print_text("compiler", b->compiler);
	version_print_text("arch", b->arch);
	printf("}\n");
}

/* The first two words are read by `atoll upgrade` of other versions. */
static void version_print_line(const struct build_info *b)
{
	printf("atoll %s (commit %.12s%s", ATOLL_VERSION, *b->commit ? b->commit : "unknown",
	       b->changed ? " with changes" : "");
	if (*b->date)
		printf(", %.10s", b->date);
	printf(", %s, %s)\n", b->compiler, b->arch);
}

static int version_version(const struct cli *cli, const struct args *a)
{
	(void)a;
	if (cli->json)
		version_print_json(cli->build);
	else
		version_print_line(cli->build);
	return 0;
}

const struct command command_version = {
	.name = "version",
	.group = "Machine",
	.usage = "",
	.summary = "print the version, the commit and how it was built",
	.notes =
		"The date is that of the commit, or of SOURCE_DATE_EPOCH during the build: two builds of one\n"
		"commit by one compiler print the same.",
	.run = version_version,
};
