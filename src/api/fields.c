/* fields.c - see fields.h. */
#include "api/fields.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the position after the string that begins at p; the parser checks its escapes. */
static const char *skip_string(const char *p, const char *end)
{
	while (p < end) {
		const char *quote = memchr(p, '"', (size_t)(end - p));
		size_t slashes = 0;

		if (!quote)
			return end;
		while (quote - slashes > p && quote[-1 - (ptrdiff_t)slashes] == '\\')
			slashes++;
		p = quote + 1;
		if (slashes % 2 == 0)
			break;
	}
	return p;
}

static int fields_scan(const char *text, size_t n, struct err *e)
{
	const char *end = text + n;
	unsigned members = 0, depth = 0;

	for (const char *p = text; p < end;) {
		char c = *p++;

		if (c == '"') {
			p = skip_string(p, end);
		} else if (c == ',') {
			members++;
		} else if (c == '{' || c == '[') {
			members++;
			depth++;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
		if (members > FIELDS_MEMBERS || depth > FIELDS_DEPTH) {
			err_set(e, ERR_LIMIT,
				members > FIELDS_MEMBERS
					? "the body has more than %d members; send many files as an archive"
					: "the body is nested deeper than %d levels",
				members > FIELDS_MEMBERS ? FIELDS_MEMBERS : FIELDS_DEPTH);
			e->sys = E2BIG;
			return -1;
		}
	}
	return 0;
}

uint64_t fields_most(const struct field *table, uint64_t most)
{
	static const char *const texts[] = { "files", "code",     "content",
					     "items", "messages", "documents" };

	if (table && table->name && !strcmp(table->name, FIELDS_OTHERS))
		return most; /* the table accepts any field: each tool validates its fields with a
			      * table of its own */
	for (const struct field *f = table; f && f->name; f++) {
		if (f->type == FIELD_OBJECT && fields_most(f->fields, most) == most)
			return most;
		if ((f->type == FIELD_TEXT || f->type == FIELD_COMMAND) &&
		    (f->most == 0 || f->most > FIELDS_SMALL / 2))
			return most;
		for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
			if ((f->type == FIELD_ANY || f->type == FIELD_MAP) &&
			    !strcmp(f->name, texts[i]))
				return most;
	}
	return most < FIELDS_SMALL ? most : FIELDS_SMALL;
}

json_t *fields_parse(const char *text, size_t n, struct err *e)
{
	json_error_t why;
	json_t *doc;

	if (fields_scan(text, n, e) < 0)
		return NULL;
	doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	if (!doc) {
		err_set(e, ERR_INVALID, "the body is not JSON: line %d, column %d: %.140s",
			why.line, why.column, why.text);
		return NULL;
	}
	if (!json_is_object(doc)) {
		err_set(e, ERR_INVALID, "the body must be a JSON object");
		json_decref(doc);
		return NULL;
	}
	return doc;
}

int fields_is_name(const char *s, size_t most)
{
	size_t n = strlen(s);

	if (n == 0 || n > most || !isalnum((unsigned char)s[0]))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
			return 0;
	return 1;
}

static int fields_bad(struct err *e, const char *path, const char *name, const char *want)
{
	return err_set(e, ERR_INVALID, "%s%s%.60s: %.160s", path, *path ? "." : "", name, want);
}

static int check_text(const json_t *v, const struct field *f, const char *path, struct err *e)
{
	char want[80];

	if (!json_is_string(v))
		return fields_bad(e, path, f->name, "must be a string");
	if (strlen(json_string_value(v)) != json_string_length(v))
		return fields_bad(e, path, f->name, "must not hold a NUL character");
	if (f->most && json_string_length(v) > (size_t)f->most) {
		snprintf(want, sizeof(want), "%zu bytes are too many, at most %lld",
			 json_string_length(v), (long long)f->most);
		return fields_bad(e, path, f->name, want);
	}
	if (f->type == FIELD_NAME && !fields_is_name(json_string_value(v), (size_t)f->most))
		return fields_bad(
			e, path, f->name,
			"must be a name: letters, digits, '.', '_', '-', beginning with a "
			"letter or digit");
	return 0;
}

/* "512M", "30s": as on the command line. */
static int read_unit(const json_t *v, const struct field *f, long long *out, struct err *e)
{
	uint64_t n;

	if (strlen(json_string_value(v)) != json_string_length(v))
		return err_set(e, ERR_INVALID, "must not hold a NUL character");
	if (units_parse_field(f->name, json_string_value(v), &n, e) < 0)
		return -1;
	*out = n > INT64_MAX ? INT64_MAX : (long long)n;
	return 0;
}

static int check_int(const json_t *v, const struct field *f, const char *path, struct err *e)
{
	char want[160];
	long long n = json_integer_value(v);
	struct err unit;

	if (json_is_string(v) && units_has_field(f->name)) {
		if (read_unit(v, f, &n, &unit) < 0) {
			snprintf(want, sizeof(want), "%.150s", unit.msg);
			return fields_bad(e, path, f->name, want);
		}
	} else if (!json_is_integer(v)) {
		return fields_bad(e, path, f->name,
				  !units_has_field(f->name) ? "must be an integer"
				  : strstr(f->name, "_ms")
					  ? "must be an integer, or a time like \"30s\""
					  : "must be an integer, or a size like \"512M\"");
	}
	if (n < f->least || n > f->most) {
		snprintf(want, sizeof(want), "%lld is out of range, from %lld to %lld", n,
			 (long long)f->least, (long long)f->most);
		return fields_bad(e, path, f->name, want);
	}
	return 0;
}

static int plain_string(const json_t *v)
{
	return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

static int check_texts(const json_t *v, const struct field *f, const char *path, struct err *e)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(v))
		return fields_bad(e, path, f->name, "must be an array of strings");
	json_array_foreach(v, i, one) if (!plain_string(one)) return fields_bad(
		e, path, f->name, "must hold strings without NUL only");
	if (f->most && json_array_size(v) > (size_t)f->most)
		return fields_bad(e, path, f->name, "holds too many");
	return 0;
}

