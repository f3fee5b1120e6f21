/* swerex.c - see swerex.h. What fails in the box is an exception of its classes, with status 511: a
 * client raises it again. What is wrong with the request itself has another status and `detail`. */
#include "tool/swerex.h"
#include "api/auth.h"
#include "api/boxes.h"
#include "api/fields.h"
#include "base/own.h"
#include "http/multipart.h"
#include "tool/content.h"
#include "tool/mcp.h"
#include "tool/swerex_again.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	RAISED = 511,
	SESSION = 64,            /* bytes of its name */
	COMMAND_MAX = 100 << 10, /* the kernel takes 128 KiB as one word */
	SOURCES = 64,
	HALF = 512 << 10, /* of an output that is kept: these clients shorten it themselves */
	START_MS = 10000,
	REQUEST_ID = 128,
	TRIES = 3,
	TRIES_MAX = 20,
	PAUSE_MS = 200,
	PAUSE_MAX_MS = 60000,
	CONTROL_MS = 120000,   /* for a script of ours */
	UPLOAD_MAX = 32 << 20, /* it is held in memory */
};

#define OURS "swerex.exceptions."
#define PYTHON "builtins."

struct form { /* of an upload */
	struct buf file, path, unzip;
	int has_file;
};

struct rex {
	struct tool_call base; /* first: it is c->door */
	const struct tool *tool;
	const struct tool_surface *on;
	json_t *asked;       /* while a box is made for it */
	struct again *again; /* NULL: it is not remembered */
	struct form *form;   /* of an upload, or NULL */
};

/* ---- answers ---- */

static void answer(struct call *c, int status, json_t *take_doc)
{
	struct rex *x = c->door;

	if (x)
		again_answer(c->api, steal(&x->again), status, take_doc);
	call_send(c, status, take_doc);
}

static void send_exception(struct call *c, const char *class, const struct buf *message,
			   json_t *take_extra)
{
	auto_buf struct buf clean = { 0 };

	cut_clean(buf_str(message), message->len, &clean);
	answer(c, RAISED,
	       json_pack("{s:{s:s#, s:s, s:s, s:o}}", "swerexception", "message", buf_str(&clean),
			 (int)clean.len, "class_path", class, "traceback", "", "extra_info",
			 take_extra ? take_extra : json_object()));
}

__attribute__((format(printf, 3, 4))) static void raise_it(struct call *c, const char *class,
							   const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	send_exception(c, class, &text, NULL);
}

static void refuse(struct call *c, int status, const char *code, const char *message,
		   const char *why, const char *hint)
{
	auto_buf struct buf text = { 0 }, clean = { 0 };
	struct rex *x = c->door;

	(void)code;
	(void)hint;
	buf_printf(&text, "%s%s%s", message, why && *why ? ": " : "", why ? why : "");
	cut_clean(text.p, text.len, &clean);
	if (x)
		again_forget(steal(&x->again));
	call_send(c, status == 400 ? 422 : status,
		  json_pack("{s:s#}", "detail", buf_str(&clean), (int)clean.len));
}

static void told_error(struct call *c, int status, const char *code, const char *message,
		       const char *why, const char *hint)
{
	(c->door ? tool_told_error : refuse)(c, status, code, message, why, hint);
}

static const struct api_manner manner = { .error = told_error, .json = tool_told_json };

static void invalid(struct call *c, const char *what)
{
	refuse(c, 400, "invalid", what, NULL, NULL);
}

/* ---- its box ---- */

static void left(struct call *c)
{
	struct rex *x = c->door;

	json_decref(x->asked);
	again_leave(steal(&x->again));
	if (x->form) {
		buf_fini(&x->form->file);
		buf_fini(&x->form->path);
		buf_fini(&x->form->unzip);
	}
}

static void has_own_box(struct call *c, int status, json_t *take_doc)
{
	struct rex *x = c->door;
	const char *id = json_string_value(json_object_get(take_doc, "id"));

	(void)status;
	snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", id ? id : "");
	json_decref(take_doc);
	x->base.answered = NULL;
	tool_begin(c, x->tool, x->asked, x->on);
}

/* The key's own: the same one as on MCP. */
static void make_own_box(struct call *c, struct rex *x)
{
	char session[STORE_SESSION + 1];

	if ((int)c->who.role < (int)NEED_EDITOR - 1) {
		refuse(c, 403, "denied", "this key may not make a box of its own",
		       "its role is viewer; name a box", NULL);
		return;
	}
	mcp_own_session(c, session);
	x->asked = c->body;
	c->body = json_pack("{s:s}", "session", session);
	x->base.answered = has_own_box;
	boxes_create(c);
}

