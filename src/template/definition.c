/* definition.c - see definition.h. */
#include "template/definition.h"
#include "fleet/isolation.h"
#include "base/cleanup.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- fields ---- */

enum definition_kind { IS_TEXT, IS_TEXTS, IS_COUNT, IS_FLAG, IS_MAP, IS_ANY };

struct definition_field {
	const char *name;
	enum definition_kind kind;
	json_int_t most; /* of IS_COUNT */
};

static const struct definition_field definition_top[] = {
	{ "stages", IS_ANY, 0 },
	{ "target", IS_COUNT, DEFINITION_STAGES - 1 },
	{ "start", IS_TEXT, 0 },
	{ "cmd", IS_TEXTS,
	  0 }, /* the words of `start`, if they follow the ENTRYPOINT of an image */
	{ "ready", IS_TEXT, 0 },
	{ "test", IS_TEXT, 0 },
	{ "port", IS_COUNT, 65535 },
	{ "cpu", IS_COUNT, 1024 * 1000 },
	{ "memory", IS_COUNT, INT64_MAX },
	{ "disk", IS_COUNT, INT64_MAX },
	{ "pool", IS_COUNT, 64 },
	{ "isolation", IS_TEXT, 0 }, /* minimum tier of its boxes */
	{ "needs", IS_TEXTS, 0 },    /* of a tier: "gpu", "root" ... */
	{ "env", IS_MAP, 0 },
	{ "labels", IS_MAP, 0 },
	{ "lib", IS_TEXTS, 0 },
	{ "file", IS_TEXT, 0 },
	{ "instructions", IS_TEXT, 0 },
	{ "description", IS_TEXT, 0 },
	{ "user", IS_TEXT, 0 },
	{ "workdir", IS_TEXT, 0 },
	{ "missing", IS_TEXTS, 0 },
	{ "notes", IS_TEXTS, 0 }, /* of the source: what has no effect */
	{ "e2b", IS_FLAG, 0 },
	{ NULL, IS_ANY, 0 },
};

static const struct definition_field definition_stage_fields[] = {
	{ "name", IS_TEXT, 0 }, { "from", IS_TEXT, 0 },
	{ "steps", IS_ANY, 0 }, { "line", IS_COUNT, INT32_MAX },
	{ "auth", IS_MAP, 0 },  /* of the registry: username, password */
	{ "base", IS_FLAG, 0 }, /* from an archive: the host's /usr lies below it */
	{ NULL, IS_ANY, 0 },
};

static const struct definition_field definition_step_fields[] = {
	{ "type", IS_TEXT, 0 },          { "args", IS_TEXTS, 0 },
	{ "line", IS_COUNT, INT32_MAX }, { "user", IS_TEXT, 0 },
	{ "shell", IS_TEXTS, 0 },        { "exec", IS_FLAG, 0 },
	{ "secrets", IS_TEXTS, 0 },      { "network", IS_FLAG, 0 },
	{ "files", IS_TEXT, 0 },         { "digest", IS_TEXT, 0 },
	{ "from", IS_TEXT, 0 },          { "owner", IS_TEXT, 0 },
	{ "mode", IS_TEXT, 0 },          { "content", IS_TEXT, 0 },
	{ "manager", IS_TEXT, 0 },       { "force", IS_FLAG, 0 },
	{ "resolve_links", IS_FLAG, 0 }, { NULL, IS_ANY, 0 },
};

static int definition_check_text(const json_t *v, const char *where, struct err *e)
{
	size_t n = json_string_length(v);

	if (!json_is_string(v))
		return err_set(e, ERR_INVALID, "%s: must be a text", where);
	if (strlen(json_string_value(v)) != n)
		return err_set(e, ERR_INVALID, "%s: must not contain NUL", where);
	if (n > DEFINITION_TEXT)
		return err_set(e, ERR_INVALID, "%s: %zu bytes are too many, at most %d", where, n,
			       DEFINITION_TEXT);
	return 0;
}

static int definition_check_texts(const json_t *v, const char *where, struct err *e)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(v) || json_array_size(v) > DEFINITION_ARGS)
		return err_set(e, ERR_INVALID, "%s: must be an array of at most %d texts", where,
			       DEFINITION_ARGS);
	json_array_foreach(v, i, one) if (definition_check_text(one, where, e) < 0) return -1;
	return 0;
}

static int definition_check_map(const json_t *v, const char *where, struct err *e)
{
	const char *name;
	json_t *one;

	if (!json_is_object(v) || json_object_size(v) > 1000)
		return err_set(e, ERR_INVALID, "%s: must be an object of at most 1000 texts",
			       where);
	json_object_foreach((json_t *)v, name,
			    one) if (definition_check_text(one, where, e) < 0) return -1;
	return 0;
}

