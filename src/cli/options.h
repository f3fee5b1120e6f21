/* options.h - the parameters of a box: the flags that `run` and `shell` share.
 * Borrows the command line it was read from. */
#pragma once
#include "cli/args.h"
#include "wire/wire.h"

enum {
	OPT_TEMPLATE,
	OPT_MEM,
	OPT_CPU,
	OPT_TIME,
	OPT_CPU_TIME,
	OPT_DISK,
	OPT_FILES,
	OPT_PIDS,
	OPT_ENV,
	OPT_NET,
	OPT_PACKAGE,
	OPT_WORKDIR,
	OPT_REPORT,
	OPT_NO_TTY,
	OPT_INTERACTIVE,
	OPT_ROOT,
	OPT_COLD,
	OPT_ISOLATION,
	OPT_TRUST,
#ifdef ATOLL_TEST
	OPT_WITHOUT,
#endif
	OPT_SHARED, /* these are for `run` alone: */
	OPT_LANG = OPT_SHARED,
	OPT_COMPILER,
	OPT_WATCH,
	OPT_OUT,
	OPT_HERMETIC,
	OPT_REUSE,
	OPT_COUNT,
};
extern const struct flag options_flags[OPT_COUNT];

/* Rows that other commands have, too. */
#define OPTION_MEM                                                                                 \
	{                                                                                          \
		"mem", 'm', FLAG_SIZE, "SIZE", "memory of all processes together (512M)"           \
	}
#define OPTION_CPU                                                                                 \
	{                                                                                          \
		"cpu", 0, FLAG_CPUS, "N", "processors; 0.5 is half of one (1)"                     \
	}
#define OPTION_CPU_TIME                                                                            \
	{                                                                                          \
		"cpu-time", 0, FLAG_TIME, "TIME", "CPU time of all processes together (no limit)"  \
	}
#define OPTION_DISK                                                                                \
	{                                                                                          \
		"disk", 0, FLAG_SIZE_OR_NONE, "SIZE",                                              \
			"disk space; none: half of the memory, at most 256M (none)"                \
	}
#define OPTION_FILES                                                                               \
	{                                                                                          \
		"files", 0, FLAG_COUNT, "N", "number of files that may be created (65536)"         \
	}
#define OPTION_PIDS                                                                                \
	{                                                                                          \
		"pids", 0, FLAG_COUNT, "N", "processes and threads at the same time (512)"         \
	}
#define OPTION_ENV                                                                                 \
	{                                                                                          \
		"env", 'e', FLAG_ENV, "NAME=VALUE", "an environment variable; may be repeated"     \
	}
#define OPTION_NO_TTY                                                                              \
	{                                                                                          \
		"no-tty", 'T', FLAG_SWITCH, NULL, "give the program no terminal"                   \
	}
#define OPTION_INTERACTIVE                                                                         \
	{                                                                                          \
		"interactive", 'i', FLAG_SWITCH, NULL, "forward stdin, even from a terminal"       \
	}
#define OPTION_ROOT                                                                                \
	{                                                                                          \
		"root", 0, FLAG_SWITCH, NULL, "run as the box's root, with its few capabilities"   \
	}
#define OPTION_COLD                                                                                \
	{                                                                                          \
		"cold", 0, FLAG_SWITCH, NULL, "create a new box instead of a pooled one"           \
	}

#define OPTION_ISOLATION                                                                                          \
	{                                                                                                         \
		"isolation", 0, FLAG_TEXT, "TIER",                                                                \
			"isolation tier: auto, container, gvisor, microvm ...; gvisor+: at least this one (auto)" \
	}
#define OPTION_TRUST                                                                               \
	{                                                                                          \
		"trust", 0, FLAG_TEXT, "LABEL",                                                    \
			"of the code: trusted, generated, untrusted, hostile (generated)"          \
	}

struct options {
	const char *template; /* NULL: to be found out */
	const char *built;    /* template of the daemon from which the box starts, or NULL */
	struct wire_limits limits;
	uint32_t wall_ms;
	const char **env; /* NULL-terminated, complete; owned by this struct */
	const char *workdir, *report;
	const char *out;               /* folder for changed files, or NULL */
	const char *compiler;          /* NULL: the usual one */
	const char *isolation, *trust; /* NULL: not given; the daemon reads them */
	int no_tty, interactive, root;
	uint16_t create_flags;
	uint64_t without_launch, without_init;
	char layers[WIRE_LAYERS][WIRE_LAYER_ID]; /* of its packages */
	unsigned nlayers;
};

must_check int options_read(struct options *o, const struct cli *cli, const struct args *a,
			    struct cli_error *t);
void options_fini(struct options *o);
const char *options_terminal(void); /* "TERM=..." of this process, or a default */
