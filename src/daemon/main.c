/* main.c - atolld: the daemon, the keeper, and every command. client.c is the small `atoll`,
 * which starts this executable for all that it cannot do itself.
 * What a command needs to know about this build is passed to it here; the commands themselves
 * are in one file each. */
#include "base/cleanup.h"
#include "commands/dispatch.h"
#include "commands/commands.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/keeper.h"
#include "daemon/config.h"
#include "daemon/endpoint.h"
#include "daemon/commands.h"

#include <string.h>

/* In the order of the overview. */
static const struct command *const commands[] = {
	/* clang-format off */
	&command_run, &command_batch, &command_pipeline, &command_agent, &command_exec, &command_shell, &command_repl, &command_attach, &command_ps, &command_kill,
	&command_wait,
	&command_new, &command_ls, &command_show, &command_rename, &command_set, &command_env, &command_port, &command_rm, &command_prune,
	&command_pause, &command_resume, &command_snapshot,
	&command_volume, &command_packages,
	&command_cp, &command_cat, &command_put, &command_diff,
	&command_logs, &command_top, &command_stats, &command_runs, &command_events,
	&command_key,
	&command_serve, &command_stop, &command_upgrade, &command_doctor, &command_config, &command_api, &command_ui, &command_mcp,
	&command_model,
	&command_policy, &command_bench,
	&command_cert, &command_lang, &command_completion, &command_version, &command_help,
	NULL,
	/* clang-format on */
};

int main(int argc, char **argv)
{
	struct cli cli = { .argv = argv,
			   .commands = commands,
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
