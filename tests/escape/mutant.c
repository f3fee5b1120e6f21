/* mutant.c - runs a program in a box with skipped isolation steps.
 *
 * mutant [-w TABLE:ROW]... [-f BYTES] [-g GROUP] [-rtnsp] PROGRAM [ARG...]
 *
 * -w   leave out a row: `steps:landlock` of the launcher's table, `exec:uid` of init's table,
 *      `seal:identity` of the table of a forked interpreter
 * -f   limit the size of files (RLIMIT_FSIZE)
 * -g   with -s: fork from a zygote of this group; the daemon has one for each team
 * -r   run as the box's root
 * -t   run on a terminal of the box
 * -s   a Python interpreter that was forked into the box executes PROGRAM
 * -p   with -s: PROGRAM is python3 with its arguments, and the interpreter is executed directly
 * -n   PROGRAM is a path of the box; otherwise this host's file is put there and run
 *
 * Only a keeper and an init with test hooks accept this; others reject it, which is tested, too.
 * Exit status: the program's, 128 + signal, or 125 when there was no box or no program to run;
 * the reason is on stderr then. `atoll run --without` is the same for users, but skips steps of
 * one name in both tables at once. */
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "client/files.h"
#include "client/exec_pump.h"
#include "init/exec_steps.h"
#include "jail/launch.h"
#include "zygote/confine_steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSED = 125 };
enum { SEED_TRIES = 400, SEED_WAIT_US = 25000 };

static const char *const seal_names[] = {
#define ROW(id, name, why) name,
	SEAL_ROWS(ROW)
#undef ROW
};

struct wish {
	uint64_t steps, exec, seal, fsize_bytes;
	uint32_t group;
	int root, terminal, is_inside, warm, python;
	char **program;
};

static int leave_out(struct wish *w, const char *row)
{
	if (!strncmp(row, "steps:", 6))
		for (unsigned i = 0; i < jail_nsteps; i++)
			if (!strcmp(jail_step_rows[i].name, row + 6))
				return w->steps |= UINT64_C(1) << i, 0;
	if (!strncmp(row, "exec:", 5))
		for (unsigned i = 0; i < NROWS; i++)
			if (!strcmp(inside_names[i], row + 5))
				return w->exec |= UINT64_C(1) << i, 0;
	if (!strncmp(row, "seal:", 5))
		for (unsigned i = 0; i < ARRAY_LEN(seal_names); i++)
			if (!strcmp(seal_names[i], row + 5))
				return w->seal |= UINT64_C(1) << i, 0;
	fprintf(stderr, "mutant: no row '%s'\n", row);
	return -1;
}

static int parse(struct wish *w, int argc, char **argv)
{
	int flag;

	while ((flag = getopt(argc, argv, "+w:f:g:rtnsp")) > 0) {
		if (flag == 'w' && leave_out(w, optarg) < 0)
			return -1;
		if (flag == 'g')
			w->group = (uint32_t)strtoul(optarg, NULL, 10);
		if (flag == '?')
			return -1;
		w->root |= flag == 'r';
		w->terminal |= flag == 't';
		w->is_inside |= flag == 'n';
		w->warm |= flag == 's';
		w->python |= flag == 'p';
		if (flag == 'f')
			w->fsize_bytes = strtoull(optarg, NULL, 10);
	}
	w->program = argv + optind;
	return optind < argc ? 0 : -1;
}

static int bring(struct box_handle *b, const char *file, struct err *e)
{
	auto_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct files f;
	int done;

	if (fd < 0)
		return err_sys(e, "open %s", file);
	if (files_open(&f, b, e) < 0)
		return -1;
	done = files_put(&f, fd, "probe", 0755, e);
	files_close(&f);
	return done;
}

