/* process.c - see process.h. Starts or finds a program and sends its events: one JSON text each. */
#include "e2b/process.h"
#include "v1box/automatic.h"
#include "v1run/run_request.h"
#include "api/plan_limits.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "e2b/process_spec.h"
#include "fleet/recent_exits.h"
#include "fleet/exec_reader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"

/* ---- one client, one program ---- */

struct follow {
	struct call *call;
	struct connect_stream stream;
	int opened; /* the event `start` was sent */
	struct exec_reader reader;
	int tapped;
	int pid, pty;
	struct timer until; /* of Connect: the timeout of the client */
	const char *cmd, *cwd;
};

static void process_leave(struct call *c)
{
	struct follow *f = c->state;

	if (f->tapped)
		exec_reader_close(&f->reader);
	f->tapped = 0;
	timer_fini(&f->until);
	connect_drop(&f->stream);
}

static void process_drained(struct http_req *r)
{
	struct follow *f = ((struct call *)r->user)->state;

	if (f->tapped)
		exec_reader_stop(&f->reader, 0);
}

/* E2B's clients never close their request before they stop reading. */
static void hung_up(struct http_req *r)
{
	http_abort(r);
}

static struct follow *follow_new(struct call *c)
{
	struct follow *f = call_alloc(c, sizeof(*f));

	*f = (struct follow){ .call = c };
	c->state = f;
	c->drop = process_leave;
	c->req->on_drain = process_drained;
	c->req->on_eof = hung_up;
	return f;
}

static void say_start(struct follow *f, int pid)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%d}}}", pid);

	f->opened = 1;
	f->pid = pid;
	connect_open(&f->stream, f->call, KEEPALIVE);
	connect_send_text(&f->stream, text, (size_t)n);
}

/* ---- its end ---- */

/* From the record's "SIGKILL", or "signal 40". */
static int signal_named(const char *name)
{
	int number = 0;

	for (int i = 1; name && !strncmp(name, "SIG", 3) && i < NSIG; i++)
		if (sigabbrev_np(i) && !strcmp(sigabbrev_np(i), name + 3))
			return i;
	return name && sscanf(name, "signal %d", &number) == 1 ? number : 0;
}

/* "killed", "segmentation fault": the names of the C library, in lower case. */
static void signal_words(int signo, char out[48])
{
	const char *words = signo > 0 && signo < NSIG ? sigdescr_np(signo) : NULL;

	if (words)
		snprintf(out, 48, "%c%s", *words | 0x20, words + 1);
	else
		snprintf(out, 48, "signal %d", signo);
}

static void say_end(struct follow *f, const json_t *record)
{
	const json_t *code = json_object_get(record, "exit_code");
	int exited = json_is_integer(code), status = exited ? (int)json_integer_value(code) : -1;
	char text[64] = "signal: ";
	json_t *end = json_object();

	if (status) /* 0 goes without saying */
		json_object_set_new(end, "exitCode", json_integer(status));
	if (exited) {
		json_object_set_new(end, "exited", json_true());
		snprintf(text, sizeof(text), "exit status %d", status);
	} else {
		signal_words(signal_named(json_string_value(json_object_get(record, "signal"))),
			     text + strlen(text));
	}
	json_object_set_new(end, "status", json_string(text));
	if (status)
		json_object_set_new(end, "error", json_string(text));
	connect_send(&f->stream, json_pack("{s:{s:o}}", "event", "end", end));
	connect_end(&f->stream);
}

static int has_cause(const json_t *record, const char *const *causes)
{
	const char *cause = json_string_value(json_object_get(record, "cause"));

	for (; cause && *causes; causes++)
		if (!strcmp(cause, *causes))
			return 1;
	return 0;
}

/* The box has ended, or all its programs were ended from outside: the program did not end by
 * itself. */
static int box_ended(const struct follow *f, const json_t *record)
{
	static const char *const outside[] = { "lifetime", "idle", "operator", NULL };
	struct box *b = fleet_find(&f->call->api->fleet, f->call->held);

	return !b || b->state != BOX_RUNNING || has_cause(record, outside);
}

/* It never ran. An error that another request can avoid is `invalid`; the others are failures of
 * the server. */
