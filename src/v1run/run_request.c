/* run_request.c - see run_request.h. */
#include "v1run/run_request_internal.h"
#include "template/builtin.h"
#include "template/templates.h"
#include "fleet/bounds.h"
#include "v1box/box_spec.h"
#include "api/quota.h"
#include "v1run/replay.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- end ---- */

void run_request_free(struct run_request *w)
{
	struct box *b;

	run_request_files_fini(&w->files);
	artifacts_fini(&w->artifacts);
	if (w->tapped)
		exec_reader_close(&w->reader);
	compile_reuse_fini(&w->reuse);
	hermetic_memo_fini(&w->memo);
	packages_job_fini(&w->packages);
	box_wait_cancel(&w->made);
	exec_wait_cancel(&w->wait);
	b = w->own_box && w->box[0] ? fleet_find(&w->api->fleet, w->box) : NULL;
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
	run_request_plan_fini(&w->plan);
	redact_fini(&w->redact);
	buf_fini(&w->said);
	buf_fini(&w->out[0]);
	buf_fini(&w->out[1]);
	buf_fini(&w->words[0]);
	buf_fini(&w->words[1]);
	json_decref(w->warnings);
	json_decref(w->record);
	json_decref(w->request);
	json_decref(w->inputs);
	json_decref(w->body);
	free(w);
}

struct call *run_request_release(struct run_request *w)
{
	struct call *c = w->call;

	if (c) {
		c->drop = NULL;
		c->state = NULL;
	}
	w->call = NULL;
	return c;
}

void run_request_fail(struct run_request *w, const struct err *e)
{
	struct call *c = run_request_release(w);

	if (c && w->streaming) {
		if (!c->audited) /* else one of its programs was started */
			call_audit(c, "exec.start", w->box, err_kind_name(e->kind));
		json_t *error = call_error_json(c, err_kind_name(e->kind), e->msg, NULL, NULL);

		json_object_set_new(error, "type", json_string("error"));
		event_stream_event(&w->event_stream, error);
		event_stream_end(&w->event_stream);
	} else if (c) {
		call_fail(c, e);
	}
	run_request_free(w);
}

static void stream_end(struct run_request *w, json_t *take_doc)
{
	static const char *const types[2] = { "stdout", "stderr" };

	event_stream_flush(&w->event_stream, types);
	json_object_set_new(take_doc, "type", json_string("exit"));
	event_stream_event(&w->event_stream, take_doc);
	event_stream_end(&w->event_stream);
}

static void tell_answer(struct run_request *w, json_t *record)
{
	struct call *c = run_request_release(w);
	json_t *doc = c ? json_copy(record) : NULL,
	       *packages = doc ? packages_report(&w->packages) : NULL;

	if (packages)
		json_object_set_new(doc, "packages", packages);
	if (doc)
		artifacts_report(&w->artifacts, doc);
	redact_json(&w->redact, doc);
	if (doc && !w->dropped[0] && !w->dropped[1])
		hermetic_keep(&w->memo, &w->api->fleet, w->who.team, doc);
	if (c && w->streaming) {
		stream_end(w, doc);
	} else if (c) {
		if (!w->surface->said) {
			for (int i = 0; i < 2; i++) {
				auto_buf struct buf plain = { 0 };

				redact_text(&w->redact, buf_str(&w->out[i]), w->out[i].len, &plain);
				record_set_output(doc, i ? "stderr" : "stdout", &plain);
			}
		}
		json_object_set_new(doc, "truncated",
				    json_boolean(w->dropped[0] || w->dropped[1] ||
						 json_is_true(json_object_get(doc, "truncated"))));
		w->surface->over(c, doc);
	}
	run_request_free(w);
}

static void artifacts_are_read(struct artifacts *x)
{
	struct run_request *w = loop_owner(x, struct run_request, artifacts);
	json_t *record = w->record;

	w->record = NULL;
	tell_answer(w, record);
	json_decref(record);
}

void run_request_answer(struct run_request *w, json_t *record)
{
	struct box *b = w->own_box ? fleet_find(&w->api->fleet, w->box) : NULL;

	int wanted = w->own_box && w->call && json_object_get(w->body, "artifacts");

	if (wanted && !b)
		artifacts_lost(&w->artifacts);
	if (!wanted || !b) {
		tell_answer(w, record);
		return;
	}
	w->record = json_incref(record);
	w->artifacts.done = artifacts_are_read;
	artifacts_begin(&w->artifacts, &w->plan, &b->line, w->api->loop);
}

