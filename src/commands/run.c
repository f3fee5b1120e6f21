/* run.c - `atoll run`: runs a program in a fresh box, which ends with it. */
#include "base/cleanup.h"
#include "cli/compiled.h"
#include "cli/run_inputs.h"
#include "cli/package_request.h"
#include "cli/api_client.h"
#include "cli/run_hermetic.h"
#include "cli/run_remote.h"
#include "cli/local_run.h"
#include "commands/commands.h"
#include "cli/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A row of the language's table, followed by the program's arguments. The caller frees it. */
static const char **run_do_words(uint64_t memory, const struct run_inputs *in,
				 const char *const *row, int with_args)
{
	static const char *const as_it_is[] = { "{source}", NULL };

	return program_words(&in->program, row ? row : as_it_is,
			     with_args ? (const char *const *)in->args : NULL, memory);
}

/* A compiler that fails is the run's result: its status, its messages, its record. */
static int run_compiler(struct local_run *s, const struct run_inputs *in, const char *const *argv,
			struct compiled *cache, int *out_status, struct err *e)
{
	struct exit_info end;
	int no_stdin = s->no_stdin;

	s->no_stdin = 1; /* it is the program's */
	s->compiling = 1;
	if (local_run_exec(s, argv, &end, e) < 0)
		return -1;
	s->no_stdin = no_stdin;
	if (cause_of(&end) != CAUSE_EXIT || end.exit.status != 0)
		*out_status = local_run_report(s, in->template, argv, &end);
	else if (!s->printed)
		compiled_keep(cache, s, in);
	s->compiling = 0;
	return 0;
}

static int run_compile(struct local_run *s, const struct run_inputs *in, int *out_status,
		       struct err *e)
{
	auto_free const char **argv =
		run_do_words(s->box.about.limits.mem_bytes, in, in->program.compile, 0);
	struct compiled cache;
	int rc;

	compiled_init(&cache, s, in, argv);
	rc = compiled_take(&cache, s, in, e);
	if (rc == 0)
		rc = run_compiler(s, in, argv, &cache, out_status, e);
	compiled_fini(&cache);
	return rc < 0 ? -1 : 0;
}

/* command NULL: the command of the plan. */
static int in_box(struct local_run *s, const struct run_inputs *in, const char *const *command,
		  int *out_status, struct err *e)
{
	int compiled = in->program.lang && in->program.compile[0];
	auto_free const char **planned = NULL;
	const char *const *argv = command;
	struct exit_info end;

	if (run_inputs_put(in, s, e) < 0 || (compiled && run_compile(s, in, out_status, e) < 0))
		return -1;
	if (*out_status)
		return 0;
	/* Later changes are made by the program itself. */
	if ((s->cli->json || s->opt->report || s->opt->out) && s->files_put &&
	    changes_before(&s->changes, &s->box, e) < 0)
		return -1;
	if (!command)
		argv = planned = run_do_words(s->box.about.limits.mem_bytes, in,
					      in->program.lang ? in->program.lang->run : NULL, 1);
	s->warm = !command;
	s->last = !s->cli->json && !s->opt->report &&
		  !s->opt->out; /* a record lists which files have changed */
	if (local_run_exec(s, argv, &end, e) < 0)
		return -1;
	*out_status = local_run_report(s, in->template, argv, &end);
	return 0;
}

static int is_set(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return 1;
	return 0;
}

/* The language's limits where the command line has none. Its variables are added to opt's array;
 * *out_text has their text, to be freed. */
static void add_language_defaults(struct options *opt, const struct lang *l, char **out_text)
{
	unsigned n = 0, more = 0;
	size_t size = 1;
	char *to;

	for (; opt->env[n]; n++)
		;
	for (const struct lang_pair *p = l->env; p->key; p++, more++)
		size += strlen(p->key) + strlen(p->value) + 2;
	opt->env = realloc(opt->env, (n + more + 1) * sizeof(*opt->env));
	to = *out_text = malloc(size);
	if (!opt->env || !to)
		abort();
	for (const struct lang_pair *p = l->env; p->key; p++) {
		if (is_set(opt->env, p->key))
			continue;
		opt->env[n++] = to;
		opt->env[n] = NULL;
		to += sprintf(to, "%s=%s", p->key, p->value) + 1;
	}
	if (l->limits.memory && opt->limits.mem_bytes == WIRE_DEFAULT)
		opt->limits.mem_bytes = l->limits.memory;
	if (l->limits.disk && opt->limits.disk_bytes == WIRE_DEFAULT)
		opt->limits.disk_bytes = l->limits.disk;
	if (l->limits.processes && opt->limits.pids == (uint32_t)WIRE_DEFAULT)
		opt->limits.pids = l->limits.processes;
}

