/* main.c - one executable, one table of verbs.
 * Everything a verb may need to know about this build is handed to it here; the verbs themselves
 * live below, one per file. */
#include "base/own.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "jail/launch.h"
#include "jail/layer.h"
#include "keeper/keeper.h"
#include "serve/config.h"
#include "serve/reach.h"
#include "serve/verbs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* In the order of the overview. */
static const struct verb *const verbs[] = {
	/* clang-format off */
	&verb_run, &verb_batch, &verb_pipeline, &verb_agent, &verb_exec, &verb_shell, &verb_repl, &verb_attach, &verb_ps, &verb_kill,
	&verb_wait,
	&verb_new, &verb_ls, &verb_show, &verb_rename, &verb_rm, &verb_prune,
	&verb_pause, &verb_resume, &verb_snapshot,
	&verb_volume, &verb_packages,
	&verb_cp, &verb_cat, &verb_put, &verb_diff,
	&verb_logs, &verb_top, &verb_stats, &verb_runs, &verb_events,
	&verb_key,
	&verb_serve, &verb_upgrade, &verb_doctor, &verb_config, &verb_api, &verb_mcp,
	&verb_model,
	&verb_policy, &verb_bench,
	&verb_cert, &verb_lang, &verb_completion, &verb_version, &verb_help,
	NULL,
	/* clang-format on */
};

/* Files that we open must never become a stdin, stdout or stderr that was closed. */
static int fill_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			return -1;
	return 0;
}

static const char *const *layer_names(void)
{
	static const char *names[LAYER_COUNT + 1];

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		names[i] = jail_layers[i].name;
	return names;
}

/* --color, then NO_COLOR, CLICOLOR_FORCE, TERM=dumb, then what stdout is. */
static int wants_color(const char *when)
{
	const char *force = getenv("CLICOLOR_FORCE"), *none = getenv("NO_COLOR"),
		   *term = getenv("TERM");

	if (!strcmp(when, "always") || !strcmp(when, "never"))
		return *when == 'a';
	if (none && *none)
		return 0;
	if (force && *force && strcmp(force, "0") != 0)
		return 1;
	return term && strcmp(term, "dumb") != 0 && isatty(1);
}

static int color_known(const char *when)
{
	return !strcmp(when, "always") || !strcmp(when, "never") || !strcmp(when, "auto");
}

static int dispatch(struct cli *cli, const struct args *a)
{
	const char *when = args_text(a, ARG_COLOR, "auto");
	char shown[SHOWN];
	struct trouble t;

	cli->json |= args_has(a, ARG_JSON);
	cli->quiet |= args_has(a, ARG_QUIET);
	cli->verbose |= args_has(a, ARG_VERBOSE);
	cli->host = args_text(a, ARG_HOST, cli->host);
	cli->color = wants_color(when);
	if (args_has(a, ARG_HELP)) {
		help_verb(a->verb, 0);
		return 0;
	}
	if (!color_known(when)) {
		trouble_what(&t, "usage", "--color: '%s' is not one of always, never, auto",
			     trouble_shown(when, shown));
		trouble_hint(&t, "type", "--color never");
		return trouble_say(&t, cli->json, STATUS_USAGE);
	}
	return a->verb->run(cli, a);
}

static int run_verb(struct cli *cli, int argc, char **argv)
{
	const struct verb *v = help_find(verbs, argv[0]);
	struct trouble t;
	struct args a;
	int status;

	if (!v)
		return help_unknown(verbs, argv[0], cli->json);
	if (args_parse(&a, v, argc, argv, &t) < 0)
		status = trouble_say(&t, cli->json || args_has(&a, ARG_JSON), STATUS_USAGE);
	else
		status = dispatch(cli, &a);
	args_fini(&a);
	/* What was printed must have arrived; a full disk is our failure, a closed pipe is nobody's. */
	if (fflush(stdout) != 0 && status == 0)
		status = STATUS_OURS;
	return status;
}

/* The two that people put in front of the verb. */
static void skip_leading(struct cli *cli, int *argc, char ***argv)
{
	for (;;) {
		const char *first = (*argv)[1];
		int used = *argc > 2 && !strcmp(first, "--json")					? 1 :
			   *argc > 3 && (!strcmp(first, "-H") || !strcmp(first, "--host")) ? 2 :
											     0;

		if (!used)
			return;
		cli->json |= used == 1;
		if (used == 2)
			cli->host = (*argv)[2];
		*argc -= used;
		*argv += used;
	}
}

int main(int argc, char **argv)
{
	struct cli cli = { .argv = argv,
			   .verbs = verbs,
			   .layers = layer_names(),
			   .without = policy_without,
			   .reach = reach_find };

	if (fill_stdio() < 0)
		return STATUS_OURS;
	config_init_flags();
	/* The keeper is not a verb of the command line: it parses nothing and prints nothing. */
	if (argc > 1 && !strcmp(argv[1], "keeper"))
		return keeper_main(argc - 1, argv + 1);
	signal(SIGPIPE, SIG_IGN);
	config_init_flags();
	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		help_overview(verbs);
		return fflush(stdout) != 0 ? STATUS_OURS : 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		argv[1] = "version";
	skip_leading(&cli, &argc, &argv);
	return run_verb(&cli, argc - 1, argv + 1);
}
