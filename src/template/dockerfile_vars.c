/* dockerfile_vars.c - the instructions ENV, ARG, LABEL and MAINTAINER, and the values that a file sets; see dockerfile.h. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "template/dockerfile_internal.h"

#include <stdio.h>
#include <string.h>

enum { DOCKERFILE_EXPANDED = 4 << 20 }; /* bytes of values: $A$A in each line would double them */

static const char *dockerfile_platform_arg(const struct dockerfile *d, const char *name,
					   char out[64])
{
	const char *what = !strncmp(name, "TARGET", 6)  ? name + 6
			   : !strncmp(name, "BUILD", 5) ? name + 5
							: "";

	if (!strcmp(what, "PLATFORM"))
		snprintf(out, 64, "linux/%s", d->arch);
	else if (!strcmp(what, "OS"))
		snprintf(out, 64, "linux");
	else if (!strcmp(what, "ARCH"))
		snprintf(out, 64, "%s", d->arch);
	else if (!strcmp(what, "VARIANT"))
		out[0] = 0;
	else
		return NULL;
	return out;
}

const char *dockerfile_global(void *ctx, const char *name)
{
	struct dockerfile_scope *s = ctx;
	const char *value = json_string_value(json_object_get(s->d->globals, name));

	return value ? value : dockerfile_platform_arg(s->d, name, s->platform);
}

const char *dockerfile_known(void *ctx, const char *name)
{
	struct dockerfile_stage *s = ctx;
	const char *value = json_string_value(json_object_get(s->env, name));

	return value ? value : json_string_value(json_object_get(s->arg, name));
}

json_t *dockerfile_expanded(struct dockerfile *d, const char *text, expand_lookup *look, void *ctx)
{
	auto_buf struct buf out = { 0 };
	struct err e;

	if (expand_text(&out, text, look, ctx, &e) < 0) {
		dockerfile_error(d, "%s", e.msg);
		return NULL;
	}
	d->expanded += out.len;
	if (d->expanded > DOCKERFILE_EXPANDED) {
		dockerfile_error(d, "the values of all variables are longer than %d MiB",
				 DOCKERFILE_EXPANDED >> 20);
		return NULL;
	}
	return json_string(buf_str(&out));
}

/* Appends the name and the text of one NAME=VALUE of ENV or LABEL. */
static int dockerfile_pair(struct dockerfile *d, json_t *out, const char *name, size_t n,
			   const char *value)
{
	auto_free char *raw = strndup(name, n);
	json_t *key = raw ? dockerfile_text_of(d, raw) : NULL,
	       *text = key ? dockerfile_text_of(d, value) : NULL;

	if (text && !*json_string_value(key)) {
		json_decref(key);
		json_decref(text);
		return dockerfile_error(d, "a name is empty: type %s NAME=VALUE",
					buf_str(&d->in.name));
	}
	json_array_append_new(out, key);
	json_array_append_new(out, text);
	return text ? 0 : -1;
}

/* NAME=VALUE ..., or the old form: NAME and the rest of the line. */
static int dockerfile_pairs(struct dockerfile *d, json_t *out)
{
	auto_buf struct buf word = { 0 };
	const char *p = buf_str(&d->in.rest), *eq;

	if (!dockerfile_reader_word(&d->r, &p, &word))
		return dockerfile_error(d, "type %s NAME=VALUE", buf_str(&d->in.name));
	if (!strchr(buf_str(&word), '=')) {
		p += strspn(p, " \t");
		if (!*p)
			return dockerfile_error(d, "%.40s has no value: type %s %.40s=VALUE",
						buf_str(&word), buf_str(&d->in.name),
						buf_str(&word));
		return dockerfile_pair(d, out, buf_str(&word), word.len, p);
	}
	do {
		eq = strchr(buf_str(&word), '=');
		if (!eq)
			return dockerfile_error(
				d, "'%.40s' has no =: quote a value with blanks, NAME=\"a b\"",
				buf_str(&word));
		if (dockerfile_pair(d, out, buf_str(&word), (size_t)(eq - buf_str(&word)), eq + 1) <
		    0)
			return -1;
	} while (dockerfile_reader_word(&d->r, &p, &word));
	return 0;
}

