/* swerex_run.c - programs of /swerex: sessions, which are folders of the box (swerex.h), and
 * execute. */
#include "swerex/swerex.h"
#include "base/cleanup.h"
#include "swerex/swerex_call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	SESSION = 64,            /* bytes of its name */
	COMMAND_MAX = 100 << 10, /* the kernel takes 128 KiB as one word */
	SOURCES = 64,
	HALF = 512 << 10, /* maximum of stored output: these clients shorten it themselves */
	START_MS = 10000,
	TRIES = 3,
	TRIES_MAX = 20,
	PAUSE_MS = 200,
	PAUSE_MAX_MS = 60000,
};

/* ---- numbers ---- */

/* Reads seconds from the field; *ms is unchanged without it. 0: rejected. */
static int swerex_run_seconds(struct call *c, const char *name, uint32_t *ms)
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
	swerex_invalid(c, what);
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
	swerex_invalid(c, what);
	return 0;
}

static int is_bash(struct call *c)
{
	return one_of(c, "session_type", (const char *const[]){ "bash", NULL });
}

/* ---- how a program ended ---- */

const char *swerex_said(const struct tool_result *r, const char *name)
{
	const char *v = json_string_value(json_object_get(r->data, name));

	return v ? v : "";
}

/* The box has ended with all its processes, and the result of the program is unknown. */
static int box_ended(const char *cause)
{
	static const char *const those[] = { "lifetime", "idle", "operator", "host" };

	for (unsigned i = 0; i < ARRAY_LEN(those); i++)
		if (!strcmp(cause, those[i]))
			return 1;
	return 0;
}

