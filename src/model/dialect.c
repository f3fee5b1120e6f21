/* dialect.c - see dialect.h. Facts about the four are in their makers' documents; what surprised us has a
 * test in tests/unit/dialect_test.c. */
#include "model/dialect.h"
#include "base/own.h"
#include "model/book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static const char *text_of(const json_t *j, const char *name)
{
	return json_string_value(json_object_get(j, name));
}

static uint64_t count_of(const json_t *j, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(j, name));

	return n > 0 && n < 1000000000000 ? (uint64_t)n : 0;
}

static int add_text(struct reply *r, const json_t *j, struct err *e)
{
	return json_is_string(j) ? reply_text(r, json_string_value(j), json_string_length(j), e) : 0;
}

static int add_arguments(struct reply *r, struct reply_call *c, const json_t *j, struct err *e)
{
	if (!c)
		return -1;
	return json_is_string(j) ?
		       reply_arguments(r, c, json_string_value(j), json_string_length(j), e) :
		       0;
}

/* An object in place of text. */
static int add_object(struct reply *r, struct reply_call *c, const json_t *j, struct err *e)
{
	char *text;
	int rc;

	if (!c)
		return -1;
	if (!json_object_size(j))
		return 0;
	text = json_dumps(j, JSON_COMPACT);
	rc = reply_arguments(r, c, text, strlen(text), e);
	free(text);
	return rc;
}

struct stop_row {
	const char *theirs;
	enum stop stop;
};

static enum stop stop_of(const struct stop_row *rows, unsigned n, const char *theirs)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(rows[i].theirs, theirs) == 0)
			return rows[i].stop;
	return STOP_END; /* a reason of tomorrow: the answer is checked anyway */
}

static void stopped(struct reply *r, enum stop s)
{
	/* A refusal was said in words before. */
	if (r->stop != STOP_REFUSAL)
		r->stop = s == STOP_END && r->ncalls ? STOP_TOOLS : s;
}

/* total: with what was cached in it. */
static void set_usage(struct reply *r, uint64_t total, uint64_t cache_read, uint64_t cache_write,
		      uint64_t out)
{
	uint64_t cached = cache_read + cache_write;

	r->usage.in = total > cached ? total - cached : 0;
	r->usage.cache_read = cache_read;
	r->usage.cache_write = cache_write;
	r->usage.out = out;
	r->told_usage = 1;
}

static json_t *parse(const char *data, size_t len, struct err *e)
{
	json_error_t where;
	json_t *j = json_loadb(data, len, 0, &where);

	if (!json_is_object(j)) {
		json_decref(j);
		err_set(e, ERR_INVALID, "an event that is no JSON: '%.60s'", data);
		return NULL;
	}
	return j;
}

/* ---- writing ---- */

static json_t *list_of(const json_t *request, const char *name)
{
	return json_object_get(request, name);
}

static json_t *joined_system(const json_t *request)
{
	auto_buf struct buf all = { 0 };
	json_t *one;
	size_t i;

	json_array_foreach(list_of(request, "system"), i, one)
		buf_printf(&all, "%s%s", i ? "\n\n" : "", json_string_value(one));
	return all.len ? json_string(buf_str(&all)) : NULL;
}

static json_t *dumped(const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);
	json_t *s = json_string(text);

	free(text);
	return s;
}

static void set(json_t *to, const char *name, const json_t *value)
{
	if (value)
		json_object_set(to, name, (json_t *)value);
}

static void set_new(json_t *to, const char *name, json_t *take_value)
{
	if (take_value)
		json_object_set_new(to, name, take_value);
}

static json_int_t token_limit(const json_t *request, const struct book_model *m)
{
	json_int_t n = json_integer_value(json_object_get(request, "max_tokens"));

	if (n <= 0)
		n = REQUEST_TOKENS;
	return m->max_tokens && n > m->max_tokens ? m->max_tokens : n;
}

static int native_schema(const json_t *request, const struct book_model *m)
{
	return json_object_get(request, "schema") && m->provider->schema == SCHEMA_NATIVE;
}