/* All values of a line are computed with the environment before it. */
static int dockerfile_track(struct dockerfile *d, json_t *place, const json_t *pairs)
{
	json_t *values = json_object();

	for (size_t i = 0; i + 1 < json_array_size(pairs); i += 2) {
		json_t *value =
			dockerfile_expanded(d, json_string_value(json_array_get(pairs, i + 1)),
					    dockerfile_known, dockerfile_stage_now(d));

		if (!value) {
			json_decref(values);
			return -1;
		}
		json_object_set_new(values, json_string_value(json_array_get(pairs, i)), value);
	}
	json_object_update(place, values);
	json_decref(values);
	return 0;
}

static int dockerfile_env_names(struct dockerfile *d, const json_t *pairs)
{
	for (size_t i = 0; i < json_array_size(pairs); i += 2) {
		const char *name = json_string_value(json_array_get(pairs, i));

		if (!expand_is_name(name))
			return dockerfile_error(d, "'%.40s' is not a name of a variable", name);
	}
	return 0;
}

int dockerfile_env(struct dockerfile *d)
{
	json_t *pairs = json_array();

	if (dockerfile_pairs(d, pairs) < 0 || dockerfile_env_names(d, pairs) < 0 ||
	    dockerfile_track(d, dockerfile_stage_now(d)->env, pairs) < 0) {
		json_decref(pairs);
		return -1;
	}
	return dockerfile_add_step(d, "ENV", pairs, NULL);
}

int dockerfile_label(struct dockerfile *d)
{
	json_t *pairs = json_array();
	int failed = dockerfile_pairs(d, pairs) < 0 ||
		     dockerfile_track(d, dockerfile_stage_now(d)->labels, pairs) < 0;

	json_decref(pairs);
	return failed ? -1 : 0;
}

int dockerfile_maintainer(struct dockerfile *d)
{
	json_object_set_new(dockerfile_stage_now(d)->labels, "maintainer",
			    json_string(buf_str(&d->in.rest)));
	return 0;
}

json_t *dockerfile_quoted(const char *literal)
{
	auto_buf struct buf text = { 0 };

	expand_quote(&text, literal);
	return json_string(buf_str(&text));
}

/* The value of an ARG as text of a definition; null: it has none. NULL: the error is set. */
static json_t *dockerfile_arg_text(struct dockerfile *d, const char *name, const char *otherwise)
{
	const char *given = json_string_value(json_object_get(d->o->args, name));
	struct dockerfile_scope scope = { .d = d };

	json_object_set_new(d->consumed, name, json_true());
	if (given)
		return dockerfile_quoted(given);
	if (otherwise)
		return dockerfile_text_of(d, otherwise);
	given = dockerfile_global(&scope, name);
	return given ? dockerfile_quoted(given) : json_null();
}

static int dockerfile_arg_global(struct dockerfile *d, const char *name, json_t *take_text)
{
	struct dockerfile_scope scope = { .d = d };
	json_t *value = take_text;

	if (json_is_string(take_text)) {
		value = dockerfile_expanded(d, json_string_value(take_text), dockerfile_global,
					    &scope);
		json_decref(take_text);
		if (!value)
			return -1;
		json_object_set(d->globals, name, value);
	}
	json_decref(value);
	return 0;
}

static int dockerfile_arg_one(struct dockerfile *d, char *word, json_t *pairs)
{
	char *eq = strchr(word, '=');
	json_t *text;

	if (eq)
		*eq++ = 0;
	if (!expand_is_name(word))
		return dockerfile_error(d, "'%.40s' is not a name: type ARG NAME or ARG NAME=VALUE",
					word);
	text = dockerfile_arg_text(d, word, eq);
	if (!text)
		return -1;
	if (!d->nstages)
		return dockerfile_arg_global(d, word, text);
	if (json_is_string(text)) {
		json_array_append_new(pairs, json_string(word));
		json_array_append(pairs, text);
	}
	json_decref(text);
	return 0;
}

int dockerfile_arg(struct dockerfile *d)
{
	auto_buf struct buf word = { 0 };
	const char *p = buf_str(&d->in.rest);
	json_t *pairs = json_array();
	int failed = 0;

	if (!*p)
		failed = dockerfile_error(d, "type ARG NAME or ARG NAME=VALUE");
	while (!failed && dockerfile_reader_word(&d->r, &p, &word))
		failed = dockerfile_arg_one(d, word.p, pairs);
	if (!failed && json_array_size(pairs)) {
		failed = dockerfile_track(d, dockerfile_stage_now(d)->arg, pairs);
		if (!failed)
			return dockerfile_add_step(d, "ARG", pairs, NULL);
	}
	json_decref(pairs);
	return failed;
}
