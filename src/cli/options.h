/* options.h - how a box is wanted: the flags that `run` and `shell` share.
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
	OPT_WORKDIR,
	OPT_REPORT,
	OPT_NO_TTY,
	OPT_INTERACTIVE,
	OPT_ROOT,
	OPT_COLD,
#ifdef ATOLL_TEST
	OPT_WITHOUT,
#endif
	OPT_COUNT,
};
extern const struct flag options_flags[OPT_COUNT];

struct options {
	const char *template; /* NULL: to be found out */
	struct wire_limits limits;
	uint32_t wall_ms;
	const char **env; /* NULL-terminated, complete; the array is ours */
	const char *workdir, *report;
	int no_tty, interactive, root;
	uint16_t create_flags;
	uint64_t without_launch, without_init;
};

must_check int options_read(struct options *o, const struct cli *cli, const struct args *a,
			    struct trouble *t);
void options_fini(struct options *o);