/* The schema as a tool that has to be called: its arguments are the answer. NULL: not so. */
static const json_t *tool_schema(const json_t *request, const struct book_model *m)
{
	return m->provider->schema == SCHEMA_TOOL ? json_object_get(request, "schema") : NULL;
}

typedef json_t *tool_shape(const char *name, const char *description, json_t *parameters, const json_t *strict);

static json_t *tools_of(const json_t *request, const struct book_model *m, tool_shape *shape)
{
	const json_t *schema = tool_schema(request, m);
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(list_of(request, "tools"), i, one)
		json_array_append_new(all, shape(text_of(one, "name"), text_of(one, "description"),
						 json_object_get(one, "parameters"),
						 json_object_get(one, "strict")));
	if (schema)
		json_array_append_new(all, shape(text_of(schema, "name"), "Gives the answer.",
						 json_object_get(schema, "schema"), NULL));
	if (json_array_size(all))
		return all;
	json_decref(all);
	return NULL;
}

/* ---- chat ---- */

static json_t *chat_tool(const char *name, const char *description, json_t *parameters, const json_t *strict)
{
	json_t *f = json_pack("{s:s}", "name", name);

	if (description)
		json_object_set_new(f, "description", json_string(description));
	json_object_set(f, "parameters", parameters);
	set(f, "strict", strict);
	return json_pack("{s:s, s:o}", "type", "function", "function", f);
}

static json_t *chat_calls(const json_t *calls, int text)
{
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(calls, i, one) {
		json_t *arguments = json_object_get(one, "arguments");

		json_array_append_new(
			all, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", text_of(one, "id"), "type", "function",
				       "function", "name", text_of(one, "name"), "arguments",
				       text ? dumped(arguments) : json_incref(arguments)));
	}
	return all;
}

static const char *name_of_call(const json_t *request, const char *id)
{
	json_t *m, *c;
	size_t i, k;

	json_array_foreach(list_of(request, "messages"), i, m)
		json_array_foreach(json_object_get(m, "calls"), k, c)
			if (strcmp(text_of(c, "id"), id) == 0)
				return text_of(c, "name");
	return "";
}

/* Ollama's messages are nearly the same: arguments are objects there, and results have a tool's name. */
static json_t *chat_messages(const json_t *request, int ollama)
{
	json_t *all = json_array(), *system = joined_system(request), *m, *one;
	size_t i, k;

	if (system)
		json_array_append_new(all, json_pack("{s:s, s:o}", "role", "system", "content", system));
	json_array_foreach(list_of(request, "messages"), i, m) {
		const json_t *calls = json_object_get(m, "calls");
		json_t *text = json_object_get(m, "text");

		json_array_foreach(json_object_get(m, "results"), k, one) {
			json_t *r = json_pack("{s:s, s:O}", "role", "tool", "content", json_object_get(one, "text"));

			if (ollama)
				json_object_set_new(r, "tool_name", json_string(name_of_call(request, text_of(one, "id"))));
			else
				json_object_set(r, "tool_call_id", json_object_get(one, "id"));
			json_array_append_new(all, r);
		}
		if (!text && !json_array_size(calls))
			continue;
		one = json_pack("{s:O, s:o}", "role", json_object_get(m, "role"), "content",
				text	 ? json_incref(text) :
				ollama ? json_string("") :
					 json_null());
		if (json_array_size(calls))
			json_object_set_new(one, "tool_calls", chat_calls(calls, !ollama));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *chat_body(const json_t *request, const struct book_model *m)
{
	const json_t *schema = json_object_get(request, "schema"), *forced = tool_schema(request, m);
	json_t *b = json_pack("{s:s}", "model", m->name);

	set_new(b, "tools", tools_of(request, m, chat_tool));
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name",
					      text_of(forced, "name")));
	if (native_schema(request, m))
		json_object_set_new(b, "response_format",
				    json_pack("{s:s, s:{s:O, s:b, s:O}}", "type", "json_schema", "json_schema",
					      "name", json_object_get(schema, "name"), "strict", 1, "schema",
					      json_object_get(schema, "schema")));
	json_object_set_new(b, "messages", chat_messages(request, 0));
	json_object_set_new(b, m->provider->old_limit ? "max_tokens" : "max_completion_tokens",
			    json_integer(token_limit(request, m)));
	set(b, "temperature", json_object_get(request, "temperature"));
	set(b, "stop", json_object_get(request, "stop"));
	json_object_set_new(b, "stream", json_true());
	json_object_set_new(b, "stream_options", json_pack("{s:b}", "include_usage", 1));
	return b;
}

