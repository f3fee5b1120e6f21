/* reply_schema.c - see reply_schema.h. */
#include "pipeline/reply_schema.h"
#include "debug/debug.h"
#include "base/cleanup.h"
#include "lang/lang.h"
#include "lang/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16 };

/* ---- pieces of schemas ---- */

static json_t *reply_schema_type(const char *name, const char *says)
{
	return json_pack("{s:s, s:s}", "type", name, "description", says);
}

static json_t *reply_schema_maybe(const char *name, const char *says)
{
	return json_pack("{s:[s,s], s:s}", "type", name, "null", "description", says);
}

static json_t *reply_schema_list(json_t *take_items, const char *says)
{
	return json_pack("{s:s, s:s, s:o}", "type", "array", "description", says, "items",
			 take_items);
}

static json_t *one_of(json_t *take_words, const char *says)
{
	return json_pack("{s:s, s:s, s:o}", "type", "string", "description", says, "enum",
			 take_words);
}

static json_t *reply_schema_words(const char *const *list_of)
{
	json_t *all = json_array();

	for (; *list_of; list_of++)
		json_array_append_new(all, json_string(*list_of));
	return all;
}

/* All members are required, in this order, in which a model also generates them. */
static json_t *reply_schema_object(json_t *take_properties)
{
	json_t *required = json_array();
	const char *name;
	json_t *value;

	json_object_foreach(take_properties, name, value)
		json_array_append_new(required, json_string(name));
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", take_properties,
			 "required", required, "additionalProperties", 0);
}

static json_t *reply_schema_languages(void)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < lang_count(); i++)
		if (lang_present(lang_at(i)))
			json_array_append_new(all, json_string(lang_at(i)->name));
	/* A host without languages cannot run anything, but the schema must name one. */
	if (!json_array_size(all))
		json_array_append_new(all, json_string(lang_at(0)->name));
	return all;
}

static json_t *reply_schema_managers(void)
{
	json_t *all = json_array();

	for (int i = 0; i < PM_COUNT; i++)
		json_array_append_new(all,
				      json_string(package_manager_name((enum package_manager)i)));
	return all;
}

static json_t *reply_schema_categories(void)
{
	json_t *all = json_array();

	for (const struct debug_category *c = debug_categories; c->name; c++)
		json_array_append_new(all, json_string(c->name));
	return all;
}

static json_t *reply_schema_packages(void)
{
	return reply_schema_list(
		reply_schema_object(json_pack(
			"{s:o, s:o, s:o, s:o}", "manager",
			one_of(reply_schema_managers(), "the package manager that installs it"),
			"name", reply_schema_type("string", "as the manager calls it"), "version",
			reply_schema_maybe("string", "exact, or null"), "reason",
			reply_schema_type("string", "what it is for"))),
		"beyond the standard library; [] where that is enough");
}

static json_t *plan_form(void)
{
	static const char *const kinds[] = { "exit",         "stdout_equals",
					     "stdout_regex", "stdout_contains",
					     "file_exists",  NULL };

	return reply_schema_object(json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reasoning",
		reply_schema_type("string", "what is asked for, briefly; first of all"), "language",
		one_of(reply_schema_languages(), "of the program"), "steps",
		reply_schema_list(reply_schema_type("string", "one step"),
				  "in the order in which the program does them"),
		"packages", reply_schema_packages(), "entry",
		reply_schema_type("string", "the file that is run, relative to the workspace"),
		"checks",
		reply_schema_list(
			reply_schema_object(json_pack(
				"{s:o, s:o}", "kind",
				one_of(reply_schema_words(kinds), "what is looked at"), "arg",
				reply_schema_type(
					"string",
					"exit: a status; stdout_*: text or a POSIX extended expression; file_exists: a path"))),
			"what must be true of any right program; [] where nothing is certain"),
		"inputs_needed",
		reply_schema_list(reply_schema_object(json_pack(
					  "{s:o, s:o}", "name",
					  reply_schema_type("string", "one word"), "question",
					  reply_schema_type("string", "for a person"))),
				  "questions that only a person can answer; [] to continue"),
		"assumptions",
		reply_schema_list(reply_schema_type("string", "one assumption"),
				  "what was decided without being said"),
		"confidence",
		reply_schema_type("number", "0 to 1: how sure this is what was asked for")));
}

static json_t *file_form(void)
{
	return reply_schema_object(json_pack(
		"{s:o, s:o}", "path", reply_schema_type("string", "relative to the workspace"),
		"content", reply_schema_type("string", "the whole file, as it is written")));
}

static json_t *code_form(void)
{
	return reply_schema_object(json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "reasoning",
		reply_schema_type("string", "how it will work, briefly; first of all"), "files",
		reply_schema_list(file_form(), "every file that is new or differs"), "entry",
		reply_schema_type("string", "the file that is run"), "packages",
		reply_schema_packages(), "stdin",
		reply_schema_maybe("string",
				   "what the program is given on its standard input, or null")));
}

static json_t *diagnosis_form(void)
{
	static const char *const kinds[] = { "edit", "install", "ask", "stop", NULL };
	json_t *edit = reply_schema_object(json_pack(
		"{s:o, s:o, s:o}", "path", reply_schema_type("string", "of the file"), "old",
		reply_schema_type("string",
				  "text that is in it exactly once; \"\" for a whole new file"),
		"new", reply_schema_type("string", "what comes in its place")));

	return reply_schema_object(json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reasoning",
		reply_schema_type("string", "what the output shows, briefly; first of all"),
		"category", one_of(reply_schema_categories(), "what kind of failure"), "root_cause",
		reply_schema_type("string", "one sentence: why it failed"), "file",
		reply_schema_maybe("string", "where, or null"), "line",
		reply_schema_maybe("integer", "which line, or null"), "action",
		one_of(reply_schema_words(kinds), "what is to be done"), "detail",
		reply_schema_type("string",
				  "one sentence: what is changed and how the program differs now"),
		"edits", reply_schema_list(edit, "edit: the changes; else []"), "packages",
		reply_schema_packages(), "question",
		reply_schema_maybe("string", "ask: for a person; else null"), "confidence",
		reply_schema_type("number", "0 to 1")));
}

