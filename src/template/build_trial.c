/* build_trial.c - tries a new root: its start command until it is ready, then its test. See
 * build_internal.h.
 *
 *   box of the root -> start command -> ready command or port -> test -> ready */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "template/build_runtimes.h"

#include <stdio.h>
#include <string.h>

enum {
	POLL_MS = 300,
	TEST_MS = 120 * 1000, /* time limit of the test */
	RUNTIMES_MS = 60 * 1000,
	RUNTIMES_BYTES = 8192, /* of the output of build_runtimes_script */
	ALIVE_MS = 1000,       /* a start command without a ready command runs at least this long */
	ALIVE_E2B_MS = 20000,  /* as E2B waits */
};

struct build_trial {
	struct build *build;
	struct exec_reader start, ready; /* start: its output is logged */
	int starting, asking;            /* these readers are open */
	struct timer again, limit;
	uint64_t began_ms;
	int found;           /* the port listens */
	struct buf runtimes; /* output of build_runtimes_script */
};

static struct build_trial *build_trial_new(struct build *b, void (*again)(struct timer *),
					   void (*limit)(struct timer *))
{
	struct build_trial *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->build = b;
	timer_init(&t->again, b->all->fleet->loop, again);
	timer_init(&t->limit, b->all->fleet->loop, limit);
	return t;
}

void build_trial_free(struct build_trial *t)
{
	if (!t)
		return;
	if (t->starting)
		exec_reader_close(&t->start);
	if (t->asking)
		exec_reader_close(&t->ready);
	timer_fini(&t->again);
	timer_fini(&t->limit);
	buf_fini(&t->runtimes);
	free(t);
}

/* ---- the trial: start and ready command ---- */

static void build_trial_done(struct build *b)
{
	build_box_close(&b->box);
	build_trial_free(b->trial);
	b->trial = NULL;
	build_runtimes_pool(b);
}

static int build_trial_exec(struct build_trial *t, const char *command, struct exec_reader *reader,
			    uint32_t wall_ms, const struct exec_reader_events *on, struct err *e);

static void build_runtimes_said(struct exec_reader *r, unsigned stream, uint64_t offset,
				const char *bytes, size_t n)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);

	(void)offset;
	if (!stream && t->runtimes.len + n < RUNTIMES_BYTES)
		buf_add(&t->runtimes, bytes, n);
}

static void build_runtimes_exited(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);

	(void)record;
	(void)e;
	t->asking = 0;
	json_object_set_new(t->build->settings, "runtimes",
			    build_runtimes_parse(buf_str(&t->runtimes)));
	build_trial_done(t->build);
}

/* The test has succeeded: looks for interpreters in the same box. */
static void build_tried(struct build *b)
{
	static const struct exec_reader_events on = { .output = build_runtimes_said,
						      .over = build_runtimes_exited };
	struct err e;

	timer_clear(&b->trial->limit);
	if (build_runtimes_known_before(b)) {
		build_trial_done(b);
		return;
	}
	if (build_trial_exec(b->trial, build_runtimes_script, &b->trial->ready, RUNTIMES_MS, &on,
			     &e) < 0)
		build_fail_err(b, &e);
	else
		b->trial->asking = 1;
}

static void build_test_said(struct exec_reader *r, unsigned stream, uint64_t offset,
			    const char *bytes, size_t n)
{
	(void)offset;
	build_log_output(loop_owner(r, struct build_trial, ready)->build, stream, bytes, n);
}

static void build_test_exited(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);
	struct build *b = t->build;
	char why[200];

	t->asking = 0;
	build_log_flush(b);
	if (record && !build_cause(b, record, why, sizeof(why)))
		build_tried(b);
	else
		build_fail(b, "the test '%.100s' %s; its output: %.400s",
			   build_text(b->definition, "test"), record ? why : e->msg,
			   buf_str(&b->said));
}