static const struct stop_row chat_stops[] = {
	{ "stop", STOP_END },         { "length", STOP_LENGTH },           { "tool_calls", STOP_TOOLS },
	{ "function_call", STOP_TOOLS }, { "content_filter", STOP_FILTER },
};

static int chat_call(struct reply *r, const json_t *c, struct err *e)
{
	const json_t *f = json_object_get(c, "function"), *index = json_object_get(c, "index");
	const char *id = text_of(c, "id");
	/* Some count nothing: then a new id is a new call. */
	int64_t slot = json_is_integer(index) ? json_integer_value(index) :
		       r->ncalls && (!id || !*id || (r->calls[r->ncalls - 1].id && !strcmp(r->calls[r->ncalls - 1].id, id))) ?
						r->calls[r->ncalls - 1].slot :
						(int64_t)r->ncalls;

	return add_arguments(r, reply_call(r, slot, id, text_of(f, "name"), e),
			     json_object_get(f, "arguments"), e);
}

static int chat_choice(struct reply *r, const json_t *choice, struct err *e)
{
	const json_t *delta = json_object_get(choice, "delta"), *refusal = json_object_get(delta, "refusal");
	const char *finish = text_of(choice, "finish_reason");
	json_t *c;
	size_t i;

	if (add_text(r, json_object_get(delta, "content"), e) < 0 || add_text(r, refusal, e) < 0)
		return -1;
	if (json_string_length(refusal))
		r->stop = STOP_REFUSAL;
	json_array_foreach(json_object_get(delta, "tool_calls"), i, c)
		if (chat_call(r, c, e) < 0)
			return -1;
	if (finish && *finish)
		stopped(r, stop_of(chat_stops, ARRAY_LEN(chat_stops), finish));
	/* The mark behind it may be missing; without a reason it was cut. */
	r->complete |= finish && *finish;
	return 0;
}

static int chat_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	const json_t *usage, *choice, *details;
	json_t *j;
	int rc = 0;

	if (strcmp(data, "[DONE]") == 0)
		return 0;
	j = parse(data, len, e);
	if (!j)
		return -1;
	if (json_object_get(j, "error") || strcmp(name, "error") == 0)
		reply_fail_body(r, 0, data, len);
	/* The last one has usage and an empty list. */
	choice = json_array_get(json_object_get(j, "choices"), 0);
	if (choice)
		rc = chat_choice(r, choice, e);
	usage = json_object_get(j, "usage");
	details = json_object_get(usage, "prompt_tokens_details");
	if (json_is_object(usage))
		set_usage(r, count_of(usage, "prompt_tokens"), count_of(details, "cached_tokens"),
			  count_of(details, "cache_write_tokens"), count_of(usage, "completion_tokens"));
	json_decref(j);
	return rc;
}

/* ---- responses ---- */

static json_t *responses_tool(const char *name, const char *description, json_t *parameters, const json_t *strict)
{
	json_t *f = json_pack("{s:s, s:s}", "type", "function", "name", name);

	if (description)
		json_object_set_new(f, "description", json_string(description));
	json_object_set(f, "parameters", parameters);
	json_object_set_new(f, "strict", json_boolean(json_is_true(strict)));
	return f;
}

