/* local_run.c - see local_run.h. */
#include "cli/local_run.h"
#include "wire/frame.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "record/record.h"
#include "cli/term.h"
#include "lang/diag.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

enum { KEPT_OUTPUT = 1 << 20 };

static int wants_record(const struct local_run *s)
{
	return s->cli->json || s->opt->report;
}

int local_run_open(struct local_run *s, const struct cli *cli, const struct options *opt,
		   const char *warm, struct err *e)
{
	struct wire_create want = {
		.head.flags = opt->create_flags,
		.template = "base",
		.limits = opt->limits,
		.without = opt->without_launch,
	};
	uint64_t began = now_ns();

	snprintf(want.warm, sizeof(want.warm), "%s", warm);
	want.nlayers = opt->nlayers;
	memcpy(want.layer, opt->layers, sizeof(want.layer));
	*s = (struct local_run){
		.cli = cli, .opt = opt, .keeper.fd = -1, .box.init = -1, .files.fd = -1
	};
	/* A folder that cannot be written to is reported before the program runs. */
	if (bring_open(&s->bring, opt->out, e) < 0)
		return -1;
	bring_watch(&s->bring, &s->changes);
	if (keeper_sync_open(&s->keeper, 1, e) < 0)
		return -1;
	if (boxh_create(&s->keeper, &s->box, &want, e) < 0) {
		/* The keeper knows the allowed ranges; its message is passed on to the user. */
		if (e->kind == ERR_INVALID)
			e->kind = ERR_LIMIT;
		return -1;
	}
	/* Before anything else: from here on the box ends when this process does. */
	if (boxh_kill_on_close(&s->box, e) < 0)
		return -1;
	s->create_us = (now_ns() - began) / 1000;
	if (cli->verbose)
		fprintf(stderr, "atoll: box %s ready after %llu us\n", s->box.about.id,
			(unsigned long long)s->create_us);
	return 0;
}

int local_run_files(struct local_run *s, struct err *e)
{
	s->files_put = 1;
	return s->files.fd >= 0 ? 0 : files_open(&s->files, &s->box, e);
}

void local_run_close(struct local_run *s)
{
	struct err e;

	files_close(&s->files);
	/* Kill on close would end the box, too; the request lets the keeper end it at once. If
	 * the keeper was killed meanwhile, the request starts its successor, which cleans up. */
	if (s->box.init >= 0 && boxh_drop(&s->keeper, s->box.about.id, &e) < 0)
		(void)!boxh_kill(&s->keeper, s->box.about.id, NULL, &e);
	boxh_close(&s->box);
	keeper_sync_close(&s->keeper);
	changes_fini(&s->changes);
	bring_fini(&s->bring);
	buf_fini(&s->output[0]);
	buf_fini(&s->output[1]);
	buf_fini(&s->said);
}

/* ---- one command ---- */

static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };

static int catch_signals(sigset_t *before, struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, before);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "signalfd") : fd;
}

static int has_terminal(const struct local_run *s)
{
	if (s->opt->no_tty || s->cli->json || s->no_stdin || !isatty(0) || !isatty(1))
		return 0;
	/* In the background a change of the terminal's settings would stop this process. */
	return tcgetpgrp(0) == getpgrp();
}

static void wire_streams(struct local_run *s, struct exec_pump *st)
{
	st->twice = s->twice || !st->terminal;
	if (s->no_stdin || (!st->terminal && isatty(0) && !s->opt->interactive))
		st->in = -1;
	for (int i = 0; i < 2 && s->cli->json; i++) {
		st->out[i].fd = -1;
		st->out[i].keep = &s->output[i];
		st->out[i].keep_max = KEPT_OUTPUT;
	}
	buf_cut(&s->said, 0);
	/* A compiler may use either stream. A program's last messages are on stderr, or on its
	 * terminal. */
	for (int i = 0; i < 2 && s->lang && wants_record(s); i++) {
		st->out[i].note = s->compiling ? diag_head : diag_tail;
		st->out[i].noted = &s->said;
		if (!s->compiling && (i == 0) != st->terminal)
			st->out[i].note = NULL;
	}
}

static uint32_t wall_ms(const struct local_run *s)
{
	return s->compiling ? s->lang->times.compile : s->opt->wall_ms;
}