static const struct {
	const char *name;
	json_t *(*make)(void);
} forms[FORM_COUNT] = {
	[FORM_PLAN] = { "plan", plan_form },
	[FORM_CODE] = { "artifact", code_form },
	[FORM_DIAGNOSIS] = { "diagnosis", diagnosis_form },
};

const char *reply_schema_name(enum reply_schema f)
{
	return forms[f].name;
}

const json_t *reply_schema_json(enum reply_schema f)
{
	static json_t *made[FORM_COUNT];

	if (!made[f])
		made[f] = forms[f].make();
	if (!made[f])
		abort();
	return made[f];
}

/* ---- the check ---- */

struct reply_schema_place {
	const struct reply_schema_place *up;
	const char *name; /* or: */
	size_t index;
};

static size_t write_place(const struct reply_schema_place *p, char *out, size_t room)
{
	size_t n = p->up ? write_place(p->up, out, room) : 0;

	if (p->name)
		n += (size_t)snprintf(out + n, room - n, "%s%.40s", n ? "." : "", p->name);
	else if (p->up)
		n += (size_t)snprintf(out + n, room - n, "[%zu]", p->index);
	return n < room ? n : room - 1;
}

static int reply_schema_wrong(const struct reply_schema_place *p, struct err *e, const char *what,
			      const char *more)
{
	char place[160] = "";

	write_place(p, place, sizeof(place));
	return err_set(e, ERR_INVALID, "%s: %s%.80s", *place ? place : "the answer", what, more);
}

static int is_type(const json_t *v, const char *name)
{
	static const struct {
		const char *name;
		json_type type;
	} rows[] = { { "object", JSON_OBJECT },
		     { "array", JSON_ARRAY },
		     { "string", JSON_STRING },
		     { "integer", JSON_INTEGER },
		     { "null", JSON_NULL } };

	if (strcmp(name, "number") == 0)
		return json_is_number(v);
	if (strcmp(name, "boolean") == 0)
		return json_is_boolean(v);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return json_typeof(v) == rows[i].type;
	return 0;
}

static int fits_type(const json_t *schema, const json_t *v)
{
	const json_t *type_of = json_object_get(schema, "type");
	json_t *one;
	size_t i;

	if (json_is_string(type_of))
		return is_type(v, json_string_value(type_of));
	json_array_foreach(type_of, i, one) if (is_type(v, json_string_value(one))) return 1;
	return 0;
}

static int reply_schema_do_check(const json_t *schema, const json_t *v,
				 const struct reply_schema_place *p, unsigned depth, struct err *e);

static int check_object(const json_t *schema, const json_t *v, const struct reply_schema_place *p,
			unsigned depth, struct err *e)
{
	const json_t *properties = json_object_get(schema, "properties");
	const char *name;
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, one) if (
		!json_object_get(
			v, json_string_value(
				   one))) return reply_schema_wrong(p, e,
								    "this member is missing: ",
								    json_string_value(one));
	json_object_foreach((json_t *)v, name, one)
	{
		struct reply_schema_place in = { .up = p, .name = name };

		if (!json_object_get(properties, name))
			return reply_schema_wrong(&in, e, "there is no such member", "");
		if (reply_schema_do_check(json_object_get(properties, name), one, &in, depth, e) <
		    0)
			return -1;
	}
	return 0;
}

static int reply_schema_do_check(const json_t *schema, const json_t *v,
				 const struct reply_schema_place *p, unsigned depth, struct err *e)
{
	const json_t *words_of = json_object_get(schema, "enum");
	json_t *one;
	size_t i;

	if (depth > DEPTH)
		return reply_schema_wrong(p, e, "too deep", "");
	if (!fits_type(schema, v))
		return reply_schema_wrong(p, e, "it has another type than the schema says", "");
	if (words_of && json_is_string(v)) {
		json_array_foreach(words_of, i, one) if (json_equal(one, v)) break;
		if (i == json_array_size(words_of))
			return reply_schema_wrong(p, e, "none of the words that the schema has: ",
						  json_string_value(v));
	}
	if (json_is_object(v))
		return check_object(schema, v, p, depth + 1, e);
	json_array_foreach(v, i, one)
	{
		struct reply_schema_place in = { .up = p, .index = i };

		if (reply_schema_do_check(json_object_get(schema, "items"), one, &in, depth + 1,
					  e) < 0)
			return -1;
	}
	return 0;
}

static int reply_schema_check(const json_t *schema, const json_t *value, struct err *e)
{
	struct reply_schema_place top = { 0 };

	return reply_schema_do_check(schema, value, &top, 0, e);
}

json_t *reply_schema_parse(enum reply_schema f, const char *text, size_t n, struct err *e)
{
	json_error_t where;
	json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);

	if (!v) {
		err_set(e, ERR_INVALID, "the answer is not one JSON value, line %d: %.100s",
			where.line, where.text);
		return NULL;
	}
	if (reply_schema_check(reply_schema_json(f), v, e) < 0) {
		json_decref(v);
		return NULL;
	}
	return v;
}