static int run_away(const struct cli *cli, const struct args *a, const struct options *opt,
		    const struct run_inputs *in, const char *const *command)
{
	uint64_t memory = opt->limits.mem_bytes == WIRE_DEFAULT ? 0 : opt->limits.mem_bytes;
	auto_free const char **planned =
		command ? NULL
			: run_do_words(memory, in, in->program.lang ? in->program.lang->run : NULL,
				       1);
	auto_free const char **compiler = in->program.lang && in->program.compile[0]
						  ? run_do_words(memory, in, in->program.compile, 0)
						  : NULL;

	return run_remote(cli, a, opt, in, command ? command : planned, compiler);
}

static int run_planned(const struct cli *cli, const struct args *a, struct options *opt,
		       const struct run_inputs *in, const char *const *command)
{
	auto_free char *variables = NULL;
	struct local_run s;
	struct err e;
	int status = 0;

	if (in->program.lang)
		add_language_defaults(opt, in->program.lang, &variables);
	if (args_has(a, OPT_HERMETIC))
		return run_hermetic(cli, a, opt, in, command);
	/* Only the daemon has the policy of tiers and the proofs. */
	if (opt->built || opt->isolation || opt->trust || run_remote_wanted(cli))
		return run_away(cli, a, opt, in, command);
	if (local_run_open(&s, cli, opt, in->program.warm ? in->program.warm : "", &e) < 0) {
		local_run_close(&s);
		return local_run_failed(cli, &e);
	}
	s.twice = 1;
	s.lang = in->program.lang;
	s.no_stdin = in->from_stdin;
	if (in_box(&s, in, command, &status, &e) < 0)
		status = local_run_failed(cli, &e);
	local_run_close(&s);
	return status;
}

static int nothing_to_run(const struct cli *cli)
{
	struct cli_error t;

	cli_error_what(&t, "usage", "run: missing file or command");
	cli_error_hint(&t, "file", "atoll run hello.py");
	cli_error_hint(&t, "command", "atoll run -- ls -l");
	cli_error_hint(&t, "code", "echo 'print(6*7)' | atoll run -t python -");
	return cli_error_print(&t, cli->json, STATUS_USAGE);
}

static int run_words(const struct cli *cli, struct options *opt, const struct args *a)
{
	static char *const from_stdin[] = { "-", NULL };
	char *const *words = a->nwords ? a->words : from_stdin;
	struct run_inputs in;
	struct cli_error t;
	int status;

	if (a->dashes && a->nwords) {
		status = run_inputs_folder(&in, opt, &t) < 0
				 ? cli_error_print(&t, cli->json, in.status)
				 : package_request_for(opt, cli, a, OPT_PACKAGE, NULL);
		if (!status)
			status = run_planned(cli, a, opt, &in, (const char *const *)a->words);
	} else if (run_inputs_program(&in, opt, words, a->nwords ? a->nwords : 1, &t) < 0) {
		status = cli_error_print(&t, cli->json, in.status);
	} else {
		status = package_request_for(opt, cli, a, OPT_PACKAGE,
					     in.program.lang ? in.program.lang->name : NULL);
		if (!status)
			status = run_planned(cli, a, opt, &in, NULL);
	}
	run_inputs_fini(&in);
	return status;
}

struct once {
	const struct cli *cli;
	const struct args *args;
	const char *built; /* template of the daemon, or NULL */
};

/* The value of --template, if it is no language and the daemon has a template of that name. */
static const char *run_built_template(const struct cli *cli, const struct args *a)
{
	const char *wanted = args_text(a, OPT_TEMPLATE, NULL);
	char name[LANG_NAME + 1];
	struct api_client r;
	json_t *found = NULL;

	if (!wanted)
		return NULL;
	lang_pin(wanted, name);
	if (lang_named(name))
		return NULL;
	if (api_client_open(&r, cli) == 0)
		found = api_client_get(&r, "/v1/templates/%s", wanted);
	api_client_close(&r);
	json_decref(found);
	return found ? wanted : NULL;
}

static int run_once(void *ctx)
{
	const struct once *o = ctx;
	struct options opt;
	struct cli_error t;
	int status;

	if (options_read(&opt, o->cli, o->args, &t) < 0)
		return cli_error_print(&t, o->cli->json, STATUS_USAGE);
	if (o->built) {
		opt.built = o->built;
		opt.template = args_text(o->args, OPT_LANG, NULL);
	}
	status = run_words(o->cli, &opt, o->args);
	options_fini(&opt);
	return status;
}

/* The arguments that name files here, one after the other; those of a command are paths of the
 * box. */