static void tell_record(struct call *c, json_t *take_record)
{
	call_json(c, 200, take_record);
}

static void tell_run(struct call *c, const struct exec *r)
{
	call_json(c, 201, exec_json(r));
}

static const struct run_callbacks native = { .over = tell_record, .running = tell_run };

/* ---- start ---- */

static void begin_event_stream(struct run_request *w)
{
	if (w->kind == EVENT_STREAM_NONE || !w->call || w->streaming)
		return;
	event_stream_begin(&w->event_stream, w->call->req, w->kind);
	w->streaming = 1;
}

static void files_are_there(struct run_request_files *x, const struct err *e)
{
	struct run_request *w = loop_owner(x, struct run_request, files);

	w->artifacts.files_put_ns = (uint64_t)fleet_now_ns();
	if (e)
		run_request_fail(w, e);
	else
		run_request_next(w);
}

static void request_begin(struct run_request *w)
{
	struct box *b = fleet_find(&w->api->fleet, w->box);

	w->holds = b ? b->holds : 0;
	begin_event_stream(w);
	w->files.done = files_are_there;
	if (!b || run_request_files_put(&w->files, &w->plan, &b->line))
		run_request_next(w);
}

/* ---- the client ---- */

/* The result is no longer needed: kills the running program, which is recorded, and does not start
 * further steps. */
static void run_request_kill(struct run_request *w)
{
	if (w->tapped && w->reader.run) {
		w->plan.nsteps = w->at + 1;
		exec_send_signal(w->reader.run, SIGKILL);
	}
}

static void client_left(struct call *c)
{
	struct run_request *w = c->state;
	int kills = w->kill_on_close && *w->kill_on_close;

	w->call = NULL;
	w->kill_on_close = NULL;
	if (kills)
		run_request_kill(w);
	if (w->installing ||
	    (kills && !w->tapped)) { /* an installation continues, but the program is no longer
				        * needed */
		run_request_free(w);
		return;
	}
	if (!w->tapped)
		return; /* between two steps; the output of the next one will not be read */
	w->tapped = 0;
	if (w->reader.run) {
		struct exec *r = w->reader.run;

		exec_reader_close(&w->reader);
		run_request_await(w, r);
	}
}

static void client_drains(struct http_req *r)
{
	struct call *c = r->user;
	struct run_request *w = c->state;

	if (w && w->tapped)
		exec_reader_stop(&w->reader, 0);
}

/* 1: the new box will have the root of a template, whose languages are its own. */
static int run_request_has_root(const json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "template"));

	return name && !builtin_template_find(name);
}

void run_request_version_name(const struct lang *l, const char *pin, char out[RUN_REQUEST_TEMPLATE])
{
	snprintf(out, RUN_REQUEST_TEMPLATE, "%.*s-%.*s", LANG_NAME, l->name, LANG_VERSION, pin);
	for (char *p = out; *p; p++)
		if (*p == '.')
			*p = '-'; /* names of templates have no dots */
}

/* "node@18" without a template: that of the name node-18, if there is one. */
static void run_request_choose_template(struct call *c, json_t *body)
{
	const char *language = json_string_value(json_object_get(body, "language")), *pin;
	char name[LANG_NAME + 1], wanted[RUN_REQUEST_TEMPLATE];
	struct template_found found;
	const struct lang *l;
	struct err e;

	if (!language || json_object_get(body, "template"))
		return;
	pin = lang_pin(language, name);
	l = lang_named(name);
	if (!*pin || !l)
		return;
	run_request_version_name(l, pin, wanted);
	if (template_resolve(c->api->store, c->who.team, wanted, &found, &e) < 0)
		return;
	template_found_fini(&found);
	json_object_set_new(body, "template", json_string(wanted));
}

