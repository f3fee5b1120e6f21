/* flow.c - see flow.h. */
#include "api/flow.h"
#include "api/box_want.h"
#include "api/feed.h"
#include "api/flow_files.h"
#include "api/packages.h"
#include "api/quota.h"
#include "api/replay.h"
#include "base/own.h"
#include "box/record.h"
#include "fleet/reuse.h"
#include "fleet/tap.h"
#include "lang/diag.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 1024 * 1024, AUDITED = 200 };

struct flow {
	struct api *api;
	struct call *call; /* NULL: the client has left */
	struct who who;
	char box[ID_LEN + 1];
	int own_box; /* made for us */
	const struct flow_door *door;
	const int *leash; /* the call's */
	json_t *body; /* the request; texts below point into it */
	json_t *request; /* what another go would need; NULL: there cannot be one */
	char replay_of[ID_LEN + 1];
	struct flow_plan plan;
	unsigned at; /* of its steps */

	struct flow_files files;
	struct package_job packages;
	int installing; /* they are not there yet, and neither is the box */
	struct berth_wait made;
	struct tap tap;
	int tapped;
	struct run_wait wait;
	enum feed_kind kind;
	struct feed feed;
	int streaming;
	struct buf out[2];
	uint64_t dropped[2];
	json_t *warnings; /* of a compiler that made a program all the same, or NULL */
	struct buf said; /* by this step, for diag.h: what a compiler begins with, a program ends with */

	struct reuse reuse;
	int looked; /* for what the compiler would make */
	int compiled_before;
	unsigned holds; /* of the box, when it was first used */
	struct buf words[2]; /* of the compiler, all of them: what is kept must be able to say them again */
};

/* ---- the end ---- */

static void flow_free(struct flow *w)
{
	struct berth *b;

	flow_files_fini(&w->files);
	if (w->tapped)
		tap_close(&w->tap);
	reuse_fini(&w->reuse);
	packages_job_fini(&w->packages);
	berth_wait_cancel(&w->made);
	run_wait_cancel(&w->wait);
	b = w->own_box && w->box[0] ? fleet_find(&w->api->fleet, w->box) : NULL;
	if (b)
		berth_end(b, CAUSE_EXIT, NULL);
	flow_plan_fini(&w->plan);
	buf_fini(&w->said);
	buf_fini(&w->out[0]);
	buf_fini(&w->out[1]);
	buf_fini(&w->words[0]);
	buf_fini(&w->words[1]);
	json_decref(w->warnings);
	json_decref(w->request);
	json_decref(w->body);
	free(w);
}

/* The client's part is over, ours may not be. */
static struct call *let_go(struct flow *w)
{
	struct call *c = w->call;

	if (c) {
		c->drop = NULL;
		c->state = NULL;
	}
	w->call = NULL;
	return c;
}

static void flow_fail(struct flow *w, const struct err *e)
{
	struct call *c = let_go(w);

	if (c && w->streaming) {
		if (!c->audited) /* else one of its programs did start */
			call_audit(c, "exec.start", w->box, err_kind_name(e->kind));
		json_t *error = call_error_json(err_kind_name(e->kind), e->msg, NULL, NULL);

		json_object_set_new(error, "type", json_string("error"));
		feed_event(&w->feed, error);
		feed_end(&w->feed);
	} else if (c) {
		call_fail(c, e);
	}
	flow_free(w);
}

static void stream_end(struct flow *w, json_t *take_doc)
{
	static const char *const types[2] = { "stdout", "stderr" };

	feed_flush(&w->feed, types);
	json_object_set_new(take_doc, "type", json_string("exit"));
	feed_event(&w->feed, take_doc);
	feed_end(&w->feed);
}