static const char *const *by_warm(char **program)
{
	enum { MOST = 60 };
	static const char *argv[MOST] = {
		"/usr/bin/python3",
		"-c",
		/* Python ignores two signals; the executed program should not. */
		"import os, sys, signal\n"
		"for s in signal.SIGPIPE, signal.SIGXFSZ: signal.signal(s, signal.SIG_DFL)\n"
		"os.execv(sys.argv[1], sys.argv[1:])",
	};

	for (unsigned i = 0; i < MOST - 4 && program[i]; i++)
		argv[3 + i] = program[i];
	return argv;
}

static int run(struct box_handle *b, struct wish *w, struct wire_exit *out, struct err *e)
{
	struct box_command cmd = {
		.argv = (const char *const *)w->program,
		.fsize_bytes = w->fsize_bytes,
		.without = w->exec,
		.flags = (uint16_t)((w->terminal ? WIRE_START_PTY : 0) |
				    (w->root ? WIRE_START_ROOT : 0)),
		.rows = 24,
		.cols = 80,
	};
	struct exec_pump st;
	int done;

	if (!w->is_inside && !w->python) {
		if (bring(b, w->program[0], e) < 0)
			return -1;
		w->program[0] = BOX_HOME "/probe";
	}
	if (w->warm && !w->root && !w->terminal) {
		if (!w->python)
			cmd.argv = by_warm(w->program);
		cmd.flags |= WIRE_START_WARM;
	}
	exec_pump_init(&st, b);
	done = exec_pump_run(&st, &cmd, e);
	if (done == 0 && !st.exited)
		done = err_set(e, ERR_SYS, "the box died");
	*out = st.exit;
	exec_pump_fini(&st);
	return done;
}

static int status_of(const struct wire_exit *x)
{
	switch (x->why) {
	case WIRE_WHY_EXIT:
		return x->status;
	case WIRE_WHY_EXEC:
		fprintf(stderr, "refused: init: %.24s: %s\n", x->step, strerror(x->status));
		return REFUSED;
	default:
		return 128 + x->status;
	}
}

/* The first request for a warm interpreter may get a box without one: it is not loaded yet. */
static int create(struct keeper_sync *k, struct box_handle *b, const struct wire_create *want,
		  struct err *e)
{
	for (int tries = 0; tries < SEED_TRIES; tries++) {
		if (boxh_create(k, b, want, e) < 0)
			return -1;
		if (!want->warm[0] || b->about.warm)
			return 0;
		(void)!boxh_kill(k, b->about.id, NULL, e);
		boxh_close(b);
		usleep(SEED_WAIT_US);
	}
	return err_set(e, ERR_SYS, "no warm interpreter");
}

int main(int argc, char **argv)
{
	struct wire_create want = { .head.flags = WIRE_CREATE_COLD,
				    .template = "base",
				    .limits = box_default_limits() };
	struct wish w = { 0 };
	struct wire_exit x;
	struct keeper_sync k;
	struct box_handle b;
	struct err e = { 0 };
	int status = REFUSED;

	if (parse(&w, argc, argv) < 0)
		return 2;
	want.without = w.steps;
	want.zygote_without = w.seal;
	if (w.warm)
		snprintf(want.warm, sizeof(want.warm), "python");
	want.warm_group = w.group;
	if (keeper_sync_open(&k, 0, &e) < 0 || create(&k, &b, &want, &e) < 0) {
		fprintf(stderr, "refused: %s\n", e.msg);
		return REFUSED;
	}
	/* Kill on close: the box ends with this process in every case. */
	if (boxh_kill_on_close(&b, &e) < 0 || run(&b, &w, &x, &e) < 0)
		fprintf(stderr, "refused: %s\n", e.msg);
	else
		status = status_of(&x);
	if (boxh_kill(&k, b.about.id, NULL, &e) < 0 && e.kind != ERR_NOT_FOUND)
		fprintf(stderr, "mutant: %s\n", e.msg);
	boxh_close(&b);
	keeper_sync_close(&k);
	return status;
}
