/* args.h - the description of a command, and its command line parsed by the command's own table.
 * The same rows are used for parsing, `atoll COMMAND -h`, `atoll help COMMAND` and the hints for
 * mistyped names. */
#pragma once
#include "cli/cli_error.h"
#include <stddef.h>
#include <stdint.h>

enum flag_type {
	FLAG_SWITCH,
	FLAG_TEXT,
	FLAG_SIZE,         /* bytes */
	FLAG_SIZE_OR_NONE, /* the same; `none`: as if the flag was not given, as in the settings */
	FLAG_TIME,         /* milliseconds */
	FLAG_CPUS,         /* thousandths */
	FLAG_COUNT,        /* 1 to 2^31 */
	FLAG_ENV,          /* NAME=VALUE; may be repeated */
	FLAG_WORDS,        /* text that may be repeated */
};

struct flag {
	const char *name;
	char letter; /* 0: none */
	enum flag_type type;
	const char *metavar, *help;
};

/* Flags that every command has, numbered apart from its own. */
enum {
	ARG_HELP = 100,
	ARG_JSON,
	ARG_QUIET,
	ARG_VERBOSE,
	ARG_COLOR,
	ARG_HOST,
	ARG_END,
};
extern const struct flag args_common[]; /* [ARG_x - ARG_HELP] */
extern const unsigned args_ncommon;

struct cli;
struct args;

struct example {
	const char *line, *what; /* an example command line, and its effect */
};

struct command {
	const char *name;
	const char *group;   /* heading in the overview; NULL: not shown */
	const char *usage;   /* "FILE [ARGS...]" */
	const char *summary; /* one line, lower case, no full stop */
	const char *notes;   /* more, for help; or NULL */
	const char *words;   /* allowed values of its first word, separated by blanks; or NULL */
	const struct flag *flags;
	unsigned nflags;
	unsigned own_words; /* from this argument on (1: the first) everything belongs to the
			     * program */
	unsigned max_words;
	const struct example *examples; /* up to one without a line */
	int (*run)(const struct cli *cli, const struct args *a);
};

struct given {
	unsigned flag; /* index into the command's flags, or ARG_x */
	const char *text;
	uint64_t value;
};

struct args {
	const struct command *command;
	struct given *given;
	unsigned ngiven;
	char **words;
	unsigned nwords;
	int dashes; /* the words came after "--" */
};

/* argv[0] is the name of the command. On -1 t has the reason: exit 2. */
must_check int args_parse(struct args *a, const struct command *command, int argc, char **argv,
			  struct cli_error *t);
void args_fini(struct args *a);

int args_has(const struct args *a, unsigned flag);
/* The last one given, or the default. */
const char *args_text(const struct args *a, unsigned flag, const char *otherwise);
uint64_t args_value(const struct args *a, unsigned flag, uint64_t otherwise);

/* The daemon that commands connect to, from the settings. */
struct endpoint {
	char where[300]; /* "unix:/path", "http://host:port", "https://host:port" */
	char key[64];    /* "": none */
	int chosen;      /* a flag, a variable or a setting named it; else it is the default
			  * place */
};

struct build_info;
/* The arguments that main() passes to every command. */
struct cli {
	const struct command *const *commands; /* NULL-terminated */
	const struct build_info *build;        /* for `atoll version` */
	const char *const *layers;             /* names by bit, NULL-terminated */
	/* Test builds: bits of the row to leave out, in the launcher's table or in init's. */
	int (*without)(const char *row, uint64_t *launch, uint64_t *init);
	/* Called only by commands that need it: reading files takes time, and they may be
	 * invalid. */
	int (*reach)(struct endpoint *out, struct err *e);
	/* The TCP port that `atoll serve` would listen on by the settings; 0: none, or any.
	 * NULL: not atolld. */
	unsigned (*listen_port)(void);
	/* Starts atolld with the same command line: for a command, a flag or an address that
	 * this executable cannot handle. Does not return; prints an error if it fails. NULL:
	 * this is atolld. */
	void (*hand_over)(const struct cli *cli) __attribute__((noreturn));
	const char *host; /* -H, or NULL */
	char **argv;      /* the complete command line, as main() got it */
	int json, quiet, verbose;
	int color; /* stdout may have colours */
};
