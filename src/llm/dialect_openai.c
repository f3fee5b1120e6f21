/* dialect_openai.c - the dialect "chat", and that of Ollama, which has the same messages and tools.
 * See dialect_util.h. */
#include "llm/dialect_util.h"
#include "base/cleanup.h"

#include <string.h>

static json_t *chat_tool(const char *name, const char *description, json_t *parameters,
			 const json_t *strict)
{
	json_t *f = json_pack("{s:s}", "name", name);

	if (description)
		json_object_set_new(f, "description", json_string(description));
	json_object_set(f, "parameters", parameters);
	say(f, "strict", strict);
	return json_pack("{s:s, s:o}", "type", "function", "function", f);
}

static json_t *chat_calls(const json_t *calls, int text)
{
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(calls, i, one)
	{
		json_t *arguments = json_object_get(one, "arguments");

		json_array_append_new(
			all, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", part_text(one, "id"),
				       "type", "function", "function", "name",
				       part_text(one, "name"), "arguments",
				       text ? say_dumped(arguments) : json_incref(arguments)));
	}
	return all;
}

static const char *name_of_call(const json_t *request, const char *id)
{
	json_t *m, *c;
	size_t i, k;

	json_array_foreach(json_object_get(request, "messages"), i, m) json_array_foreach(
		json_object_get(m, "calls"), k,
		c) if (strcmp(part_text(c, "id"), id) == 0) return part_text(c, "name");
	return "";
}

/* Ollama's messages are nearly the same: arguments are objects there, and results have a tool's name. */
static json_t *chat_messages(const json_t *request, int ollama)
{
	json_t *all = json_array(), *system = say_system(request), *m, *one;
	size_t i, k;

	if (system)
		json_array_append_new(all,
				      json_pack("{s:s, s:o}", "role", "system", "content", system));
	json_array_foreach(json_object_get(request, "messages"), i, m)
	{
		const json_t *calls = json_object_get(m, "calls");
		json_t *text = json_object_get(m, "text");

		json_array_foreach(json_object_get(m, "results"), k, one)
		{
			json_t *r = json_pack("{s:s, s:O}", "role", "tool", "content",
					      json_object_get(one, "text"));

			if (ollama)
				json_object_set_new(
					r, "tool_name",
					json_string(name_of_call(request, part_text(one, "id"))));
			else
				json_object_set(r, "tool_call_id", json_object_get(one, "id"));
			json_array_append_new(all, r);
		}
		if (!text && !json_array_size(calls))
			continue;
		one = json_pack("{s:O, s:o}", "role", json_object_get(m, "role"), "content",
				text     ? json_incref(text)
				: ollama ? json_string("")
					 : json_null());
		if (json_array_size(calls))
			json_object_set_new(one, "tool_calls", chat_calls(calls, !ollama));
		json_array_append_new(all, one);
	}
	return all;
}

json_t *chat_body(const json_t *request, const struct models_config_model *m)
{
	const json_t *schema = json_object_get(request, "schema"),
		     *forced = say_schema_tool(request, m);
	json_t *b = json_pack("{s:s}", "model", m->name);

	say_new(b, "tools", say_tools(request, m, chat_tool));
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:{s:s}}", "type", "function", "function",
					      "name", part_text(forced, "name")));
	if (say_schema(request, m))
		json_object_set_new(b, "response_format",
				    json_pack("{s:s, s:{s:O, s:b, s:O}}", "type", "json_schema",
					      "json_schema", "name",
					      json_object_get(schema, "name"), "strict", 1,
					      "schema", json_object_get(schema, "schema")));
	json_object_set_new(b, "messages", chat_messages(request, 0));
	json_object_set_new(b, m->provider->old_limit ? "max_tokens" : "max_completion_tokens",
			    json_integer(say_tokens(request, m)));
	say(b, "temperature", json_object_get(request, "temperature"));
	say(b, "stop", json_object_get(request, "stop"));
	json_object_set_new(b, "stream", json_true());
	json_object_set_new(b, "stream_options", json_pack("{s:b}", "include_usage", 1));
	return b;
}

static const struct hear_reason chat_stops[] = {
	/* clang-format off */
	{ "stop", STOP_END },         { "length", STOP_LENGTH },           { "tool_calls", STOP_TOOLS },
	{ "function_call", STOP_TOOLS }, { "content_filter", STOP_FILTER },
	/* clang-format on */
};