/* NULL: rejected, and the error was sent. */
static struct run_request *request_new(struct call *c, const struct run_request_spec *want,
				       const struct box *b)
{
	struct run_request *w = calloc(1, sizeof(*w));
	struct err e;

	if (!w)
		abort();
	w->api = c->api;
	w->who = c->who;
	w->trace = c->trace;
	w->surface = want->surface ? want->surface : &native;
	w->kill_on_close = want->kill_on_close;
	w->body = json_incref(want->body);
	w->reader.own.post.fd = -1;
	w->reuse.done = run_request_looked;
	snprintf(w->replay_of, sizeof(w->replay_of), "%s", want->replay_of ? want->replay_of : "");
	w->before = c->before;
	snprintf(w->run_id, sizeof(w->run_id), "%s", want->run_id ? want->run_id : "");
	if (!b)
		run_request_choose_template(c, w->body);
	w->plan.layered = b ? b->nlayers || b->user.set : run_request_has_root(w->body);
	if (run_request_plan_read(&w->plan, w->body, w->api->fleet.conf.run_wall_ms, &e) < 0) {
		if (e.kind == ERR_LIMIT)
			call_fail(c, &e);
		else
			call_error(c, 400, "invalid", e.msg, NULL,
				   "the fields are in /openapi.json");
		run_request_free(w);
		return NULL;
	}
	if (!quota_run(c)) {
		run_request_free(w);
		return NULL;
	}
	/* A background program is answered when it has started, and has no event stream; neither
	 * have callers with callbacks of their own. */
	w->kind = w->plan.background || want->surface ? EVENT_STREAM_NONE : event_stream_wanted(c);
	w->call = c;
	c->state = w;
	c->drop = client_left;
	c->req->on_drain = client_drains;
	return w;
}

/* ---- in an existing box ---- */

void run_request_in(struct call *c, struct box *b, const struct run_request_spec *want)
{
	struct run_request *w = request_new(c, want, b);

	if (!w)
		return;
	snprintf(w->box, sizeof(w->box), "%s", b->row.id);
	w->request = replay_request(w->body, b, &w->inputs);
	box_wake(b);
	request_begin(w);
}

void run_request_exec(struct call *c, struct box *b)
{
	run_request_in(c, b, &(struct run_request_spec){ .body = c->body });
}

/* ---- in a new box ---- */

static void box_made(struct box_wait *x, struct box *b, const struct err *e)
{
	struct run_request *w = loop_owner(x, struct run_request, made);

	if (e) {
		packages_lost(&w->packages, e);
		run_request_fail(w, e);
		return;
	}
	snprintf(w->box, sizeof(w->box), "%s", b->row.id);
	request_begin(w);
}

/* A command, or a request with an install command, may install packages. Code may not, unless the
 * request has "registries": true; its packages are in "packages". */
static const char *request_metadata(const struct run_request *w)
{
	const json_t *said = json_object_get(json_object_get(w->body, "network"), "registries");
	int wanted = json_is_boolean(said)  ? json_is_true(said)
		     : hermetic_is(w->body) ? 0
					    : json_object_get(w->body, "install") != NULL ||
						      json_object_get(w->body, "command") != NULL;

	return wanted ? "{\"" BOX_EPHEMERAL "\":\"1\",\"" BOX_REGISTRIES "\":\"1\"}"
		      : "{\"" BOX_EPHEMERAL "\":\"1\"}";
}

/* Sends one stream of a stored answer as an event. */
static void reuse_send_output(struct run_request *w, json_t *doc, unsigned stream)
{
	static const char *const names[2] = { "stdout", "stderr" };
	const json_t *text = json_object_get(doc, names[stream]);
	auto_buf struct buf bytes = { 0 };
	char encoding[24];

	snprintf(encoding, sizeof(encoding), "%s_encoding", names[stream]);
	if (!json_object_get(doc, encoding))
		buf_add(&bytes, json_string_value(text), json_string_length(text));
	else
		(void)!base64_decode(&bytes, json_string_value(text), json_string_length(text));
	if (bytes.len)
		event_stream_output(&w->event_stream, names[stream], stream, 0, bytes.p, bytes.len);
	json_object_del(doc, names[stream]);
	json_object_del(doc, encoding);
}

static void reuse_answer(struct run_request *w, json_t *take_doc)
{
	const char *run = json_string_value(json_object_get(take_doc, "id"));
	struct call *c;

	call_audit_more(w->call, "exec.reuse", run, "ok",
			json_deep_copy(json_object_get(take_doc, "reused")));
	begin_event_stream(w);
	for (unsigned i = 0; i < 2 && w->streaming; i++)
		reuse_send_output(w, take_doc, i);
	c = run_request_release(w);
	if (w->streaming)
		stream_end(w, take_doc);
	else
		w->surface->over(c, take_doc);
	run_request_free(w);
}

