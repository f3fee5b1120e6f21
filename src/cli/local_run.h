/* local_run.h - one box for one command line: from its creation to the record of its end.
 * Owns:         the connection to the keeper, and the box (kill on close: it ends with this
 *               process).
 * Does not own: the options it was opened with. */
#pragma once
#include "base/buf.h"
#include "client/box_handle.h"
#include "record/cause.h"
#include "record/changes.h"
#include "client/files.h"
#include "cli/bring.h"
#include "cli/options.h"
#include "lang/lang.h"

struct local_run {
	/* clang-format off */
	const struct cli *cli;
	const struct options *opt;
	struct keeper_sync keeper;
	struct box_handle box;
	struct files files;
	struct changes changes;
	struct bring bring;
	int changed_rc; /* of changes_after() */
	uint64_t create_us, started_ns, ended_ns;
	struct buf output[2]; /* with --json */
	uint64_t dropped[2];
	int twice;     /* two Ctrl-C kill, also inside a terminal */
	int no_stdin;  /* stdin was the code of the program */
	int warm;    /* the next command may be the warm interpreter that waits in the box */
	int last;      /* the box is for the next command only: no request follows it */
	int files_put; /* something was copied in */
	const struct lang *lang; /* the language whose errors the record should parse; NULL: none */
	uint64_t printed;        /* bytes of the last command, on both streams */
	int compiling;           /* it is the compiler that runs */
	struct buf said;         /* by it, for that */
	/* clang-format on */
};

/* The interpreter that should wait in the box (warm interpreter), or "". */
must_check int local_run_open(struct local_run *s, const struct cli *cli, const struct options *opt,
			      const char *warm, struct err *e);
must_check int local_run_files(struct local_run *s, struct err *e); /* makes s->files usable */
/* Runs one command to its end. */
must_check int local_run_exec(struct local_run *s, const char *const *argv, struct exit_info *out,
			      struct err *e);
/* Prints messages, writes the record, returns the exit status. */
int local_run_report(struct local_run *s, const char *template, const char *const *argv,
		     const struct exit_info *end);
void local_run_close(struct local_run *s);

/* Prints a failure of atoll itself, with the hint for its kind. Returns the exit status. */
int local_run_failed(const struct cli *cli, const struct err *e);
