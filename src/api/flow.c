/* flow.c - see flow.h. */
#include "api/flow.h"
#include "api/boxes.h"
#include "api/feed.h"
#include "api/packages.h"
#include "api/program.h"
#include "api/quota.h"
#include "api/replay.h"
#include "base/base64.h"
#include "base/own.h"
#include "box/clerk.h"
#include "box/record.h"
#include "fleet/reuse.h"
#include "fleet/tap.h"
#include "lang/diag.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 1024 * 1024, STEPS = 4, AUDITED = 200, INSTALL_MS = 300000,
       VERSION_MS = 10000 };

#define VERSION "version" /* is it the one that was asked for? Nobody is told of this step */

struct step {
	const char *what;       /* VERSION, "install", "compile", "run" or "test" */
	const char **argv;      /* NULL until it starts, with a row: */
	const char *const *row; /* of the language */
	uint32_t wall_ms;
};

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
	const char **env;
	const char *cwd;
	struct program program;
	struct step steps[STEPS];
	unsigned nsteps, at;
	int background, pty, root;
	uint16_t rows, cols;

	struct clerk clerk;
	int clerk_open;
	struct buf text;
	unsigned unanswered;

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

#define EXEC_FIELDS                                                                                \
	{ "command", FIELD_COMMAND, 0, 0, 1 << 20, "a line for the shell, or program and arguments", NULL }, \
	{ "code", FIELD_TEXT, 0, 0, 1 << 22, "a program's text; wants language", NULL },           \
	{ "language", FIELD_TEXT, 0, 0, 64, "of the code: python, js, c++, ...; python@3.11", NULL }, \
	{ "compiler", FIELD_NAME, 0, 0, 32, "where the language has a choice: gcc, clang", NULL }, \
	{ "files", FIELD_ANY, 0, 0, 0, "{path: text or {\"base64\": ...}}, written before", NULL }, \
	{ "entry", FIELD_TEXT, 0, 0, 255, "which of the files to run", NULL },                     \
	{ "args", FIELD_TEXTS, 0, 0, 1000, "arguments behind code or entry", NULL },               \
	{ "test", FIELD_BOOL, 0, 0, 0, "run the language's test command instead", NULL },          \
	{ "install", FIELD_COMMAND, 0, 0, 1 << 20, "run before, e.g. to install packages", NULL }, \
	{ "cwd", FIELD_TEXT, 0, 0, 4095, "folder to start in; /home/user", NULL },                 \
	{ "env", FIELD_MAP, 0, 0, 1000, "variables, on top of the box's", NULL },                  \
	{ "stdin", FIELD_TEXT, 0, 0, 1 << 22, "all of its input", NULL },                          \
	{ "timeout_ms", FIELD_INT, 0, 1, UINT32_MAX, "of the program; 30 s with a language", NULL }, \
	{ "timeouts", FIELD_OBJECT, 0, 0, 0, "of the stages", timeout_fields },                    \
	{ "user", FIELD_NAME, 0, 0, 16, "user, or root where the box allows it", NULL },           \
	{ "tag", FIELD_NAME, 0, 0, STORE_NAME, "a name to find it by", NULL },                     \
	{ "max_output", FIELD_INT, 0, 0, 16 << 20, "bytes kept of each stream in a plain answer", NULL }

static const struct field timeout_fields[] = {
	{ "install_ms", FIELD_INT, 0, 1, UINT32_MAX, "of install; 30 s, of a command's 5 minutes", NULL },
	{ "compile_ms", FIELD_INT, 0, 1, UINT32_MAX, "of the compiler; 60 s", NULL },
	{ "run_ms", FIELD_INT, 0, 1, UINT32_MAX, "of the program, as timeout_ms", NULL },
	{ 0 },
};

static const struct field pty_fields[] = {
	{ "rows", FIELD_INT, 0, 1, 10000, "height of the terminal; 24", NULL },
	{ "cols", FIELD_INT, 0, 1, 10000, "width of the terminal; 80", NULL },
	{ 0 },
};

const struct field flow_exec_fields[] = {
	EXEC_FIELDS,
	{ "background", FIELD_BOOL, 0, 0, 0, "answer as soon as it runs", NULL },
	{ "open_stdin", FIELD_BOOL, 0, 0, 0, "input will be sent: POST .../stdin", NULL },
	{ "pty", FIELD_OBJECT, 0, 0, 0, "on a terminal", pty_fields },
	{ 0 },
};

const struct field flow_run_fields[] = {
	EXEC_FIELDS,
	BOX_LIMIT_FIELDS,
	{ "packages", FIELD_ANY, 0, 0, 0, "a list for the language's manager, or {\"pip\": [...]}; false: none", NULL },
	{ 0 },
};

/* ---- the end ---- */

