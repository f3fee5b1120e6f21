/* agent_session.c - see agent_session.h. Create the box -> write files -> run the agent -> end.
 * session_conclude() ends it once: the first outcome counts, the box ends, the owner is notified. */
#include "agent/agent_session.h"
#include "agent/agent_prompt.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "client/file_client.h"
#include "fleet/charge.h"
#include "fleet/exec_reader.h"
#include "llm/reply.h"
#include "boxagent/short_text.h"
#include "boxagent/action.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	WORD = 8 << 20,       /* bytes of a line on the channel: a context, each byte escaped */
	ENTRY = 4 << 20,      /* of the log: a result, each byte escaped */
	LOG_TOTAL = 16 << 20, /* of the whole log */
	TEXT_LINE = 4096,     /* bytes of a line that is not part of the protocol */
	STDERR_TOTAL = 64 << 10,
	ANSWER_MS = 180000,   /* time of one question with all retries */
	LEAVE_MS = 2000,      /* from the boxagent's last message to its exit */
	GONE_MS = 15000,      /* from there to the end of the box */
	LIFE_MORE_MS = 60000, /* of its box beyond the wall time, if no server ends it */
	RESULT = 16 * 1024,
};
#define BOXAGENT_PATH "/opt/atoll/bin/boxagent"
#define MARKED "atoll.agent" /* in the metadata of its box */

enum outcome { NOT_YET, DONE, FAILED, BUDGET, STUCK, MALFORMED, OUTCOMES };
static const char *const outcomes[] = { "", "done", "failed", "budget", "stuck", "malformed" };
_Static_assert(ARRAY_LEN(outcomes) == OUTCOMES, "an outcome without a word");

/* Reasons of the boxagent, and the outcome of the session. */
static const struct {
	const char *why;
	enum outcome outcome;
} verdicts[] = {
	{ "stuck", STUCK },
	{ "malformed_reply", MALFORMED },
	{ "max_steps", BUDGET },
};

struct agent_session {
	struct fleet *fleet;
	struct llm_client *models;
	struct agent_session_owner *owner;
	json_t *order;
	int keep;
	char in_box[ID_MAX + 1]; /* "": it has a box of its own */
	struct exec_before before;
	char key[STORE_NAME + 1]; /* charged; "": the key of the box */
	char box[ID_MAX + 1], run[ID_MAX + 1], mark[ID_MAX + 1];
	unsigned allowed, max_steps;
	struct trace_context trace; /* of the request that started it */

	struct box *making;
	struct box_wait made, gone;
	struct file_client file_client;
	int file_client_open;
	unsigned unanswered;
	struct exec_reader reader;
	int tapped, stopped;
	struct buf word, log; /* incomplete lines */
	uint64_t log_bytes, stderr_bytes;

	struct llm_request ask;
	int asking;
	uint64_t asked_ms;
	struct usage used, most; /* most: 0: no limit */
	uint64_t began_ms, wall_ms;
	unsigned steps, asks;
	json_t *result; /* from the reply of the model that ended the session */

	struct timer entry; /* of an existing box */
	struct timer clock;
	enum { RUNNING, LEAVING, ENDING, TOLD } phase;
	enum outcome outcome;
	char why[300];
};

/* ---- the end ---- */

/* A message may be cut inside a character. */
static json_t *session_words(const char *message)
{
	return short_text_string(message, strlen(message), TEXT_LINE);
}

static json_t *session_report(const struct agent_session *x)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:o, s:O?, s:i, s:i, s:o, s:I, s:s, s:b}", "schema",
			  AGENT_SESSION_REPORT, "outcome", outcomes[x->outcome], "why",
			  session_words(x->why), "result", x->outcome == DONE ? x->result : NULL,
			  "steps", (int)x->steps, "max_steps", (int)x->max_steps, "usage",
			  usage_json(&x->used), "ms", (json_int_t)(loop_now_ms() - x->began_ms),
			  "box", x->box, "kept", x->keep);

	if (!json_object_get(doc, "result"))
		json_object_set_new(doc, "result", json_null());
	return doc;
}

