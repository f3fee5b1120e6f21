/* options.c - see options.h. */
#include "cli/options.h"
#include "base/own.h"
#include "box/box.h"

#include <stdio.h>
#include <string.h>

const struct flag options_flags[OPT_COUNT] = {
	[OPT_TEMPLATE] = { "template", 't', FLAG_TEXT, "NAME",
			   "what runs the code: python, node, bash, c, ..." },
	[OPT_MEM] = { "mem", 'm', FLAG_SIZE, "SIZE", "memory of all processes together (512M)" },
	[OPT_CPU] = { "cpu", 0, FLAG_CPUS, "N", "processors, also parts of one (1)" },
	[OPT_TIME] = { "time", 0, FLAG_TIME, "TIME",
		       "wall clock, then it is killed: 30s, 5m (no limit)" },
	[OPT_CPU_TIME] = { "cpu-time", 0, FLAG_TIME, "TIME",
			   "CPU time of all processes together (no limit)" },
	[OPT_DISK] = { "disk", 0, FLAG_SIZE, "SIZE",
		       "what it may write to files; part of the memory (256M)" },
	[OPT_FILES] = { "files", 0, FLAG_COUNT, "N", "how many files it may make (65536)" },
	[OPT_PIDS] = { "pids", 0, FLAG_COUNT, "N", "processes and threads at once (512)" },
	[OPT_ENV] = { "env", 'e', FLAG_ENV, "NAME=VALUE",
		      "an environment variable; may be repeated" },
	[OPT_NET] = { "net", 0, FLAG_TEXT, "off", "a box has no network but its own loopback" },
	[OPT_WORKDIR] = { "workdir", 'w', FLAG_TEXT, "DIR",
			  "copy this folder's contents in and start there" },
	[OPT_REPORT] = { "report", 0, FLAG_TEXT, "FILE",
			 "write the record of the run here, as JSON" },
	[OPT_NO_TTY] = { "no-tty", 'T', FLAG_SWITCH, NULL,
			 "no terminal inside, even if there is one here" },
	[OPT_INTERACTIVE] = { "interactive", 'i', FLAG_SWITCH, NULL,
			      "pass stdin on, even from a terminal" },
	[OPT_ROOT] = { "root", 0, FLAG_SWITCH, NULL,
		       "as the box's root, with the few capabilities it may have" },
	[OPT_COLD] = { "cold", 0, FLAG_SWITCH, NULL, "a box made now, not a waiting one" },
#ifdef ATOLL_TEST
	[OPT_WITHOUT] = { "without", 0, FLAG_WORDS, "ROW",
			  "leave out a row of isolation (test builds only)" },
#endif
};

/* A name that came with us may be anything; a terminal type is a word. */
static const char *terminal_type(void)
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
	set_env(o->env, &n, terminal_type());
	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == OPT_ENV)
			set_env(o->env, &n, a->given[i].text);
}

static int read_without(struct options *o, const struct cli *cli, const struct args *a,
			struct trouble *t)
{
#ifdef ATOLL_TEST
	for (unsigned i = 0; i < a->ngiven; i++) {
		char shown[SHOWN];

		if (a->given[i].flag != OPT_WITHOUT ||
		    cli->without(a->given[i].text, &o->without_launch, &o->without_init) == 0)
			continue;
		trouble_what(t, "usage", "--without: no row named '%s'",
			     trouble_shown(a->given[i].text, shown));
		trouble_hint(t, "list", "atoll policy steps");
		return -1;
	}
#else
	(void)o, (void)cli, (void)a, (void)t;
#endif
	return 0;
}

int options_read(struct options *o, const struct cli *cli, const struct args *a, struct trouble *t)
{
	struct wire_limits l = box_default_limits();
	const char *net = args_text(a, OPT_NET, "off");
	char shown[SHOWN];

	*o = (struct options){
		.template = args_text(a, OPT_TEMPLATE, NULL),
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
		.no_tty = args_has(a, OPT_NO_TTY),
		.interactive = args_has(a, OPT_INTERACTIVE),
		.root = args_has(a, OPT_ROOT),
		.create_flags = args_has(a, OPT_COLD) ? WIRE_CREATE_COLD : 0,
	};
	if (strcmp(net, "off") != 0) {
		trouble_what(t, "usage", "--net: '%s' is not possible yet",
			     trouble_shown(net, shown));
		trouble_why(t, "network is off until egress exists");
		trouble_hint(t, "type", "--net off, or leave it out");
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