static void flow_free(struct flow *w)
{
	struct berth *b;

	if (w->clerk_open)
		clerk_close(&w->clerk);
	if (w->tapped)
		tap_close(&w->tap);
	reuse_fini(&w->reuse);
	packages_job_fini(&w->packages);
	berth_wait_cancel(&w->made);
	run_wait_cancel(&w->wait);
	b = w->own_box && w->box[0] ? fleet_find(&w->api->fleet, w->box) : NULL;
	if (b)
		berth_end(b, CAUSE_EXIT, NULL);
	for (unsigned i = 0; i < STEPS; i++)
		free(w->steps[i].argv);
	free(w->env);
	program_fini(&w->program);
	buf_fini(&w->text);
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
	const char *what = w->steps[w->at].what;
	const struct lang *l = w->program.lang;
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
	int last = w->at + 1 == w->nsteps;

	if (w->program.lang && !last)
		diag_head(&w->said, bytes, n);
	else if (w->program.lang && (stream == 1 || w->pty))
		diag_tail(&w->said, bytes, n);
}

static int is_version(const struct flow *w)
{
	return !strcmp(w->steps[w->at].what, VERSION);
}

static int is_compile(const struct flow *w)
{
	return !strcmp(w->steps[w->at].what, "compile");
}

/* 1: it is not what was asked for, and w is no more. */
static int wrong_version(struct flow *w)
{
	char has[LANG_VERSION + 1];
	struct err e;

	lang_version_in(buf_str(&w->said), w->said.len, has);
	if (lang_pin_fits(w->program.pin, has))
		return 0;
	err_set(&e, ERR_INVALID, "language: %s %s was asked for; there is %s", w->program.lang->name,
		w->program.pin, *has ? has : "one that does not tell");
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
	if (status == 0 && w->at + 1 < w->nsteps) {
		if (is_compile(w) && read && !json_is_true(json_object_get(record, "truncated")))
			reuse_keep(&w->reuse, w->words);
		else
			go_on(w);
		return;
	}
	json_object_set_new(record, "step", json_string(w->steps[w->at].what));
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
		w->door->started(w->call, r, w->steps[w->at].what);
	if (w->streaming && w->call && !is_version(w))
		feed_event(&w->feed,
			   json_pack("{s:s, s:s, s:s, s:s}", "type", "started", "box", w->box,
				     "exec", r->id, "step", w->steps[w->at].what));
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
static void find_words(struct flow *w, struct step *s, const struct berth *b, int last)
{
	const json_t *args = last ? json_object_get(w->body, "args") : NULL;

	if (!s->argv)
		s->argv = program_words(&w->program, s->row, args, b->row.limits.mem_bytes);
}

static struct run_want want_of(const struct flow *w, const struct step *s, int last)
{
	const char *tag = json_string_value(json_object_get(w->body, "tag"));

	return (struct run_want){
		.argv = s->argv,
		.env = w->env,
		.cwd = w->cwd,
		.tag = last ? tag : NULL,
		.kind = last && w->pty ? STORE_RUN_PTY :
			w->own_box     ? STORE_RUN_ONCE :
					 STORE_RUN_EXEC,
		.wall_ms = s->wall_ms,
		.rows = w->rows,
		.cols = w->cols,
		.pty = last && w->pty,
		.stdin_open = last && (json_object_get(w->body, "stdin") ||
				       json_is_true(json_object_get(w->body, "open_stdin"))),
		.root = w->root,
		.compiled_before = last && w->compiled_before,
		.seed = last && w->program.seed != NULL,
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
	found = diag_errors(w->program.lang, buf_str(&w->said), w->said.len);
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
		if (strcmp(w->steps[i].what, VERSION))
			return 0;
	return is_compile(w) && !w->looked && !w->root;
}

static void look_for_made(struct flow *w, struct berth *b)
{
	const json_t *code = json_object_get(w->body, "code");
	const struct program *p = &w->program;
	struct reuse_want want = {
		.of = { .door = "flow",
			.team = b->row.team,
			.argv = w->steps[w->at].argv,
			.env = w->env,
			/* Those of a box of our own are the request's, and among ours. */
			.box_env = w->own_box ? NULL : b->row.env,
			.cwd = w->cwd,
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
	int last = w->at + 1 == w->nsteps, reads = w->call && !(last && w->background);
	struct run_want want;
	struct run *r;
	struct err e;

	if (!b) {
		err_set(&e, ERR_NOT_FOUND, "the box ended");
		flow_fail(w, &e);
		return;
	}
	find_words(w, &w->steps[w->at], b, last);
	if (may_be_spared(w)) {
		look_for_made(w, b);
		return;
	}
	want = want_of(w, &w->steps[w->at], last);
	if (reads)
		tap_init(&w->tap, &w->api->fleet, &tap_on);
	if (run_start(b, &want, reads ? &w->tap : NULL, &r, &e) < 0) {
		flow_fail(w, &e);
		return;
	}
	w->tapped = reads;
	if (last)
		give_input(w, r);
	flow_audit(w->api, w->call, &w->who, r, w->steps[w->at].what);
	say_started(w, r);
	if (last && w->background) {
		leave_running(w, r);
	} else if (!reads) {
		w->wait.done = waited;
		run_await(r, &w->wait);
	}
}

/* ---- files ---- */

static void put_one(struct flow *w, const char *path, const void *bytes, size_t n)
{
	struct wire_put put = { .mode = 0 };
	char full[512];

	path = program_in_home(path, full);
	clerk_ask(&w->clerk, WIRE_PUT, &put, sizeof(put), path, strlen(path));
	if (n)
		clerk_data(&w->clerk, bytes, n);
	clerk_data(&w->clerk, NULL, 0);
	w->unanswered++;
}

/* The bodies are in memory already, and bounded; the socket's queue takes what it must. */
static void files_ready(struct clerk *k)
{
	struct flow *w = loop_owner(k, struct flow, clerk);
	const json_t *code = json_object_get(w->body, "code");
	const struct lang *l = w->program.lang;
	const char *path;
	json_t *v;

	for (const struct lang_pair *f = l ? l->support : NULL; f && f->key; f++)
		put_one(w, f->key, f->value, strlen(f->value));
	json_object_foreach(json_object_get(w->body, "files"), path, v)
	{
		if (json_is_string(v)) {
			put_one(w, path, json_string_value(v), json_string_length(v));
			continue;
		}
		v = json_object_get(v, "base64");
		buf_cut(&w->text, 0);
		(void)!base64_decode(&w->text, json_string_value(v), json_string_length(v));
		put_one(w, path, w->text.p, w->text.len);
	}
	if (code)
		put_one(w, w->program.source, json_string_value(code), json_string_length(code));
}

static void file_done(struct clerk *k, uint16_t flags)
{
	struct flow *w = loop_owner(k, struct flow, clerk);

	(void)flags;
	if (--w->unanswered)
		return;
	clerk_close(&w->clerk);
	w->clerk_open = 0;
	next_step(w);
}

static void file_failed(struct clerk *k, const struct err *e)
{
	flow_fail(loop_owner(k, struct flow, clerk), e);
}

static const struct clerk_events clerk_on = {
	.ready = files_ready, .done = file_done, .failed = file_failed
};

static void begin_feed(struct flow *w)
{
	if (w->kind == FEED_NONE || !w->call || w->streaming)
		return;
	feed_begin(&w->feed, w->call->req, w->kind);
	w->streaming = 1;
}

static void begin(struct flow *w)
{
	struct berth *b = fleet_find(&w->api->fleet, w->box);

	w->holds = b ? b->holds : 0;
	begin_feed(w);
	if (b && (json_object_size(json_object_get(w->body, "files")) ||
		  json_object_get(w->body, "code") ||
		  (w->program.lang && w->program.lang->support->key))) {
		clerk_open(&w->clerk, &b->line, 0, &clerk_on);
		w->clerk_open = 1;
	} else {
		next_step(w);
	}
}

/* ---- what was asked for ---- */

static int check_files(const json_t *files, struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	const char *path;
	json_t *v;

	if (files && !json_is_object(files))
		return err_set(e, ERR_INVALID, "files: must be an object of paths");
	json_object_foreach((json_t *)files, path, v)
	{
		const json_t *coded = json_object_get(v, "base64");

		if (!*path || strlen(path) > 400)
			return err_set(e, ERR_INVALID, "files: a path of %zu bytes, from 1 to 400",
				       strlen(path));
		buf_cut(&bytes, 0);
		if (!json_is_string(v) &&
		    (!json_is_string(coded) ||
		     base64_decode(&bytes, json_string_value(coded), json_string_length(coded)) < 0))
			return err_set(e, ERR_INVALID,
				       "files: '%.60s' must be text, or {\"base64\": ...}", path);
	}
	return 0;
}

static const char **words_of(const json_t *command)
{
	const char **argv = calloc(json_is_array(command) ? json_array_size(command) + 1 : 4,
				   sizeof(*argv));

	if (!argv)
		abort();
	if (json_is_string(command)) {
		argv[0] = "/bin/bash";
		argv[1] = "-c";
		argv[2] = json_string_value(command);
	}
	for (size_t i = 0; i < json_array_size(command); i++)
		argv[i] = json_string_value(json_array_get(command, i));
	return argv;
}

static void add_step(struct flow *w, struct step take_step)
{
	w->steps[w->nsteps++] = take_step;
}

/* How long a stage may take: as asked for, else as usual. */
static uint32_t stage_ms(const struct flow *w, const char *name, uint64_t usual)
{
	const json_t *ms = json_object_get(json_object_get(w->body, "timeouts"), name);

	return json_is_integer(ms) ? (uint32_t)json_integer_value(ms) : (uint32_t)usual;
}

/* Of a program nobody set a time for: what its language has, unless somebody sits in front of it. */
static uint64_t usual_run_ms(const struct flow *w)
{
	uint64_t conf = w->api->fleet.conf.run_wall_ms;
	int open = w->background || w->pty || json_is_true(json_object_get(w->body, "open_stdin"));

	return conf || open || !w->program.lang ? conf : w->program.lang->times.run;
}

static int plan_program(struct flow *w, struct err *e)
{
	const struct program *p = &w->program;

	if (json_is_true(json_object_get(w->body, "test"))) {
		if (!p->lang->test[0])
			return err_set(e, ERR_INVALID, "test: %s has no command for tests",
				       p->lang->name);
		add_step(w, (struct step){ .what = "test", .row = p->lang->test });
		return 0;
	}
	if (p->compile[0])
		add_step(w, (struct step){ .what = "compile",
					   .row = p->compile,
					   .wall_ms = stage_ms(w, "compile_ms",
							       p->lang->times.compile) });
	add_step(w, (struct step){ .what = "run", .row = p->lang->run });
	return 0;
}

/* The language's variables first: those of the request replace them. */
static void plan_env(struct flow *w)
{
	static const struct lang_pair none[1];
	const struct lang_pair *first = w->program.lang ? w->program.lang->env : none;
	json_t *env = json_object_get(w->body, "env"), *all = json_object(), *v;
	size_t n = 0, need = 0;
	const char *name;
	char *to;

	for (; first->key; first++)
		json_object_set_new(all, first->key, json_string(first->value));
	json_object_update(all, env);
	json_object_foreach(all, name, v)
		need += strlen(name) + json_string_length(v) + 2;
	w->env = calloc(1, (json_object_size(all) + 1) * sizeof(char *) + need);
	if (!w->env)
		abort();
	to = (char *)(w->env + json_object_size(all) + 1);
	json_object_foreach(all, name, v)
	{
		w->env[n++] = to;
		to += sprintf(to, "%s=%s", name, json_string_value(v)) + 1;
	}
	json_decref(all);
}

static int plan(struct flow *w, struct err *e)
{
	const json_t *command = json_object_get(w->body, "command"),
		     *install = json_object_get(w->body, "install"),
		     *timeout = json_object_get(w->body, "timeout_ms"),
		     *pty = json_object_get(w->body, "pty");
	const char *user = json_string_value(json_object_get(w->body, "user"));
	int coded = program_in(w->body);

	if (!command == !coded)
		return err_set(e, ERR_INVALID,
			       "give either command, or code (or entry) with language");
	if (user && strcmp(user, "user") && strcmp(user, "root"))
		return err_set(e, ERR_INVALID, "user: '%.40s' is neither user nor root", user);
	w->root = user && !strcmp(user, "root");
	w->cwd = json_string_value(json_object_get(w->body, "cwd"));
	w->background = json_is_true(json_object_get(w->body, "background"));
	w->pty = json_is_object(pty);
	w->rows = (uint16_t)json_integer_value(json_object_get(pty, "rows"));
	w->cols = (uint16_t)json_integer_value(json_object_get(pty, "cols"));
	if (check_files(json_object_get(w->body, "files"), e) < 0 ||
	    box_check_env(json_object_get(w->body, "env"), e) < 0)
		return -1;
	if (coded && program_read(&w->program, w->body, e) < 0)
		return -1;
	if (coded && *w->program.pin)
		add_step(w, (struct step){ .what = VERSION,
					   .row = w->program.lang->version,
					   .wall_ms = VERSION_MS });
	if (install)
		add_step(w, (struct step){ .what = "install",
					   .argv = words_of(install),
					   .wall_ms = stage_ms(w, "install_ms",
							       coded ? w->program.lang->times.install
								     : INSTALL_MS) });
	if (coded && plan_program(w, e) < 0)
		return -1;
	if (!coded)
		add_step(w, (struct step){ .what = "run", .argv = words_of(command) });
	w->steps[w->nsteps - 1].wall_ms =
		timeout ? (uint32_t)json_integer_value(timeout)
			: stage_ms(w, "run_ms", usual_run_ms(w));
	plan_env(w);
	return 0;
}

/* Nobody wants it any more: what runs is ended and recorded, what would follow is not begun. */
static void pull_leash(struct flow *w)
{
	if (w->tapped && w->tap.run) {
		w->nsteps = w->at + 1;
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
	if (plan(w, &e) < 0) {
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
	w->kind = w->background || want->door ? FEED_NONE : feed_wanted(c);
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
	if (w->program.lang)
		program_limits(&w->program, &box.limits);
	box.seed = w->program.seed;
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