static void stop_asking(struct agent_session *x)
{
	if (x->asking)
		llm_cancel(&x->ask);
	x->asking = 0;
}

/* Frees everything but the box. */
static void session_detach(struct agent_session *x)
{
	stop_asking(x);
	if (x->file_client_open)
		file_client_close(&x->file_client);
	if (x->tapped)
		exec_reader_close(&x->reader);
	x->file_client_open = x->tapped = 0;
	box_wait_cancel(&x->made);
	box_wait_cancel(&x->gone);
	timer_clear(&x->entry);
	timer_clear(&x->clock);
}

/* w: NULL, or the callback when the box has ended. */
static int end_box(struct agent_session *x, struct box_wait *w)
{
	struct box *b = x->making ? x->making : x->box[0] ? fleet_find(x->fleet, x->box) : NULL;
	struct exec *r;

	if (!b)
		return 0;
	if (!x->making)
		box_release(b);
	if (!x->keep || x->making) {
		box_end(b, CAUSE_EXIT, w);
		return 1;
	}
	r = exec_lookup(b, x->run);
	if (r)
		exec_send_signal(r, SIGKILL);
	return 0;
}

static void session_free(struct agent_session *x)
{
	session_detach(x);
	timer_fini(&x->entry);
	timer_fini(&x->clock);
	buf_fini(&x->word);
	buf_fini(&x->log);
	json_decref(x->result);
	json_decref(x->order);
	free(x);
}

static void box_gone(struct box_wait *w, struct box *b, const struct err *e)
{
	struct agent_session *x = loop_owner(w, struct agent_session, gone);

	(void)b;
	(void)e;
	timer_set(&x->clock, 0);
}

