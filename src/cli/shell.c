/* shell.c - `atoll shell`: a terminal in a fresh box. */
#include "cli/intake.h"
#include "cli/session.h"
#include "cli/verbs.h"

static const char *const bash[] = { "/bin/bash", "-l", NULL };

static int in_box(struct session *s, const struct intake *in, int *out_status, struct err *e)
{
	struct ending end;

	if (intake_put(in, s, e) < 0 || session_run(s, bash, &end, e) < 0)
		return -1;
	*out_status = session_report(s, "base", bash, &end);
	return 0;
}

static int shell(const struct cli *cli, const struct args *a)
{
	struct options opt = { 0 };
	struct intake in = { .workdir = -1 };
	struct session s = { .keeper.fd = -1, .box.init = -1, .files.fd = -1 };
	struct trouble t;
	struct err e;
	int status = STATUS_USAGE;

	if (args_has(a, OPT_TEMPLATE)) {
		trouble_what(&t, "usage", "a shell has no template");
		trouble_hint(&t, "type", "atoll shell");
		return trouble_say(&t, cli->json, status);
	}
	if (options_read(&opt, cli, a, &t) < 0 || intake_folder(&in, &opt, &t) < 0)
		trouble_say(&t, cli->json, status);
	else if (session_open(&s, cli, &opt, &e) < 0 || in_box(&s, &in, &status, &e) < 0)
		status = session_failed(cli, &e);
	session_close(&s);
	intake_fini(&in);
	options_fini(&opt);
	return status;
}

static const struct example examples[] = {
	{ "atoll shell", "an interactive shell in a fresh box" },
	{ "atoll shell -w .", "with a copy of this folder" },
	{ 0 },
};

const struct verb verb_shell = {
	.name = "shell",
	.group = "Run",
	.usage = "[FLAGS]",
	.summary = "an interactive shell in a fresh box",
	.notes = "The box is deleted when the shell ends or the terminal goes away.",
	.flags = options_flags,
	.nflags = OPT_COUNT,
	.examples = examples,
	.run = shell,
};