static int chat_call(struct reply *r, const json_t *c, struct err *e)
{
	const json_t *f = json_object_get(c, "function"), *index = json_object_get(c, "index");
	const char *id = part_text(c, "id");
	/* Some providers send no index: then a new id is a new call. */
	int64_t slot = json_is_integer(index) ? json_integer_value(index)
		       : r->ncalls && (!id || !*id ||
				       (r->calls[r->ncalls - 1].id &&
					!strcmp(r->calls[r->ncalls - 1].id, id)))
			       ? r->calls[r->ncalls - 1].slot
			       : (int64_t)r->ncalls;

	return hear_arguments(r, reply_call(r, slot, id, part_text(f, "name"), e),
			      json_object_get(f, "arguments"), e);
}

static int chat_choice(struct reply *r, const json_t *choice, struct err *e)
{
	const json_t *delta = json_object_get(choice, "delta"),
		     *refusal = json_object_get(delta, "refusal");
	const char *finish = part_text(choice, "finish_reason");
	json_t *c;
	size_t i;

	if (hear_text(r, json_object_get(delta, "content"), e) < 0 || hear_text(r, refusal, e) < 0)
		return -1;
	if (json_string_length(refusal))
		r->stop = STOP_REFUSAL;
	json_array_foreach(json_object_get(delta, "tool_calls"), i,
			   c) if (chat_call(r, c, e) < 0) return -1;
	if (finish && *finish)
		hear_stop(r, hear_reason(chat_stops, ARRAY_LEN(chat_stops), finish));
	/* The final [DONE] may be missing; without a finish reason the stream is incomplete. */
	r->complete |= finish && *finish;
	return 0;
}

int chat_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	const json_t *usage, *choice, *details;
	json_t *j;
	int rc = 0;

	if (strcmp(data, "[DONE]") == 0)
		return 0;
	j = hear_json(data, len, e);
	if (!j)
		return -1;
	if (json_object_get(j, "error") || strcmp(name, "error") == 0)
		reply_fail_body(r, 0, data, len);
	/* The last event has usage and an empty list. */
	choice = json_array_get(json_object_get(j, "choices"), 0);
	if (choice)
		rc = chat_choice(r, choice, e);
	usage = json_object_get(j, "usage");
	details = json_object_get(usage, "prompt_tokens_details");
	if (json_is_object(usage))
		hear_usage(r, part_count(usage, "prompt_tokens"),
			   part_count(details, "cached_tokens"),
			   part_count(details, "cache_write_tokens"),
			   part_count(usage, "completion_tokens"));
	json_decref(j);
	return rc;
}

/* ---- ollama ---- */

json_t *ollama_body(const json_t *request, const struct models_config_model *m)
{
	json_t *b = json_pack("{s:s}", "model", m->name), *options;

	say_new(b, "tools", say_tools(request, m, chat_tool));
	json_object_set_new(b, "messages", chat_messages(request, 1));
	if (say_schema(request, m))
		say(b, "format", json_object_get(json_object_get(request, "schema"), "schema"));
	options = json_pack("{s:I}", "num_predict", say_tokens(request, m));
	say(options, "temperature", json_object_get(request, "temperature"));
	say(options, "stop", json_object_get(request, "stop"));
	json_object_set_new(b, "options", options);
	json_object_set_new(b, "stream", json_true());
	return b;
}

static int ollama_message(struct reply *r, const json_t *m, struct err *e)
{
	json_t *c;
	size_t i;

	if (hear_text(r, json_object_get(m, "content"), e) < 0)
		return -1;
	json_array_foreach(json_object_get(m, "tool_calls"), i, c)
	{
		const json_t *f = json_object_get(c, "function");

		if (hear_object(r,
				reply_call(r, r->ncalls, part_text(c, "id"), part_text(f, "name"),
					   e),
				json_object_get(f, "arguments"), e) < 0)
			return -1;
	}
	return 0;
}

int ollama_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	const char *why;
	json_t *j = hear_json(data, len, e);
	int rc;

	(void)name;
	if (!j)
		return -1;
	if (json_object_get(j, "error"))
		reply_fail_body(r, 0, data, len);
	rc = ollama_message(r, json_object_get(j, "message"), e);
	if (rc == 0 && json_is_true(json_object_get(j, "done"))) {
		why = part_text(j, "done_reason");
		hear_stop(r, why && strcmp(why, "length") == 0 ? STOP_LENGTH : STOP_END);
		hear_usage(r, part_count(j, "prompt_eval_count"), 0, 0,
			   part_count(j, "eval_count"));
		r->complete = 1;
	}
	json_decref(j);
	return rc;
}
