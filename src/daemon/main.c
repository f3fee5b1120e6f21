/* main.c - atolld: the daemon, the keeper, and every command. client.c is the small `atoll`,
 * which starts this executable for all that it cannot do itself.
 * What a command needs to know about this build is passed to it here; the commands themselves
 * are in one file each. */
#include "base/cleanup.h"
#include "cli/dispatch.h"
#include "cli/verbs.h"
#include "jail/launch.h"
#include "jail/feature.h"
#include "keeper/keeper.h"
#include "daemon/config.h"
#include "daemon/endpoint.h"
#include "daemon/verbs.h"

#include <string.h>

/* In the order of the overview. */
static const struct command *const verbs[] = {
	/* clang-format off */
	&verb_run, &verb_batch, &verb_pipeline, &verb_agent, &verb_exec, &verb_shell, &verb_repl, &verb_attach, &verb_ps, &verb_kill,
	&verb_wait,
	&verb_new, &verb_ls, &verb_show, &verb_rename, &verb_set, &verb_env, &verb_port, &verb_rm, &verb_prune,
	&verb_pause, &verb_resume, &verb_snapshot,
	&verb_volume, &verb_packages,
	&verb_cp, &verb_cat, &verb_put, &verb_diff,
	&verb_logs, &verb_top, &verb_stats, &verb_runs, &verb_events,
	&verb_key,
	&verb_serve, &verb_stop, &verb_upgrade, &verb_doctor, &verb_config, &verb_api, &verb_ui, &verb_mcp,
	&verb_model,
	&verb_policy, &verb_bench,
	&verb_cert, &verb_lang, &verb_completion, &verb_version, &verb_help,
	NULL,
	/* clang-format on */
};

int main(int argc, char **argv)
{
	struct cli cli = { .argv = argv,
			   .verbs = verbs,
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