/* The first outcome counts. The owner is notified when the box has ended, or cannot be ended. */
static void session_conclude(struct agent_session *x, enum outcome outcome, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void session_conclude(struct agent_session *x, enum outcome outcome, const char *fmt, ...)
{
	va_list ap;

	if (x->phase >= ENDING)
		return;
	if (x->outcome == NOT_YET) {
		x->outcome = outcome;
		va_start(ap, fmt);
		vsnprintf(x->why, sizeof(x->why), fmt, ap);
		va_end(ap);
	}
	x->phase = ENDING;
	session_detach(x);
	x->gone.done = box_gone;
	timer_set(&x->clock, end_box(x, &x->gone) ? GONE_MS : 0);
	x->making = NULL;
}

static void session_finish(struct agent_session *x)
{
	struct agent_session_owner *o = x->owner;
	json_t *doc = session_report(x);

	x->phase = TOLD;
	session_free(x);
	o->done(o, doc);
}

void agent_session_cancel(struct agent_session *x)
{
	session_detach(x);
	if (x->phase < ENDING)
		end_box(x, NULL);
	session_free(x);
}

static void clock_due(struct timer *t)
{
	struct agent_session *x = loop_owner(t, struct agent_session, clock);

	if (x->phase >= ENDING)
		session_finish(x);
	else if (x->phase == LEAVING)
		session_conclude(x, FAILED, "the agent did not leave");
	else
		session_conclude(x, BUDGET, "max_wall_ms: the time limit of %llu ms has expired",
				 (unsigned long long)x->wall_ms);
}

/* ---- events for the owner, messages for the boxagent ---- */

static void session_event(struct agent_session *x, json_t *take_event)
{
	if (x->owner->event(x->owner, take_event) && x->tapped) {
		x->stopped = 1;
		exec_reader_stop(&x->reader, 1);
	}
}

void agent_session_resume(struct agent_session *x)
{
	if (x->tapped && x->stopped)
		exec_reader_stop(&x->reader, 0);
	x->stopped = 0;
}

static void session_send(struct agent_session *x, json_t *take_doc)
{
	struct box *b = fleet_find(x->fleet, x->box);
	struct exec *r = b ? exec_lookup(b, x->run) : NULL;
	auto_free char *text = json_dumps(take_doc, JSON_COMPACT);

	json_decref(take_doc);
	if (!r || !text)
		return; /* its exit is already being sent */
	exec_channel_send(r, text, strlen(text));
	exec_channel_send(r, "\n", 1);
}

/* Sends the reason to the boxagent, which then exits. It is killed if it does not exit in time. */
static void session_stop_boxagent(struct agent_session *x, enum outcome outcome, const char *why)
{
	if (x->outcome != NOT_YET)
		return;
	x->outcome = outcome;
	snprintf(x->why, sizeof(x->why), "%s", why);
	x->phase = LEAVING;
	timer_set(&x->clock, LEAVE_MS);
	session_send(x, json_pack("{s:o}", "stop", session_words(x->why)));
}

/* ---- the model ---- */

static uint64_t session_tokens(const struct usage *u)
{
	return u->in + u->out;
}

/* The reply of the model is parsed here, too: the box is not trusted. */
static void note_reply(struct agent_session *x, const char *text, size_t n)
{
	struct action r;
	struct err e;

	if (action_parse(text, n, x->allowed, &r, &e) < 0)
		return;
	x->steps++;
	json_decref(x->result);
	x->result = r.done ? json_incref(r.result) : NULL;
	action_fini(&r);
}

static void tell_call(struct agent_session *x, const json_t *answer, const struct err *e)
{
	static const char *const same[] = { "model", "provider", "stop", "usage", "tries", "why" };
	json_t *doc = json_pack("{s:s, s:i, s:I, s:o}", "type", "model_call", "step",
				(int)x->steps + 1, "ms", (json_int_t)(loop_now_ms() - x->asked_ms),
				"total", usage_json(&x->used));

	for (unsigned i = 0; i < ARRAY_LEN(same); i++)
		if (json_object_get(answer, same[i]))
			json_object_set(doc, same[i], json_object_get(answer, same[i]));
	if (e)
		json_object_set_new(doc, "error", session_words(e->msg));
	session_event(x, doc);
}

/* Tokens are charged for the box of the session. */
static void session_charge(struct agent_session *x, const json_t *usage)
{
	const struct box *b = fleet_find(x->fleet, x->box);

	if (b)
		charge_tokens(x->fleet, b->row.team, x->key[0] ? x->key : b->row.key, b->row.id,
			      usage);
}

static void session_answered(struct agent_session *x, const json_t *answer, const struct err *e)
{
	const json_t *text = json_object_get(answer, "text");
	char why[120];

	x->asking = 0;
	usage_add_json(&x->used, json_object_get(answer, "usage"));
	session_charge(x, json_object_get(answer, "usage"));
	tell_call(x, answer, e);
	if (e) {
		auto_buf struct buf said = { 0 };

		buf_printf(&said, "model: %s", e->msg);
		session_stop_boxagent(x, FAILED, buf_str(&said));
	} else if (!json_is_string(text)) {
		session_send(x, json_pack("{s:s}", "malformed", "it has no text"));
	} else if (json_string_length(text) > ACTION_BYTES) {
		snprintf(why, sizeof(why), "it has %zu bytes; the maximum is %d",
			 json_string_length(text), ACTION_BYTES);
		session_send(x, json_pack("{s:s}", "malformed", why));
	} else {
		note_reply(x, json_string_value(text), json_string_length(text));
		session_send(x, json_pack("{s:{s:O}}", "answer", "text", text));
	}
}

static void model_done(struct llm_request *a, const json_t *answer, const struct err *e)
{
	session_answered(loop_owner(a, struct agent_session, ask), answer, e);
}

/* 0: the exhausted budget. */
static int within_budget(const struct agent_session *x, char why[120])
{
	const struct usage *u = &x->used, *m = &x->most;

	*why = 0;
	if (m->calls && u->calls >= m->calls)
		snprintf(why, 120, "max_calls: %lld of %lld are made", (long long)u->calls,
			 (long long)m->calls);
	else if (m->in && session_tokens(u) >= m->in)
		snprintf(why, 120, "max_tokens: %lld of %lld are used",
			 (long long)session_tokens(u), (long long)m->in);
	else if (m->cost > 0 && u->cost >= m->cost)
		snprintf(why, 120, "max_cost: %.6g of %.6g is spent", u->cost, m->cost);
	return !*why;
}

static uint64_t left_ms(const struct agent_session *x)
{
	uint64_t spent = loop_now_ms() - x->began_ms;

	return spent < x->wall_ms ? x->wall_ms - spent : 1;
}

static uint64_t command_ms(const struct agent_session *x)
{
	const json_t *ms = json_object_get(x->order, "command_ms");

	return ms ? (uint64_t)json_integer_value(ms) : AGENT_SESSION_COMMAND_MS;
}

static void add_who(const struct agent_session *x, json_t *request)
{
	const json_t *role = json_object_get(x->order, "role");
	json_t *model = json_object_get(x->order, "model");
	uint64_t ms = left_ms(x) + LEAVE_MS; /* the timer of the session ends it */
	uint64_t most = AGENT_SESSION_REPLY_TOKENS;

	if (x->most.in && x->most.in - session_tokens(&x->used) < most)
		most = x->most.in - session_tokens(&x->used);
	json_object_set_new(request, "role", json_string(role ? json_string_value(role) : "agent"));
	json_object_set_new(request, "level", json_integer(0));
	if (model)
		json_object_set(request, "model", model);
	json_object_set_new(request, "max_tokens", json_integer((json_int_t)most));
	json_object_set_new(request, "deadline_ms",
			    json_integer(ms < ANSWER_MS ? (json_int_t)ms : ANSWER_MS));
}

static void session_asked(struct agent_session *x, const json_t *ask)
{
	const struct agent_prompt b = { .task = json_string_value(
						json_object_get(x->order, "task")),
					.mark = x->mark,
					.files = json_object_get(x->order, "files"),
					.allowed = x->allowed,
					.max_steps = x->max_steps,
					.command_ms = command_ms(x) };
	json_t *request = NULL;
	char why[120];
	struct trace_context before;
	struct err e;
	int rc;

	/* Each step has one model call, and one more if the reply is invalid. A program that makes
	 * more calls than that is not the boxagent. */
	if (x->asking || ++x->asks > 2 * x->max_steps ||
	    agent_prompt_make(&b, ask, &request, &e) < 0) {
		session_conclude(x, FAILED, "the box asked what no agent of ours asks");
		return;
	}
	if (!within_budget(x, why)) {
		json_decref(request);
		session_stop_boxagent(x, BUDGET, why);
		return;
	}
	add_who(x, request);
	x->ask = (struct llm_request){ .done = model_done };
	x->asked_ms = loop_now_ms();
	before = trace_enter(&x->trace);
	rc = llm_start(x->models, &x->ask, request, &e);
	trace_leave(&before);
	x->asking = rc == 0;
	if (rc < 0) {
		auto_buf struct buf said = { 0 };

		buf_printf(&said, "model: %s", e.msg);
		session_stop_boxagent(x, FAILED, buf_str(&said));
	}
}

/* ---- what the box says ---- */

static void session_ended(struct agent_session *x, const json_t *end)
{
	const char *outcome = json_string_value(json_object_get(end, "outcome")),
		   *why = json_string_value(json_object_get(end, "why")),
		   *detail = json_string_value(json_object_get(end, "detail"));

	stop_asking(x);
	if (x->outcome == NOT_YET && outcome && !strcmp(outcome, "done") && x->result) {
		x->outcome = DONE;
	} else if (x->outcome == NOT_YET) {
		x->outcome = FAILED;
		for (unsigned i = 0; why && i < ARRAY_LEN(verdicts); i++)
			if (!strcmp(why, verdicts[i].why))
				x->outcome = verdicts[i].outcome;
		snprintf(x->why, sizeof(x->why), "%.40s%s%.240s",
			 why ? why : "it said nothing of use", detail && *detail ? ": " : "",
			 detail ? detail : "");
	}
	x->phase = LEAVING;
	timer_set(&x->clock, LEAVE_MS);
}

static void session_word(struct agent_session *x, const char *line, size_t n)
{
	struct err e;
	json_t *doc = action_modest(line, n, &e) < 0
			      ? NULL
			      : json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ask = json_object_get(doc, "ask"), *end = json_object_get(doc, "end");

	if (x->phase != RUNNING)
		; /* the question may have been sent just before the stop */
	else if (json_is_object(ask))
		session_asked(x, ask);
	else if (json_is_object(end))
		session_ended(x, end);
	else
		session_conclude(x, FAILED, "the box said what no agent of ours says");
	json_decref(doc);
}

static void session_logged(struct agent_session *x, const char *line, size_t n)
{
	struct err e;
	json_t *doc = action_modest(line, n, &e) < 0
			      ? NULL
			      : json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);

	session_event(x, json_is_object(doc) ? json_pack("{s:s, s:O}", "type", "log", "entry", doc)
					     : json_pack("{s:s, s:o}", "type", "log", "text",
							 short_text_string(line, n, TEXT_LINE)));
	json_decref(doc);
}

