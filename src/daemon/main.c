/* main.c - atolld: the daemon, the keeper, and every command. client.c is the small `atoll`,
 * which starts this executable for all that it cannot do itself.
 * What a command needs to know about this build is passed to it here; the commands themselves
 * are in one file each. */
#include "base/cleanup.h"
#include "cli/build_info.h"
#include "commands/dispatch.h"
#include "daemon/command_table.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/keeper.h"
#include "daemon/config.h"
#include "daemon/endpoint.h"
#include "daemon/commands.h"

#include <build_stamp.h>
#include <string.h>

static const struct build_info build = BUILD_STAMP;
static const struct command *const commands[] = { COMMAND_TABLE(COMMAND_ROW, COMMAND_ROW) NULL };

int main(int argc, char **argv)
{
	struct cli cli = { .argv = argv,
			   .commands = commands,
			   .build = &build,
			   .layers = layer_names(),
			   .without = policy_without,
			   .reach = endpoint_find,
			   .listen_port = endpoint_listen_port };

	if (dispatch_fill_stdio() < 0)
		return STATUS_OURS;
	/* The keeper is not a command of the command line: it parses nothing and prints nothing. */
	if (argc > 1 && !strcmp(argv[1], "keeper"))
		return keeper_main(argc - 1, argv + 1);
	config_init_flags();
	return dispatch_main(&cli, argc, argv);
}