static void answer(struct flow *w, json_t *record)
{
	struct call *c = let_go(w);
	json_t *doc = c ? json_copy(record) : NULL, *packages = doc ? packages_report(&w->packages) : NULL;

	if (packages)
		json_object_set_new(doc, "packages", packages);
	if (c && w->streaming) {
		stream_end(w, doc);
	} else if (c) {
		if (!w->door->said) {
			record_set_output(doc, "stdout", &w->out[0]);
			record_set_output(doc, "stderr", &w->out[1]);
		}
		json_object_set_new(doc, "truncated",
				    json_boolean(w->dropped[0] || w->dropped[1] ||
						 json_is_true(json_object_get(doc, "truncated"))));
		w->door->over(c, doc);
	}
	flow_free(w);
}

static void tell_record(struct call *c, json_t *take_record)
{
	call_json(c, 200, take_record);
}

static void tell_run(struct call *c, const struct run *r)
{
	call_json(c, 201, run_json(r));
}

static const struct flow_door native = { .over = tell_record, .running = tell_run };

/* ---- programs ---- */

static void next_step(struct flow *w);

/* Said in words before: now as data. The record is stored after this. */
static void note_errors(struct flow *w, json_t *record, int failed)
{
	const char *what = w->plan.steps[w->at].what;
	const struct lang *l = w->plan.program.lang;
	json_t *found = NULL;

	if (l)
		json_object_set_new(record, "language", json_string(l->name));
	if (l && !strcmp(what, "compile") && (found = diag_errors(l, buf_str(&w->said), w->said.len))) {
		json_object_set_new(record, failed ? "errors" : "warnings", found);
		w->warnings = failed ? NULL : json_incref(found);
	}
	if (l && failed && !strcmp(what, "run") &&
	    (found = diag_fault(l, buf_str(&w->said), w->said.len)))
		json_object_set_new(record, "error", found);
	buf_cut(&w->said, 0);
}

static void note_said(struct flow *w, unsigned stream, const char *bytes, size_t n)
{
	int last = w->at + 1 == w->plan.nsteps;

	if (w->plan.program.lang && !last)
		diag_head(&w->said, bytes, n);
	else if (w->plan.program.lang && (stream == 1 || w->plan.pty))
		diag_tail(&w->said, bytes, n);
}

static int is_version(const struct flow *w)
{
	return !strcmp(w->plan.steps[w->at].what, FLOW_VERSION);
}

static int is_compile(const struct flow *w)
{
	return !strcmp(w->plan.steps[w->at].what, "compile");
}

/* 1: it is not what was asked for, and w is no more. */
static int wrong_version(struct flow *w)
{
	char has[LANG_VERSION + 1];
	struct err e;

	lang_version_in(buf_str(&w->said), w->said.len, has);
	if (lang_pin_fits(w->plan.program.pin, has))
		return 0;
	err_set(&e, ERR_INVALID, "language: %s %s was asked for; there is %s", w->plan.program.lang->name,
		w->plan.program.pin, *has ? has : "one that does not tell");
	flow_fail(w, &e);
	return 1;
}

static void go_on(struct flow *w)
{
	w->at++;
	next_step(w);
}

static void step_over(struct flow *w, json_t *record)
{
	int64_t status = json_integer_value(json_object_get(record, "status"));
	int read = w->tapped; /* to its end: if the client had left, nobody would have */

	w->tapped = 0;
	if (is_version(w) && status == 0 && wrong_version(w))
		return;
	note_errors(w, record, status != 0);
	if (status == 0 && w->at + 1 < w->plan.nsteps) {
		if (is_compile(w) && read && !json_is_true(json_object_get(record, "truncated")))
			reuse_keep(&w->reuse, w->words);
		else
			go_on(w);
		return;
	}
	json_object_set_new(record, "step", json_string(w->plan.steps[w->at].what));
	if (w->warnings)
		json_object_set(record, "warnings", w->warnings);
	answer(w, record);
}