/* Cuts bytes into lines. A line longer than `most` ends the session. */
static void session_lines(struct agent_session *x, struct buf *line, size_t most, const char *bytes,
			  size_t n,
			  void (*each)(struct agent_session *x, const char *line, size_t n))
{
	while (n && x->tapped) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		if (line->len + part > most) {
			session_conclude(x, FAILED, "the box said a line of more than %zu bytes",
					 most);
			return;
		}
		buf_add(line, bytes, part);
		bytes += part + !!end;
		n -= part + !!end;
		if (!end)
			return;
		each(x, buf_str(line), line->len);
		buf_cut(line, 0);
	}
}

static void reader_reads(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			 size_t n)
{
	struct agent_session *x = loop_owner(t, struct agent_session, reader);

	(void)offset;
	if (stream == 2) {
		session_lines(x, &x->word, WORD, bytes, n, session_word);
		return;
	}
	if (stream == 0) {
		x->log_bytes += n;
		if (x->log_bytes > LOG_TOTAL)
			session_conclude(x, FAILED, "the box said more than %d bytes", LOG_TOTAL);
		else
			session_lines(x, &x->log, ENTRY, bytes, n, session_logged);
		return;
	}
	if (x->stderr_bytes < STDERR_TOTAL)
		session_event(x, json_pack("{s:s, s:o}", "type", "stderr", "text",
					   short_text_string(bytes, n, TEXT_LINE)));
	x->stderr_bytes += n;
}

