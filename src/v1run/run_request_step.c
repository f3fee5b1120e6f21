/* run_request_step.c - the steps of a run request: version check, compiler, program. */
#include "v1run/run_request_internal.h"
#include "v1run/hints.h"
#include "api/plan_limits.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "fleet/isolation.h"
#include "record/changes.h"
#include "lang/diag.h"
#include "store/templates.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 1024 * 1024, AUDITED = 200 };

/* Adds a hint to a failure without one, and to a timeout, which may have another reason. */
static void note_hint(struct run_request *w, json_t *record)
{
	const char *cause = json_string_value(json_object_get(record, "cause"));
	const json_t *command = json_object_get(record, "command");
	const char *last = json_string_value(json_array_get(command, json_array_size(command) - 1));
	const struct box *b = fleet_find(&w->api->fleet, w->box);
	struct hints_about about = {
		.command = last ? last : "",
		.lang = w->plan.program.lang,
		.said = buf_str(&w->said),
		.status = (int)json_integer_value(json_object_get(record, "status")),
		.timed_out = cause && !strcmp(cause, "wall"),
		.network = b && egress_client_asked(b),
		.registries = b && b->registries,
		.own_box = w->own_box,
		.conf = &w->api->fleet.conf.packages.install,
	};
	auto_buf struct buf hint = { 0 };

	if ((about.timed_out || json_is_null(json_object_get(record, "hint"))) &&
	    hints_find(&about, &hint))
		json_object_set_new(record, "hint", json_text(buf_str(&hint)));
}

/* Adds errors and warnings of the output as data. The record is stored after this. */
static void note_errors(struct run_request *w, json_t *record, int failed)
{
	const char *what = w->plan.steps[w->at].what;
	const struct lang *l = w->plan.program.lang;
	json_t *found = NULL;

	if (l)
		json_object_set_new(record, "language", json_string(l->name));
	if (l && !strcmp(what, "compile") &&
	    (found = diag_errors(l, buf_str(&w->said), w->said.len))) {
		json_object_set_new(record, failed ? "errors" : "warnings", found);
		w->warnings = failed ? NULL : json_incref(found);
	}
	if (l && failed && !strcmp(what, "run") &&
	    (found = diag_fault(l, buf_str(&w->said), w->said.len)))
		json_object_set_new(record, "error", found);
	if (failed && strcmp(what, "compile") != 0)
		note_hint(w, record);
	buf_cut(&w->said, 0);
}

static void note_said(struct run_request *w, unsigned stream, const char *bytes, size_t n)
{
	int last = w->at + 1 == w->plan.nsteps;

	if (w->plan.program.lang && !last && strcmp(w->plan.steps[w->at].what, "install") != 0)
		diag_head(&w->said, bytes, n);
	else if (stream == 1 || w->plan.pty)
		diag_tail(&w->said, bytes, n);
}

static int is_version(const struct run_request *w)
{
	return !strcmp(w->plan.steps[w->at].what, RUN_REQUEST_VERSION);
}

static int is_compile(const struct run_request *w)
{
	return !strcmp(w->plan.steps[w->at].what, "compile");
}