static int is_own(const struct call *c)
{
	return !strcmp(call_param(c, 0), "_");
}

/* A key for one box has that one. */
static void name_bound_box(struct call *c)
{
	if (is_own(c) && c->who.box[0])
		snprintf(c->match.params[0], sizeof(c->match.params[0]), "%s", c->who.box);
}

static struct rex *rex_new(struct call *c, const struct tool *t, const struct tool_surface *on)
{
	struct rex *x = call_alloc(c, sizeof(*x));

	*x = (struct rex){ .base = { .refuse = refuse, .left = left }, .tool = t, .on = on };
	tool_enter(c, &x->base);
	return x;
}

/* 0: it was sent before, and that was answered. */
static int is_first(struct call *c, struct rex *x)
{
	const char *id = http_header(c->req, "x-request-id"), *text;
	int status;
	size_t n;

	if (!id || x->again)
		return 1;
	if (!*id || strlen(id) > REQUEST_ID) {
		invalid(c, "X-Request-ID must have 1 to 128 bytes");
		return 0;
	}
	switch (again_begin(c, id, &x->again, &status, &text, &n)) {
	case AGAIN_ANSWERED:
		http_set(c->req, "Idempotent-Replayed", "true");
		http_reply(c->req, status, "application/json", text, n);
		return 0;
	case AGAIN_BUSY:
		refuse(c, 409, "conflict", "the first request with this id is still being served",
		       NULL, NULL);
		return 0;
	case AGAIN_LOST:
		refuse(c, 409, "conflict",
		       "the first request with this id was begun, and its answer is lost", NULL,
		       NULL);
		return 0;
	default:
		return 1;
	}
}

/* Also when a box has come to us that another front made. */
static void begin(struct call *c, const struct tool *t, const struct tool_surface *on)
{
	struct rex *x = c->door ? c->door : rex_new(c, t, on);

	if (!is_first(c, x))
		return;
	name_bound_box(c);
	if (is_own(c))
		make_own_box(c, x);
	else if (call_box(c, 0))
		tool_begin(c, t, x->asked ? x->asked : c->body, on);
}

/* ---- numbers ---- */

/* Seconds, as the field has them; *ms stays as it is when they are not given. 0: refused. */
static int seconds(struct call *c, const char *name, uint32_t *ms)
{
	const json_t *v = json_object_get(c->body, name);
	double s = json_number_value(v);
	char what[120];

	if (!v)
		return 1;
	if (json_is_number(v) && s > 0 && s <= UINT32_MAX / 1000) {
		*ms = (uint32_t)ceil(s * 1000);
		return 1;
	}
	snprintf(what, sizeof(what), "%s: must be a number of seconds, more than 0 and at most %u",
		 name, UINT32_MAX / 1000);
	invalid(c, what);
	return 0;
}

static double given_seconds(const struct tool_job *j, const char *name)
{
	return json_number_value(json_object_get(j->args, name));
}

static const char *session_of(const struct tool_job *j)
{
	return tool_text(j, "session", "default");
}

static int one_of(struct call *c, const char *name, const char *const *allowed)
{
	const char *v = call_text(c, name, allowed[0]);
	char what[120];

	for (unsigned i = 0; allowed[i]; i++)
		if (!strcmp(v, allowed[i]))
			return 1;
	snprintf(what, sizeof(what), "%s: is not one of those there are", name);
	invalid(c, what);
	return 0;
}

static int is_bash(struct call *c)
{
	return one_of(c, "session_type", (const char *const[]){ "bash", NULL });
}

/* ---- how a program ended ---- */

static const char *text_of(const struct tool_result *r, const char *name)
{
	const char *v = json_string_value(json_object_get(r->data, name));

	return v ? v : "";
}

/* What ends a box ends all that is in it, and nothing can be said about the program. */
static int box_ended(const char *cause)
{
	static const char *const those[] = { "lifetime", "idle", "operator", "host" };

	for (unsigned i = 0; i < ARRAY_LEN(those); i++)
		if (!strcmp(cause, those[i]))
			return 1;
	return 0;
}

/* 1: there is no result but an exception, and that was sent. */
static int went_wrong(struct tool_job *j, const struct tool_result *r)
{
	if (json_object_get(r->data, "exec") && !box_ended(text_of(r, "cause")))
		return 0;
	raise_it(j->call, OURS "SwerexException", "%s",
		 json_object_get(r->data, "exec") ? text_of(r, "summary") : buf_str(&r->text));
	return 1;
}