static void reader_ends(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct agent_session *x = loop_owner(t, struct agent_session, reader);
	const char *summary = json_string_value(json_object_get(record, "summary"));

	x->tapped = 0;
	if (x->log.len)
		session_logged(x, buf_str(&x->log), x->log.len);
	session_conclude(x, FAILED, "the agent ended without a word%s%.200s",
			 summary || e ? ": " : "",
			 e         ? e->msg
			 : summary ? summary
				   : "");
}

static const struct exec_reader_events reader_on = { .output = reader_reads, .over = reader_ends };

/* ---- its beginning ---- */

static json_t *tool_names(unsigned allowed)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < AGENT_TOOL_COUNT; i++)
		if (allowed >> i & 1)
			json_array_append_new(all, json_string(agent_tools[i].name));
	return all;
}

static json_t *session_spec(const struct agent_session *x)
{
	const json_t *context = json_object_get(x->order, "context_bytes");

	return json_pack("{s:{s:O, s:i, s:o, s:I, s:I, s:I, s:i}}", "spec", "task",
			 json_object_get(x->order, "task"), "max_steps", (int)x->max_steps, "tools",
			 tool_names(x->allowed), "answer_ms", (json_int_t)left_ms(x) + LEAVE_MS,
			 "command_ms", (json_int_t)command_ms(x), "context_bytes",
			 context ? json_integer_value(context) : (json_int_t)AGENT_SESSION_CONTEXT,
			 "result_bytes", RESULT);
}