static json_t *responses_input(const json_t *request)
{
	json_t *all = json_array(), *m, *one;
	size_t i, k;

	json_array_foreach(list_of(request, "messages"), i, m) {
		json_array_foreach(json_object_get(m, "results"), k, one)
			json_array_append_new(all, json_pack("{s:s, s:O, s:O}", "type", "function_call_output",
							     "call_id", json_object_get(one, "id"), "output",
							     json_object_get(one, "text")));
		if (json_object_get(m, "text"))
			json_array_append_new(all, json_pack("{s:O, s:O}", "role", json_object_get(m, "role"),
							     "content", json_object_get(m, "text")));
		json_array_foreach(json_object_get(m, "calls"), k, one)
			json_array_append_new(all, json_pack("{s:s, s:O, s:O, s:o}", "type", "function_call",
							     "call_id", json_object_get(one, "id"), "name",
							     json_object_get(one, "name"), "arguments",
							     dumped(json_object_get(one, "arguments"))));
	}
	return all;
}

static json_t *responses_body(const json_t *request, const struct book_model *m)
{
	const json_t *schema = json_object_get(request, "schema"), *forced = tool_schema(request, m);
	json_t *b = json_pack("{s:s}", "model", m->name);

	set_new(b, "tools", tools_of(request, m, responses_tool));
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:s}", "type", "function", "name", text_of(forced, "name")));
	if (native_schema(request, m))
		json_object_set_new(b, "text",
				    json_pack("{s:{s:s, s:O, s:b, s:O}}", "format", "type", "json_schema", "name",
					      json_object_get(schema, "name"), "strict", 1, "schema",
					      json_object_get(schema, "schema")));
	set_new(b, "instructions", joined_system(request));
	json_object_set_new(b, "input", responses_input(request));
	json_object_set_new(b, "max_output_tokens", json_integer(token_limit(request, m)));
	set(b, "temperature", json_object_get(request, "temperature"));
	json_object_set_new(b, "store", json_false());
	json_object_set_new(b, "stream", json_true());
	return b;
}

static int responses_item(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *item = json_object_get(event, "item");
	const char *type = text_of(item, "type");

	if (!type || strcmp(type, "function_call") != 0)
		return 0;
	return reply_call(r, json_integer_value(json_object_get(event, "output_index")),
			  text_of(item, "call_id"), text_of(item, "name"), e) ?
		       0 :
		       -1;
}

static int responses_piece(struct reply *r, const json_t *event, struct err *e)
{
	int64_t slot = json_integer_value(json_object_get(event, "output_index"));

	return add_arguments(r, reply_call(r, slot, NULL, NULL, e), json_object_get(event, "delta"), e);
}

/* What has come in pieces comes once more as a whole; who sent no pieces is heard here. */
static int responses_item_done(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *item = json_object_get(event, "item");
	const char *type = text_of(item, "type");
	struct reply_call *c;

	if (!type || strcmp(type, "function_call") != 0)
		return 0;
	c = reply_call(r, json_integer_value(json_object_get(event, "output_index")),
		       text_of(item, "call_id"), text_of(item, "name"), e);
	if (!c)
		return -1;
	return c->arguments.len ? 0 : add_arguments(r, c, json_object_get(item, "arguments"), e);
}

static int responses_text(struct reply *r, const json_t *event, struct err *e)
{
	return add_text(r, json_object_get(event, "delta"), e);
}

static int responses_refusal(struct reply *r, const json_t *event, struct err *e)
{
	r->stop = STOP_REFUSAL;
	return responses_text(r, event, e);
}

static void responses_usage(struct reply *r, const json_t *response)
{
	const json_t *u = json_object_get(response, "usage"),
		     *details = json_object_get(u, "input_tokens_details");

	if (json_is_object(u))
		set_usage(r, count_of(u, "input_tokens"), count_of(details, "cached_tokens"),
			  count_of(details, "cache_write_tokens"), count_of(u, "output_tokens"));
}

static int responses_completed(struct reply *r, const json_t *event, struct err *e)
{
	(void)e;
	responses_usage(r, json_object_get(event, "response"));
	stopped(r, STOP_END);
	r->complete = 1;
	return 0;
}