static int timed_out(const struct tool_result *r)
{
	return json_is_true(json_object_get(r->data, "timed_out"));
}

/* As a shell would see it. */
static json_int_t status_of(const struct tool_result *r)
{
	return json_integer_value(json_object_get(r->data, "status"));
}

static int never_ran(const struct tool_result *r)
{
	return !json_is_integer(json_object_get(r->data, "exit_code")) &&
	       (status_of(r) == 126 || status_of(r) == 127);
}

static const char *failure(const struct tool_result *r)
{
	const char *cause = text_of(r, "cause");

	return strcmp(cause, "exit") != 0 && strcmp(cause, "signal") != 0 ? text_of(r, "summary")
									  : "";
}

static void keep_more(struct tool_job *j)
{
	j->out[0].half = j->out[1].half = HALF;
}

static void add_ms(json_t *body, uint32_t ms)
{
	if (ms)
		json_object_set_new(body, "timeout_ms", json_integer(ms));
}

static uint32_t to_ms(const struct tool_job *j, const char *name, uint32_t otherwise)
{
	double s = given_seconds(j, name);

	return s > 0 ? (uint32_t)ceil(s * 1000) : otherwise;
}

/* ---- sessions ---- */

static const struct field any[] = { { FIELDS_OTHERS, FIELD_ANY, 0, 0, 0, NULL, NULL }, { 0 } };

static void run_script(struct tool_job *j, const struct buf *script, const char *word, uint32_t ms)
{
	json_t *body =
		json_pack("{s:[s, s, s, s, s]}", "command", "bash", "-c", script->p, "bash", word);

	add_ms(body, ms);
	keep_more(j);
	tool_program(j, body);
}

/* What our scripts say, as an exception; 1: they did, or there was no way to run one. */
static int script_failed(struct tool_job *j, const struct tool_result *r)
{
	static const struct {
		const char *word, *class, *format;
	} words[] = {
		{ "none", OURS "SessionDoesNotExistError", "session '%s' does not exist" },
		{ "exists", OURS "SessionExistsError", "session '%s' already exists" },
		{ "failed", OURS "SwerexException",
		  "session '%s' cannot be kept in the box: is its disk full?" },
		{ "stuck", OURS "CommandTimeoutError", "failed to interrupt session '%s'" },
	};
	const char *said = text_of(r, "stderr"), *mark;
	auto_buf struct buf text = { 0 };
	size_t before;

	if (went_wrong(j, r))
		return 1;
	if (never_ran(r)) {
		raise_it(j->call, OURS "SwerexException", "there is no bash in the box");
		return 1;
	}
	mark = rex_marked(said, &before);
	for (unsigned i = 0; mark && i < ARRAY_LEN(words); i++)
		if (!strncmp(mark, words[i].word, strlen(words[i].word))) {
			const char *hole = strstr(words[i].format, "%s");

			buf_add(&text, words[i].format, (size_t)(hole - words[i].format));
			buf_printf(&text, "%s%s", session_of(j), hole + 2);
			send_exception(j->call, words[i].class, &text, NULL);
			return 1;
		}
	return 0;
}

static json_t *plain_output(const struct tool_result *r)
{
	const json_t *out = json_object_get(r->data, "stdout");
	auto_buf struct buf plain = { 0 };

	rex_plain(json_string_value(out), json_string_length(out), &plain);
	return json_stringn(buf_str(&plain), plain.len);
}

static void start(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	rex_script_create(&script, session_of(j), json_object_get(j->args, "startup_source"));
	run_script(j, &script, "", to_ms(j, "startup_timeout", START_MS));
}

static void started(struct tool_job *j, const struct tool_result *r)
{
	if (script_failed(j, r))
		return;
	if (timed_out(r))
		raise_it(j->call, OURS "CommandTimeoutError",
			 "timeout while the startup files of session '%s' were read",
			 session_of(j));
	else
		answer(j->call, 200,
		       json_pack("{s:o, s:s}", "output", plain_output(r), "session_type", "bash"));
}

static const struct tool start_row = { .name = "create_session", .fields = any, .run = start };
static const struct tool_surface start_on = { NULL, started };

static const struct field start_fields[] = {
	{ "session", FIELD_NAME, 0, 0, SESSION, "default", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "bash", NULL },
	{ "startup_source", FIELD_TEXTS, 0, 0, SOURCES, "files that the shell reads first", NULL },
	{ "startup_timeout", FIELD_ANY, 0, 0, 0, "seconds; 10", NULL },
	{ 0 },
};

