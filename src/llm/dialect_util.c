/* dialect_util.c - see dialect_util.h. */
#include "llm/dialect_util.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

const char *part_text(const json_t *j, const char *name)
{
	return json_string_value(json_object_get(j, name));
}

uint64_t part_count(const json_t *j, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(j, name));

	return n > 0 && n < 1000000000000 ? (uint64_t)n : 0;
}

int hear_text(struct reply *r, const json_t *j, struct err *e)
{
	return json_is_string(j) ? reply_text(r, json_string_value(j), json_string_length(j), e)
				 : 0;
}

int hear_arguments(struct reply *r, struct reply_call *c, const json_t *j, struct err *e)
{
	if (!c)
		return -1;
	return json_is_string(j)
		       ? reply_arguments(r, c, json_string_value(j), json_string_length(j), e)
		       : 0;
}

int hear_object(struct reply *r, struct reply_call *c, const json_t *j, struct err *e)
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

enum stop hear_reason(const struct hear_reason *rows, unsigned n, const char *theirs)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(rows[i].theirs, theirs) == 0)
			return rows[i].stop;
	return STOP_END; /* an unknown reason: the answer is checked in any case */
}

void hear_stop(struct reply *r, enum stop s)
{
	/* The text of the refusal was sent before. */
	if (r->stop != STOP_REFUSAL)
		r->stop = s == STOP_END && r->ncalls ? STOP_TOOLS : s;
}

void hear_usage(struct reply *r, uint64_t total, uint64_t cache_read, uint64_t cache_write,
		uint64_t out)
{
	uint64_t cached = cache_read + cache_write;

	r->usage.in = total > cached ? total - cached : 0;
	r->usage.cache_read = cache_read;
	r->usage.cache_write = cache_write;
	r->usage.out = out;
	r->told_usage = 1;
}

json_t *hear_json(const char *data, size_t len, struct err *e)
{
	json_error_t where;
	json_t *j = json_loadb(data, len, 0, &where);

	if (!json_is_object(j)) {
		json_decref(j);
		err_set(e, ERR_INVALID, "an event is not JSON: '%.60s'", data);
		return NULL;
	}
	return j;
}

int hear_typed(const struct hear_row *rows, unsigned n, struct reply *r, const char *data,
	       size_t len, struct err *e)
{
	json_t *j = hear_json(data, len, e);
	const char *type = part_text(j, "type");
	int rc = j ? 0 : -1;

	for (unsigned i = 0; type && i < n; i++)
		if (strcmp(rows[i].type, type) == 0)
			rc = rows[i].take(r, j, e);
	if (j && !type && json_object_get(j, "error"))
		reply_fail_body(r, 0, data, len);
	json_decref(j);
	return rc;
}

json_t *say_system(const json_t *request)
{
	auto_buf struct buf all = { 0 };
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(request, "system"), i, one)
		buf_printf(&all, "%s%s", i ? "\n\n" : "", json_string_value(one));
	return all.len ? json_string(buf_str(&all)) : NULL;
}

json_t *say_dumped(const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);
	json_t *s = json_string(text);

	free(text);
	return s;
}

void say(json_t *to, const char *name, const json_t *value)
{
	if (value)
		json_object_set(to, name, (json_t *)value);
}

void say_new(json_t *to, const char *name, json_t *take_value)
{
	if (take_value)
		json_object_set_new(to, name, take_value);
}

json_int_t say_tokens(const json_t *request, const struct models_config_model *m)
{
	json_int_t n = json_integer_value(json_object_get(request, "max_tokens"));

	if (n <= 0)
		n = REQUEST_TOKENS;
	return m->max_tokens && n > m->max_tokens ? m->max_tokens : n;
}

int say_schema(const json_t *request, const struct models_config_model *m)
{
	return json_object_get(request, "schema") && m->provider->schema == SCHEMA_NATIVE;
}

const json_t *say_schema_tool(const json_t *request, const struct models_config_model *m)
{
	return m->provider->schema == SCHEMA_TOOL ? json_object_get(request, "schema") : NULL;
}

json_t *say_tools(const json_t *request, const struct models_config_model *m, tool_shape *shape)
{
	const json_t *schema = say_schema_tool(request, m);
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(json_object_get(request, "tools"), i, one) json_array_append_new(
		all, shape(part_text(one, "name"), part_text(one, "description"),
			   json_object_get(one, "parameters"), json_object_get(one, "strict")));
	if (schema)
		json_array_append_new(all, shape(part_text(schema, "name"), "Gives the answer.",
						 json_object_get(schema, "schema"), NULL));
	if (json_array_size(all))
		return all;
	json_decref(all);
	return NULL;
}
