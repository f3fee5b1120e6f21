/* dialect_responses.c - the dialect "responses". See dialect_util.h. */
#include "llm/dialect_util.h"
#include "base/cleanup.h"

#include <string.h>

static json_t *responses_tool(const char *name, const char *description, json_t *parameters,
			      const json_t *strict)
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

	json_array_foreach(json_object_get(request, "messages"), i, m)
	{
		json_array_foreach(json_object_get(m, "results"), k, one) json_array_append_new(
			all, json_pack("{s:s, s:O, s:O}", "type", "function_call_output", "call_id",
				       json_object_get(one, "id"), "output",
				       json_object_get(one, "text")));
		if (json_object_get(m, "text"))
			json_array_append_new(all, json_pack("{s:O, s:O}", "role",
							     json_object_get(m, "role"), "content",
							     json_object_get(m, "text")));
		json_array_foreach(json_object_get(m, "calls"), k, one) json_array_append_new(
			all,
			json_pack("{s:s, s:O, s:O, s:o}", "type", "function_call", "call_id",
				  json_object_get(one, "id"), "name", json_object_get(one, "name"),
				  "arguments", say_dumped(json_object_get(one, "arguments"))));
	}
	return all;
}

json_t *responses_body(const json_t *request, const struct models_config_model *m)
{
	const json_t *schema = json_object_get(request, "schema"),
		     *forced = say_schema_tool(request, m);
	json_t *b = json_pack("{s:s}", "model", m->name);

	say_new(b, "tools", say_tools(request, m, responses_tool));
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:s}", "type", "function", "name",
					      part_text(forced, "name")));
	if (say_schema(request, m))
		json_object_set_new(b, "text",
				    json_pack("{s:{s:s, s:O, s:b, s:O}}", "format", "type",
					      "json_schema", "name",
					      json_object_get(schema, "name"), "strict", 1,
					      "schema", json_object_get(schema, "schema")));
	say_new(b, "instructions", say_system(request));
	json_object_set_new(b, "input", responses_input(request));
	json_object_set_new(b, "max_output_tokens", json_integer(say_tokens(request, m)));
	say(b, "temperature", json_object_get(request, "temperature"));
	json_object_set_new(b, "store", json_false());
	json_object_set_new(b, "stream", json_true());
	return b;
}

static int responses_item(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *item = json_object_get(event, "item");
	const char *type = part_text(item, "type");

	if (!type || strcmp(type, "function_call") != 0)
		return 0;
	return reply_call(r, json_integer_value(json_object_get(event, "output_index")),
			  part_text(item, "call_id"), part_text(item, "name"), e)
		       ? 0
		       : -1;
}

static int responses_piece(struct reply *r, const json_t *event, struct err *e)
{
	int64_t slot = json_integer_value(json_object_get(event, "output_index"));

	return hear_arguments(r, reply_call(r, slot, NULL, NULL, e),
			      json_object_get(event, "delta"), e);
}

/* Items sent in parts are repeated completely here; the copy is used if there were no parts. */
static int responses_item_done(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *item = json_object_get(event, "item");
	const char *type = part_text(item, "type");
	struct reply_call *c;

	if (!type || strcmp(type, "function_call") != 0)
		return 0;
	c = reply_call(r, json_integer_value(json_object_get(event, "output_index")),
		       part_text(item, "call_id"), part_text(item, "name"), e);
	if (!c)
		return -1;
	return c->arguments.len ? 0 : hear_arguments(r, c, json_object_get(item, "arguments"), e);
}

static int responses_text(struct reply *r, const json_t *event, struct err *e)
{
	return hear_text(r, json_object_get(event, "delta"), e);
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
		hear_usage(r, part_count(u, "input_tokens"), part_count(details, "cached_tokens"),
			   part_count(details, "cache_write_tokens"),
			   part_count(u, "output_tokens"));
}

static int responses_completed(struct reply *r, const json_t *event, struct err *e)
{
	(void)e;
	responses_usage(r, json_object_get(event, "response"));
	hear_stop(r, STOP_END);
	r->complete = 1;
	return 0;
}

static int responses_incomplete(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *response = json_object_get(event, "response");
	const char *why = part_text(json_object_get(response, "incomplete_details"), "reason");

	(void)e;
	responses_usage(r, response);
	hear_stop(r, why && strcmp(why, "content_filter") == 0 ? STOP_FILTER : STOP_LENGTH);
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
	reply_fail(r, part_text(error, "code"), part_text(error, "message"),
		   (int)json_integer_value(json_object_get(error, "code")));
	return 0;
}

static const struct hear_row responses_rows[] = {
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

int responses_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	(void)name;
	if (strcmp(data, "[DONE]") == 0)
		return 0;
	return hear_typed(responses_rows, ARRAY_LEN(responses_rows), r, data, len, e);
}