/* The start command is ready: executes the test of the definition in the same box. */
static void build_ready(struct build *b)
{
	static const struct exec_reader_events on = { .output = build_test_said,
						      .over = build_test_exited };
	const char *test = build_text(b->definition, "test");
	struct err e;

	if (!*test) {
		build_tried(b);
		return;
	}
	build_log(b, "info", "testing '%.200s'", test);
	build_log_flush(b);
	buf_cut(&b->said, 0);
	if (build_trial_exec(b->trial, test, &b->trial->ready, TEST_MS, &on, &e) < 0)
		build_fail_err(b, &e);
	else
		b->trial->asking = 1;
}

static void build_trial_output(struct exec_reader *r, unsigned stream, uint64_t offset,
			       const char *bytes, size_t n)
{
	struct build_trial *t = loop_owner(r, struct build_trial, start);

	(void)offset;
	build_log_output(t->build, stream, bytes, n);
}

static void build_trial_exited(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, start);
	char why[200] = "exited with status 0";

	t->starting = 0;
	if (record && !build_cause(t->build, record, why, sizeof(why)) &&
	    json_is_true(json_object_get(t->build->definition, "e2b"))) {
		build_log(t->build, "info", "the start command has ended"); /* which E2B permits */
		build_ready(t->build);
		return;
	}
	build_fail(t->build,
		   "the start command '%.100s' %s before it was ready; its output: %.400s",
		   build_setting(t->build, "start"), record ? why : e->msg,
		   buf_str(&t->build->said));
}

/* The output of the ready command is the same at each attempt, and not logged. */
static void build_trial_asked_output(struct exec_reader *r, unsigned stream, uint64_t offset,
				     const char *bytes, size_t n)
{
	(void)r;
	(void)stream;
	(void)offset;
	(void)bytes;
	(void)n;
}

static void build_trial_asked(struct exec_reader *r, json_t *record, const struct err *e)
{
	struct build_trial *t = loop_owner(r, struct build_trial, ready);
	char why[200];

	(void)e;
	t->asking = 0;
	if (record && !build_cause(t->build, record, why, sizeof(why)))
		build_ready(t->build);
	else
		timer_set(&t->again, POLL_MS);
}

static int build_trial_exec(struct build_trial *t, const char *command, struct exec_reader *reader,
			    uint32_t wall_ms, const struct exec_reader_events *on, struct err *e)
{
	const struct build *b = t->build;
	const char *argv[] = { "/bin/sh", "-c", command, NULL }, *cwd = build_setting(b, "workdir");
	struct box *box = fleet_find(b->all->fleet, b->box.id);
	char home[300], user[80];
	const char *usual[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				home, user, NULL };
	const char **env = build_env(b->settings);
	struct exec_spec want = { .argv = argv,
				  .env = env,
				  .usual = usual,
				  .cwd = *cwd ? cwd : "/",
				  .kind = STORE_RUN_EXEC,
				  .helper = 1,
				  .wall_ms = wall_ms,
				  .has_ids = 1,
				  .uid = (uint16_t)b->user.uid,
				  .gid = (uint16_t)b->user.gid };
	struct exec *r;
	int done;

	snprintf(home, sizeof(home), "HOME=%s", b->user.home);
	snprintf(user, sizeof(user), "USER=%s", b->user.name);
	exec_reader_init(reader, b->all->fleet, on);
	done = box ? exec_launch(box, &want, reader, &r, e)
		   : err_set(e, ERR_NOT_FOUND, "the build box has ended");
	build_env_free(env);
	return done;
}

static void build_trial_socket(struct file_client *c, const struct frame *f, size_t len)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)len;
	if (f->type == WIRE_SOCKET &&
	    ((const struct wire_socket *)f)->port ==
		    (uint32_t)json_integer_value(json_object_get(b->settings, "port")))
		b->trial->found = 1;
}

