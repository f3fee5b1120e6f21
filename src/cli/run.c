/* run.c - `atoll run`: a program in a fresh box, and the box is gone when it ends. */
#include "base/own.h"
#include "cli/intake.h"
#include "cli/packages.h"
#include "cli/session.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <unistd.h>

/* A row of the language's table and the program's arguments behind it. The caller frees it. */
static const char **with_args(const struct intake *in, const char *const *row)
{
	const char **argv = calloc(LANG_ARGS + in->nargs + 2, sizeof(*argv));
	unsigned n = 0;

	if (!argv)
		abort();
	if (row)
		n = lang_command(row, in->source, in->binary, argv);
	else
		argv[n++] = in->source;
	for (unsigned i = 0; i < in->nargs; i++)
		argv[n++] = in->args[i];
	return argv;
}

/* A compiler that fails is the run's result: its status, its messages, its record. */
static int compile(struct session *s, const struct intake *in, int *out_status, struct err *e)
{
	const char *argv[LANG_ARGS + 1];
	struct ending end;
	int no_stdin = s->no_stdin;

	lang_command(in->lang->compile, in->source, in->binary, argv);
	s->no_stdin = 1; /* it is the program's */
	if (session_run(s, argv, &end, e) < 0)
		return -1;
	s->no_stdin = no_stdin;
	if (cause_of(&end) != CAUSE_EXIT || end.exit.status != 0)
		*out_status = session_report(s, in->template, argv, &end);
	return 0;
}

static int in_box(struct session *s, const struct intake *in, const char *const *argv,
		  int *out_status, struct err *e)
{
	int compiled = in->lang && in->lang->compile[0];
	struct ending end;

	if (intake_put(in, s, e) < 0 || (compiled && compile(s, in, out_status, e) < 0))
		return -1;
	if (*out_status)
		return 0;
	/* From here on every change is the program's own. */
	if ((s->cli->json || s->opt->report) && s->files_put &&
	    changes_before(&s->changes, &s->box, e) < 0)
		return -1;
	if (session_run(s, argv, &end, e) < 0)
		return -1;
	*out_status = session_report(s, in->template, argv, &end);
	return 0;
}

static int run_planned(const struct cli *cli, const struct options *opt, const struct intake *in,
		       const char *const *argv)
{
	struct session s;
	struct err e;
	int status = 0;

	if (session_open(&s, cli, opt, &e) < 0) {
		session_close(&s);
		return session_failed(cli, &e);
	}
	s.twice = 1;
	s.no_stdin = in->from_stdin;
	if (in_box(&s, in, argv, &status, &e) < 0)
		status = session_failed(cli, &e);
	session_close(&s);
	return status;
}

static int nothing_to_run(const struct cli *cli)
{
	struct trouble t;

	trouble_what(&t, "usage", "run what?");
	trouble_hint(&t, "file", "atoll run hello.py");
	trouble_hint(&t, "command", "atoll run -- ls -l");
	trouble_hint(&t, "code", "echo 'print(6*7)' | atoll run -t python -");
	return trouble_say(&t, cli->json, STATUS_USAGE);
}

static int run_words(const struct cli *cli, struct options *opt, const struct args *a)
{
	static char *const from_stdin[] = { "-", NULL };
	char *const *words = a->nwords ? a->words : from_stdin;
	auto_free const char **argv = NULL;
	struct intake in;
	struct trouble t;
	int status;

	if (a->dashes && a->nwords) {
		status = intake_folder(&in, opt, &t) < 0 ? trouble_say(&t, cli->json, in.status)
							 : packages_for(opt, cli, a, OPT_PACKAGE, NULL);
		if (!status)
			status = run_planned(cli, opt, &in, (const char *const *)a->words);
	} else if (intake_program(&in, opt, words, a->nwords ? a->nwords : 1, &t) < 0) {
		status = trouble_say(&t, cli->json, in.status);
	} else {
		argv = with_args(&in, in.lang ? in.lang->run : NULL);
		status = packages_for(opt, cli, a, OPT_PACKAGE, in.lang ? in.lang->name : NULL);
		if (!status)
			status = run_planned(cli, opt, &in, argv);
	}
	intake_fini(&in);
	return status;
}

static int run(const struct cli *cli, const struct args *a)
{
	struct options opt;
	struct trouble t;
	int status;

	if (!a->nwords && (a->dashes || !args_has(a, OPT_TEMPLATE) || isatty(0)))
		return nothing_to_run(cli);
	if (a->dashes && args_has(a, OPT_TEMPLATE)) {
		trouble_what(&t, "usage", "a template runs a file, not a command");
		trouble_hint(&t, "file", "atoll run -t NAME FILE");
		trouble_hint(&t, "command", "atoll run -- CMD");
		return trouble_say(&t, cli->json, STATUS_USAGE);
	}
	if (options_read(&opt, cli, a, &t) < 0)
		return trouble_say(&t, cli->json, STATUS_USAGE);
	status = run_words(cli, &opt, a);
	options_fini(&opt);
	return status;
}

static const struct example examples[] = {
	{ "atoll run hello.py", "run a local file in a fresh box, then delete the box" },
	{ "atoll run analyse.py data.csv", "files named as arguments are copied in" },
	{ "atoll run --mem 256M --cpu 0.5 --time 30s main.c", "compile and run, with limits" },
	{ "echo 'print(6*7)' | atoll run -t python -", "code from stdin" },
	{ "atoll run -p numpy -p pandas==1.5 x.py", "with packages; the daemon installs them once" },
	{ "atoll run -w . -- make test", "copy this folder in, run a command" },
	{ "atoll run --report r.json job.py", "the full record of the run as JSON" },
	{ 0 },
};

static const char notes[] =
	"FILE's template is found by its ending or its #! line. An argument that names a local file\n"
	"is copied in; where its place changes, the argument does too. stdin is passed on if it is a\n"
	"pipe or a file, or with -i. A second Ctrl-C within two seconds kills the program.\n"
	"Exit status: the program's; 128+N if signal N ended it; 124 time limit; 126 cannot execute;\n"
	"127 not found; 125 atoll itself failed. --json and --report carry the cause.";

const struct verb verb_run = {
	.name = "run",
	.group = "Run",
	.usage = "[FLAGS] FILE [ARGS...] | - | -- CMD [ARGS...]",
	.summary = "run a program in a fresh box, then delete the box",
	.notes = notes,
	.flags = options_flags,
	.nflags = OPT_COUNT,
	.own_words = 1,
	.examples = examples,
	.run = run,
};
