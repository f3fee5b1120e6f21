/* logs.c - `atoll logs`: prints the output of a program, and with -f further output as it is
 * written. */
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { LOGS_FOLLOW, LOGS_NFLAGS };

static const struct flag flags[LOGS_NFLAGS] = {
	[LOGS_FOLLOW] = { "follow", 'f', FLAG_SWITCH, NULL,
			  "continue until the program has exited" },
};

static int print_log(struct api_client *r, const char *box, const char *exec, int whole)
{
	struct exec_follow f;
	int status;

	exec_follow_init(&f, r, box);
	f.snapshot = !whole;
	f.lines = r->cli->json;
	status = exec_follow_exec(&f, exec);
	exec_follow_fini(&f);
	return status;
}

static int logs_logs(struct api_client *r, const struct args *a)
{
	char exec[64] = "";
	int status;

	if (!a->nwords) {
		api_client_usage(r, "logs: missing box");
		cli_error_hint(&r->error, "list", "atoll ls");
		return r->status;
	}
	if (a->nwords > 1)
		snprintf(exec, sizeof(exec), "%s", a->words[1]);
	else if (attach_newest(r, a->words[0], 0, exec))
		return r->status;
	if (!*exec)
		return 0; /* no command was executed, so there is no output */
	status = print_log(r, a->words[0], exec, args_has(a, LOGS_FOLLOW));
	if (status && r->http == 404)
		api_client_explain_box(r, a->words[0]);
	return status;
}

static int run_logs(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, logs_logs);
}

static const struct example examples[] = {
	{ "atoll logs demo", "print the output of the newest program in demo" },
	{ "atoll logs -f demo k3v7qe2xn4ab", "print the output, and continue with new output" },
	{ 0 },
};

const struct command command_logs = {
	.name = "logs",
	.group = "Observe",
	.usage = "[-f] BOX [EXEC]",
	.summary = "print the output of a program",
	.notes =
		"Prints stdout of the program on stdout, and its stderr on stderr. Without EXEC, prints the output\n"
		"of the newest program. The box keeps the newest megabyte of each; missing bytes are counted.",
	.flags = flags,
	.nflags = LOGS_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_logs,
};