static void say_refusal(struct follow *f, const json_t *record)
{
	const json_t *evidence = json_object_get(record, "evidence");
	const char *step = json_string_value(json_object_get(evidence, "failed_step"));
	int sys = (int)json_integer_value(json_object_get(evidence, "errno"));

	if (step && !strcmp(step, "directory") && (sys == ENOENT || sys == ENOTDIR))
		connect_fail(f->call, CONNECT_INVALID, "cwd '%.400s' does not exist", f->cwd);
	else if (step && !strcmp(step, "directory"))
		connect_fail(f->call, CONNECT_INVALID, "cwd '%.400s': %s", f->cwd, strerror(sys));
	else if (step && (!strcmp(step, "program") || !strcmp(step, "arguments")))
		connect_fail(f->call, CONNECT_INVALID, "error starting process '%.200s': %s",
			     f->cmd, strerror(sys));
	else
		connect_fail(f->call, CONNECT_INTERNAL, "error starting process '%.200s': %s: %s",
			     f->cmd, step ? step : "box", strerror(sys));
}

static int never_ran(const json_t *record)
{
	return json_object_get(json_object_get(record, "evidence"), "failed_step") != NULL;
}

static void driver_event_end(struct follow *f, const json_t *record)
{
	static const char *const wall[] = { "wall", NULL };

	if (box_ended(f, record)) {
		if (f->opened)
			connect_cut(&f->stream);
		else
			http_abort(f->call->req);
		return;
	}
	if (!f->opened && never_ran(record)) {
		say_refusal(f, record);
		return;
	}
	if (!f->opened)
		say_start(f, f->pid);
	if (has_cause(record, wall))
		connect_end_error(&f->stream, CONNECT_DEADLINE, "the process took too long");
	else
		say_end(f, record);
}

/* ---- what it says ---- */

static void process_on_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			      const char *bytes, size_t n)
{
	static const char *const names[] = { "{\"event\":{\"data\":{\"stdout\":\"",
					     "{\"event\":{\"data\":{\"stderr\":\"",
					     "{\"event\":{\"data\":{\"pty\":\"" };
	struct follow *f = loop_owner(t, struct follow, reader);

	(void)offset;
	if (!f->opened)
		say_start(f, f->pid);
	if (connect_send_bytes(&f->stream, names[f->pty ? 2 : stream], bytes, n, "\"}}}"))
		exec_reader_stop(t, 1);
}

static void process_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct follow *f = loop_owner(t, struct follow, reader);

	exec_reader_close(t); /* the exec may have a separate connection */
	f->tapped = 0;
	timer_fini(&f->until);
	if (!e)
		driver_event_end(f, record);
	else if (f->opened)
		connect_end_error(&f->stream, CONNECT_UNKNOWN, "%s", e->msg);
	else
		connect_fail_err(f->call, e);
}

static void process_started(struct exec_reader *t, int pid)
{
	say_start(loop_owner(t, struct follow, reader), pid);
}

/* Of Connect: all output from now on is sent, so the event `start` is sent only now. */
static void process_attached(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct follow *f = loop_owner(t, struct follow, reader);

	(void)from;
	(void)tip;
	if (stream + 1 == t->streams && !f->opened)
		say_start(f, f->pid);
}

static const struct exec_reader_events following = {
	/* clang-format off */
	.reading = process_attached, .output = process_on_output, .over = process_over, .started = process_started
	/* clang-format on */
};

/* ---- Start ---- */

/* Before it is started, so that the row needs no separate commit. */
static void note_start(const struct exec *r, void *user)
{
	struct follow *f = user;

	run_request_audit(f->call->api, f->call, &f->call->who, r, "run");
}

static int process_do_start(struct follow *f, struct box *b, const struct process_spec *p,
			    struct err *e)
{
	auto_buf struct buf pool = { 0 };
	auto_free const char **env = process_spec_env(p, &pool);
	json_t *request = process_spec_request(p, b);
	uint64_t wall_ms = plan_limits_run_ms(f->call->api, b->row.team, p->wall_ms);
	struct exec_spec want = {
		.argv = p->argv,
		.env = env,
		.usual = process_spec_default_env(p),
		.cwd = p->cwd,
		.tag = p->tag,
		.kind = p->pty ? STORE_RUN_PTY : STORE_RUN_EXEC,
		.wall_ms = wall_ms < UINT32_MAX ? (uint32_t)wall_ms : UINT32_MAX,
		.rows = p->rows,
		.cols = p->cols,
		.pty = p->pty,
		.stdin_open = p->stdin_open,
		.root = p->root,
		.lone = 1,
		.request = request,
		.key = f->call->who.id,
		.before = &f->call->before,
		.note = note_start,
		.user = f,
	};
	struct trace_context before;
	struct exec *r;
	int rc;