/* 1: an earlier answer was sent, and w was freed. */
static int reuse_memo(struct run_request *w, const struct box_spec *box)
{
	const struct lang *l = w->plan.program.lang;
	json_t *found;

	if (!hermetic_reuses(w->body) || w->surface != &native)
		return 0;
	hermetic_key(w->body, box, l ? lang_program(l) : NULL, w->memo.key);
	found = hermetic_find(&w->api->fleet, w->who.team, w->memo.key);
	if (found)
		reuse_answer(w, found);
	else
		w->memo.wanted = 1;
	return found != NULL;
}

static void make_box(struct run_request *w)
{
	struct box_spec box;
	struct box *b;
	struct trace_context before;
	struct err e;
	int done;

	if (box_spec_read(w->call, &box, &e) < 0) {
		run_request_fail(w, &e);
		return;
	}
	if (w->packages.n && !box_spec_has_base(&box)) {
		err_set(&e, ERR_INVALID,
			"packages: template '%.80s' does not start from base; install them in it with RUN",
			box.row.template);
		run_request_fail(w, &e);
		return;
	}
	if (w->plan.program.lang)
		bounds_for_language(&w->plan.program.lang->limits, &w->api->fleet.conf.most,
				    &box.limits);
	box.isolation.modules =
		w->plan.program.lang && w->plan.program.lang->module && !w->packages.n;
	box.warm = box_spec_warm(&box, w->plan.program.warm, json_object_get(w->body, "env"));
	box.row.metadata = (char *)request_metadata(w);
	packages_want(&w->packages, w->call->req, &box);
	if (reuse_memo(w, &box))
		return;
	w->made.done = box_made;
	before = trace_enter(&w->trace);
	done = box_create(&w->api->fleet, &box, &w->made, &b, &e);
	trace_leave(&before);
	if (done < 0)
		run_request_fail(w, &e);
}

/* ---- packages ---- */

static void install_failed(struct run_request *w, json_t *take_error)
{
	struct call *c = run_request_release(w);

	if (c && w->streaming) {
		json_object_set_new(take_error, "type", json_string("error"));
		event_stream_event(&w->event_stream, take_error);
		event_stream_end(&w->event_stream);
	} else if (c) {
		call_json(c, 422, take_error);
	} else {
		json_decref(take_error);
	}
	run_request_free(w);
}

static void request_installed(struct package_job *j, const struct packages_failure *f)
{
	struct run_request *w = j->user;

	w->installing = 0;
	if (f)
		install_failed(w, packages_failure_json(f));
	else
		make_box(w);
}

static void install_said(struct package_job *j, const char *manager, unsigned stream,
			 const char *bytes, size_t n)
{
	struct run_request *w = j->user;

	if (w->streaming && w->call)
		event_stream_event(&w->event_stream, packages_said_json(manager, stream, bytes, n));
}

static const char *language_of(const struct run_request *w)
{
	const char *name = json_string_value(json_object_get(w->body, "language")),
		   *entry = json_string_value(json_object_get(w->body, "entry"));
	const struct lang *l = name ? lang_named(name) : entry ? lang_of(entry, "", 0) : NULL;

	return l ? l->name : NULL;
}

static int wanted_packages(struct run_request *w, struct err *e)
{
	const json_t *field = json_object_get(w->body, "packages");

	w->packages.api = w->api;
	w->packages.user = w;
	w->packages.done = request_installed;
	w->packages.said = install_said;
	if (packages_read(&w->packages, field, language_of(w), e) < 0)
		return -1;
	return json_is_false(field) ? 0 : packages_detect(&w->packages, w->body, language_of(w), e);
}

void run_request_detach(struct call *c, const struct run_request_spec *want)
{
	struct run_request *w;
	struct err e;
	int there;

	if (!quota_box(c))
		return;
	w = request_new(c, want, NULL);
	if (!w)
		return;
	w->own_box = 1;
	w->request = replay_request(w->body, NULL, &w->inputs);
	if (wanted_packages(w, &e) < 0) {
		run_request_fail(w, &e);
		return;
	}
	there = packages_begin(&w->packages, c->api, c->who.team, &e);
	if (there < 0) {
		json_t *refusal = packages_refusal_json(&e);

		if (refusal)
			install_failed(w, refusal);
		else
			run_request_fail(w, &e);
	} else if (there) {
		make_box(w);
	} else {
		w->installing = 1;
		begin_event_stream(w);
	}
}

void run_request_run(struct call *c)
{
	run_request_detach(c, &(struct run_request_spec){ .body = c->body });
}