static int responses_incomplete(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *response = json_object_get(event, "response");
	const char *why = text_of(json_object_get(response, "incomplete_details"), "reason");

	(void)e;
	responses_usage(r, response);
	stopped(r, why && strcmp(why, "content_filter") == 0 ? STOP_FILTER : STOP_LENGTH);
	r->complete = 1;
	return 0;
}

static int responses_failed(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *response = json_object_get(event, "response"),
		     *error = json_object_get(response, "error");

	(void)e;
	if (!error)
		error = json_object_get(event, "error") ? json_object_get(event, "error") : event;
	responses_usage(r, response);
	reply_fail(r, text_of(error, "code"), text_of(error, "message"),
		   (int)json_integer_value(json_object_get(error, "code")));
	return 0;
}

static const struct event_row {
	const char *type;
	int (*take)(struct reply *r, const json_t *event, struct err *e);
} responses_rows[] = {
	{ "response.output_text.delta", responses_text },
	{ "response.refusal.delta", responses_refusal },
	{ "response.output_item.added", responses_item },
	{ "response.function_call_arguments.delta", responses_piece },
	{ "response.output_item.done", responses_item_done },
	{ "response.completed", responses_completed },
	{ "response.incomplete", responses_incomplete },
	{ "response.failed", responses_failed },
	{ "error", responses_failed },
};

/* By the type in the data; the name of the event is the same, or missing. Others are not for us. */
static int by_type(const struct event_row *rows, unsigned n, struct reply *r, const char *data,
		   size_t len, struct err *e)
{
	json_t *j = parse(data, len, e);
	const char *type = text_of(j, "type");
	int rc = j ? 0 : -1;

	for (unsigned i = 0; type && i < n; i++)
		if (strcmp(rows[i].type, type) == 0)
			rc = rows[i].take(r, j, e);
	if (j && !type && json_object_get(j, "error"))
		reply_fail_body(r, 0, data, len);
	json_decref(j);
	return rc;
}

static int responses_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	(void)name;
	if (strcmp(data, "[DONE]") == 0)
		return 0;
	return by_type(responses_rows, ARRAY_LEN(responses_rows), r, data, len, e);
}

/* ---- messages ---- */

static json_t *cached(json_t *take_block)
{
	json_object_set_new(take_block, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
	return take_block;
}

static json_t *messages_tool(const char *name, const char *description, json_t *parameters, const json_t *strict)
{
	json_t *f = json_pack("{s:s}", "name", name);

	if (description)
		json_object_set_new(f, "description", json_string(description));
	json_object_set(f, "input_schema", parameters);
	set(f, "strict", strict);
	return f;
}

static json_t *messages_system(const json_t *request)
{
	const json_t *list = list_of(request, "system");
	json_t *all, *one;
	size_t i;

	if (!json_array_size(list))
		return NULL;
	all = json_array();
	json_array_foreach(list, i, one)
		json_array_append_new(all, json_pack("{s:s, s:O}", "type", "text", "text", one));
	/* All before this mark is the same for everybody: tools, then these texts. */
	cached(json_array_get(all, json_array_size(all) - 1));
	return all;
}

static json_t *messages_content(const json_t *m)
{
	json_t *blocks = json_array(), *one;
	size_t i;

	/* Results come first, or they are refused. */
	json_array_foreach(json_object_get(m, "results"), i, one) {
		json_t *b = json_pack("{s:s, s:O, s:O}", "type", "tool_result", "tool_use_id",
				      json_object_get(one, "id"), "content", json_object_get(one, "text"));

		if (json_is_true(json_object_get(one, "error")))
			json_object_set_new(b, "is_error", json_true());
		json_array_append_new(blocks, b);
	}
	if (json_string_length(json_object_get(m, "text")))
		json_array_append_new(blocks, json_pack("{s:s, s:O}", "type", "text", "text",
							json_object_get(m, "text")));
	json_array_foreach(json_object_get(m, "calls"), i, one)
		json_array_append_new(blocks, json_pack("{s:s, s:O, s:O, s:O}", "type", "tool_use", "id",
							json_object_get(one, "id"), "name",
							json_object_get(one, "name"), "input",
							json_object_get(one, "arguments")));
	return blocks;
}

static json_t *messages_messages(const json_t *request)
{
	json_t *all = json_array(), *m, *blocks = NULL;
	size_t i;

	json_array_foreach(list_of(request, "messages"), i, m) {
		blocks = messages_content(m);
		json_array_append_new(all, json_pack("{s:O, s:o}", "role", json_object_get(m, "role"), "content", blocks));
	}
	/* A talk that goes on is read again up to here by the next request of it. */
	if (json_array_size(all) > 1 && json_array_size(blocks))
		cached(json_array_get(blocks, json_array_size(blocks) - 1));
	return all;
}

static json_t *messages_body(const json_t *request, const struct book_model *m)
{
	const json_t *schema = json_object_get(request, "schema"), *forced = tool_schema(request, m);
	json_t *b = json_pack("{s:s, s:I}", "model", m->name, "max_tokens", token_limit(request, m)),
	       *tools = tools_of(request, m, messages_tool), *system = messages_system(request);

	if (tools && !system)
		cached(json_array_get(tools, json_array_size(tools) - 1));
	set_new(b, "tools", tools);
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:s}", "type", "tool", "name", text_of(forced, "name")));
	set_new(b, "system", system);
	if (native_schema(request, m))
		json_object_set_new(b, "output_config",
				    json_pack("{s:{s:s, s:O}}", "format", "type", "json_schema", "schema",
					      json_object_get(schema, "schema")));
	json_object_set_new(b, "messages", messages_messages(request));
	set(b, "temperature", json_object_get(request, "temperature"));
	set(b, "stop_sequences", json_object_get(request, "stop"));
	json_object_set_new(b, "stream", json_true());
	return b;
}