static struct box_command local_command(const struct local_run *s, const char *const *argv,
					int terminal)
{
	struct winsize w = { 0 };
	struct box_command cmd = {
		.argv = argv,
		.env = s->opt->env,
		.wall_ms = wall_ms(s),
		.without = s->opt->without_init,
		.flags = (uint16_t)((s->opt->root ? WIRE_START_ROOT : 0) |
				    (s->warm ? WIRE_START_WARM : 0) |
				    (s->last ? WIRE_START_ONE_SHOT : 0) |
				    (terminal ? WIRE_START_PTY : 0)),
	};

	if (terminal)
		ioctl(0, TIOCGWINSZ, &w);
	cmd.rows = w.ws_row ? w.ws_row : 24;
	cmd.cols = w.ws_col ? w.ws_col : 80;
	return cmd;
}

/* The counters of the kernel are read only when the end needs an explanation or a record is
 * written. */
static void local_gather(struct local_run *s, struct exit_info *x)
{
	int plain = x->exited && x->exit.why == WIRE_WHY_EXIT && x->exit.status == 0;
	const char *id = s->box.about.id;
	struct err e;
	int rc;

	if (plain && !wants_record(s))
		return;
	/* For a box that died, wait: its last counters are read when no process is left. */
	if (x->end == STREAM_BOX_DIED)
		rc = boxh_kill(&s->keeper, id, &x->figures, &e);
	else
		rc = boxh_counters(&s->keeper, id, &x->figures, &e);
	x->evidence = rc == 0;
	if (rc < 0 && s->cli->verbose)
		fprintf(stderr, "atoll: no kernel evidence: %s\n", e.msg);
}

static int run_streams(struct local_run *s, struct exec_pump *st, const char *const *argv,
		       struct err *e)
{
	struct box_command cmd;
	int rc;

	if (st->terminal && term_raw(0, e) < 0)
		return -1;
	cmd = local_command(s, argv, st->terminal);
	rc = exec_pump_run(st, &cmd, e);
	term_restore();
	return rc;
}

int local_run_exec(struct local_run *s, const char *const *argv, struct exit_info *out,
		   struct err *e)
{
	sigset_t before;
	auto_fd int signals = catch_signals(&before, e);
	struct exec_pump st;
	uint64_t began;
	int rc;

	if (signals < 0)
		return -1;
	/* All files are written; an idle worker would only use up a process. */
	files_close(&s->files);
	exec_pump_init(&st, &s->box);
	st.signals = signals;
	st.terminal = has_terminal(s);
	wire_streams(s, &st);
	s->started_ns = clock_ns(CLOCK_REALTIME);
	began = now_ns();
	rc = run_streams(s, &st, argv, e);
	s->ended_ns = clock_ns(CLOCK_REALTIME);
	*out = (struct exit_info){
		.program = argv[0],
		.end = st.end,
		.exited = st.exited,
		.exit = st.exit,
		.limits = s->box.about.limits,
		.engine = s->box.about.tier != WIRE_TIER_CONTAINER,
		.wall_ms = wall_ms(s),
		.run_us = (now_ns() - began) / 1000,
	};
	s->printed = st.out[0].next + st.out[1].next;
	for (int i = 0; i < 2; i++)
		s->dropped[i] = st.out[i].dropped;
	exec_pump_fini(&st);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		local_gather(s, out);
	return rc;
}

/* ---- afterwards ---- */

static void say_end(const struct local_run *s, const struct exit_info *x)
{
	auto_buf struct buf sentence = { 0 }, hint = { 0 };

	/* No message when the reader closed the pipe: the user closed it. */
	if (s->cli->quiet || s->cli->json || x->end == STREAM_UNREAD)
		return;
	cause_sentence(x, &sentence);
	cause_hint(x, &hint);
	if (sentence.len)
		fprintf(stderr, "atoll: %s%s   [exit %d, cause=%s]\n",
			s->compiling ? "compiler: " : "", buf_str(&sentence), cause_status(x),
			cause_name(cause_of(x)));
	if (hint.len)
		fprintf(stderr, "  %s\n", buf_str(&hint));
}

static int write_report(const char *path, const json_t *doc, struct err *e)
{
	FILE *f = fopen(path, "we");
	int bad;

	if (!f)
		return err_sys(e, "write the report to %.80s", path);
	bad = json_dumpf(doc, f, JSON_INDENT(2) | RECORD_DIGITS) < 0 || fputc('\n', f) == EOF;
	bad |= fclose(f) != 0;
	return bad ? err_sys(e, "write the report to %.80s", path) : 0;
}

