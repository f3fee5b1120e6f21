/* llm_shapes.c - tool calls in the formats of OpenAI and Anthropic: requests have the calls as
 * their SDKs return them, answers have the results as their SDKs expect them. */
#include "tools/tool.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { COMMANDS = 32 };

/* One tool call of a model, in the format of its provider. */
struct llm_shape {
	struct tool_call call; /* first: it is c->surface */
	json_t *asked;         /* the request; kept, because handlers replace c->body */
	json_t *output;        /* the collected answer, or NULL */
	size_t at;
	void (*over)(struct llm_shape *p, struct call *c, const struct tool_result *r);
};

static void shape_left(struct call *c)
{
	struct llm_shape *p = c->surface;

	json_decref(p->asked);
	json_decref(p->output);
}

static struct llm_shape *llm_shape_new(struct call *c,
				       void (*over)(struct llm_shape *p, struct call *c,
						    const struct tool_result *r))
{
	struct llm_shape *p = call_alloc(c, sizeof(*p));

	*p = (struct llm_shape){ .asked = json_incref(c->body),
				 .over = over,
				 .call.left = shape_left };
	tool_enter(c, &p->call);
	return p;
}

static void job_over(struct tool_job *j, const struct tool_result *r)
{
	struct llm_shape *p = j->call->surface;

	p->over(p, j->call, r);
}

static const struct tool_surface on = { NULL, job_over };

static void llm_shape_fail(struct llm_shape *p, struct call *c, const char *why)
{
	struct tool_result r = { .failed = 1 };

	buf_puts(&r.text, why);
	r.data = json_object();
	p->over(p, c, &r);
	buf_fini(&r.text);
	json_decref(r.data);
}

/* Reports every error to the model, in the shape of a result. */
static void llm_shape_run(struct llm_shape *p, struct call *c, const struct tool *t, json_t *args)
{
	if (!t || t->marks & TOOL_BOXES)
		llm_shape_fail(p, c, "there is no such tool");
	else if (args && !json_is_object(args))
		llm_shape_fail(p, c, "the arguments must be an object");
	else
		tool_begin(c, t, args, &on);
}

static json_t *llm_shape_text(const struct tool_result *r)
{
	return json_stringn(buf_str(&r->text), r->text.len);
}

static const char *text_in(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

static void not_a_call(struct call *c, const char *what)
{
	call_error(c, 400, "invalid", what, NULL, "docs/agents.md has the shapes");
}

/* ---- OpenAI: functions ---- */

/* Chat has only text in the results of tools. */
static json_t *chat_text(const struct tool_result *r)
{
	return r->image.len ? json_sprintf("%s [Chat cannot show it: use the Responses API]",
					   buf_str(&r->text))
			    : llm_shape_text(r);
}

static void chat_over(struct llm_shape *p, struct call *c, const struct tool_result *r)
{
	call_send(c, 200,
		  json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id",
			    json_object_get(p->asked, "id"), "content", chat_text(r)));
}

static json_t *function_output(const struct tool_result *r)
{
	if (!r->image.len)
		return llm_shape_text(r);
	return json_pack("[{s:s, s:o}, {s:s, s:o}]", "type", "input_text", "text",
			 llm_shape_text(r), "type", "input_image", "image_url",
			 json_sprintf("data:image/png;base64,%s", buf_str(&r->image)));
}

static void function_over(struct llm_shape *p, struct call *c, const struct tool_result *r)
{
	call_send(c, 200,
		  json_pack("{s:s, s:O, s:o}", "type", "function_call_output", "call_id",
			    json_object_get(p->asked, "call_id"), "output", function_output(r)));
}

/* Arguments are a JSON string there; an empty one counts as {}. */
static void run_function(struct llm_shape *p, struct call *c, const json_t *function)
{
	const char *name = text_in(function, "name"), *text = text_in(function, "arguments");
	json_t *args =
		text && *text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : json_object();

	if (args)
		llm_shape_run(p, c, name ? tool_named(name) : NULL, args);
	else
		llm_shape_fail(p, c, "the arguments are not JSON");
	json_decref(args);
}