static int check_map(const json_t *v, const struct field *f, const char *path, struct err *e)
{
	const char *key;
	json_t *one;

	if (!json_is_object(v))
		return fields_bad(e, path, f->name, "must be an object of strings");
	json_object_foreach((json_t *)v, key, one) if (!plain_string(one)) return fields_bad(
		e, path, f->name, "must hold strings without NUL only");
	if (f->most && json_object_size(v) > (size_t)f->most)
		return fields_bad(e, path, f->name, "holds too many");
	return 0;
}

static int fields_check_choice(const json_t *v, const struct field *f, const char *path,
			       struct err *e)
{
	char want[160], seen[32];
	int n = 0;

	if (!json_is_string(v))
		return fields_bad(e, path, f->name, "must be a string");
	for (const struct field *one = f->fields; one->name; one++)
		if (!strcmp(one->name, json_string_value(v)))
			return 0;
	snprintf(seen, sizeof(seen), "%.30s", json_string_value(v));
	for (char *c = seen; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
	n = snprintf(want, sizeof(want), "'%s' is not one of", seen);
	for (const struct field *one = f->fields; one->name && n < (int)sizeof(want); one++) {
		if (one->help)
			continue; /* FIELD_OLD_VALUE */
		n += snprintf(want + n, sizeof(want) - (size_t)n, "%s %s",
			      one == f->fields ? "" : ",", one->name);
	}
	return fields_bad(e, path, f->name, want);
}

static int check_value(const json_t *v, const struct field *f, const char *path, struct err *e)
{
	char below[96];

	switch (f->type) {
	case FIELD_TEXT:
	case FIELD_NAME:
		return check_text(v, f, path, e);
	case FIELD_INT:
		return check_int(v, f, path, e);
	case FIELD_BOOL:
		return json_is_boolean(v) ? 0
					  : fields_bad(e, path, f->name, "must be true or false");
	case FIELD_TEXTS:
		return check_texts(v, f, path, e);
	case FIELD_MAP:
		return check_map(v, f, path, e);
	case FIELD_COMMAND:
		if (json_is_string(v))
			return check_text(v, f, path, e);
		if (json_is_array(v) && json_array_size(v) == 0)
			return fields_bad(e, path, f->name, "must not be empty");
		return check_texts(v, f, path, e);
	case FIELD_CHOICE:
		return fields_check_choice(v, f, path, e);
	case FIELD_OBJECT:
		if (!json_is_object(v))
			return fields_bad(e, path, f->name, "must be an object");
		snprintf(below, sizeof(below), "%.40s%s%.50s", path, *path ? "." : "", f->name);
		return fields_check(v, f->fields, below, e);
	default:
		return 0;
	}
}

static const struct field *fields_find(const struct field *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

int fields_check(const json_t *doc, const struct field *table, const char *path, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)doc, key, v)
	{
		const struct field *f = fields_find(table, key);

		if (!f && fields_find(table, FIELDS_OTHERS))
			continue;
		if (!f)
			return fields_bad(e, path, key, "is not a field of this request");
		/* null is the same as a missing field: some clients send it for fields that they
		 * do not set. */
		if (!json_is_null(v) && check_value(v, f, path, e) < 0)
			return -1;
	}
	for (; table->name; table++)
		if (table->required &&
		    (!(v = json_object_get(doc, table->name)) || json_is_null(v)))
			return fields_bad(e, path, table->name, "is missing");
	return 0;
}