static void note_errors(const struct local_run *s, json_t *doc, const struct exit_info *x)
{
	json_t *found = NULL;

	json_object_set_new(doc, "step", json_string(s->compiling ? "compile" : "run"));
	if (s->compiling)
		found = diag_errors(s->lang, buf_str(&s->said), s->said.len);
	else if (cause_status(x) != 0)
		found = diag_fault(s->lang, buf_str(&s->said), s->said.len);
	if (found)
		json_object_set_new(doc, s->compiling ? "errors" : "error", found);
}

static json_t *make_record(struct local_run *s, const char *template, const char *const *argv,
			   const struct exit_info *x)
{
	struct record r = {
		.box = s->box.about.id,
		.template = template,
		.tier = wire_tier_name(s->box.about.tier),
		.layers = s->box.about.layers,
		.layer_names = s->cli->layers,
		.command = argv,
		.started_ns = s->started_ns,
		.ended_ns = s->ended_ns,
		.create_us = s->create_us,
		.end = *x,
		.dropped = { s->dropped[0], s->dropped[1] },
		.changes = &s->changes,
	};
	struct err e;
	json_t *doc;

	if (id_new(r.id, &e) < 0)
		snprintf(r.id, sizeof(r.id), "unknown");
	s->changed_rc = changes_after(&s->changes, &s->box, &e);
	if (s->changed_rc < 0)
		r.changes_failed = e.msg;
	for (int i = 0; i < 2 && s->cli->json; i++)
		r.output[i] = &s->output[i];
	doc = record_json(&r);
	if (s->lang)
		note_errors(s, doc, x);
	return doc;
}

/* Also of a program that failed: its files may show why. A compiler's output stays in the box. */
static int bring_out(struct local_run *s, struct err *e)
{
	char size[UNITS_TEXT];

	if (!s->opt->out || s->compiling)
		return 0;
	if (!wants_record(s) && changes_after(&s->changes, &s->box, e) < 0)
		return err_in(e, "--out");
	if (s->changed_rc < 0)
		return err_set(e, ERR_SYS,
			       "--out: the box did not report which files have changed");
	if (bring_fetch(&s->bring, &s->box, e) < 0)
		return -1;
	if (!s->cli->quiet && !s->cli->json)
		fprintf(stderr, "atoll: %llu files, %s, in %s\n",
			(unsigned long long)s->bring.files, units_size(size, s->bring.bytes),
			s->opt->out);
	if (s->bring.skipped && !s->cli->quiet)
		fprintf(stderr, "atoll: %u left out, no regular files\n", s->bring.skipped);
	return 0;
}

int local_run_report(struct local_run *s, const char *template, const char *const *argv,
		     const struct exit_info *x)
{
	json_t *doc = wants_record(s) ? make_record(s, template, argv, x) : NULL;
	int status = cause_status(x);
	struct err e;

	say_end(s, x);
	if (bring_out(s, &e) < 0)
		status = local_run_failed(s->cli, &e);
	if (!doc)
		return status;
	if (s->opt->report && write_report(s->opt->report, doc, &e) < 0)
		status = local_run_failed(s->cli, &e);
	if (s->cli->json) {
		json_dumpf(doc, stdout, JSON_COMPACT | RECORD_DIGITS);
		putchar('\n');
	}
	json_decref(doc);
	return status;
}

int local_run_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	if (e->sys == E2BIG) {
		cli_error_what(&t, "limit", "%s", e->msg);
		cli_error_hint(&t, "instead", "put it into a file: atoll run -w DIR -- CMD");
		return cli_error_print(&t, cli->json, STATUS_CANNOT_RUN);
	}
	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	if (e->sys == ENOSPC || e->sys == EDQUOT) {
		cli_error_hint(&t, "raise", "--disk SIZE, --files N");
		return cli_error_print(&t, cli->json, STATUS_OURS);
	}
	if (e->kind == ERR_LIMIT) {
		cli_error_hint(&t, "flags", "atoll run -h");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	cli_error_hint(&t, "check", "atoll doctor");
	return cli_error_print(&t, cli->json, STATUS_OURS);
}