#ifdef ATOLL_TEST
/* A hostile replacement, for tests. */
static void session_replace_boxagent(const struct agent_session *x, const char *argv[4])
{
	const json_t *given = json_object_get(x->order, "boxagent");

	for (unsigned i = 0; i < 3 && i < json_array_size(given); i++)
		argv[i] = json_string_value(json_array_get(given, i));
}
#endif

static void take_off(struct agent_session *x)
{
	const char *argv[4] = { BOXAGENT_PATH };
	struct box *b = fleet_find(x->fleet, x->box);
	struct exec_spec want = { .argv = argv,
				  .tag = "agent",
				  .kind = x->keep ? STORE_RUN_EXEC : STORE_RUN_ONCE,
				  .wall_ms = (uint32_t)left_ms(x) + LEAVE_MS,
				  .key = x->key[0] ? x->key : NULL,
				  .before = x->before.wanted ? &x->before : NULL,
				  .channel = 1 };
	struct exec *r;
	struct trace_context before;
	struct err e;
	int done;

#ifdef ATOLL_TEST
	session_replace_boxagent(x, argv);
#endif
	if (!b) {
		session_conclude(x, FAILED, "its box ended");
		return;
	}
	exec_reader_init(&x->reader, x->fleet, &reader_on);
	x->reader.streams = WIRE_STREAMS;
	before = trace_enter(&x->trace);
	done = exec_launch(b, &want, &x->reader, &r, &e);
	trace_leave(&before);
	if (done < 0) {
		session_conclude(x, FAILED, "%s", e.msg);
		return;
	}
	x->tapped = 1;
	memcpy(x->run, r->id, sizeof(x->run));
	session_event(x, json_pack("{s:s, s:s, s:s, s:i}", "type", "started", "box", x->box, "exec",
				   x->run, "max_steps", (int)x->max_steps));
	session_send(x, session_spec(x));
}

/* ---- files ---- */

static void files_ready(struct file_client *k)
{
	struct agent_session *x = loop_owner(k, struct agent_session, file_client);
	const char *path;
	char full[600];
	json_t *v;

	json_object_foreach(json_object_get(x->order, "files"), path, v)
	{
		struct wire_put put = { .mode = 0 };

		snprintf(full, sizeof(full), "%s%s", *path == '/' ? "" : "/home/user/", path);
		file_client_put(k, &put, full, json_string_value(v), json_string_length(v));
		x->unanswered++;
	}
}

static void file_done(struct file_client *k, uint16_t flags)
{
	struct agent_session *x = loop_owner(k, struct agent_session, file_client);

	(void)flags;
	if (--x->unanswered)
		return;
	file_client_close(&x->file_client);
	x->file_client_open = 0;
	take_off(x);
}

static void file_failed(struct file_client *k, const struct err *e)
{
	session_conclude(loop_owner(k, struct agent_session, file_client), FAILED, "files: %s",
			 e->msg);
}

static const struct file_client_events file_client_on = { .ready = files_ready,
							  .done = file_done,
							  .failed = file_failed };

/* ---- its box ---- */

static void session_enter(struct agent_session *x, struct box *b)
{
	memcpy(x->box, b->row.id, sizeof(x->box));
	box_hold(b);
	if (!x->keep)
		init_conn_kill_on_close(&b->line);
	if (json_object_size(json_object_get(x->order, "files"))) {
		file_client_open(&x->file_client, &b->line, 0, &file_client_on);
		x->file_client_open = 1;
	} else {
		take_off(x);
	}
}

static void box_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct agent_session *x = loop_owner(w, struct agent_session, made);

	x->making = NULL;
	if (e)
		session_conclude(x, FAILED, "box: %s", e->msg);
	else
		session_enter(x, b);
}