/* 1: the client takes no more for now. */
static int tell_output(struct flow *w, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	static const char *const types[2] = { "stdout", "stderr" };
	uint64_t max = OUTPUT_MAX;
	size_t room;

	if (w->streaming)
		return w->call && feed_output(&w->feed, types[stream], stream, offset, bytes, n);
	if (w->door->said)
		return w->call && w->door->said(w->call, stream, bytes, n);
	if (json_object_get(w->body, "max_output"))
		max = (uint64_t)json_integer_value(json_object_get(w->body, "max_output"));
	room = w->out[stream].len < max ? (size_t)max - w->out[stream].len : 0;
	buf_add(&w->out[stream], bytes, n < room ? n : room);
	w->dropped[stream] += n < room ? 0 : n - room;
	return 0;
}

static void tap_reads(struct tap *t, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	struct flow *w = loop_owner(t, struct flow, tap);

	note_said(w, stream, bytes, n);
	if (is_compile(w) && w->words[stream].len <= REUSE_SAID)
		buf_add(&w->words[stream], bytes, n);
	if (!is_version(w) && tell_output(w, stream, offset, bytes, n))
		tap_stop(t, 1);
}

static void tap_ends(struct tap *t, json_t *record, const struct err *e)
{
	struct flow *w = loop_owner(t, struct flow, tap);

	if (e)
		flow_fail(w, e);
	else
		step_over(w, record);
}

static const struct tap_events tap_on = { .output = tap_reads, .over = tap_ends };

static void waited(struct run_wait *x, json_t *record)
{
	step_over(loop_owner(x, struct flow, wait), record);
}

static void say_started(struct flow *w, const struct run *r)
{
	if (w->door->started && w->call && !is_version(w))
		w->door->started(w->call, r, w->plan.steps[w->at].what);
	if (w->streaming && w->call && !is_version(w))
		feed_event(&w->feed,
			   json_pack("{s:s, s:s, s:s, s:s}", "type", "started", "box", w->box,
				     "exec", r->id, "step", w->plan.steps[w->at].what));
}

void flow_audit(struct api *a, struct call *c, const struct who *who, const struct run *r,
		const char *step)
{
	auto_buf struct buf line = { 0 };
	json_t *detail;
	int bad;

	for (size_t i = 0; i < json_array_size(r->command) && line.len <= AUDITED; i++)
		buf_printf(&line, "%s%s", i ? " " : "",
			   json_string_value(json_array_get(r->command, i)));
	if (line.len > AUDITED)
		buf_cut(&line, feed_utf8(line.p, AUDITED, &bad));
	detail = json_pack("{s:s, s:s, s:s}", "box", r->berth->row.id, "step", step, "command",
			   buf_str(&line));
	/* Init has just been woken, often on the processor that we are on. What is left to write can be
	 * written while it works. */
	loop_give_way();
	if (c)
		call_audit_more(c, "exec.start", r->id, "ok", detail);
	else
		api_audit(a, who, "exec.start", r->id, "ok", detail);
}

static void give_input(struct flow *w, struct run *r)
{
	const json_t *text = json_object_get(w->body, "stdin");

	if (!json_is_string(text))
		return;
	run_input(r, json_string_value(text), json_string_length(text));
	run_input_close(r);
}

/* A background program is answered as soon as it is on its way. */
static void leave_running(struct flow *w, const struct run *r)
{
	struct call *c = let_go(w);

	if (c)
		w->door->running(c, r);
	flow_free(w);
}

/* The words of a row are known when the box is. */
static void find_words(struct flow *w, struct flow_step *s, const struct berth *b, int last)
{
	const json_t *args = last ? json_object_get(w->body, "args") : NULL;

	if (!s->argv)
		s->argv = program_words(&w->plan.program, s->row, args, b->row.limits.mem_bytes);
}

static struct run_want want_of(const struct flow *w, const struct flow_step *s, int last)
{
	const char *tag = json_string_value(json_object_get(w->body, "tag"));

