/* exec.c - `atoll exec`: runs a program in a box of the daemon as if it ran here. */
#include "base/cleanup.h"
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "cli/options.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	EXEC_DETACH,
	EXEC_TIME,
	EXEC_CWD,
	EXEC_ENV,
	EXEC_TAG,
	EXEC_ROOT,
	EXEC_NO_TTY,
	EXEC_INTERACTIVE,
	EXEC_NFLAGS
};

static const struct flag flags[EXEC_NFLAGS] = {
	[EXEC_DETACH] = { "detach", 'd', FLAG_SWITCH, NULL,
			  "run in the background and print the id" },
	[EXEC_TIME] = { "time", 0, FLAG_TIME, "TIME",
			"wall time limit; then the command is killed (no limit)" },
	[EXEC_CWD] = { "cwd", 0, FLAG_TEXT, "DIR", "working folder in the box (/home/user)" },
	[EXEC_ENV] = OPTION_ENV,
	[EXEC_TAG] = { "tag", 0, FLAG_TEXT, "NAME", "name for the running command" },
	[EXEC_ROOT] = OPTION_ROOT,
	[EXEC_NO_TTY] = OPTION_NO_TTY,
	[EXEC_INTERACTIVE] = OPTION_INTERACTIVE,
};

static json_t *words_of(const struct args *a)
{
	json_t *all = json_array();

	for (unsigned i = 1; i < a->nwords; i++)
		if (json_array_append_new(all, json_string(a->words[i])) < 0) {
			json_decref(all);
			return NULL;
		}
	return all;
}

static json_t *env_of(const struct args *a, int terminal)
{
	json_t *env = json_object();

	if (terminal)
		attach_env(env, options_terminal());
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == EXEC_ENV)
			attach_env(env, a->given[i].text);
	return env;
}

static json_t *body_of(const struct args *a, int terminal)
{
	json_t *words = words_of(a), *doc;

	if (!words)
		return NULL;
	doc = json_pack("{s:o, s:o}", "command", words, "env", env_of(a, terminal));
	if (args_has(a, EXEC_TIME))
		json_object_set_new(doc, "timeout_ms",
				    json_integer((json_int_t)args_value(a, EXEC_TIME, 0)));
	if (args_has(a, EXEC_CWD))
		json_object_set_new(doc, "cwd", json_string(args_text(a, EXEC_CWD, "")));
	if (args_has(a, EXEC_TAG))
		json_object_set_new(doc, "tag", json_string(args_text(a, EXEC_TAG, "")));
	if (args_has(a, EXEC_ROOT))
		json_object_set_new(doc, "user", json_string("root"));
	return doc;
}

static int exec_detached(struct api_client *r, const char *box, json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/execs", box);
	json_t *doc;

	json_object_set_new(take_body, "background", json_true());
	doc = api_client_json(r, "POST", path, take_body);
	if (!doc) {
		api_client_explain_box(r, box);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	else
		puts(api_client_text(doc, "id"));
	json_decref(doc);
	return 0;
}

static int exec_in(struct api_client *r, const struct args *a)
{
	int terminal = exec_follow_has_terminal() && !args_has(a, EXEC_NO_TTY) && !r->cli->json &&
		       !args_has(a, EXEC_DETACH);
	json_t *body;

	r->runs = 1;
	if (a->nwords < 2) {
		api_client_usage(r,
				 a->nwords ? "exec in %s: missing command"
					   : "exec: missing box and command",
				 a->nwords ? a->words[0] : "");
		cli_error_hint(&r->error, "type", "atoll exec BOX -- CMD [ARGS...]");
		cli_error_hint(&r->error, "list", "atoll ls");
		return r->status;
	}
	body = body_of(a, terminal);
	if (!body)
		return api_client_usage(r, "an argument is not UTF-8; put it into a file");
	if (args_has(a, EXEC_DETACH))
		return exec_detached(r, a->words[0], body);
	return attach_run(r, a->words[0], body, terminal, 1,
			  terminal || !isatty(0) || args_has(a, EXEC_INTERACTIVE));
}

static int run_exec(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, exec_in);
}

static const struct example examples[] = {
	{ "atoll exec demo -- pytest -q; echo $?", "exits with the status of the command" },
	{ "echo 6*7 | atoll exec demo -- bc", "stdin is forwarded" },
	{ "atoll exec -d demo -- python server.py", "run in the background and print the id" },
	{ "atoll exec --time 30s demo -- make", "killed after 30 seconds, exit status 124" },
	{ 0 },
};

static const char notes[] =
	"If stdin and stdout are terminals, the command gets a terminal, too. ~. at the start of a line\n"
	"detaches from it, and `atoll attach` attaches again. stdin is forwarded if it is a pipe or a file,\n"
	"or with -i. A second Ctrl-C within two seconds kills the command. If the daemon is restarted, the\n"
	"output continues at the same byte. Exit status: the command's; 128+N if signal N ended it;\n"
	"124 time limit; 126 cannot execute; 127 not found; 125 atoll or its daemon failed.";

const struct command command_exec = {
	.name = "exec",
	.group = "Run",
	.usage = "[FLAGS] BOX -- CMD [ARGS...]",
	.summary = "run a command in a box of the daemon",
	.notes = notes,
	.flags = flags,
	.nflags = EXEC_NFLAGS,
	.own_words = 2,
	.examples = examples,
	.run = run_exec,
};
