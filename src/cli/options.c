/* options.c - see options.h. */
#include "cli/options.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "cli/package_request.h"

#include <stdio.h>
#include <string.h>

const struct flag options_flags[OPT_COUNT] = {
	[OPT_TEMPLATE] = { "template", 't', FLAG_TEXT, "NAME",
			   "language (python, node, c, ...), or a template of the daemon" },
	[OPT_MEM] = OPTION_MEM,
	[OPT_CPU] = OPTION_CPU,
	[OPT_TIME] = { "time", 0, FLAG_TIME, "TIME",
		       "wall time limit: 30s, 5m; then the program is killed (no limit)" },
	[OPT_CPU_TIME] = OPTION_CPU_TIME,
	[OPT_DISK] = OPTION_DISK,
	[OPT_FILES] = OPTION_FILES,
	[OPT_PIDS] = OPTION_PIDS,
	[OPT_ENV] = OPTION_ENV,
	[OPT_NET] = { "net", 0, FLAG_TEXT, "off", "no network except the box's own loopback" },
	[OPT_PACKAGE] = OPTION_PACKAGE,
	[OPT_WORKDIR] = { "workdir", 'w', FLAG_TEXT, "DIR",
			  "copy the contents of this folder into the box and start there" },
	[OPT_REPORT] = { "report", 0, FLAG_TEXT, "FILE",
			 "write the run record to this file, as JSON" },
	[OPT_NO_TTY] = OPTION_NO_TTY,
	[OPT_INTERACTIVE] = OPTION_INTERACTIVE,
	[OPT_ROOT] = OPTION_ROOT,
	[OPT_COLD] = OPTION_COLD,
	[OPT_ISOLATION] = OPTION_ISOLATION,
	[OPT_TRUST] = OPTION_TRUST,
#ifdef ATOLL_TEST
	[OPT_WITHOUT] = { "without", 0, FLAG_WORDS, "ROW",
			  "leave out a row of isolation (test builds only)" },
#endif
	[OPT_LANG] = { "lang", 'l', FLAG_TEXT, "NAME", "the same as --template" },
	[OPT_COMPILER] = { "compiler", 0, FLAG_TEXT, "NAME",
			   "compiler, if the language has a choice: gcc, clang" },
	[OPT_OUT] = { "out", 'o', FLAG_TEXT, "DIR",
		      "copy files that the program created or changed to this folder" },
	[OPT_HERMETIC] = { "hermetic", 0, FLAG_SWITCH, NULL,
			   "the result depends on the command line alone: no network, fixed hashes; needs a daemon" },
	[OPT_REUSE] = { "reuse", 0, FLAG_SWITCH, NULL,
			"with --hermetic: print the result of an earlier identical run, if there is one" },
	[OPT_WATCH] = { "watch", 0, FLAG_SWITCH, NULL, "run again when a file changes" },
};

/* The variable may contain anything; a terminal type is a word. */
const char *options_terminal(void)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+_-";
	static char var[64];
	const char *term = getenv("TERM");

	if (!term || !*term || strlen(term) > 40 || term[strspn(term, allowed)])
		term = "xterm-256color";
	snprintf(var, sizeof(var), "TERM=%s", term);
	return var;
}

static size_t name_length(const char *var)
{
	return strcspn(var, "=") + 1;
}

/* Later ones replace earlier ones of the same name. */
static void set_env(const char **env, unsigned *n, const char *var)
{
	for (unsigned i = 0; i < *n; i++) {
		if (!strncmp(env[i], var, name_length(var))) {
			env[i] = var;
			return;
		}
	}
	env[(*n)++] = var;
}

static void read_env(struct options *o, const struct args *a)
{
	unsigned room = a->ngiven + 2, n = 0;

	for (unsigned i = 0; box_default_env[i]; i++)
		room++;
	o->env = calloc(room, sizeof(*o->env));
	if (!o->env)
		abort();
	for (unsigned i = 0; box_default_env[i]; i++)
		set_env(o->env, &n, box_default_env[i]);
	set_env(o->env, &n, options_terminal());
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == OPT_ENV)
			set_env(o->env, &n, a->given[i].text);
}

static int read_without(struct options *o, const struct cli *cli, const struct args *a,
			struct cli_error *t)
{
#ifdef ATOLL_TEST
	for (unsigned i = 0; i < a->ngiven; i++) {
		char shown[SHOWN];

		if (a->given[i].flag == OPT_WITHOUT && cli->hand_over)
			cli->hand_over(cli); /* only atolld has the rows */
		if (a->given[i].flag != OPT_WITHOUT ||
		    cli->without(a->given[i].text, &o->without_launch, &o->without_init) == 0)
			continue;
		cli_error_what(t, "usage", "--without: no row named '%s'",
			       cli_error_shown(a->given[i].text, shown));
		cli_error_hint(t, "list", "atoll policy steps");
		return -1;
	}
#else
	(void)o, (void)cli, (void)a, (void)t;
#endif
	return 0;
}

int options_read(struct options *o, const struct cli *cli, const struct args *a,
		 struct cli_error *t)
{
	struct wire_limits l = box_default_limits();
	const char *net = args_text(a, OPT_NET, "off");
	char shown[SHOWN];

	*o = (struct options){
		.template = args_text(a, OPT_TEMPLATE, args_text(a, OPT_LANG, NULL)),
		.compiler = args_text(a, OPT_COMPILER, NULL),
		.limits = {
			.mem_bytes = args_value(a, OPT_MEM, l.mem_bytes),
			.disk_bytes = args_value(a, OPT_DISK, l.disk_bytes),
			.disk_files = args_value(a, OPT_FILES, l.disk_files),
			.cpu_ms = args_value(a, OPT_CPU_TIME, l.cpu_ms),
			.cpu_milli = (uint32_t)args_value(a, OPT_CPU, l.cpu_milli),
			.pids = (uint32_t)args_value(a, OPT_PIDS, l.pids),
		},
		.wall_ms = (uint32_t)args_value(a, OPT_TIME, 0),
		.workdir = args_text(a, OPT_WORKDIR, NULL),
		.report = args_text(a, OPT_REPORT, NULL),
		.out = args_text(a, OPT_OUT, NULL),
		.isolation = args_text(a, OPT_ISOLATION, NULL),
		.trust = args_text(a, OPT_TRUST, NULL),
		.no_tty = args_has(a, OPT_NO_TTY),
		.interactive = args_has(a, OPT_INTERACTIVE),
		.root = args_has(a, OPT_ROOT),
		.create_flags = args_has(a, OPT_COLD) ? WIRE_CREATE_COLD : 0,
	};
	if (strcmp(net, "off") != 0) {
		cli_error_what(t, "usage", "--net: '%s' is not supported",
			       cli_error_shown(net, shown));
		cli_error_why(t, "only a box of the daemon can have allowed hosts: network.allow");
		cli_error_hint(t, "type", "--net off, or leave it out");
		return -1;
	}
	if (read_without(o, cli, a, t) < 0)
		return -1;
	read_env(o, a);
	return 0;
}

void options_fini(struct options *o)
{
	free(o->env);
	o->env = NULL;
}