static int definition_check_value(const struct definition_field *f, const json_t *v,
				  const char *where, struct err *e)
{
	switch (f->kind) {
	case IS_TEXT:
		return definition_check_text(v, where, e);
	case IS_TEXTS:
		return definition_check_texts(v, where, e);
	case IS_MAP:
		return definition_check_map(v, where, e);
	case IS_FLAG:
		return json_is_boolean(v)
			       ? 0
			       : err_set(e, ERR_INVALID, "%s: must be true or false", where);
	case IS_COUNT:
		if (json_is_integer(v) && json_integer_value(v) >= 0 &&
		    json_integer_value(v) <= f->most)
			return 0;
		return err_set(e, ERR_INVALID, "%s: must be a number from 0 to %lld", where,
			       (long long)f->most);
	case IS_ANY:
		break;
	}
	return 0;
}

/* Every field is known and has a value of its kind; null counts as absent. */
static int definition_check_fields(const struct definition_field *known, const json_t *doc,
				   const char *where, struct err *e)
{
	const char *name;
	char place[120];
	json_t *v;

	if (!json_is_object(doc))
		return err_set(e, ERR_INVALID, "%s: must be an object",
			       *where ? where : "definition");
	json_object_foreach((json_t *)doc, name, v)
	{
		const struct definition_field *f = known;

		while (f->name && strcmp(f->name, name) != 0)
			f++;
		snprintf(place, sizeof(place), "%s%s%.40s", where, *where ? "." : "", name);
		if (!f->name)
			return err_set(e, ERR_INVALID, "%s: there is no such field", place);
		if (!json_is_null(v) && definition_check_value(f, v, place, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- steps ---- */

static const char *const definition_names[] = {
	[DEFINITION_RUN] = "RUN",   [DEFINITION_COPY] = "COPY",
	[DEFINITION_ADD] = "ADD",   [DEFINITION_ENV] = "ENV",
	[DEFINITION_ARG] = "ARG",   [DEFINITION_WORKDIR] = "WORKDIR",
	[DEFINITION_USER] = "USER", [DEFINITION_PACKAGES] = "PACKAGES",
};

const char *definition_step_name(enum definition_step type)
{
	return definition_names[type];
}

enum definition_step definition_type(const json_t *step)
{
	const char *name = json_string_value(json_object_get(step, "type"));
	unsigned i = 0;

	while (name && i < DEFINITION_TYPES && strcmp(definition_names[i], name) != 0)
		i++;
	return name ? (enum definition_step)i : DEFINITION_TYPES;
}

static const char *definition_text(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

static int definition_check_files(const json_t *step, const char *where, struct err *e)
{
	const json_t *content = json_object_get(step, "content");
	const char *mode = definition_text(step, "mode");
	const char *files = definition_text(step, "files");

	if (json_array_size(json_object_get(step, "args")) < (content ? 1u : 2u))
		return err_set(e, ERR_INVALID, "%s.args: needs a source and a destination", where);
	if (strlen(mode) > 5 || strspn(mode, "01234567") != strlen(mode))
		return err_set(e, ERR_INVALID, "%s.mode: '%.10s' is not an octal number", where,
			       mode);
	if (*files && (strlen(files) > 64 || strspn(files, "0123456789abcdef") != strlen(files)))
		return err_set(e, ERR_INVALID,
			       "%s.files: must be the hash of an upload, up to 64 of 0-9 and a-f",
			       where);
	if (!content && !*files && !*definition_text(step, "from"))
		return err_set(e, ERR_INVALID,
			       "%s: needs `files` (the hash of an upload), `from` or `content`",
			       where);
	return 0;
}

static int definition_check_args(const json_t *step, const char *where, struct err *e)
{
	enum definition_step type = definition_type(step);
	size_t n = json_array_size(json_object_get(step, "args"));

	switch (type) {
	case DEFINITION_RUN:
		if (n < 1 || (n > 1 && !json_is_true(json_object_get(step, "exec"))))
			return err_set(e, ERR_INVALID,
				       "%s.args: must be one command, or words with \"exec\": true",
				       where);
		return 0;
	case DEFINITION_COPY:
	case DEFINITION_ADD:
		return definition_check_files(step, where, e);
	case DEFINITION_ENV:
	case DEFINITION_ARG:
		if (n < 2 || n % 2)
			return err_set(e, ERR_INVALID, "%s.args: must be names and values in turn",
				       where);
		return 0;
	case DEFINITION_WORKDIR:
	case DEFINITION_USER:
		if (n != 1)
			return err_set(e, ERR_INVALID, "%s.args: must have one text", where);
		return 0;
	case DEFINITION_PACKAGES:
		if (n < 1)
			return err_set(e, ERR_INVALID, "%s.args: needs names of packages", where);
		return 0;
	case DEFINITION_TYPES:
		break;
	}
	return err_set(
		e, ERR_INVALID,
		"%s.type: '%.20s' is none of RUN, COPY, ADD, ENV, ARG, WORKDIR, USER, PACKAGES",
		where, definition_text(step, "type"));
}

/* ---- stages ---- */

int definition_stage(const json_t *definition, const char *from, unsigned limit)
{
	const json_t *stages = json_object_get(definition, "stages");
	char *end;
	unsigned long number = strtoul(from, &end, 10);

	for (unsigned i = 0; i < limit && i < json_array_size(stages); i++) {
		const char *name = definition_text(json_array_get(stages, i), "name");

		if (*name && !strcasecmp(name, from))
			return (int)i;
	}
	return from[0] >= '0' && from[0] <= '9' && !*end && number < limit ? (int)number : -1;
}

static int definition_check_stage(const json_t *stage, unsigned index, unsigned *steps,
				  struct err *e)
{
	const json_t *all = json_object_get(stage, "steps"), *step;
	char where[60];
	size_t i;

	snprintf(where, sizeof(where), "stages[%u]", index);
	if (definition_check_fields(definition_stage_fields, stage, where, e) < 0)
		return -1;
	if (!*definition_text(stage, "from"))
		return err_set(
			e, ERR_INVALID,
			"%s.from: needs base, scratch, a stage, template:NAME, box:ID, upload:HASH or an image",
			where);
	if (all && !json_is_array(all))
		return err_set(e, ERR_INVALID, "%s.steps: must be an array", where);
	*steps += (unsigned)json_array_size(all);
	if (*steps > DEFINITION_STEPS)
		return err_set(e, ERR_INVALID, "stages: more than %d steps", DEFINITION_STEPS);
	json_array_foreach(all, i, step)
	{
		snprintf(where, sizeof(where), "stages[%u].steps[%zu]", index, i);
		if (definition_check_fields(definition_step_fields, step, where, e) < 0 ||
		    definition_check_args(step, where, e) < 0)
			return -1;
	}
	return 0;
}

int definition_check(const json_t *definition, struct err *e)
{
	const json_t *stages, *stage;
	unsigned steps = 0;
	size_t i;

	if (definition_check_fields(definition_top, definition, "", e) < 0 ||
	    isolation_check_template(json_object_get(definition, "isolation"),
				     json_object_get(definition, "needs"), e) < 0)
		return -1;
	stages = json_object_get(definition, "stages");
	if (!json_is_array(stages) || !json_array_size(stages) ||
	    json_array_size(stages) > DEFINITION_STAGES)
		return err_set(e, ERR_INVALID, "stages: must be an array of 1 to %d stages",
			       DEFINITION_STAGES);
	json_array_foreach(stages, i, stage) if (definition_check_stage(stage, (unsigned)i, &steps,
									e) < 0) return -1;
	if (definition_target(definition) >= json_array_size(stages))
		return err_set(e, ERR_INVALID, "target: there is no stage %u",
			       definition_target(definition));
	auto_free char *text = json_dumps(definition, JSON_COMPACT);

	if (!text || strlen(text) > DEFINITION_BYTES)
		return err_set(e, ERR_INVALID, "definition: larger than %d bytes",
			       DEFINITION_BYTES);
	return 0;
}

unsigned definition_target(const json_t *definition)
{
	const json_t *target = json_object_get(definition, "target");
	size_t n = json_array_size(json_object_get(definition, "stages"));

	return json_is_integer(target) ? (unsigned)json_integer_value(target)
				       : (unsigned)(n ? n - 1 : 0);
}

/* Marks the stages that one stage needs. They are earlier ones, so one pass downwards is enough. */
static void definition_mark(const json_t *definition, unsigned stage, char needed[])
{
	const json_t *doc = json_array_get(json_object_get(definition, "stages"), stage), *step;
	int from = definition_stage(definition, definition_text(doc, "from"), stage);
	size_t i;

	if (from >= 0)
		needed[from] = 1;
	json_array_foreach(json_object_get(doc, "steps"), i, step)
	{
		from = definition_stage(definition, definition_text(step, "from"), stage);
		if (from >= 0)
			needed[from] = 1;
	}
}

int definition_needs(const json_t *definition, unsigned stage)
{
	char needed[DEFINITION_STAGES] = { 0 };
	unsigned target = definition_target(definition);

	needed[target] = 1;
	for (unsigned i = target + 1; i-- > 0;)
		if (needed[i])
			definition_mark(definition, i, needed);
	return stage < DEFINITION_STAGES && needed[stage];
}

void definition_step_text(const json_t *step, char *out, unsigned size)
{
	const json_t *one;
	size_t i, at;

	snprintf(out, size, "%s", definition_text(step, "type"));
	json_array_foreach(json_object_get(step, "args"), i, one)
	{
		at = strlen(out);
		snprintf(out + at, size - at, " %s", json_string_value(one));
	}
	for (at = 0; out[at]; at++)
		if ((unsigned char)out[at] < ' ')
			out[at] = ' ';
}