static const struct stop_row messages_stops[] = {
	{ "end_turn", STOP_END },      { "stop_sequence", STOP_END },
	{ "max_tokens", STOP_LENGTH }, { "model_context_window_exceeded", STOP_LENGTH },
	{ "tool_use", STOP_TOOLS },    { "refusal", STOP_REFUSAL },
	{ "pause_turn", STOP_END },
};

/* Counters are sums so far, each where it is given: the last word counts. */
static void messages_usage(struct reply *r, const json_t *u)
{
	const struct {
		const char *name;
		uint64_t *to;
	} rows[] = { { "input_tokens", &r->usage.in },
		     { "output_tokens", &r->usage.out },
		     { "cache_read_input_tokens", &r->usage.cache_read },
		     { "cache_creation_input_tokens", &r->usage.cache_write } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (json_is_integer(json_object_get(u, rows[i].name)))
			*rows[i].to = count_of(u, rows[i].name);
	r->told_usage |= json_is_object(u);
}

static int messages_start(struct reply *r, const json_t *event, struct err *e)
{
	(void)e;
	messages_usage(r, json_object_get(json_object_get(event, "message"), "usage"));
	return 0;
}

static int messages_block(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *block = json_object_get(event, "content_block");
	const char *type = text_of(block, "type");
	struct reply_call *c;

	if (type && strcmp(type, "text") == 0)
		return add_text(r, json_object_get(block, "text"), e);
	if (!type || strcmp(type, "tool_use") != 0)
		return 0;
	c = reply_call(r, json_integer_value(json_object_get(event, "index")), text_of(block, "id"),
		       text_of(block, "name"), e);
	if (add_object(r, c, json_object_get(block, "input"), e) < 0)
		return -1;
	c->whole = 1; /* pieces take its place; without any it stands, mostly as nothing */
	return 0;
}

static int messages_delta(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *delta = json_object_get(event, "delta"), *piece = json_object_get(delta, "partial_json");

	if (json_string_length(piece))
		return add_arguments(r, reply_call(r, json_integer_value(json_object_get(event, "index")), NULL, NULL, e),
				     piece, e);
	return add_text(r, json_object_get(delta, "text"), e);
}

static int messages_end(struct reply *r, const json_t *event, struct err *e)
{
	const char *why = text_of(json_object_get(event, "delta"), "stop_reason");

	(void)e;
	messages_usage(r, json_object_get(event, "usage"));
	if (why)
		stopped(r, stop_of(messages_stops, ARRAY_LEN(messages_stops), why));
	return 0;
}

static int messages_stop(struct reply *r, const json_t *event, struct err *e)
{
	(void)event;
	(void)e;
	stopped(r, r->stop ? r->stop : STOP_END);
	r->complete = 1;
	return 0;
}

static int messages_error(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *error = json_object_get(event, "error");

	(void)e;
	reply_fail(r, text_of(error, "type"), text_of(error, "message"), 0);
	return 0;
}

static const struct event_row messages_rows[] = {
	{ "message_start", messages_start },       { "content_block_start", messages_block },
	{ "content_block_delta", messages_delta }, { "message_delta", messages_end },
	{ "message_stop", messages_stop },         { "error", messages_error },
};

static int messages_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	(void)name;
	return by_type(messages_rows, ARRAY_LEN(messages_rows), r, data, len, e);
}