static void use_chat(struct call *c)
{
	const json_t *function = json_object_get(c->body, "function");

	if (!text_in(c->body, "id") || !text_in(function, "name"))
		not_a_call(c, "id or function.name is missing");
	else
		run_function(llm_shape_new(c, chat_over), c, function);
}

static void use_function(struct call *c)
{
	if (!text_in(c->body, "call_id") || !text_in(c->body, "name"))
		not_a_call(c, "call_id or name is missing");
	else
		run_function(llm_shape_new(c, function_over), c, c->body);
}

/* ---- OpenAI: shell ---- */

static void next_command(struct llm_shape *p, struct call *c);

/* The middle is removed; a length in bytes is precise enough. */
static json_t *shape_shortened(const json_t *text, int64_t most)
{
	size_t n = json_string_length(text), half = (size_t)most / 2;
	auto_buf struct buf out = { 0 };

	if (most <= 0 || n <= (size_t)most)
		return json_incref((json_t *)text);
	utf8_scrub(&out, json_string_value(text), half);
	buf_printf(&out, "\n[... %zu bytes left out ...]\n", n - 2 * half);
	utf8_scrub(&out, json_string_value(text) + n - half, half);
	return json_stringn(out.p, out.len);
}

static void shell_over(struct llm_shape *p, struct call *c, const struct tool_result *r)
{
	const json_t *action = json_object_get(p->asked, "action"),
		     *out = json_object_get(r->data, "stdout"),
		     *err = json_object_get(r->data, "stderr"),
		     *code = json_object_get(r->data, "exit_code");
	int64_t most = json_integer_value(json_object_get(action, "max_output_length"));
	int timed_out = json_is_true(json_object_get(r->data, "timed_out"));
	json_t *outcome = timed_out ? json_pack("{s:s}", "type", "timeout")
				    : json_pack("{s:s, s:I}", "type", "exit", "exit_code",
						json_is_integer(code) ? json_integer_value(code)
								      : (json_int_t)r->failed);

	json_array_append_new(
		p->output, json_pack("{s:o, s:o, s:o}", "stdout",
				     out ? shape_shortened(out, most) : json_string(""), "stderr",
				     err ? shape_shortened(err, most) : llm_shape_text(r),
				     "outcome", outcome));
	p->at++;
	next_command(p, c);
}

static void next_command(struct llm_shape *p, struct call *c)
{
	const json_t *action = json_object_get(p->asked, "action"),
		     *timeout = json_object_get(action, "timeout_ms"),
		     *most = json_object_get(action, "max_output_length");
	json_t *args, *doc, *command = json_array_get(json_object_get(action, "commands"), p->at);

	if (command) {
		args = json_pack("{s:O}", "command", command);
		if (json_is_integer(timeout))
			json_object_set(args, "timeout_ms", (json_t *)timeout);
		llm_shape_run(p, c, tool_named("run_command"), args);
		json_decref(args);
		return;
	}
	doc = json_pack("{s:s, s:O, s:O}", "type", "shell_call_output", "call_id",
			json_object_get(p->asked, "call_id"), "output", p->output);
	if (json_is_integer(most))
		json_object_set(doc, "max_output_length", (json_t *)most);
	call_send(c, 200, doc);
}

static void use_shell(struct call *c)
{
	const json_t *commands = json_object_get(json_object_get(c->body, "action"), "commands");
	struct llm_shape *p;

	if (!text_in(c->body, "call_id") || !json_array_size(commands)) {
		not_a_call(c, "call_id or action.commands is missing");
		return;
	}
	if (json_array_size(commands) > COMMANDS) {
		not_a_call(c, "action.commands: at most 32");
		return;
	}
	p = llm_shape_new(c, shell_over);
	p->output = json_array();
	next_command(p, c);
}

/* ---- OpenAI: apply_patch ---- */

static void patch_over(struct llm_shape *p, struct call *c, const struct tool_result *r)
{
	call_send(c, 200,
		  json_pack("{s:s, s:O, s:s, s:o}", "type", "apply_patch_call_output", "call_id",
			    json_object_get(p->asked, "call_id"), "status",
			    r->failed ? "failed" : "completed", "output", llm_shape_text(r)));
}