	return (struct run_want){
		.argv = s->argv,
		.env = w->plan.env,
		.cwd = w->plan.cwd,
		.tag = last ? tag : NULL,
		.kind = last && w->plan.pty ? STORE_RUN_PTY :
			w->own_box     ? STORE_RUN_ONCE :
					 STORE_RUN_EXEC,
		.wall_ms = s->wall_ms,
		.rows = w->plan.rows,
		.cols = w->plan.cols,
		.pty = last && w->plan.pty,
		.stdin_open = last && (json_object_get(w->body, "stdin") ||
				       json_is_true(json_object_get(w->body, "open_stdin"))),
		.root = w->plan.root,
		.compiled_before = last && w->compiled_before,
		.seed = last && w->plan.program.seed != NULL,
		.request = w->request,
		.replay_of = w->replay_of,
	};
}

/* ---- what was compiled before ---- */

/* As if the compiler had said it now. */
static void say_again(struct flow *w, const struct artefact_made *made)
{
	json_t *found;

	if (w->streaming && w->call)
		feed_event(&w->feed, json_pack("{s:s, s:s, s:b}", "type", "compiled", "box", w->box,
					       "before", 1));
	for (unsigned i = 0; i < 2; i++) {
		if (!made->said_len[i])
			continue;
		note_said(w, i, made->said[i], made->said_len[i]);
		tell_output(w, i, 0, made->said[i], made->said_len[i]); /* little enough to wait there */
	}
	found = diag_errors(w->plan.program.lang, buf_str(&w->said), w->said.len);
	w->warnings = found;
	buf_cut(&w->said, 0);
}

static void looked(struct reuse *x, int found)
{
	struct flow *w = loop_owner(x, struct flow, reuse);

	if (found) {
		say_again(w, &x->made);
		w->compiled_before = 1;
		go_on(w);
	} else if (w->looked == 1) {
		w->looked = 2; /* the compiler it is */
		next_step(w);
	} else {
		go_on(w); /* kept, or not */
	}
}

/* An install may have done anything, and so may root. */
static int may_be_spared(const struct flow *w)
{
	for (unsigned i = 0; i < w->at; i++)
		if (strcmp(w->plan.steps[i].what, FLOW_VERSION))
			return 0;
	return is_compile(w) && !w->looked && !w->plan.root;
}

static void look_for_made(struct flow *w, struct berth *b)
{
	const json_t *code = json_object_get(w->body, "code");
	const struct program *p = &w->plan.program;
	struct reuse_want want = {
		.of = { .door = "flow",
			.team = b->row.team,
			.argv = w->plan.steps[w->at].argv,
			.env = w->plan.env,
			.cwd = w->plan.cwd,
			.source = p->source,
			.code = json_string_value(code),
			.code_len = json_string_length(code),
			.files = json_object_get(w->body, "files"),
			.support = p->lang->support,
			.program = p->compile == p->lang->compile ? lang_program(p->lang) :
								   p->compile[0] },
		.lang = p->lang,
		.program = p->binary,
		.alone = w->own_box,
		.holds = w->holds,
		.started = w->at,
	};

	w->looked = 1;
	reuse_look(&w->reuse, b, &want);
}

static void next_step(struct flow *w)
{
	struct berth *b = fleet_find(&w->api->fleet, w->box);
	int last = w->at + 1 == w->plan.nsteps, reads = w->call && !(last && w->plan.background);
	struct run_want want;
	struct run *r;
	struct err e;

	if (!b) {
		err_set(&e, ERR_NOT_FOUND, "the box ended");
		flow_fail(w, &e);
		return;
	}
	find_words(w, &w->plan.steps[w->at], b, last);
	if (may_be_spared(w)) {
		look_for_made(w, b);
		return;
	}
	want = want_of(w, &w->plan.steps[w->at], last);
	if (reads)
		tap_init(&w->tap, &w->api->fleet, &tap_on);
	if (run_start(b, &want, reads ? &w->tap : NULL, &r, &e) < 0) {
		flow_fail(w, &e);
		return;
	}
	w->tapped = reads;
	if (last)
		give_input(w, r);
	flow_audit(w->api, w->call, &w->who, r, w->plan.steps[w->at].what);
	say_started(w, r);
	if (last && w->plan.background) {
		leave_running(w, r);
	} else if (!reads) {
		w->wait.done = waited;
		run_await(r, &w->wait);
	}
}