/* ---- ollama ---- */

static json_t *ollama_body(const json_t *request, const struct book_model *m)
{
	json_t *b = json_pack("{s:s}", "model", m->name), *options;

	set_new(b, "tools", tools_of(request, m, chat_tool));
	json_object_set_new(b, "messages", chat_messages(request, 1));
	if (native_schema(request, m))
		set(b, "format", json_object_get(json_object_get(request, "schema"), "schema"));
	options = json_pack("{s:I}", "num_predict", token_limit(request, m));
	set(options, "temperature", json_object_get(request, "temperature"));
	set(options, "stop", json_object_get(request, "stop"));
	json_object_set_new(b, "options", options);
	json_object_set_new(b, "stream", json_true());
	return b;
}

static int ollama_message(struct reply *r, const json_t *m, struct err *e)
{
	json_t *c;
	size_t i;

	if (add_text(r, json_object_get(m, "content"), e) < 0)
		return -1;
	json_array_foreach(json_object_get(m, "tool_calls"), i, c) {
		const json_t *f = json_object_get(c, "function");

		if (add_object(r, reply_call(r, r->ncalls, text_of(c, "id"), text_of(f, "name"), e),
			       json_object_get(f, "arguments"), e) < 0)
			return -1;
	}
	return 0;
}

static int ollama_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	const char *why;
	json_t *j = parse(data, len, e);
	int rc;

	(void)name;
	if (!j)
		return -1;
	if (json_object_get(j, "error"))
		reply_fail_body(r, 0, data, len);
	rc = ollama_message(r, json_object_get(j, "message"), e);
	if (rc == 0 && json_is_true(json_object_get(j, "done"))) {
		why = text_of(j, "done_reason");
		stopped(r, why && strcmp(why, "length") == 0 ? STOP_LENGTH : STOP_END);
		set_usage(r, count_of(j, "prompt_eval_count"), 0, 0, count_of(j, "eval_count"));
		r->complete = 1;
	}
	json_decref(j);
	return rc;
}

/* ---- the table ---- */

const struct dialect dialects[] = {
	{ "chat", "/chat/completions", "Authorization: Bearer %s", NULL, 0, chat_body, chat_event },
	{ "responses", "/responses", "Authorization: Bearer %s", NULL, 0, responses_body, responses_event },
	{ "messages", "/v1/messages", "x-api-key: %s", "anthropic-version: 2023-06-01", 0, messages_body,
	  messages_event },
	{ "ollama", "/api/chat", "Authorization: Bearer %s", NULL, 1, ollama_body, ollama_event },
};
const unsigned ndialects = ARRAY_LEN(dialects);

const struct dialect *dialect_find(const char *name)
{
	for (unsigned i = 0; i < ndialects; i++)
		if (strcmp(dialects[i].name, name) == 0)
			return &dialects[i];
	return NULL;
}

char *dialect_body(const json_t *request, const struct book_model *m)
{
	json_t *b = m->provider->dialect->body(request, m);
	char *text = json_dumps(b, JSON_COMPACT);

	json_decref(b);
	return text;
}
