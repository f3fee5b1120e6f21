/* dialect_anthropic.c - the dialect "messages". See dialect_util.h. */
#include "llm/dialect_util.h"
#include "base/cleanup.h"

#include <string.h>

static json_t *anthropic_cached(json_t *take_block)
{
	json_object_set_new(take_block, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
	return take_block;
}

static json_t *messages_tool(const char *name, const char *description, json_t *parameters,
			     const json_t *strict)
{
	json_t *f = json_pack("{s:s}", "name", name);

	if (description)
		json_object_set_new(f, "description", json_string(description));
	json_object_set(f, "input_schema", parameters);
	say(f, "strict", strict);
	return f;
}

static json_t *messages_system(const json_t *request)
{
	const json_t *list = json_object_get(request, "system");
	json_t *all, *one;
	size_t i;

	if (!json_array_size(list))
		return NULL;
	all = json_array();
	json_array_foreach(list, i, one)
		json_array_append_new(all, json_pack("{s:s, s:O}", "type", "text", "text", one));
	/* Everything before this mark is the same for all requests of a role: tools, then these
	 * texts. */
	anthropic_cached(json_array_get(all, json_array_size(all) - 1));
	return all;
}

static json_t *messages_content(const json_t *m)
{
	json_t *blocks = json_array(), *one;
	size_t i;

	/* Results must come first, otherwise the provider rejects them. */
	json_array_foreach(json_object_get(m, "results"), i, one)
	{
		json_t *b = json_pack("{s:s, s:O, s:O}", "type", "tool_result", "tool_use_id",
				      json_object_get(one, "id"), "content",
				      json_object_get(one, "text"));

		if (json_is_true(json_object_get(one, "error")))
			json_object_set_new(b, "is_error", json_true());
		json_array_append_new(blocks, b);
	}
	if (json_string_length(json_object_get(m, "text")))
		json_array_append_new(blocks, json_pack("{s:s, s:O}", "type", "text", "text",
							json_object_get(m, "text")));
	json_array_foreach(json_object_get(m, "calls"), i, one) json_array_append_new(
		blocks, json_pack("{s:s, s:O, s:O, s:O}", "type", "tool_use", "id",
				  json_object_get(one, "id"), "name", json_object_get(one, "name"),
				  "input", json_object_get(one, "arguments")));
	return blocks;
}

static json_t *messages_messages(const json_t *request)
{
	json_t *all = json_array(), *m, *blocks = NULL;
	size_t i;

	json_array_foreach(json_object_get(request, "messages"), i, m)
	{
		blocks = messages_content(m);
		json_array_append_new(all,
				      json_pack("{s:O, s:o}", "role", json_object_get(m, "role"),
						"content", blocks));
	}
	/* The next request of the same conversation is read from the cache up to here. */
	if (json_array_size(all) > 1 && json_array_size(blocks))
		anthropic_cached(json_array_get(blocks, json_array_size(blocks) - 1));
	return all;
}

json_t *messages_body(const json_t *request, const struct models_config_model *m)
{
	const json_t *schema = json_object_get(request, "schema"),
		     *forced = say_schema_tool(request, m);
	json_t *b = json_pack("{s:s, s:I}", "model", m->name, "max_tokens", say_tokens(request, m)),
	       *tools = say_tools(request, m, messages_tool), *system = messages_system(request);

	if (tools && !system)
		anthropic_cached(json_array_get(tools, json_array_size(tools) - 1));
	say_new(b, "tools", tools);
	if (forced)
		json_object_set_new(b, "tool_choice",
				    json_pack("{s:s, s:s}", "type", "tool", "name",
					      part_text(forced, "name")));
	say_new(b, "system", system);
	if (say_schema(request, m))
		json_object_set_new(b, "output_config",
				    json_pack("{s:{s:s, s:O}}", "format", "type", "json_schema",
					      "schema", json_object_get(schema, "schema")));
	json_object_set_new(b, "messages", messages_messages(request));
	say(b, "temperature", json_object_get(request, "temperature"));
	say(b, "stop_sequences", json_object_get(request, "stop"));
	json_object_set_new(b, "stream", json_true());
	return b;
}

static const struct hear_reason messages_stops[] = {
	{ "end_turn", STOP_END },      { "stop_sequence", STOP_END },
	{ "max_tokens", STOP_LENGTH }, { "model_context_window_exceeded", STOP_LENGTH },
	{ "tool_use", STOP_TOOLS },    { "refusal", STOP_REFUSAL },
	{ "pause_turn", STOP_END },
};

/* Counters are cumulative, and each may be missing: the last value counts. */
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
			*rows[i].to = part_count(u, rows[i].name);
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
	const char *type = part_text(block, "type");
	struct reply_call *c;

	if (type && strcmp(type, "text") == 0)
		return hear_text(r, json_object_get(block, "text"), e);
	if (!type || strcmp(type, "tool_use") != 0)
		return 0;
	c = reply_call(r, json_integer_value(json_object_get(event, "index")),
		       part_text(block, "id"), part_text(block, "name"), e);
	if (hear_object(r, c, json_object_get(block, "input"), e) < 0)
		return -1;
	c->whole = 1; /* replaced by parts that follow, if there are any */
	return 0;
}

static int messages_delta(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *delta = json_object_get(event, "delta"),
		     *piece = json_object_get(delta, "partial_json");

	if (json_string_length(piece))
		return hear_arguments(
			r,
			reply_call(r, json_integer_value(json_object_get(event, "index")), NULL,
				   NULL, e),
			piece, e);
	return hear_text(r, json_object_get(delta, "text"), e);
}

static int messages_end(struct reply *r, const json_t *event, struct err *e)
{
	const char *why = part_text(json_object_get(event, "delta"), "stop_reason");

	(void)e;
	messages_usage(r, json_object_get(event, "usage"));
	if (why)
		hear_stop(r, hear_reason(messages_stops, ARRAY_LEN(messages_stops), why));
	return 0;
}

static int messages_stop(struct reply *r, const json_t *event, struct err *e)
{
	(void)event;
	(void)e;
	hear_stop(r, r->stop ? r->stop : STOP_END);
	r->complete = 1;
	return 0;
}

static int messages_error(struct reply *r, const json_t *event, struct err *e)
{
	const json_t *error = json_object_get(event, "error");

	(void)e;
	reply_fail(r, part_text(error, "type"), part_text(error, "message"), 0);
	return 0;
}

static const struct hear_row messages_rows[] = {
	{ "message_start", messages_start },       { "content_block_start", messages_block },
	{ "content_block_delta", messages_delta }, { "message_delta", messages_end },
	{ "message_stop", messages_stop },         { "error", messages_error },
};

int messages_event(struct reply *r, const char *name, const char *data, size_t len, struct err *e)
{
	(void)name;
	return hear_typed(messages_rows, ARRAY_LEN(messages_rows), r, data, len, e);
}