/* ---- the beginning ---- */

static void begin_feed(struct flow *w)
{
	if (w->kind == FEED_NONE || !w->call || w->streaming)
		return;
	feed_begin(&w->feed, w->call->req, w->kind);
	w->streaming = 1;
}

static void files_are_there(struct flow_files *x, const struct err *e)
{
	struct flow *w = loop_owner(x, struct flow, files);

	if (e)
		flow_fail(w, e);
	else
		next_step(w);
}

static void begin(struct flow *w)
{
	struct berth *b = fleet_find(&w->api->fleet, w->box);

	w->holds = b ? b->holds : 0;
	begin_feed(w);
	w->files.done = files_are_there;
	if (!b || flow_files_put(&w->files, &w->plan, &b->line))
		next_step(w);
}

/* ---- the client ---- */

/* Nobody wants it any more: what runs is ended and recorded, what would follow is not begun. */
static void pull_leash(struct flow *w)
{
	if (w->tapped && w->tap.run) {
		w->plan.nsteps = w->at + 1;
		run_signal(w->tap.run, SIGKILL);
	}
}

static void client_left(struct call *c)
{
	struct flow *w = c->state;
	int leashed = w->leash && *w->leash;

	w->call = NULL;
	w->leash = NULL;
	if (leashed)
		pull_leash(w);
	if (w->installing || (leashed && !w->tapped)) { /* the install goes on; nobody wants the program any more */
		flow_free(w);
		return;
	}
	if (!w->tapped)
		return; /* between two steps; the next one will not be read */
	w->tapped = 0;
	if (w->tap.run) {
		struct run *r = w->tap.run;

		tap_close(&w->tap);
		w->wait.done = waited;
		run_await(r, &w->wait);
	}
}

static void client_drains(struct http_req *r)
{
	struct call *c = r->user;
	struct flow *w = c->state;

	if (w && w->tapped)
		tap_stop(&w->tap, 0);
}

/* NULL: refused, and answered. */
static struct flow *flow_new(struct call *c, const struct flow_want *want)
{
	struct flow *w = calloc(1, sizeof(*w));
	struct err e;

	if (!w)
		abort();
	w->api = c->api;
	w->who = c->who;
	w->door = want->door ? want->door : &native;
	w->leash = want->leash;
	w->body = json_incref(want->body);
	w->tap.own.post.fd = -1;
	w->reuse.done = looked;
	snprintf(w->replay_of, sizeof(w->replay_of), "%s", want->replay_of ? want->replay_of : "");
	if (flow_plan_read(&w->plan, w->body, w->api->fleet.conf.run_wall_ms, &e) < 0) {
		call_error(c, 400, "invalid", e.msg, NULL, "the fields are in /openapi.json");
		flow_free(w);
		return NULL;
	}
	if (!quota_run(c)) {
		flow_free(w);
		return NULL;
	}
	/* What goes to the background is answered when it runs, and has no stream; nor have those
	 * who want the end in their own shape. */
	w->kind = w->plan.background || want->door ? FEED_NONE : feed_wanted(c);
	w->call = c;
	c->state = w;
	c->drop = client_left;
	c->req->on_drain = client_drains;
	return w;
}

/* ---- in a box that is there ---- */

void flow_in(struct call *c, struct berth *b, const struct flow_want *want)
{
	struct flow *w = flow_new(c, want);

	if (!w)
		return;
	snprintf(w->box, sizeof(w->box), "%s", b->row.id);
	w->request = replay_request(w->body, b);
	berth_wake(b);
	begin(w);
}