	f->pty = p->pty;
	f->cmd = p->argv[0];
	f->cwd = http_strdup(f->call->req, p->cwd, strlen(p->cwd));
	exec_reader_init(&f->reader, &f->call->api->fleet, &following);
	before = trace_enter(&f->call->trace);
	rc = exec_launch(b, &want, &f->reader, &r, e);
	trace_leave(&before);
	json_decref(request);
	if (rc < 0) {
		f->call->audited =
			0; /* the answer to the start is not the last message of the stream */
		return -1;
	}
	f->tapped = 1;
	return 0;
}

static void asked_to_start(struct call *c, json_t *ask);

static void process_read(struct call *c)
{
	asked_to_start(c, c->body);
}

static void asked_to_start(struct call *c, json_t *ask)
{
	struct box *b = fleet_find(&c->api->fleet, c->held);
	struct process_spec p = { .wall_ms = connect_timeout_ms(c) };
	struct follow *f;
	struct err e;

	if (connect_user(c, &p.root) < 0)
		return;
	if (b && automatic_before(c, b, CHECKPOINT_STEP_EXEC, process_read))
		return;
	f = follow_new(c);
	if (!b || b->state != BOX_RUNNING)
		http_abort(c->req); /* it ended while the request was read */
	else if (process_spec_read(&p, b, ask, &e) < 0 || quota_item(c->api, c->who.team, &e) < 0 ||
		 process_do_start(f, b, &p, &e) < 0)
		connect_fail_err(c, &e);
	process_spec_fini(&p);
}

void process_start(struct call *c)
{
	connect_ask(c, 1, asked_to_start);
}

/* ---- Connect ---- */

static void patience_over(struct timer *t)
{
	struct follow *f = loop_owner(t, struct follow, until);

	exec_reader_close(&f->reader);
	f->tapped = 0;
	if (!f->opened)
		say_start(f, f->pid);
	connect_end_error(&f->stream, CONNECT_DEADLINE, "the stream was asked to end now");
}

static void follow_run(struct call *c, const struct exec *r)
{
	static const uint64_t now[2] = { EXEC_READER_NOW, EXEC_READER_NOW };
	uint64_t ms = connect_timeout_ms(c);
	struct follow *f;

	if (r->box->readers >= EXEC_READER_READERS) {
		connect_fail(c, CONNECT_EXHAUSTED, "too many readers in this sandbox");
		return;
	}
	f = follow_new(c);
	f->pty = r->tty;
	f->pid = r->pid;
	f->tapped = 1;
	exec_reader_open(&f->reader, &c->api->fleet, r->box->row.id, r->id, r->ref, now,
			 &following);
	if (ms) {
		timer_init(&f->until, c->api->loop, patience_over);
		timer_set(&f->until, ms);
	}
}

/* The end of a program that has ended. */
static void follow_past(struct call *c, const struct recent_exit *p)
{
	struct store_run row = { 0 };
	struct follow *f;
	json_t *record;
	struct err e;

	run_writer_flush(&c->api->fleet.run_writer);
	if (store_run_get(c->api->store, p->run, &row, &e) < 0) {
		connect_fail_err(c, &e);
		return;
	}
	record = exec_row_json(&row);
	store_run_fini(&row);
	f = follow_new(c);
	say_start(f, p->pid);
	driver_event_end(f, record);
	json_decref(record);
}

/* A program that has ended while the keeper is still queried for the cause is neither running
 * nor ended. A client that follows it waits for the result. */
static struct exec *find_followed(const struct box *b, const struct process_name *name)
{
	struct exec *r = process_find(b, name);

	for (struct exec *x = b->runs; !r && x; x = x->next)
		if (x->pid > 0 && (name->pid ? x->pid == name->pid : !strcmp(x->tag, name->tag)))
			r = x;
	return r;
}

static void connect_to(struct call *c)
{
	struct box *b = fleet_find(&c->api->fleet, c->held);
	const struct recent_exit *p;
	struct process_name name;
	struct exec *r;

	if (!b) {
		http_abort(c->req);
		return;
	}
	if (process_named(c, c->body, &name) < 0)
		return;
	r = find_followed(b, &name);
	p = r ? NULL : recent_exits_find(b, name.pid, name.tag);
	if (r)
		follow_run(c, r);
	else if (p)
		follow_past(c, p);
	else if (!process_wait(c, connect_to))
		process_missing(c, &name);
}

static void asked_to_connect(struct call *c, json_t *ask)
{
	(void)ask; /* is c->body */
	connect_to(c);
}

void process_connect(struct call *c)
{
	connect_ask(c, 1, asked_to_connect);
}