/* Also what all of them are together is one word for the kernel. */
static int sources_fit(struct call *c)
{
	const json_t *one;
	size_t i, all = 0;

	json_array_foreach(json_object_get(c->body, "startup_source"), i, one) all +=
		json_string_length(one);
	if (all <= COMMAND_MAX / 8)
		return 1;
	invalid(c, "startup_source: these names are too long");
	return 0;
}

static void create_session(struct call *c)
{
	uint32_t ms;

	if (is_bash(c) && seconds(c, "startup_timeout", &ms) && sources_fit(c))
		begin(c, &start_row, &start_on);
}

/* ---- commands of a session ---- */

static void command(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	rex_script_run(&script, session_of(j));
	run_script(j, &script, tool_text(j, "command", ""), to_ms(j, "timeout", 0));
}

static void bad_syntax(struct tool_job *j, const struct tool_result *r, size_t n)
{
	auto_buf struct buf text = { 0 };
	const char *said = text_of(r, "stderr");

	buf_printf(&text, "this is no command of bash: '%s'\n%.*s", tool_text(j, "command", ""),
		   (int)n, said);
	send_exception(j->call, OURS "BashIncorrectSyntaxError", &text,
		       json_pack("{s:s, s:s#}", "bash_stdout", "", "bash_stderr", said, (int)n));
}

/* 1: it was raised, and told. */
static int non_zero(struct tool_job *j, json_int_t code, const char *output)
{
	const char *more = tool_text(j, "error_msg", "");

	if (code == 0)
		return 0;
	raise_it(j->call, OURS "NonZeroExitCodeError",
		 "%s%scommand failed with exit code %lld. Here is the output:\n%s", more,
		 *more ? ": " : "", (long long)code, output);
	return 1;
}

static void commanded(struct tool_job *j, const struct tool_result *r)
{
	const char *check = tool_text(j, "check", "raise"), *mark;
	json_t *output;
	size_t before = 0;

	if (script_failed(j, r))
		return;
	mark = rex_marked(text_of(r, "stderr"), &before);
	if (mark && !strncmp(mark, "syntax", 6)) {
		bad_syntax(j, r, before);
		return;
	}
	if (timed_out(r)) {
		raise_it(j->call, OURS "CommandTimeoutError",
			 "timeout after %g seconds while running command '%s'",
			 given_seconds(j, "timeout"), tool_text(j, "command", ""));
		return;
	}
	output = plain_output(r);
	if (strcmp(check, "raise") != 0 || !non_zero(j, status_of(r), json_string_value(output)))
		answer(j->call, 200,
		       json_pack("{s:O, s:o, s:s, s:s, s:s}", "output", output, "exit_code",
				 strcmp(check, "ignore") ? json_integer(status_of(r)) : json_null(),
				 "failure_reason", failure(r), "expect_string", "", "session_type",
				 "bash"));
	json_decref(output);
}

static const struct tool command_row = { .name = "run_in_session", .fields = any, .run = command };
static const struct tool_surface command_on = { NULL, commanded };

static unsigned tries_of(const struct tool_job *j)
{
	return (unsigned)tool_int(j, "n_retry", TRIES);
}

