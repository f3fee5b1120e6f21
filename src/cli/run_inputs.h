/* run_inputs.h - the files that are copied from this machine into the box: the program, the files
 * its arguments name, a folder. Everything is checked before a box exists, so that a typing error
 * is reported at once.
 * Owns: the plan.
 * Does not own: the command line it was made from. */
#pragma once
#include "base/buf.h"
#include "cli/options.h"
#include "cli/local_run.h"
#include "lang/program.h"

/* Of a file named as an argument, and of code from stdin. */
#define RUN_INPUTS_FILE_MAX (UINT64_C(64) << 20)

struct run_inputs_file {
	char *from, *to; /* here, there */
};

struct run_inputs {
	struct run_inputs_file *files;
	unsigned nfiles;
	int workdir;            /* O_DIRECTORY, or -1 */
	char *root;             /* its real path, to find files below it */
	struct program program; /* .lang NULL: run the program as it is */
	const char *template;   /* its name, for the record */
	int from_stdin;
	struct buf code; /* with from_stdin */
	char **args;     /* of the program, with the paths in the box; NULL-terminated */
	unsigned nargs;
	int status; /* for a plan that failed */
};

/* For `run FILE ARGS`; words[0] may be "-". */
must_check int run_inputs_program(struct run_inputs *in, const struct options *opt,
				  char *const *words, unsigned nwords, struct cli_error *t);
/* For `run -- COMMAND`: only the folder. */
must_check int run_inputs_folder(struct run_inputs *in, const struct options *opt,
				 struct cli_error *t);
/* Carries it out. */
must_check int run_inputs_put(const struct run_inputs *in, struct local_run *s, struct err *e);
void run_inputs_fini(struct run_inputs *in);