static void session_enters(struct timer *t)
{
	struct agent_session *x = loop_owner(t, struct agent_session, entry);
	struct box *b = fleet_find(x->fleet, x->in_box);

	if (b)
		session_enter(x, b);
	else
		session_conclude(x, FAILED, "box: %s has ended", x->in_box);
}

static int make_box(struct agent_session *x, const struct box_spec *given, struct err *e)
{
	struct box_spec want = *given;
	uint64_t life = x->wall_ms + LIFE_MORE_MS, most = x->fleet->conf.lifetime_max_ms;

	want.row.metadata = x->keep ? "{\"" MARKED "\":\"1\"}"
				    : "{\"" MARKED "\":\"1\",\"" BOX_EPHEMERAL
				      "\":\"1\",\"" BOX_REGISTRIES "\":\"1\"}";
	if (!x->keep) {
		want.row.lifetime_ms = most && life > most ? most : life;
		want.row.idle_ms = 0;
		want.row.on_timeout = STORE_TIMEOUT_KILL;
	}
	x->made.done = box_made;
	return box_create(x->fleet, &want, &x->made, &x->making, e);
}

static uint64_t budget_of(const struct agent_session *x, const char *name, uint64_t otherwise)
{
	const json_t *v = json_object_get(json_object_get(x->order, "budget"), name);

	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : otherwise;
}

static void read_order(struct agent_session *x)
{
	const json_t *steps = json_object_get(x->order, "max_steps"),
		     *cost = json_object_get(json_object_get(x->order, "budget"), "max_cost");

	x->max_steps = steps ? (unsigned)json_integer_value(steps) : AGENT_SESSION_STEPS;
	x->most.calls = budget_of(x, "max_calls", 2 * (uint64_t)x->max_steps);
	x->most.in = budget_of(x, "max_tokens", AGENT_SESSION_TOKENS);
	x->most.cost = json_number_value(cost);
	x->wall_ms = budget_of(x, "max_wall_ms", AGENT_SESSION_WALL_MS);
	x->began_ms = loop_now_ms();
}

int agent_session_tools(const json_t *names, unsigned *out, struct err *e)
{
	const json_t *name;
	unsigned all = 0;
	size_t i;

	json_array_foreach((json_t *)names, i, name)
	{
		int kind = json_is_string(name) ? agent_tool_named(json_string_value(name)) : -1;

		if (kind < 0)
			return err_set(e, ERR_INVALID,
				       "tools[%zu]: '%.40s' is none of read_file, write_file, "
				       "list_files, edit_file, run_command",
				       i, json_is_string(name) ? json_string_value(name) : "?");
		all |= 1u << kind;
	}
	*out = json_array_size(names) ? all : (1u << AGENT_TOOL_COUNT) - 1;
	return 0;
}

int agent_session_start(struct fleet *f, struct llm_client *models,
			const struct agent_session_want *want, struct agent_session_owner *o,
			struct agent_session **out, struct err *e)
{
	struct agent_session *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->fleet = f;
	x->models = models;
	x->trace = *trace_current();
	x->owner = o;
	x->keep = want->keep || want->in_box;
	snprintf(x->in_box, sizeof(x->in_box), "%s", want->in_box ? want->in_box : "");
	snprintf(x->key, sizeof(x->key), "%s", want->key ? want->key : "");
	if (want->in_box && want->before)
		x->before = *want->before;
	x->order = json_deep_copy(want->order);
	x->reader.own.post.fd = -1;
	timer_init(&x->clock, f->loop, clock_due);
	timer_init(&x->entry, f->loop, session_enters);
	read_order(x);
	if (agent_session_tools(json_object_get(x->order, "tools"), &x->allowed, e) < 0 ||
	    id_new(x->mark, e) < 0 || (!want->in_box && make_box(x, want->box, e) < 0)) {
		x->making = NULL;
		session_free(x);
		return -1;
	}
	if (want->in_box)
		timer_set(&x->entry, 0);
	timer_set(&x->clock, x->wall_ms);
	*out = x;
	return 0;
}