/* An operation is one file of a patch, without its head. */
static void use_patch(struct call *c)
{
	static const struct {
		const char *type, *head;
	} kinds[] = { { "create_file", "Add" },
		      { "update_file", "Update" },
		      { "delete_file", "Delete" } };
	const json_t *operation = json_object_get(c->body, "operation");
	const char *type = text_in(operation, "type"), *path = text_in(operation, "path"),
		   *diff = text_in(operation, "diff");
	auto_buf struct buf patch = { 0 };
	struct llm_shape *p;
	json_t *args;

	if (!text_in(c->body, "call_id") || !type || !path || strpbrk(path, "\r\n")) {
		not_a_call(c, "call_id, operation.type or operation.path is missing or no name");
		return;
	}
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(type, kinds[i].type))
			buf_printf(&patch, "*** Begin Patch\n*** %s File: %s\n", kinds[i].head,
				   path);
	p = llm_shape_new(c, patch_over);
	if (!patch.len) {
		llm_shape_fail(p, c,
			       "operation.type: is none of create_file, update_file, delete_file");
		return;
	}
	if (diff && strcmp(type, "delete_file") != 0) {
		buf_puts(&patch, diff);
		if (*diff && diff[strlen(diff) - 1] != '\n')
			buf_putc(&patch, '\n');
	}
	buf_puts(&patch, "*** End Patch\n");
	args = json_pack("{s:s}", "patch", patch.p);
	llm_shape_run(p, c, tool_named("apply_patch"), args);
	json_decref(args);
}

static const struct {
	const char *type;
	void (*use)(struct call *c);
} shapes[] = {
	{ "function", use_chat },
	{ "function_call", use_function },
	{ "shell_call", use_shell },
	{ "apply_patch_call", use_patch },
};

void openai_use(struct call *c)
{
	const char *type = text_in(c->body, "type");

	if (!call_box(c, 0))
		return;
	for (unsigned i = 0; type && i < ARRAY_LEN(shapes); i++)
		if (!strcmp(type, shapes[i].type)) {
			shapes[i].use(c);
			return;
		}
	not_a_call(c, "type: is none of function, function_call, shell_call, apply_patch_call");
}

/* ---- Anthropic ---- */

static json_t *block_content(const struct tool_result *r)
{
	if (!r->image.len)
		return llm_shape_text(r);
	return json_pack("[{s:s, s:o}, {s:s, s:{s:s, s:s, s:s#}}]", "type", "text", "text",
			 llm_shape_text(r), "type", "image", "source", "type", "base64",
			 "media_type", "image/png", "data", r->image.p, (int)r->image.len);
}

static void block_over(struct llm_shape *p, struct call *c, const struct tool_result *r)
{
	json_t *doc = json_pack("{s:s, s:O, s:o}", "type", "tool_result", "tool_use_id",
				json_object_get(p->asked, "id"), "content", block_content(r));

	if (r->failed)
		json_object_set_new(doc, "is_error", json_true());
	call_send(c, 200, doc);
}

static const struct tool *block_tool(const char *name)
{
	if (!strcmp(name, "bash"))
		return &tool_bash_row;
	/* The older name of the same editor. */
	if (!strcmp(name, tool_editor_row.name) || !strcmp(name, "str_replace_editor"))
		return &tool_editor_row;
	if (!strcmp(name, tool_computer_row.name))
		return &tool_computer_row;
	return tool_named(name);
}

void anthropic_use(struct call *c)
{
	const char *type = text_in(c->body, "type"), *name = text_in(c->body, "name");
	struct llm_shape *p;

	if (!call_box(c, 0))
		return;
	if (!type || strcmp(type, "tool_use") != 0 || !name || !text_in(c->body, "id")) {
		not_a_call(c, "type, id or name is missing: this is not a tool_use block");
		return;
	}
	p = llm_shape_new(c, block_over);
	llm_shape_run(p, c, block_tool(name), json_object_get(p->asked, "input"));
}