static void interrupt(struct tool_job *j)
{
	uint32_t ms = to_ms(j, "timeout", PAUSE_MS);
	auto_buf struct buf script = { 0 };

	rex_script_interrupt(&script, session_of(j), tries_of(j),
			     ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
	run_script(j, &script, "", 0);
}

static void interrupted(struct tool_job *j, const struct tool_result *r)
{
	if (!script_failed(j, r))
		answer(j->call, 200,
		       json_pack("{s:s, s:i, s:s, s:s, s:s}", "output", "", "exit_code", 0,
				 "failure_reason", "", "expect_string", "", "session_type",
				 "bash"));
}

static const struct tool interrupt_row = { .name = "bash_interrupt",
					   .fields = any,
					   .run = interrupt };
static const struct tool_surface interrupt_on = { NULL, interrupted };

static const struct field run_fields[] = {
	{ "action_type", FIELD_TEXT, 0, 0, 16, "bash; bash_interrupt ends the command that runs",
	  NULL },
	{ "session", FIELD_NAME, 0, 0, SESSION, "default", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "bash", NULL },
	{ "command", FIELD_TEXT, 0, 0, COMMAND_MAX, "for the shell", NULL },
	{ "timeout", FIELD_ANY, 0, 0, 0, "seconds; without it there is none", NULL },
	{ "check", FIELD_TEXT, 0, 0, 16, "raise, silent, ignore", NULL },
	{ "error_msg", FIELD_TEXT, 0, 0, 4096, "goes in front of what is raised", NULL },
	{ "is_interactive_command", FIELD_BOOL, 0, 0, 0, "not offered", NULL },
	{ "is_interactive_quit", FIELD_BOOL, 0, 0, 0, "not offered", NULL },
	{ "expect", FIELD_TEXTS, 0, 0, 64, "not offered", NULL },
	{ "n_retry", FIELD_INT, 0, 1, TRIES_MAX, "signals before it is killed; 3", NULL },
	{ 0 },
};

static void run_in_session(struct call *c)
{
	int stops = !strcmp(call_text(c, "action_type", "bash"), "bash_interrupt");
	uint32_t ms;

	if (!one_of(c, "action_type", (const char *const[]){ "bash", "bash_interrupt", NULL }) ||
	    !one_of(c, "check", (const char *const[]){ "raise", "silent", "ignore", NULL }) ||
	    !is_bash(c) || !seconds(c, "timeout", &ms))
		return;
	if (!stops && !json_object_get(c->body, "command"))
		invalid(c, "command: is missing");
	else if (call_flag(c, "is_interactive_command", 0) ||
		 call_flag(c, "is_interactive_quit", 0) ||
		 json_array_size(json_object_get(c->body, "expect")))
		raise_it(
			c, PYTHON "NotImplementedError",
			"programs that wait for input, and expect, are not offered: a session here runs commands");
	else
		begin(c, stops ? &interrupt_row : &command_row,
		      stops ? &interrupt_on : &command_on);
}

/* ---- their end ---- */

static void close_one(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	rex_script_close(&script, session_of(j));
	run_script(j, &script, "", CONTROL_MS);
}

static void closed_one(struct tool_job *j, const struct tool_result *r)
{
	if (!script_failed(j, r))
		answer(j->call, 200, json_pack("{s:s}", "session_type", "bash"));
}

static void close_all(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	rex_script_close(&script, NULL);
	run_script(j, &script, "", CONTROL_MS);
}

static void closed_all(struct tool_job *j, const struct tool_result *r)
{
	if (!script_failed(j, r))
		answer(j->call, 200, json_object());
}

static const struct tool close_row = { .name = "close_session", .fields = any, .run = close_one },
			 end_row = { .name = "close", .fields = any, .run = close_all };
static const struct tool_surface close_on = { NULL, closed_one }, end_on = { NULL, closed_all };

static const struct field close_fields[] = {
	{ "session", FIELD_NAME, 0, 0, SESSION, "default", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "bash", NULL },
	{ 0 },
};
static const struct field end_fields[] = { { 0 } };

static void close_session(struct call *c)
{
	if (is_bash(c))
		begin(c, &close_row, &close_on);
}

static void close_runtime(struct call *c)
{
	begin(c, &end_row, &end_on);
}

/* ---- execute ---- */

/* A text is a shell's only where that is said; else it is the name of a program. */
static json_t *words_of(const struct tool_job *j)
{
	json_t *given = json_object_get(j->args, "command"), *words = json_array();

	if (tool_flag(j, "merge_output_streams")) {
		json_array_append_new(words, json_string("sh"));
		json_array_append_new(words, json_string("-c"));
		json_array_append_new(words, json_string("exec \"$@\" 2>&1"));
		json_array_append_new(words, json_string("sh"));
	}
	if (tool_flag(j, "shell")) {
		json_array_append_new(words, json_string("sh"));
		json_array_append_new(words, json_string("-c"));
	}
	if (json_is_array(given))
		json_array_extend(words, given);
	else
		json_array_append(words, given);
	return words;
}

static void execute_it(struct tool_job *j)
{
	json_t *body = json_pack("{s:o}", "command", words_of(j)),
	       *env = json_object_get(j->args, "env"), *cwd = json_object_get(j->args, "cwd");

	if (env)
		json_object_set(body, "env", env);
	if (cwd)
		json_object_set(body, "cwd", cwd);
	add_ms(body, to_ms(j, "timeout", 0));
	keep_more(j);
	tool_program(j, body);
}

static const char *program_of(const struct tool_job *j)
{
	const json_t *given = json_object_get(j->args, "command");
	const char *name =
		json_string_value(json_is_array(given) ? json_array_get(given, 0) : given);

	return name ? name : "";
}

/* Python has a signal as a negative number. */
static json_int_t return_code(const struct tool_result *r)
{
	json_int_t status = status_of(r);

	return json_is_integer(json_object_get(r->data, "exit_code")) || status <= 128
		       ? status
		       : 128 - status;
}

static void executed(struct tool_job *j, const struct tool_result *r)
{
	auto_buf struct buf both = { 0 };

	if (went_wrong(j, r))
		return;
	buf_printf(&both, "%s\n%s", text_of(r, "stdout"), text_of(r, "stderr"));
	if (never_ran(r))
		raise_it(j->call,
			 status_of(r) == 127 ? PYTHON "FileNotFoundError"
					     : PYTHON "PermissionError",
			 "'%s' cannot be run: %s", program_of(j), text_of(r, "summary"));
	else if (timed_out(r))
		raise_it(j->call, OURS "CommandTimeoutError",
			 "timeout (%g s) exceeded while running command",
			 given_seconds(j, "timeout"));
	else if (!tool_flag(j, "check") || !non_zero(j, return_code(r), both.p))
		answer(j->call, 200,
		       json_pack("{s:O, s:O, s:I}", "stdout", json_object_get(r->data, "stdout"),
				 "stderr", json_object_get(r->data, "stderr"), "exit_code",
				 return_code(r)));
}

static const struct tool execute_row = { .name = "execute", .fields = any, .run = execute_it };
static const struct tool_surface execute_on = { NULL, executed };

static const struct field execute_fields[] = {
	{ "command", FIELD_COMMAND, 1, 0, COMMAND_MAX,
	  "a program and its arguments, or a line for a shell", NULL },
	{ "shell", FIELD_BOOL, 0, 0, 0, "command is for sh", NULL },
	{ "timeout", FIELD_ANY, 0, 0, 0, "seconds; without it there is none", NULL },
	{ "check", FIELD_BOOL, 0, 0, 0, "raise what is not 0", NULL },
	{ "error_msg", FIELD_TEXT, 0, 0, 4096, "goes in front of what is raised", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "variables, on top of the box's", NULL },
	{ "cwd", FIELD_TEXT, 0, 0, 4095, "folder to start in; /home/user", NULL },
	{ "merge_output_streams", FIELD_BOOL, 0, 0, 0, "stderr is part of stdout", NULL },
	{ 0 },
};

static void execute(struct call *c)
{
	uint32_t ms;

	if (seconds(c, "timeout", &ms))
		begin(c, &execute_row, &execute_on);
}

/* ---- files ---- */

/* What fails with a file has a class in Python. */
static void raise_file(struct tool_job *j, const struct tool_result *r)
{
	static const char *const classes[][2] = {
		{ "not_found", PYTHON "FileNotFoundError" },
		{ "is_a_folder", PYTHON "IsADirectoryError" },
		{ "not_a_folder", PYTHON "NotADirectoryError" },
		{ "denied", PYTHON "PermissionError" },
		{ "exists", PYTHON "FileExistsError" },
		{ "not_a_file", PYTHON "OSError" },
		{ "no_space", PYTHON "OSError" },
		{ "too_large", PYTHON "OSError" },
		{ "invalid", PYTHON "ValueError" },
		{ "no_text", PYTHON "ValueError" },
		{ "no_codec", PYTHON "LookupError" },
	};
	const char *code = json_string_value(
			   json_object_get(json_object_get(r->data, "error"), "code")),
		   *class = OURS "SwerexException";

	for (unsigned i = 0; code && i < ARRAY_LEN(classes); i++)
		if (!strcmp(code, classes[i][0]))
			class = classes[i][1];
	raise_it(j->call, class, "%s", buf_str(&r->text));
}

static void has_content(struct content *x)
{
	struct tool_job *j = x->job;
	const char *codec = tool_text(j, "encoding", "utf-8");
	auto_buf struct buf text = { 0 };
	char why[80];
	size_t at;

	content_close(x);
	if (rex_decode(&x->bytes, (enum rex_codec)rex_codec(codec),
		       (enum rex_errors)rex_errors(tool_text(j, "errors", "strict")), &text,
		       &at) < 0) {
		snprintf(why, sizeof(why), "byte 0x%02x at %zu", (unsigned char)x->bytes.p[at], at);
		tool_fail(j, "no_text", "the file is not in this encoding", why, NULL);
		return;
	}
	tool_done(j, json_pack("{s:o}", "content", json_stringn(buf_str(&text), text.len)), "", 0);
}

static void get_content(struct content *x)
{
	content_get(x, x->desk.path, has_content);
}

static void read_it(struct tool_job *j)
{
	struct content *x = call_alloc(j->call, sizeof(*x));

	if (rex_codec(tool_text(j, "encoding", "utf-8")) < 0) {
		tool_fail(j, "no_codec", "unknown encoding", tool_text(j, "encoding", ""), NULL);
		return;
	}
	if (rex_errors(tool_text(j, "errors", "strict")) < 0) {
		tool_fail(j, "no_codec", "unknown error handler name", tool_text(j, "errors", ""),
			  NULL);
		return;
	}
	*x = (struct content){ .desk.path = desk_path(j->call, tool_text(j, "path", "")) };
	if (x->desk.path)
		(void)!content_open(x, j, get_content);
}

static void was_read(struct tool_job *j, const struct tool_result *r)
{
	if (r->failed)
		raise_file(j, r);
	else
		answer(j->call, 200,
		       json_pack("{s:O}", "content", json_object_get(r->data, "content")));
}

static void was_written(struct tool_job *j, const struct tool_result *r)
{
	if (r->failed)
		raise_file(j, r);
	else
		answer(j->call, 200, json_object());
}

static const struct tool read_row = { .name = "read_file",
				      .fields = any,
				      .run = read_it,
				      .marks = TOOL_READS },
			 write_row = { .name = "write_file", .fields = any, .run = tool_write };
static const struct tool_surface read_on = { NULL, was_read }, write_on = { NULL, was_written };

static const struct field read_fields[] = {
	DESK_PATH_FIELD(1, "what is relative is below /home/user"),
	{ "encoding", FIELD_TEXT, 0, 0, 32, "utf-8, ascii, latin-1", NULL },
	{ "errors", FIELD_TEXT, 0, 0, 32, "strict, replace, ignore, backslashreplace", NULL },
	{ 0 },
};
static const struct field write_fields[] = {
	DESK_PATH_FIELD(1, "what is relative is below /home/user"),
	{ "content", FIELD_TEXT, 1, 0, 0, "all of the file", NULL },
	{ 0 },
};

static void read_file(struct call *c)
{
	begin(c, &read_row, &read_on);
}

static void write_file(struct call *c)
{
	begin(c, &write_row, &write_on);
}

/* ---- upload ---- */

/* Where the content of a part goes; NULL: it is none of ours, and is left out. */
static struct buf *part_of(struct form *f, const char *name)
{
	if (name && !strcmp(name, "file")) {
		f->has_file = 1;
		return &f->file;
	}
	if (name && !strcmp(name, "target_path"))
		return &f->path;
	return name && !strcmp(name, "unzip") ? &f->unzip : NULL;
}

/* All of it came: its size was bounded before. */
static int read_form(const struct http_req *r, struct form *f, struct err *e)
{
	const char *type = http_header(r, "content-type");
	struct multipart_view in = { buf_str(&r->body), r->body.len }, bytes;
	struct multipart m = { 0 };
	enum multipart_event what = MULTIPART_BAD;
	struct buf *to = NULL;

	if (multipart_init(&m, type ? type : "", e) < 0)
		return -1;
	while ((what = multipart_next(&m, &in, &bytes, e)) != MULTIPART_MORE &&
	       what != MULTIPART_BAD)
		if (what == MULTIPART_PART)
			to = part_of(f, multipart_name(&m));
		else if (what == MULTIPART_DATA && to)
			buf_add(to, bytes.p, bytes.n);
	if (what == MULTIPART_MORE && !multipart_ended(&m)) {
		err_set(e, ERR_INVALID, "the form has no end");
		what = MULTIPART_BAD;
	}
	multipart_fini(&m);
	return what == MULTIPART_BAD ? -1 : 0;
}

static int is_yes(const struct buf *b)
{
	const char *v = buf_str(b);

	return !strcasecmp(v, "true") || !strcmp(v, "1") || !strcasecmp(v, "on") ||
	       !strcasecmp(v, "yes");
}

static void unpack(struct content *x)
{
	struct tool_job *j = x->job;
	auto_buf struct buf script = { 0 };

	content_close(x);
	rex_script_unzip(&script, x->desk.path);
	run_script(j, &script, desk_path(j->call, tool_text(j, "path", "")), CONTROL_MS);
}

static void has_put(struct content *x)
{
	content_close(x);
	call_audit(x->job->call, "file.write", x->desk.path, "ok");
	tool_done(x->job, NULL, "", 0);
}

static void put_content(struct content *x)
{
	struct rex *rex = x->job->call->door;

	content_pour(x, x->desk.path, buf_str(&rex->form->file), rex->form->file.len,
		     tool_flag(x->job, "unzip") ? unpack : has_put);
}

/* An archive is put aside first, under a name that nobody else has. */
static void upload_it(struct tool_job *j)
{
	struct content *x = call_alloc(j->call, sizeof(*x));
	const char *path = desk_path(j->call, tool_text(j, "path", ""));
	char aside[64];

	if (!path)
		return;
	snprintf(aside, sizeof(aside), "/tmp/.atoll-rex-%s.zip", j->call->id);
	*x = (struct content){ .desk.path =
				       tool_flag(j, "unzip") ? desk_path(j->call, aside) : path };
	(void)!content_open(x, j, put_content);
}

static void uploaded(struct tool_job *j, const struct tool_result *r)
{
	size_t before;

	if (!json_object_get(r->data, "exec")) {
		was_written(j, r);
		return;
	}
	if (script_failed(j, r))
		return;
	if (rex_marked(text_of(r, "stderr"), &before))
		raise_it(j->call, OURS "SwerexException",
			 "there is no unzip, python3 or bsdtar in the box");
	else if (r->failed)
		raise_it(j->call, "zipfile.BadZipFile", "the archive cannot be unpacked: %s%s",
			 text_of(r, "stdout"), text_of(r, "stderr"));
	else
		answer(j->call, 200, json_object());
}

static const struct tool upload_row = { .name = "upload", .fields = any, .run = upload_it };
static const struct tool_surface upload_on = { NULL, uploaded };

static void form_arrived(struct http_req *r)
{
	struct call *c = r->user;
	struct rex *x = c->door;
	struct err e;

	if (read_form(r, x->form, &e) < 0) {
		invalid(c, e.msg);
		return;
	}
	if (!x->form->has_file || !x->form->path.len) {
		invalid(c, "file or target_path is missing");
		return;
	}
	json_decref(c->body);
	c->body = json_pack("{s:s#, s:b}", "path", x->form->path.p, (int)x->form->path.len, "unzip",
			    is_yes(&x->form->unzip));
	if (!c->body || strlen(x->form->path.p) != x->form->path.len)
		invalid(c, "target_path: must be UTF-8 without NUL");
	else
		begin(c, &upload_row, &upload_on);
}

static void upload(struct call *c)
{
	uint64_t most = c->api->conf.upload_max;
	struct form *f;

	if (c->door) { /* a box has come to us that another front made */
		begin(c, &upload_row, &upload_on);
		return;
	}
	f = call_alloc(c, sizeof(*f));
	*f = (struct form){ 0 };
	rex_new(c, &upload_row, &upload_on)->form = f;
	http_want_body(c->req, HTTP_BODY_WHOLE, most && most < UPLOAD_MAX ? most : UPLOAD_MAX);
	c->req->on_body_end = form_arrived;
}

/* ---- the table ---- */

static void is_alive(struct call *c)
{
	name_bound_box(c);
	if (is_own(c) || call_look(c, 0)) /* the own one is made when it is needed */
		answer(c, 200, json_pack("{s:b, s:s}", "is_alive", 1, "message", ""));
}

static const struct api_route rows[] = {
	{ "GET", "/swerex/{box}/is_alive", NEED_VIEWER, is_alive, "is the box there?",
	  .group = "tools" },
	{ "POST", "/swerex/{box}/create_session", NEED_EDITOR, create_session,
	  "a shell with a name", start_fields, .group = "tools" },
	{ "POST", "/swerex/{box}/run_in_session", NEED_EDITOR, run_in_session,
	  "a command in it, or its end", run_fields, .group = "tools" },
	{ "POST", "/swerex/{box}/close_session", NEED_EDITOR, close_session, "end a shell",
	  close_fields, .group = "tools" },
	{ "POST", "/swerex/{box}/execute", NEED_EDITOR, execute, "a program by itself",
	  execute_fields, .group = "tools" },
	{ "POST", "/swerex/{box}/read_file", NEED_VIEWER, read_file, "a file's text", read_fields,
	  .group = "tools" },
	{ "POST", "/swerex/{box}/write_file", NEED_EDITOR, write_file, "write a file", write_fields,
	  .group = "tools" },
	{ "POST", "/swerex/{box}/upload", NEED_EDITOR, upload, "a file or an archive, as a form",
	  .how = HTTP_BODY_WHOLE, .group = "tools" },
	{ "POST", "/swerex/{box}/close", NEED_EDITOR, close_runtime, "end all shells", end_fields,
	  .group = "tools" },
};
static struct api_table table = { rows, ARRAY_LEN(rows), &manner, NULL };

static int take(struct call *c)
{
	const char *why;
	int status;

	if (strncmp(c->req->path, "/swerex/", 8) != 0)
		return 0;
	c->manner = &manner;
	status = auth_origin(c->api, c->req, &why);
	if (status)
		call_error(c, status, "denied", "not at this address", why, NULL);
	else
		call_serve(c, &table);
	return 1;
}

const struct api_door rex_door = { take };
