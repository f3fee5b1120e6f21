/* shell.c - `atoll shell`: a terminal in a fresh box, or in one of the daemon. */
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "cli/run_inputs.h"
#include "cli/package_request.h"
#include "cli/local_run.h"
#include "cli/run_remote.h"
#include "commands/commands.h"

#include <unistd.h>

static const char *const bash[] = { "/bin/bash", "-l", NULL };

static int in_box(struct local_run *s, const struct run_inputs *in, int *out_status, struct err *e)
{
	struct exit_info end;

	if (run_inputs_put(in, s, e) < 0 || local_run_exec(s, bash, &end, e) < 0)
		return -1;
	*out_status = local_run_report(s, "base", bash, &end);
	return 0;
}

static int shell_fresh(const struct cli *cli, const struct args *a)
{
	struct options opt = { 0 };
	struct run_inputs in = { .workdir = -1 };
	struct local_run s = { .keeper.fd = -1, .box.init = -1, .files.fd = -1 };
	struct cli_error t;
	struct err e;
	int status = STATUS_USAGE;

	if (args_has(a, OPT_TEMPLATE)) {
		cli_error_what(&t, "usage", "a shell has no template");
		cli_error_hint(&t, "type", "atoll shell");
		return cli_error_print(&t, cli->json, status);
	}
	if (options_read(&opt, cli, a, &t) < 0 || run_inputs_folder(&in, &opt, &t) < 0)
		cli_error_print(&t, cli->json, status);
	else if ((status = package_request_for(&opt, cli, a, OPT_PACKAGE, NULL)) != 0)
		; /* told */
	else if (opt.isolation || opt.trust)
		status = run_remote(cli, a, &opt, &in, bash, NULL);
	else if (local_run_open(&s, cli, &opt, "", &e) < 0 || in_box(&s, &in, &status, &e) < 0)
		status = local_run_failed(cli, &e);
	local_run_close(&s);
	run_inputs_fini(&in);
	options_fini(&opt);
	return status;
}

/* ---- in a box that is there ---- */

/* The box has its limits already. */
static int shell_fits(struct api_client *r, const struct args *a)
{
	for (unsigned i = 0; i < a->ngiven; i++) {
		unsigned flag = a->given[i].flag;

		if (flag >= ARG_HELP || flag == OPT_ENV || flag == OPT_TIME || flag == OPT_NO_TTY ||
		    flag == OPT_INTERACTIVE || flag == OPT_ROOT)
			continue;
		api_client_usage(r, "--%s is for a new box, and %s exists already",
				 options_flags[flag].name, a->words[0]);
		cli_error_hint(&r->error, "instead", "atoll new --%s ...",
			       options_flags[flag].name);
		return r->status;
	}
	return 0;
}

static int in_daemon(struct api_client *r, const struct args *a)
{
	int terminal = exec_follow_has_terminal() && !args_has(a, OPT_NO_TTY) && !r->cli->json;
	json_t *env, *body;

	r->runs = 1;
	if (shell_fits(r, a))
		return r->status;
	env = json_object();
	attach_env(env, options_terminal());
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == OPT_ENV)
			attach_env(env, a->given[i].text);
	body = json_pack("{s:[s, s], s:o}", "command", bash[0], bash[1], "env", env);
	if (args_has(a, OPT_TIME))
		json_object_set_new(body, "timeout_ms",
				    json_integer((json_int_t)args_value(a, OPT_TIME, 0)));
	if (args_has(a, OPT_ROOT))
		json_object_set_new(body, "user", json_string("root"));
	return attach_run(r, a->words[0], body, terminal, 0,
			  terminal || !isatty(0) || args_has(a, OPT_INTERACTIVE));
}

static int shell_shell(const struct cli *cli, const struct args *a)
{
	return a->nwords ? api_client_command(cli, a, in_daemon) : shell_fresh(cli, a);
}

static const struct example examples[] = {
	{ "atoll shell", "an interactive shell in a fresh box" },
	{ "atoll shell -w .", "with a copy of this folder" },
	{ "atoll shell demo", "in the daemon's box demo, which stays" },
	{ 0 },
};

const struct command command_shell = {
	/* clang-format off */
	.name = "shell",
	.group = "Run",
	.usage = "[FLAGS] [BOX]",
	.summary = "open an interactive shell in a new box, or in BOX",
	.notes = "A new box is deleted when the shell ends or the terminal is closed. In BOX, a box of the\n"
		 "daemon, the shell keeps running after the terminal is closed, or after ~. at the start of\n"
		 "a line; `atoll attach BOX` attaches to it again.",
	.flags = options_flags,
	.nflags = OPT_SHARED,
	.max_words = 1,
	.examples = examples,
	.run = shell_shell,
	/* clang-format on */
};