/* ", and as templates: node-18, node-20": those of the team whose names are the language and a version. */
static void run_request_versions(const struct run_request *w, struct buf *out)
{
	const char *name = w->plan.program.lang->name;
	size_t n = strlen(name);
	struct store_templates rows = { 0 };
	struct err e;

	if (store_template_list(w->api->store, w->who.team, 0, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++) {
		const char *at = rows.v[i].name;

		if (!strncmp(at, name, n) && at[n] == '-' && at[n + 1] >= '0' && at[n + 1] <= '9' &&
		    out->len < 100)
			buf_printf(out, "%s%s", out->len ? ", " : ", and as templates: ", at);
	}
	store_templates_fini(&rows);
}

/* 1: not the requested version; w has been freed. */
static int wrong_version(struct run_request *w)
{
	char has[LANG_VERSION + 1], add[RUN_REQUEST_TEMPLATE];
	auto_buf struct buf others = { 0 };
	struct err e;

	lang_version_in(buf_str(&w->said), w->said.len, has);
	if (lang_pin_fits(w->plan.program.pin, has))
		return 0;
	run_request_versions(w, &others);
	run_request_version_name(w->plan.program.lang, w->plan.program.pin, add);
	err_set(&e, ERR_INVALID,
		"language: %s %.*s was asked for; there is %s%s; add it as the template %s: "
		"atoll template build %s",
		w->plan.program.lang->name, LANG_VERSION, w->plan.program.pin,
		*has ? has : "one that does not tell", buf_str(&others), add, add);
	run_request_fail(w, &e);
	return 1;
}

static void run_request_advance(struct run_request *w)
{
	w->at++;
	run_request_next(w);
}

static void step_over(struct run_request *w, json_t *record)
{
	int64_t status = json_integer_value(json_object_get(record, "status"));
	int read = w->tapped; /* 1: all output was read; it is not if the client has disconnected */

	w->tapped = 0;
	if (is_version(w) && status == 0 && wrong_version(w))
		return;
	note_errors(w, record, status != 0);
	if (status == 0 && w->at + 1 < w->plan.nsteps) {
		if (is_compile(w) && read && !json_is_true(json_object_get(record, "truncated")))
			compile_reuse_keep(&w->reuse, w->words);
		else
			run_request_advance(w);
		return;
	}
	json_object_set_new(record, "step", json_string(w->plan.steps[w->at].what));
	if (w->warnings)
		json_object_set(record, "warnings", w->warnings);
	run_request_answer(w, record);
}

/* 1: the client must read before more is sent. */
static int tell_output(struct run_request *w, unsigned stream, uint64_t offset, const char *bytes,
		       size_t n)
{
	static const char *const types[2] = { "stdout", "stderr" };
	uint64_t max = OUTPUT_MAX;
	size_t room;

	hermetic_collect(&w->memo, stream, bytes, n);

	if (w->streaming)
		return w->call && event_stream_output(&w->event_stream, types[stream], stream,
						      offset, bytes, n);
	if (w->surface->said)
		return w->call && w->surface->said(w->call, stream, bytes, n);
	if (json_object_get(w->body, "max_output"))
		max = (uint64_t)json_integer_value(json_object_get(w->body, "max_output"));
	room = w->out[stream].len < max ? (size_t)max - w->out[stream].len : 0;
	buf_add(&w->out[stream], bytes, n < room ? n : room);
	w->dropped[stream] += n < room ? 0 : n - room;
	return 0;
}

static void reader_reads(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			 size_t n)
{
	struct run_request *w = loop_owner(t, struct run_request, reader);

	note_said(w, stream, bytes, n);
	if (is_compile(w) && w->words[stream].len <= COMPILE_REUSE_SAID)
		buf_add(&w->words[stream], bytes, n);
	if (!is_version(w) && tell_output(w, stream, offset, bytes, n))
		exec_reader_stop(t, 1);
}

static void reader_ends(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct run_request *w = loop_owner(t, struct run_request, reader);

	if (e)
		run_request_fail(w, e);
	else
		step_over(w, record);
}

static const struct exec_reader_events reader_on = { .output = reader_reads, .over = reader_ends };

static void request_step_waited(struct exec_wait *x, json_t *record)
{
	step_over(loop_owner(x, struct run_request, wait), record);
}

void run_request_await(struct run_request *w, struct exec *r)
{
	w->wait.done = request_step_waited;
	exec_await(r, &w->wait);
}

static void say_started(struct run_request *w, const struct exec *r)
{
	if (w->surface->started && w->call && !is_version(w))
		w->surface->started(w->call, r, w->plan.steps[w->at].what);
	if (w->streaming && w->call && !is_version(w))
		event_stream_event(&w->event_stream,
				   json_pack("{s:s, s:s, s:s, s:s}", "type", "started", "box",
					     w->box, "exec", r->id, "step",
					     w->plan.steps[w->at].what));
}

void run_request_audit(struct api *a, struct call *c, const struct principal *who,
		       const struct exec *r, const char *step)
{
	auto_buf struct buf line = { 0 };
	json_t *detail;
	int bad;

	for (size_t i = 0; i < json_array_size(r->command) && line.len <= AUDITED; i++)
		buf_printf(&line, "%s%s", i ? " " : "",
			   json_string_value(json_array_get(r->command, i)));
	if (line.len > AUDITED)
		buf_cut(&line, utf8_complete(line.p, AUDITED, &bad));
	detail = json_pack("{s:s, s:s, s:s}", "box", r->box->row.id, "step", step, "command",
			   buf_str(&line));
	/* Init was just woken, often on the same processor. The rest can be written while init
	 * works. */
	loop_yield();
	if (c)
		call_audit_more(c, "exec.start", r->id, "ok", detail);
	else
		api_audit(a, who, "exec.start", r->id, "ok", detail);
}

static void give_input(struct run_request *w, struct exec *r)
{
	const json_t *text = json_object_get(w->body, "stdin");

	if (!json_is_string(text))
		return;
	exec_stdin(r, json_string_value(text), json_string_length(text));
	exec_input_close(r);
}

/* For a background program the answer is sent as soon as it was started. */
static void leave_running(struct run_request *w, const struct exec *r)
{
	struct call *c = run_request_release(w);

	if (c)
		w->surface->running(c, r);
	run_request_free(w);
}

#define USR_BIN "/usr/bin/"

/* Fills in the arguments of a row, which depend on the box. */
static void find_words(struct run_request *w, struct run_step *s, const struct box *b, int last)
{
	auto_free const char **args = program_args(last ? json_object_get(w->body, "args") : NULL);

	if (s->argv)
		return;
	s->argv = program_words(&w->plan.program, s->row, args, b->row.limits.mem_bytes);
	/* A template may have its own interpreter elsewhere: found by its PATH. */
	if (b->user.set && !strncmp(s->argv[0], USR_BIN, strlen(USR_BIN)))
		s->argv[0] += strlen(USR_BIN);
}

static struct exec_spec want_of(const struct run_request *w, const struct box *b,
				const struct run_step *s, int last)
{
	const char *tag = json_string_value(json_object_get(w->body, "tag"));
	uint64_t ms = s->is_usual ? isolation_usual_ms(&b->row, s->wall_ms) : s->wall_ms;

	return (struct exec_spec){
		.argv = s->argv,
		.env = w->plan.env,
		.cwd = w->plan.cwd,
		.id = last && w->run_id[0] ? w->run_id : NULL,
		.tag = last ? tag : NULL,
		.kind = last && w->plan.pty ? STORE_RUN_PTY
			: w->own_box        ? STORE_RUN_ONCE
					    : STORE_RUN_EXEC,
		.wall_ms = (uint32_t)plan_limits_run_ms(w->api, w->who.team, ms),
		.rows = w->plan.rows,
		.cols = w->plan.cols,
		.pty = last && w->plan.pty,
		.stdin_open = last && (json_object_get(w->body, "stdin") ||
				       json_is_true(json_object_get(w->body, "open_stdin"))),
		.root = w->plan.root,
		.cached = last && w->cached,
		.warm = last && w->plan.program.warm != NULL,
		.lang = w->plan.program.lang,
		.request = w->request,
		.inputs = w->inputs,
		.replay_of = w->replay_of,
		.before = &w->before,
		.key = w->who.id,
	};
}

/* ---- compile cache ---- */

/* Sends the stored output of the compiler, as if the compiler had run now. */
static void say_again(struct run_request *w, const struct compile_output *made)
{
	json_t *found;

	if (w->streaming && w->call)
		event_stream_event(&w->event_stream,
				   json_pack("{s:s, s:s, s:b}", "type", "compiled", "box", w->box,
					     "before", 1));
	for (unsigned i = 0; i < 2; i++) {
		if (!made->said_len[i])
			continue;
		note_said(w, i, made->said[i], made->said_len[i]);
		tell_output(w, i, 0, made->said[i],
			    made->said_len[i]); /* small enough to be buffered */
	}
	found = diag_errors(w->plan.program.lang, buf_str(&w->said), w->said.len);
	w->warnings = found;
	buf_cut(&w->said, 0);
}

void run_request_looked(struct compile_reuse *x, int found)
{
	struct run_request *w = loop_owner(x, struct run_request, reuse);

	if (found) {
		say_again(w, &x->made);
		w->cached = 1;
		run_request_advance(w);
	} else if (w->looked == 1) {
		w->looked = 2; /* not in the cache: run the compiler */
		run_request_next(w);
	} else {
		run_request_advance(w); /* stored in the cache, or not */
	}
}

/* 1: the cache may be used. After an install step, and for a program of root, the box may have any
 * content. */
static int may_be_spared(const struct run_request *w)
{
	for (unsigned i = 0; i < w->at; i++)
		if (strcmp(w->plan.steps[i].what, RUN_REQUEST_VERSION))
			return 0;
	return is_compile(w) && !w->looked && !w->plan.root;
}

static void look_for_made(struct run_request *w, struct box *b)
{
	const json_t *code = json_object_get(w->body, "code");
	const struct program *p = &w->plan.program;
	struct compile_reuse_spec want = {
		.of = { .surface = "flow",
			.team = b->row.team,
			.argv = w->plan.steps[w->at].argv,
			.env = w->plan.env,
			.cwd = w->plan.cwd,
			.source = p->source,
			.code = json_string_value(code),
			.code_len = json_string_length(code),
			.files = json_object_get(w->body, "files"),
			.support = p->lang->support,
			.program = p->compile == p->lang->compile ? lang_program(p->lang)
								  : p->compile[0] },
		.lang = p->lang,
		.program = p->binary,
		.alone = w->own_box,
		.holds = w->holds,
		.started = w->at,
	};

	w->looked = 1;
	compile_reuse_lookup(&w->reuse, b, &want);
}

void run_request_next(struct run_request *w)
{
	struct box *b = fleet_find(&w->api->fleet, w->box);
	int last = w->at + 1 == w->plan.nsteps, reads = w->call && !(last && w->plan.background);
	struct exec_spec want;
	struct exec *r;
	struct trace_context before;
	struct err e;
	int done;

	if (!b) {
		err_set(&e, ERR_NOT_FOUND, "the box ended");
		run_request_fail(w, &e);
		return;
	}
	find_words(w, &w->plan.steps[w->at], b, last);
	if (may_be_spared(w)) {
		look_for_made(w, b);
		return;
	}
	want = want_of(w, b, &w->plan.steps[w->at], last);
	if (reads)
		exec_reader_init(&w->reader, &w->api->fleet, &reader_on);
	before = trace_enter(&w->trace);
	done = exec_launch(b, &want, reads ? &w->reader : NULL, &r, &e);
	trace_leave(&before);
	if (done < 0) {
		run_request_fail(w, &e);
		return;
	}
	w->tapped = reads;
	if (!w->redact.n)
		box_secrets_redact(b, &w->redact);
	if (last)
		give_input(w, r);
	run_request_audit(w->api, w->call, &w->who, r, w->plan.steps[w->at].what);
	say_started(w, r);
	if (last && w->plan.background) {
		leave_running(w, r);
	} else if (!reads) {
		run_request_await(w, r);
	}
}