/* 1: there is an exception instead of a result, and it was sent. */
static int went_wrong(struct tool_job *j, const struct tool_result *r)
{
	if (json_object_get(r->data, "exec") && !box_ended(swerex_said(r, "cause")))
		return 0;
	swerex_raise(j->call, OURS "SwerexException", "%s",
		     json_object_get(r->data, "exec") ? swerex_said(r, "summary")
						      : buf_str(&r->text));
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

static const char *swerex_run_failure(const struct tool_result *r)
{
	const char *cause = swerex_said(r, "cause");

	return strcmp(cause, "exit") != 0 && strcmp(cause, "signal") != 0
		       ? swerex_said(r, "summary")
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

const struct field swerex_any[] = { { FIELDS_OTHERS, FIELD_ANY, 0, 0, 0, NULL, NULL }, { 0 } };

void swerex_run_script(struct tool_job *j, const struct buf *script, const char *word, uint32_t ms)
{
	json_t *body =
		json_pack("{s:[s, s, s, s, s]}", "command", "bash", "-c", script->p, "bash", word);

	add_ms(body, ms);
	keep_more(j);
	tool_program(j, body);
}

/* Converts the report of a script to an exception; 1: sent, or the script could not run. */
int swerex_script_failed(struct tool_job *j, const struct tool_result *r)
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
	const char *said = swerex_said(r, "stderr"), *mark;
	auto_buf struct buf text = { 0 };
	size_t before;

	if (went_wrong(j, r))
		return 1;
	if (never_ran(r)) {
		swerex_raise(j->call, OURS "SwerexException", "there is no bash in the box");
		return 1;
	}
	mark = swerex_marked(said, &before);
	for (unsigned i = 0; mark && i < ARRAY_LEN(words); i++)
		if (!strncmp(mark, words[i].word, strlen(words[i].word))) {
			const char *hole = strstr(words[i].format, "%s");

			buf_add(&text, words[i].format, (size_t)(hole - words[i].format));
			buf_printf(&text, "%s%s", session_of(j), hole + 2);
			swerex_exception(j->call, words[i].class, &text, NULL);
			return 1;
		}
	return 0;
}

static json_t *plain_output(const struct tool_result *r)
{
	const json_t *out = json_object_get(r->data, "stdout");
	auto_buf struct buf plain = { 0 };

	swerex_plain(json_string_value(out), json_string_length(out), &plain);
	return json_stringn(buf_str(&plain), plain.len);
}

static void swerex_run_start(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	swerex_script_create(&script, session_of(j), json_object_get(j->args, "startup_source"));
	swerex_run_script(j, &script, "", to_ms(j, "startup_timeout", START_MS));
}

static void swerex_run_started(struct tool_job *j, const struct tool_result *r)
{
	if (swerex_script_failed(j, r))
		return;
	if (timed_out(r))
		swerex_raise(j->call, OURS "CommandTimeoutError",
			     "timeout while the startup files of session '%s' were read",
			     session_of(j));
	else
		swerex_answer(j->call, 200,
			      json_pack("{s:o, s:s}", "output", plain_output(r), "session_type",
					"bash"));
}

static const struct tool start_row = { .name = "create_session",
				       .fields = swerex_any,
				       .run = swerex_run_start };
static const struct tool_surface start_on = { NULL, swerex_run_started };

const struct field swerex_start_fields[] = {
	{ "session", FIELD_NAME, 0, 0, SESSION, "name of the session (default: default)", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "type of the session: bash", NULL },
	{ "startup_source", FIELD_TEXTS, 0, 0, SOURCES, "files that the shell sources first",
	  NULL },
	{ "startup_timeout", FIELD_ANY, 0, 0, 0, "time limit in seconds (default 10)", NULL },
	{ 0 },
};

/* Together they must fit into one argument, too. */
static int sources_fit(struct call *c)
{
	const json_t *one;
	size_t i, all = 0;

	json_array_foreach(json_object_get(c->body, "startup_source"), i, one) all +=
		json_string_length(one);
	if (all <= COMMAND_MAX / 8)
		return 1;
	swerex_invalid(c, "startup_source: these names are too long");
	return 0;
}

void swerex_create_session(struct call *c)
{
	uint32_t ms;

	if (is_bash(c) && swerex_run_seconds(c, "startup_timeout", &ms) && sources_fit(c))
		swerex_begin(c, &start_row, &start_on);
}

/* ---- commands of a session ---- */

static void swerex_run_command(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	swerex_script_run(&script, session_of(j));
	swerex_run_script(j, &script, tool_text(j, "command", ""), to_ms(j, "timeout", 0));
}

static void bad_syntax(struct tool_job *j, const struct tool_result *r, size_t n)
{
	auto_buf struct buf text = { 0 };
	const char *said = swerex_said(r, "stderr");

	buf_printf(&text, "this is not a command of bash: '%s'\n%.*s", tool_text(j, "command", ""),
		   (int)n, said);
	swerex_exception(j->call, OURS "BashIncorrectSyntaxError", &text,
			 json_pack("{s:s, s:s#}", "bash_stdout", "", "bash_stderr", said, (int)n));
}

/* 1: an exception, which was sent. */
static int non_zero(struct tool_job *j, json_int_t code, const char *output)
{
	const char *more = tool_text(j, "error_msg", "");

	if (code == 0)
		return 0;
	swerex_raise(j->call, OURS "NonZeroExitCodeError",
		     "%s%scommand failed with exit code %lld. Here is the output:\n%s", more,
		     *more ? ": " : "", (long long)code, output);
	return 1;
}

static void swerex_run_commanded(struct tool_job *j, const struct tool_result *r)
{
	const char *check = tool_text(j, "check", "raise"), *mark;
	json_t *output;
	size_t before = 0;

	if (swerex_script_failed(j, r))
		return;
	mark = swerex_marked(swerex_said(r, "stderr"), &before);
	if (mark && !strncmp(mark, "syntax", 6)) {
		bad_syntax(j, r, before);
		return;
	}
	if (timed_out(r)) {
		swerex_raise(j->call, OURS "CommandTimeoutError",
			     "timeout after %g seconds while running command '%s'",
			     given_seconds(j, "timeout"), tool_text(j, "command", ""));
		return;
	}
	output = plain_output(r);
	if (strcmp(check, "raise") != 0 || !non_zero(j, status_of(r), json_string_value(output)))
		swerex_answer(j->call, 200,
			      json_pack("{s:O, s:o, s:s, s:s, s:s}", "output", output, "exit_code",
					strcmp(check, "ignore") ? json_integer(status_of(r))
								: json_null(),
					"failure_reason", swerex_run_failure(r), "expect_string",
					"", "session_type", "bash"));
	json_decref(output);
}

static const struct tool command_row = { .name = "run_in_session",
					 .fields = swerex_any,
					 .run = swerex_run_command };
static const struct tool_surface command_on = { NULL, swerex_run_commanded };

static unsigned tries_of(const struct tool_job *j)
{
	return (unsigned)tool_int(j, "n_retry", TRIES);
}

static void swerex_run_interrupt(struct tool_job *j)
{
	uint32_t ms = to_ms(j, "timeout", PAUSE_MS);
	auto_buf struct buf script = { 0 };

	swerex_script_interrupt(&script, session_of(j), tries_of(j),
				ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
	swerex_run_script(j, &script, "", 0);
}

static void swerex_run_interrupted(struct tool_job *j, const struct tool_result *r)
{
	if (!swerex_script_failed(j, r))
		swerex_answer(j->call, 200,
			      json_pack("{s:s, s:i, s:s, s:s, s:s}", "output", "", "exit_code", 0,
					"failure_reason", "", "expect_string", "", "session_type",
					"bash"));
}

static const struct tool interrupt_row = { .name = "bash_interrupt",
					   .fields = swerex_any,
					   .run = swerex_run_interrupt };
static const struct tool_surface interrupt_on = { NULL, swerex_run_interrupted };

const struct field swerex_run_fields[] = {
	{ "action_type", FIELD_TEXT, 0, 0, 16,
	  "bash; bash_interrupt interrupts the running command", NULL },
	{ "session", FIELD_NAME, 0, 0, SESSION, "name of the session (default: default)", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "type of the session: bash", NULL },
	{ "command", FIELD_TEXT, 0, 0, COMMAND_MAX, "command for the shell", NULL },
	{ "timeout", FIELD_ANY, 0, 0, 0, "time limit in seconds (default: none)", NULL },
	{ "check", FIELD_TEXT, 0, 0, 16, "handling of a nonzero exit code: raise, silent, ignore",
	  NULL },
	{ "error_msg", FIELD_TEXT, 0, 0, 4096, "prefix of the error message", NULL },
	{ "is_interactive_command", FIELD_BOOL, 0, 0, 0, "not supported", NULL },
	{ "is_interactive_quit", FIELD_BOOL, 0, 0, 0, "not supported", NULL },
	{ "expect", FIELD_TEXTS, 0, 0, 64, "not supported", NULL },
	{ "n_retry", FIELD_INT, 0, 1, TRIES_MAX,
	  "number of SIGINT signals before SIGKILL (default 3)", NULL },
	{ 0 },
};

void swerex_run_in_session(struct call *c)
{
	int stops = !strcmp(call_text(c, "action_type", "bash"), "bash_interrupt");
	uint32_t ms;

	if (!one_of(c, "action_type", (const char *const[]){ "bash", "bash_interrupt", NULL }) ||
	    !one_of(c, "check", (const char *const[]){ "raise", "silent", "ignore", NULL }) ||
	    !is_bash(c) || !swerex_run_seconds(c, "timeout", &ms))
		return;
	if (!stops && !json_object_get(c->body, "command"))
		swerex_invalid(c, "command: is missing");
	else if (call_flag(c, "is_interactive_command", 0) ||
		 call_flag(c, "is_interactive_quit", 0) ||
		 json_array_size(json_object_get(c->body, "expect")))
		swerex_raise(
			c, PYTHON "NotImplementedError",
			"programs that wait for input, and expect, are not offered: a session here runs commands");
	else
		swerex_begin(c, stops ? &interrupt_row : &command_row,
			     stops ? &interrupt_on : &command_on);
}

/* ---- their end ---- */

static void close_one(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	swerex_script_close(&script, session_of(j));
	swerex_run_script(j, &script, "", CONTROL_MS);
}

static void closed_one(struct tool_job *j, const struct tool_result *r)
{
	if (!swerex_script_failed(j, r))
		swerex_answer(j->call, 200, json_pack("{s:s}", "session_type", "bash"));
}

static void close_all(struct tool_job *j)
{
	auto_buf struct buf script = { 0 };

	swerex_script_close(&script, NULL);
	swerex_run_script(j, &script, "", CONTROL_MS);
}

static void closed_all(struct tool_job *j, const struct tool_result *r)
{
	if (!swerex_script_failed(j, r))
		swerex_answer(j->call, 200, json_object());
}

static const struct tool close_row = { .name = "close_session",
				       .fields = swerex_any,
				       .run = close_one },
			 end_row = { .name = "close", .fields = swerex_any, .run = close_all };
static const struct tool_surface close_on = { NULL, closed_one }, end_on = { NULL, closed_all };

const struct field swerex_close_fields[] = {
	{ "session", FIELD_NAME, 0, 0, SESSION, "name of the session (default: default)", NULL },
	{ "session_type", FIELD_TEXT, 0, 0, 16, "type of the session: bash", NULL },
	{ 0 },
};
const struct field swerex_end_fields[] = { { 0 } };

void swerex_close_session(struct call *c)
{
	if (is_bash(c))
		swerex_begin(c, &close_row, &close_on);
}

void swerex_close(struct call *c)
{
	swerex_begin(c, &end_row, &end_on);
}

/* ---- execute ---- */

/* A string is a shell command only with `shell`; else it is the name of a program. */
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

/* Python represents a signal as a negative number. */
static json_int_t return_code(const struct tool_result *r)
{
	json_int_t status = status_of(r);

	return json_is_integer(json_object_get(r->data, "exit_code")) || status <= 128
		       ? status
		       : 128 - status;
}

static void swerex_run_executed(struct tool_job *j, const struct tool_result *r)
{
	auto_buf struct buf both = { 0 };

	if (went_wrong(j, r))
		return;
	buf_printf(&both, "%s\n%s", swerex_said(r, "stdout"), swerex_said(r, "stderr"));
	if (never_ran(r))
		swerex_raise(j->call,
			     status_of(r) == 127 ? PYTHON "FileNotFoundError"
						 : PYTHON "PermissionError",
			     "'%s' cannot be run: %s", program_of(j), swerex_said(r, "summary"));
	else if (timed_out(r))
		swerex_raise(j->call, OURS "CommandTimeoutError",
			     "timeout (%g s) exceeded while running command",
			     given_seconds(j, "timeout"));
	else if (!tool_flag(j, "check") || !non_zero(j, return_code(r), both.p))
		swerex_answer(j->call, 200,
			      json_pack("{s:O, s:O, s:I}", "stdout",
					json_object_get(r->data, "stdout"), "stderr",
					json_object_get(r->data, "stderr"), "exit_code",
					return_code(r)));
}

static const struct tool execute_row = { .name = "execute",
					 .fields = swerex_any,
					 .run = execute_it };
static const struct tool_surface execute_on = { NULL, swerex_run_executed };

const struct field swerex_execute_fields[] = {
	{ "command", FIELD_COMMAND, 1, 0, COMMAND_MAX,
	  "a program and its arguments, or a command line for a shell", NULL },
	{ "shell", FIELD_BOOL, 0, 0, 0, "run command with sh", NULL },
	{ "timeout", FIELD_ANY, 0, 0, 0, "time limit in seconds (default: none)", NULL },
	{ "check", FIELD_BOOL, 0, 0, 0, "raise an error if the exit code is not 0", NULL },
	{ "error_msg", FIELD_TEXT, 0, 0, 4096, "prefix of the error message", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables, added to those of the box", NULL },
	{ "cwd", FIELD_TEXT, 0, 0, 4095, "working folder (default /home/user)", NULL },
	{ "merge_output_streams", FIELD_BOOL, 0, 0, 0, "merge stderr into stdout", NULL },
	{ 0 },
};

void swerex_execute(struct call *c)
{
	uint32_t ms;

	if (swerex_run_seconds(c, "timeout", &ms))
		swerex_begin(c, &execute_row, &execute_on);
}
