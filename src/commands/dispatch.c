/* dispatch.c - see dispatch.h. */
#include "commands/dispatch.h"
#include "base/cleanup.h"
#include "commands/help.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Files that are opened later must never become a stdin, stdout or stderr that was closed. */
int dispatch_fill_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			return -1;
	return 0;
}

/* --color, then NO_COLOR, CLICOLOR_FORCE, TERM=dumb, then whether stdout is a terminal. */
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

static int dispatch_command(struct cli *cli, const struct args *a)
{
	const char *when = args_text(a, ARG_COLOR, "auto");
	char shown[SHOWN];
	struct cli_error t;

	cli->json |= args_has(a, ARG_JSON);
	cli->quiet |= args_has(a, ARG_QUIET);
	cli->verbose |= args_has(a, ARG_VERBOSE);
	cli->host = args_text(a, ARG_HOST, cli->host);
	cli->color = wants_color(when);
	if (args_has(a, ARG_HELP)) {
		help_command(a->command, 0);
		return 0;
	}
	if (!color_known(when)) {
		cli_error_what(&t, "usage", "--color: '%s' is not one of always, never, auto",
			       cli_error_shown(when, shown));
		cli_error_hint(&t, "type", "--color never");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	return a->command->run(cli, a);
}

static int run_command(struct cli *cli, int argc, char **argv)
{
	const struct command *v = help_find(cli->commands, argv[0]);
	struct cli_error t;
	struct args a;
	int status;

	if (!v && cli->hand_over)
		cli->hand_over(cli);
	if (!v)
		return help_unknown(cli->commands, argv[0], cli->json);
	if (args_parse(&a, v, argc, argv, &t) < 0)
		status = cli_error_print(&t, cli->json || args_has(&a, ARG_JSON), STATUS_USAGE);
	else
		status = dispatch_command(cli, &a);
	args_fini(&a);
	/* All output must have been written; a full disk is a failure of atoll, a closed pipe is
	 * not. */
	if (fflush(stdout) != 0 && status == 0)
		status = STATUS_OURS;
	return status;
}

/* The two flags that users often put before the command. */
static void skip_leading(struct cli *cli, int *argc, char ***argv)
{
	for (;;) {
		const char *first = (*argv)[1];
		int used = *argc > 2 && !strcmp(first, "--json")                             ? 1
			   : *argc > 3 && (!strcmp(first, "-H") || !strcmp(first, "--host")) ? 2
											     : 0;

		if (!used)
			return;
		cli->json |= used == 1;
		if (used == 2)
			cli->host = (*argv)[2];
		*argc -= used;
		*argv += used;
	}
}

int dispatch_main(struct cli *cli, int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "-h";

	if (!strcmp(first, "-h") || !strcmp(first, "--help")) {
		if (cli->hand_over)
			cli->hand_over(cli);
		help_overview(cli->commands);
		return fflush(stdout) != 0 ? STATUS_OURS : 0;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(first, "--version") || !strcmp(first, "-V"))
		argv[1] = "version";
	skip_leading(cli, &argc, &argv);
	return run_command(cli, argc - 1, argv + 1);
}
