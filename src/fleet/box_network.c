/* box_network.c - see box_network.h. */
#include "fleet/box_network.h"
#include "fleet/box_link.h"
#include "record/record.h"

#include <stdlib.h>
#include <string.h>

static json_t *box_network_lines(const char *lines)
{
	json_t *all = lines ? json_loads(lines, 0, NULL) : NULL;

	return all ? all : json_array();
}

/* The text after the word and a space; NULL: the line starts with another word. */
static const char *box_network_after(const char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

int box_network_reaches(const char *lines)
{
	json_t *all = box_network_lines(lines), *line;
	int some = 0;
	size_t i;

	json_array_foreach(all, i, line)
	{
		const char *text = json_string_value(line);

		some |= !box_network_after(text, "deny") && !box_network_after(text, "bandwidth") &&
			!box_network_after(text, "budget") && !box_link_is(text);
	}
	json_decref(all);
	return some;
}

/* "until N RULE" */
static void box_network_add_until(json_t *doc, const char *text, int64_t now_s)
{
	char *rule;
	int64_t until_s = strtoll(text, &rule, 10);

	if (*rule == ' ' && until_s > now_s)
		json_array_append_new(json_object_get(doc, "allow_until"),
				      json_pack("{s:s, s:o}", "rule", rule + 1, "until",
						json_time((uint64_t)until_s * 1000000000u)));
}

/* "budget IN OUT CONNECTIONS RULE" */
static void box_network_add_budget(json_t *doc, const char *text)
{
	static const char *const names[] = { "bytes_in", "bytes_out", "connections" };
	json_t *one = json_object();
	char *at = (char *)text;

	for (unsigned i = 0; i < 3; i++) {
		long long n = strtoll(at, &at, 10);

		json_object_set_new(one, names[i], n ? json_integer(n) : json_null());
	}
	json_object_set_new(one, "rule", json_string(*at == ' ' ? at + 1 : at));
	json_array_append_new(json_object_get(doc, "budgets"), one);
}

json_t *box_network_json(const char *lines, int64_t now_s)
{
	json_t *all = box_network_lines(lines), *line;
	json_t *doc = json_pack("{s:[], s:[], s:[], s:b, s:n, s:[]}", "allow", "allow_until",
				"deny", "ask", 0, "bandwidth", "budgets");
	size_t i;

	json_array_foreach(all, i, line)
	{
		const char *text = json_string_value(line), *rest;

		if ((rest = box_network_after(text, "deny")))
			json_array_append_new(json_object_get(doc, "deny"), json_string(rest));
		else if ((rest = box_network_after(text, "until")))
			box_network_add_until(doc, rest, now_s);
		else if ((rest = box_network_after(text, "bandwidth")))
			json_object_set_new(doc, "bandwidth",
					    json_integer(strtoll(rest, NULL, 10)));
		else if ((rest = box_network_after(text, "budget")))
			box_network_add_budget(doc, rest);
		else if (!strcmp(text, "ask"))
			json_object_set_new(doc, "ask", json_true());
		else if (!box_link_is(text))
			json_array_append(json_object_get(doc, "allow"), line);
	}
	json_decref(all);
	json_object_set_new(doc, "links", box_link_json(lines));
	return doc;
}

json_t *box_network_team_json(const char *lines)
{
	json_t *all = box_network_lines(lines), *line;
	json_t *allow = json_array(), *deny = json_array();
	int only = 0;
	size_t i;

	json_array_foreach(all, i, line)
	{
		const char *text = json_string_value(line), *rest = box_network_after(text, "deny");

		if (rest)
			json_array_append_new(deny, json_string(rest));
		else if (!strcmp(text, "only"))
			only = 1;
		else
			json_array_append(allow, line);
	}
	json_decref(all);
	if (!only) {
		json_decref(allow);
		allow = json_null();
	}
	return json_pack("{s:o, s:o}", "allow", allow, "deny", deny);
}

void box_network_text(const char *lines, const char *prefix, struct buf *out)
{
	json_t *all = box_network_lines(lines), *line;
	size_t i;

	json_array_foreach(all, i, line)
		buf_printf(out, "%s%s%s", out->len ? "\n" : "", prefix, json_string_value(line));
	json_decref(all);
}