/* A client that sends a plain map, {"A": "1"}, means the only field of type map. */
const char *fields_hint(const json_t *doc, const struct field *table)
{
	const char *key;
	json_t *v;

	if (table->type != FIELD_MAP || table[1].name || strcmp(table->name, "env") != 0 ||
	    !json_object_size(doc))
		return "the fields are in /openapi.json";
	json_object_foreach((json_t *)doc, key,
			    v) if (!json_is_string(v)) return "the fields are in /openapi.json";
	return "variables are in the field env: {\"env\": {\"NAME\": \"value\"}}";
}

void fields_prune(json_t *doc, const struct field *table)
{
	for (; table->name; table++) {
		json_t *v = json_object_get(doc, table->name);

		struct err ignored;
		long long n;

		if (json_is_null(v))
			json_object_del(doc, table->name);
		else if (table->type == FIELD_INT && json_is_string(v) &&
			 units_has_field(table->name) && read_unit(v, table, &n, &ignored) == 0)
			json_object_set_new(doc, table->name, json_integer(n));
		else if (table->type == FIELD_OBJECT)
			fields_prune(v, table->fields);
	}
}

int fields_check_query(struct http_req *r, const struct field *table, struct err *e)
{
	const char *names[32];
	unsigned n = 0;

	for (const struct field *f = table; f && f->name && n < 31; f++)
		names[n++] = f->name;
	names[n] = NULL;
	if (http_query_check(r, table && fields_find(table, FIELDS_OTHERS) ? NULL : names, e) < 0)
		return -1;
	for (const struct field *f = table; f && f->name; f++) {
		const char *v = http_query(r, f->name);
		char *end;
		long long number;

		if (!v && f->required)
			return err_set(e, ERR_INVALID, "?%s= is missing", f->name);
		if (!v)
			continue;
		if (f->type == FIELD_INT) {
			errno = 0;
			number = strtoll(v, &end, 10);
			if (!*v || *end || errno || isspace((unsigned char)*v) ||
			    number < f->least || number > f->most)
				return err_set(e, ERR_INVALID,
					       "?%s=%.40s: must be an integer from %lld to %lld",
					       f->name, v, (long long)f->least, (long long)f->most);
		} else if (f->type == FIELD_BOOL) {
			if (strcmp(v, "1") && strcmp(v, "0") && strcmp(v, "true") &&
			    strcmp(v, "false"))
				return err_set(e, ERR_INVALID, "?%s=%.40s: must be 1 or 0", f->name,
					       v);
		} else if (f->type == FIELD_CHOICE) {
			json_t *value = json_string(v);
			int rc = value ? fields_check_choice(value, f, "", e)
				       : fields_bad(e, "", f->name, "must be UTF-8");

			json_decref(value);
			if (rc < 0)
				return rc;
		} else if (f->most && strlen(v) > (size_t)f->most) {
			return err_set(e, ERR_INVALID, "?%s= has %zu bytes, at most %lld", f->name,
				       strlen(v), (long long)f->most);
		}
	}
	return 0;
}

static json_t *schema_of(const struct field *f)
{
	json_t *s;

	switch (f->type) {
	case FIELD_INT:
		s = json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)f->least,
			      "maximum", (json_int_t)f->most);
		break;
	case FIELD_BOOL:
		s = json_pack("{s:s}", "type", "boolean");
		break;
	case FIELD_TEXTS:
		s = json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
		break;
	case FIELD_MAP:
		s = json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
			      "string");
		break;
	case FIELD_COMMAND:
		s = json_pack("{s:[{s:s}, {s:s, s:{s:s}}]}", "oneOf", "type", "string", "type",
			      "array", "items", "type", "string");
		break;
	case FIELD_OBJECT:
		s = fields_schema(f->fields);
		break;
	case FIELD_CHOICE:
		s = json_pack("{s:s, s:[]}", "type", "string", "enum");
		for (const struct field *one = f->fields; one->name; one++)
			if (!one->help) /* not a FIELD_OLD_VALUE */
				json_array_append_new(json_object_get(s, "enum"),
						      json_string(one->name));
		break;
	case FIELD_ANY:
		s = json_object();
		break;
	default:
		s = json_pack("{s:s}", "type", "string");
		if (f->most)
			json_object_set_new(s, "maxLength", json_integer(f->most));
	}
	json_object_set_new(s, "description", json_string(f->help ? f->help : ""));
	return s;
}

json_t *fields_schema(const struct field *table)
{
	json_t *properties = json_object(), *required = json_array();
	int others = 0;

	for (; table && table->name; table++) {
		if (!strcmp(table->name, FIELDS_OTHERS)) {
			others = 1;
			continue;
		}
		json_object_set_new(properties, table->name, schema_of(table));
		if (table->required)
			json_array_append_new(required, json_string(table->name));
	}
	if (json_array_size(required) == 0) {
		json_decref(required);
		return json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
				 "additionalProperties", others);
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
			 "required", required, "additionalProperties", others);
}
