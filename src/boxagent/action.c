/* action.c - see action.h. */
#include "boxagent/action.h"

#include <stdio.h>
#include <string.h>

/* Limits the cost of parsing in advance: a value needs about sixty bytes, a level some stack. */
int action_modest(const char *text, size_t n, struct err *e)
{
	unsigned depth = 0, nodes = 0;
	int quoted = 0;

	for (size_t i = 0; i < n; i++) {
		if (quoted) {
			if (text[i] == '\\')
				i++;
			else
				quoted = text[i] != '"';
			continue;
		}
		quoted = text[i] == '"';
		depth += text[i] == '{' || text[i] == '[';
		depth -= depth && (text[i] == '}' || text[i] == ']');
		nodes += text[i] == ',' || text[i] == '[' || text[i] == '{' || text[i] == ':';
		if (depth > ACTION_DEPTH)
			return err_set(e, ERR_LIMIT, "it is nested deeper than %d levels",
				       ACTION_DEPTH);
		if (nodes > ACTION_NODES)
			return err_set(e, ERR_LIMIT, "it has more than %d values", ACTION_NODES);
	}
	return 0;
}

/* Common mistakes have specific messages. */
static int action_shape(const char *text, size_t n, struct err *e)
{
	size_t i = 0;

	if (n > ACTION_BYTES)
		return err_set(e, ERR_LIMIT, "it has %zu bytes; the maximum is %d", n,
			       ACTION_BYTES);
	while (i < n && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	if (i == n)
		return err_set(e, ERR_INVALID, "it is empty");
	if (n - i >= 3 && !memcmp(text + i, "```", 3))
		return err_set(e, ERR_INVALID,
			       "it begins with a code fence; send the JSON object alone");
	if (text[i] != '{')
		return err_set(e, ERR_INVALID,
			       "it does not begin with '{'; send one JSON object and nothing else");
	return action_modest(text, n, e);
}

static const struct agent_tool_arg *find_arg(const struct agent_tool_row *v, const char *name)
{
	for (unsigned i = 0; i < AGENT_TOOL_ARGS && v->args[i].name; i++)
		if (!strcmp(v->args[i].name, name))
			return &v->args[i];
	return NULL;
}

static int check_arg(const struct agent_tool_arg *a, const json_t *v, struct err *e)
{
	json_int_t n = json_integer_value(v);

	if (a->type == ARG_TEXT && !json_is_string(v))
		return err_set(e, ERR_INVALID, "args.%s must be a string", a->name);
	if (a->type == ARG_FLAG && !json_is_boolean(v))
		return err_set(e, ERR_INVALID, "args.%s must be true or false", a->name);
	if (a->type == ARG_INT && (!json_is_integer(v) || n < a->least || n > a->most))
		return err_set(e, ERR_INVALID, "args.%s must be a whole number from %lld to %lld",
			       a->name, (long long)a->least, (long long)a->most);
	return 0;
}

static int check_args(const struct agent_tool_row *row, const json_t *args, struct err *e)
{
	const struct agent_tool_arg *a;
	const char *name;
	json_t *v;

	if (!json_is_object(args))
		return err_set(e, ERR_INVALID, "args must be an object");
	json_object_foreach((json_t *)args, name, v)
	{
		a = find_arg(row, name);
		if (!a)
			return err_set(e, ERR_INVALID, "%s has no argument '%.40s'", row->name,
				       name);
		if (check_arg(a, v, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < AGENT_TOOL_ARGS && row->args[i].name; i++)
		if (row->args[i].required && !json_object_get(args, row->args[i].name))
			return err_set(e, ERR_INVALID, "args.%s is missing", row->args[i].name);
	return 0;
}

static int check_members(const json_t *doc, const char *one, const char *two, struct err *e)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)doc, name, v) if (
		strcmp(name, one) != 0 &&
		strcmp(name, two) !=
			0) return err_set(e, ERR_INVALID,
					  "'%.40s' does not belong there; beside %s there is only %s",
					  name, one, two);
	return 0;
}

static int unknown_tool(const char *name, unsigned allowed, struct err *e)
{
	char list[120] = "";
	size_t n = 0;

	for (unsigned i = 0; i < AGENT_TOOL_COUNT; i++)
		if (allowed >> i & 1)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
					      agent_tools[i].name);
	return err_set(e, ERR_INVALID, "there is no tool '%.40s'; there are: %s", name, list);
}

static int read_done(struct action *r, struct err *e)
{
	if (check_members(r->doc, "done", "result", e) < 0)
		return -1;
	if (!json_is_true(json_object_get(r->doc, "done")))
		return err_set(e, ERR_INVALID, "done can only be true; to continue, name a tool");
	r->result = json_object_get(r->doc, "result");
	if (!r->result)
		return err_set(e, ERR_INVALID, "result is missing");
	r->done = 1;
	return 0;
}

static int read_action(struct action *r, unsigned allowed, struct err *e)
{
	const json_t *tool = json_object_get(r->doc, "tool");
	int kind;

	if (json_object_get(r->doc, "done"))
		return tool ? err_set(e, ERR_INVALID,
				      "either tool and args, or done and result; not both")
			    : read_done(r, e);
	if (!tool)
		return err_set(e, ERR_INVALID, "it has neither tool nor done");
	if (!json_is_string(tool))
		return err_set(e, ERR_INVALID, "tool must be a string");
	kind = agent_tool_named(json_string_value(tool));
	if (kind < 0 || !(allowed >> kind & 1))
		return unknown_tool(json_string_value(tool), allowed, e);
	r->kind = (enum agent_tool)kind;
	r->args = json_object_get(r->doc, "args");
	if (!r->args)
		return err_set(e, ERR_INVALID, "args is missing");
	if (check_members(r->doc, "tool", "args", e) < 0)
		return -1;
	return check_args(&agent_tools[kind], r->args, e);
}

int action_parse(const char *text, size_t n, unsigned allowed, struct action *out, struct err *e)
{
	json_error_t why;

	*out = (struct action){ 0 };
	if (action_shape(text, n, e) < 0)
		return -1;
	out->doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	if (!out->doc)
		return err_set(e, ERR_INVALID, "it is not JSON: %.120s, at line %d, column %d",
			       why.text, why.line, why.column);
	if (read_action(out, allowed, e) < 0) {
		action_fini(out);
		return -1;
	}
	return 0;
}

void action_fini(struct action *r)
{
	json_decref(r->doc);
	*r = (struct action){ 0 };
}