static int run_watched(const struct cli *cli, const struct args *a, struct once *once)
{
	auto_free const char **files = calloc(a->nwords + 1, sizeof(*files));
	struct watch_files what = { .files = files,
				    .folder = args_text(a, OPT_WORKDIR, NULL),
				    .ignore = args_text(a, OPT_REPORT, NULL) };
	struct cli_error t;
	struct stat st;
	unsigned n = 0;
	struct err e;
	int status;

	if (!files)
		abort();
	for (unsigned i = 0; i < a->nwords && !a->dashes; i++)
		if (i == 0 || (stat(a->words[i], &st) == 0 && S_ISREG(st.st_mode)))
			files[n++] = a->words[i];
	if (!what.folder && (!n || !strcmp(files[0], "-"))) {
		cli_error_what(&t, "usage", "--watch: there is no file to watch");
		cli_error_hint(&t, "file", "atoll run --watch FILE");
		cli_error_hint(&t, "folder", "atoll run --watch -w DIR -- CMD");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	status = watch_loop(&what, run_once, once, cli->quiet, &e);
	return status < 0 ? local_run_failed(cli, &e) : status;
}

static int run_run(const struct cli *cli, const struct args *a)
{
	struct once once = { cli, a, run_built_template(cli, a) };
	int named = (args_has(a, OPT_TEMPLATE) && !once.built) || args_has(a, OPT_LANG);
	struct cli_error t;

	if (args_has(a, OPT_WATCH) && args_has(a, OPT_OUT)) {
		cli_error_what(&t, "usage", "--watch and --out cannot be combined");
		cli_error_why(&t, "the copied files would start the next run");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (args_has(a, OPT_REUSE) && !args_has(a, OPT_HERMETIC)) {
		cli_error_what(&t, "usage",
			       "--reuse: only the result of a hermetic run can be used again");
		cli_error_hint(&t, "type", "atoll run --hermetic --reuse FILE");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (!a->nwords && (a->dashes || !named || isatty(0)))
		return nothing_to_run(cli);
	if (a->dashes && named) {
		cli_error_what(&t, "usage", "a template runs a file, not a command");
		cli_error_hint(&t, "file", "atoll run -t NAME FILE");
		cli_error_hint(&t, "command", "atoll run -- CMD");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (args_has(a, OPT_PACKAGE) || args_has(a, OPT_HERMETIC) || args_has(a, OPT_ISOLATION) ||
	    args_has(a, OPT_TRUST) || run_remote_wanted(cli))
		api_client_prepare(cli);
	return args_has(a, OPT_WATCH) ? run_watched(cli, a, &once) : run_once(&once);
}

static const struct example examples[] = {
	{ "atoll run hello.py", "run a local file in a new box, then delete the box" },
	{ "atoll run analyse.py data.csv", "copy files that are arguments into the box" },
	{ "atoll run --mem 256M --cpu 0.5 --time 30s main.c", "compile and run, with limits" },
	{ "echo 'print(6*7)' | atoll run -t python -", "run code from stdin" },
	{ "atoll run --watch -w src src/main.rs", "run again when a file of the folder changes" },
	{ "atoll run -p numpy -p pandas==1.5 x.py",
	  "run with packages; the daemon installs them once" },
	{ "atoll run -w . -- make test", "run a command in a copy of this folder" },
	{ "atoll run --out plots draw.py",
	  "copy the files that the program creates to the folder plots" },
	{ "atoll -H https://box.example.org run x.py", "run in a box of another machine's daemon" },
	{ "atoll run -t web:v2 -- npm test", "run in a box of a template of the daemon" },
	{ "atoll run --isolation gvisor+ x.py", "run in gVisor or in a stronger isolation tier" },
	{ "atoll run --hermetic --reuse solve.py", "do not run again what has run before" },
	{ "atoll run --report r.json job.py", "write the full run record as JSON" },
	{ 0 },
};

static const char notes[] =
	"The extension or the #! line of FILE selects the template. Arguments that name local files are copied\n"
	"into the box and replaced by their path in the box. A program of one file is not compiled again,\n"
	"unless --cold is given; the cache is ~/.cache/atoll. stdin is forwarded if it is a pipe or a file, or\n"
	"with -i. --out copies regular files that the program created or changed below its home, /home/user,\n"
	"even if the program fails. A second Ctrl-C within two seconds kills the program. With -H or\n"
	"ATOLL_HOST, the selected daemon creates the box and deletes it afterwards; the same with --isolation\n"
	"or --trust, which need a daemon.\n"
	"Exit status: the program's; 128+N if signal N ended it; 124 time limit; 126 cannot execute;\n"
	"127 not found; 125 atoll itself failed. --json and --report contain the cause.";

const struct command command_run = {
	.name = "run",
	.group = "Run",
	.usage = "[FLAGS] FILE [ARGS...] | - | -- CMD [ARGS...]",
	.summary = "run a program in a new box, then delete the box",
	.notes = notes,
	.flags = options_flags,
	.nflags = OPT_COUNT,
	.own_words = 1,
	.examples = examples,
	.run = run_run,
};