void flow_exec(struct call *c, struct berth *b)
{
	flow_in(c, b, &(struct flow_want){ .body = c->body });
}

/* ---- in a box of its own ---- */

static void box_made(struct berth_wait *x, struct berth *b, const struct err *e)
{
	struct flow *w = loop_owner(x, struct flow, made);

	if (e) {
		packages_lost(&w->packages, e);
		flow_fail(w, e);
		return;
	}
	snprintf(w->box, sizeof(w->box), "%s", b->row.id);
	begin(w);
}

static void make_box(struct flow *w)
{
	struct berth_want box;
	struct berth *b;
	struct err e;

	if (box_want(w->call, &box, &e) < 0) {
		flow_fail(w, &e);
		return;
	}
	if (w->plan.program.lang)
		program_limits(&w->plan.program, &box.limits);
	box.seed = w->plan.program.seed;
	box.row.metadata = "{\"" BERTH_EPHEMERAL "\":\"1\"}";
	packages_want(&w->packages, w->call->req, &box);
	w->made.done = box_made;
	if (berth_create(&w->api->fleet, &box, &w->made, &b, &e) < 0)
		flow_fail(w, &e);
}

/* ---- its packages ---- */

static void install_failed(struct flow *w, json_t *take_error)
{
	struct call *c = let_go(w);

	if (c && w->streaming) {
		json_object_set_new(take_error, "type", json_string("error"));
		feed_event(&w->feed, take_error);
		feed_end(&w->feed);
	} else if (c) {
		call_json(c, 422, take_error);
	} else {
		json_decref(take_error);
	}
	flow_free(w);
}

static void installed(struct package_job *j, const struct packages_failure *f)
{
	struct flow *w = j->user;

	w->installing = 0;
	if (f)
		install_failed(w, packages_failure_json(f));
	else
		make_box(w);
}

static void install_said(struct package_job *j, const char *manager, unsigned stream,
			 const char *bytes, size_t n)
{
	struct flow *w = j->user;

	if (w->streaming && w->call)
		feed_event(&w->feed, packages_said_json(manager, stream, bytes, n));
}

static const char *language_of(const struct flow *w)
{
	const char *name = json_string_value(json_object_get(w->body, "language")),
		   *entry = json_string_value(json_object_get(w->body, "entry"));
	const struct lang *l = name ? lang_named(name) : entry ? lang_of(entry, "", 0) : NULL;

	return l ? l->name : NULL;
}

static int wanted_packages(struct flow *w, struct err *e)
{
	const json_t *field = json_object_get(w->body, "packages");

	w->packages.api = w->api;
	w->packages.user = w;
	w->packages.done = installed;
	w->packages.said = install_said;
	if (packages_read(&w->packages, field, language_of(w), e) < 0)
		return -1;
	return json_is_false(field) ? 0 : packages_detect(&w->packages, w->body, language_of(w), e);
}

void flow_alone(struct call *c, const struct flow_want *want)
{
	struct flow *w;
	struct err e;
	int there;

	if (!quota_box(c))
		return;
	w = flow_new(c, want);
	if (!w)
		return;
	w->own_box = 1;
	w->request = replay_request(w->body, NULL);
	if (wanted_packages(w, &e) < 0) {
		flow_fail(w, &e);
		return;
	}
	there = packages_begin(&w->packages, c->api, c->who.team, &e);
	if (there < 0) {
		json_t *refusal = packages_refusal_json(&e);

		if (refusal)
			install_failed(w, refusal);
		else
			flow_fail(w, &e);
	} else if (there) {
		make_box(w);
	} else {
		w->installing = 1;
		begin_feed(w);
	}
}

void flow_run(struct call *c)
{
	flow_alone(c, &(struct flow_want){ .body = c->body });
}