static void build_trial_sockets(struct file_client *c, uint16_t flags)
{
	struct build *b = loop_owner(c, struct build_box, files)->build;

	(void)flags;
	if (b->trial->found)
		build_ready(b);
	else
		timer_set(&b->trial->again, POLL_MS);
}

static void build_trial_poll(struct timer *t)
{
	static const struct exec_reader_events on_ready = { .output = build_trial_asked_output,
							    .over = build_trial_asked };
	static const struct file_client_events on_sockets = { .other = build_trial_socket,
							      .done = build_trial_sockets,
							      .failed = build_change_failed };
	struct build_trial *x = loop_owner(t, struct build_trial, again);
	struct build *b = x->build;
	struct wire_get ask = { .head.flags = WIRE_SOCKETS_BRIEF };
	struct err e;

	if (*build_setting(b, "ready")) {
		if (build_trial_exec(x, build_setting(b, "ready"), &x->ready,
				     (uint32_t)b->all->conf.ready_ms, &on_ready, &e) < 0)
			build_fail_err(b, &e);
		else
			x->asking = 1;
	} else if (json_integer_value(json_object_get(b->settings, "port"))) {
		b->box.files.on = &on_sockets;
		file_client_ask(&b->box.files, WIRE_SOCKETS, &ask.head, sizeof(ask.head), NULL, 0);
	} else {
		build_ready(b); /* it has been running long enough */
	}
}

static void build_trial_late(struct timer *t)
{
	struct build *b = loop_owner(t, struct build_trial, limit)->build;
	const char *ready = build_setting(b, "ready");

	build_fail(b, "the template was not ready after %llu s (templates.ready_timeout): %s%.200s",
		   (unsigned long long)(b->all->conf.ready_ms / 1000),
		   *ready ? "the ready command did not succeed: " : "its port does not answer",
		   ready);
}

/* 1: it has commands to try. 0: the box is only for finding its interpreters. */
static int build_trial_wanted(const struct build *b)
{
	return *build_setting(b, "start") || *build_setting(b, "ready") ||
	       *build_text(b->definition, "test");
}

static void build_trial_box(struct build_box *x)
{
	static const struct exec_reader_events on = { .output = build_trial_output,
						      .over = build_trial_exited };
	struct build *b = x->build;
	struct build_trial *t = b->trial;
	int asked = *build_setting(b, "ready") ||
		    json_integer_value(json_object_get(b->settings, "port"));
	struct err e;

	if (!build_trial_wanted(b)) {
		build_tried(b);
		return;
	}
	if (*build_setting(b, "start")) {
		if (build_trial_exec(t, build_setting(b, "start"), &t->start, 0, &on, &e) < 0) {
			build_fail_err(b, &e);
			return;
		}
		t->starting = 1;
	}
	timer_set(&t->limit, b->all->conf.ready_ms);
	timer_set(&t->again, asked || !t->starting                                 ? 1
			     : json_is_true(json_object_get(b->definition, "e2b")) ? ALIVE_E2B_MS
										   : ALIVE_MS);
}

void build_trial_begin(struct build *b, const char *root)
{
	snprintf(b->row.root, sizeof(b->row.root), "%s", root);
	if (!build_trial_wanted(b) && build_runtimes_known_before(b)) {
		build_runtimes_pool(b);
		return;
	}
	if (*build_setting(b, "start"))
		build_log(b, "info", "starting '%.200s'", build_setting(b, "start"));
	buf_cut(&b->said, 0);
	b->trial = build_trial_new(b, build_trial_poll, build_trial_late);
	/* As boxes of the template have it. */
	b->box.mem_bytes =
		b->row.mem_bytes ? b->row.mem_bytes : b->all->fleet->conf.limits.mem_bytes;
	b->box.cpu_milli =
		b->row.cpu_milli ? b->row.cpu_milli : b->all->fleet->conf.limits.cpu_milli;
	build_box_open(&b->box, root, BUILD_BOX_NETWORK, b->row.disk_bytes, b->all->conf.ready_ms,
		       build_trial_box);
}
