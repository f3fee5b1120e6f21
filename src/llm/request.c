/* request.c - validates requests; see dialect.h. The dialects rely on these checks. */
#include "base/cleanup.h"
#include "llm/dialect.h"

#include <string.h>

enum kind { TEXT, NUMBER, WHOLE, TRUTH, OBJECT, LIST, TEXTS };

struct request_member {
	const char *name;
	enum kind kind;
	int needed;
};

static int is_texts(const json_t *j)
{
	size_t i;
	json_t *one;

	json_array_foreach(j, i, one) if (!json_is_string(one)) return 0;
	return json_is_array(j);
}

static int request_fits(const json_t *j, enum kind k)
{
	switch (k) {
	case TEXT:
		return json_is_string(j);
	case NUMBER:
		return json_is_number(j);
	case WHOLE:
		return json_is_integer(j) && json_integer_value(j) >= 0;
	case TRUTH:
		return json_is_boolean(j);
	case OBJECT:
		return json_is_object(j);
	case LIST:
		return json_is_array(j);
	case TEXTS:
		return is_texts(j);
	}
	return 0;
}

static int check_members(const json_t *in, const struct request_member *rows, unsigned n,
			 struct err *e)
{
	static const char *const words[] = { "a text",         "a number",  "a whole number",
					     "true or false",  "an object", "a list",
					     "a list of texts" };
	const char *name;
	json_t *value;

	if (!json_is_object(in))
		return err_set(e, ERR_INVALID, "an object is expected");
	json_object_foreach((json_t *)in, name, value)
	{
		unsigned i = 0;

		while (i < n && strcmp(rows[i].name, name) != 0)
			i++;
		if (i == n)
			return err_set(e, ERR_INVALID, "'%.40s' is not known", name);
		if (!request_fits(value, rows[i].kind))
			return err_set(e, ERR_INVALID, "%s: %s is expected", name,
				       words[rows[i].kind]);
	}
	for (unsigned i = 0; i < n; i++)
		if (rows[i].needed && !json_object_get(in, rows[i].name))
			return err_set(e, ERR_INVALID, "%s is missing", rows[i].name);
	return 0;
}

static const struct request_member request_rows[] = {
	{ "role", TEXT, 0 },     { "level", WHOLE, 0 },       { "model", TEXT, 0 },
	{ "system", TEXTS, 0 },  { "messages", LIST, 1 },     { "tools", LIST, 0 },
	{ "schema", OBJECT, 0 }, { "max_tokens", WHOLE, 0 },  { "temperature", NUMBER, 0 },
	{ "stop", TEXTS, 0 },    { "deadline_ms", WHOLE, 0 }, { "stream", TRUTH, 0 },
};
static const struct request_member message_rows[] = {
	/* clang-format off */
	{ "role", TEXT, 1 }, { "text", TEXT, 0 }, { "calls", LIST, 0 }, { "results", LIST, 0 },
	/* clang-format on */
};
static const struct request_member call_rows[] = {
	/* clang-format off */
	{ "id", TEXT, 1 }, { "name", TEXT, 1 }, { "arguments", OBJECT, 1 },
	/* clang-format on */
};
static const struct request_member result_rows[] = {
	/* clang-format off */
	{ "id", TEXT, 1 }, { "text", TEXT, 1 }, { "error", TRUTH, 0 },
	/* clang-format on */
};
static const struct request_member tool_rows[] = {
	/* clang-format off */
	{ "name", TEXT, 1 }, { "description", TEXT, 0 }, { "parameters", OBJECT, 1 }, { "strict", TRUTH, 0 },
	/* clang-format on */
};
static const struct request_member schema_rows[] = {
	{ "name", TEXT, 1 },
	{ "schema", OBJECT, 1 },
};

static int check_list(const json_t *list, const char *what, size_t most,
		      const struct request_member *rows, unsigned n, struct err *e)
{
	json_t *one;
	size_t i;

	if (json_array_size(list) > most)
		return err_set(e, ERR_LIMIT, "more than %zu %s", most, what);
	json_array_foreach(list, i, one) if (check_members(one, rows, n, e) <
					     0) return err_in(e, "%s[%zu]", what, i);
	return 0;
}

static int check_message(const json_t *m, struct err *e)
{
	const char *role;
	int assistant;

	if (check_members(m, message_rows, ARRAY_LEN(message_rows), e) < 0)
		return -1;
	role = json_string_value(json_object_get(m, "role"));
	assistant = strcmp(role, "assistant") == 0;
	if (!assistant && strcmp(role, "user") != 0)
		return err_set(e, ERR_INVALID, "role: it is \"user\" or \"assistant\"");
	if (assistant ? json_object_get(m, "results") != NULL : json_object_get(m, "calls") != NULL)
		return err_set(e, ERR_INVALID, "calls are the assistant's, results the user's");
	if (!json_object_get(m, "text") && !json_array_size(json_object_get(m, "calls")) &&
	    !json_array_size(json_object_get(m, "results")))
		return err_set(e, ERR_INVALID, "it is empty");
	if (check_list(json_object_get(m, "calls"), "calls", REQUEST_TOOLS, call_rows,
		       ARRAY_LEN(call_rows), e) < 0)
		return -1;
	return check_list(json_object_get(m, "results"), "results", REQUEST_TOOLS, result_rows,
			  ARRAY_LEN(result_rows), e);
}

int request_check(const json_t *request, struct err *e)
{
	const json_t *messages = json_object_get(request, "messages"), *schema;
	json_t *one;
	size_t i;

	if (check_members(request, request_rows, ARRAY_LEN(request_rows), e) < 0)
		return -1;
	if (!json_object_get(request, "role") && !json_object_get(request, "model"))
		return err_set(e, ERR_INVALID, "role or model is missing");
	if (!json_array_size(messages) || json_array_size(messages) > REQUEST_MESSAGES)
		return err_set(e, ERR_INVALID, "messages: 1 to %d are expected", REQUEST_MESSAGES);
	json_array_foreach(messages, i,
			   one) if (check_message(one, e) < 0) return err_in(e, "messages[%zu]", i);
	schema = json_object_get(request, "schema");
	if (schema && check_members(schema, schema_rows, ARRAY_LEN(schema_rows), e) < 0)
		return err_in(e, "schema");
	return check_list(json_object_get(request, "tools"), "tools", REQUEST_TOOLS, tool_rows,
			  ARRAY_LEN(tool_rows), e);
}
