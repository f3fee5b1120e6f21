/* source_toml.c - atoll.toml and e2b.toml as definitions; see source_internal.h. */
#include "base/suggest.h"
#include "base/units.h"
#include "lang/package.h"
#include "template/expand.h"
#include "template/source_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct source_toml {
	struct source_job *j;
	const char *path;
	json_t *doc, *steps;
};

#define source_error(t, node, ...) source_fail((t)->path, (node)->line, (t)->j->e, __VA_ARGS__)

/* "atoll.toml:3: WHAT" */
static int __attribute__((format(printf, 4, 5)))
source_fail(const char *path, unsigned line, struct err *e, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INVALID, "%.100s:%u: %s", path, line, what);
}

/* ---- values ---- */

static int source_is_text(struct source_toml *t, const struct toml_node *v)
{
	if (v->type != TOML_STRING)
		return source_error(t, v, "%.40s is %s: type a text in quotes",
				    v->key ? v->key : "the value", toml_type_name(v->type));
	if (strlen(v->text) != v->len)
		return source_error(t, v, "%.40s has a NUL", v->key ? v->key : "the value");
	return 0;
}

static int source_set_text(struct source_toml *t, const struct toml_node *v)
{
	if (source_is_text(t, v) < 0)
		return -1;
	json_object_set_new(t->doc, v->key, json_string(v->text));
	return 0;
}

static int source_set_name(struct source_toml *t, const struct toml_node *v)
{
	if (source_is_text(t, v) < 0)
		return -1;
	if (!v->len || v->len > SOURCE_NAME)
		return source_error(t, v, "a name has 1 to %d bytes, not %zu", SOURCE_NAME, v->len);
	strcpy(t->j->out->name, v->text);
	return 0;
}

/* An array of texts, or one text. NULL: the error is set. */
static json_t *source_texts(struct source_toml *t, const struct toml_node *v)
{
	json_t *list = json_array();

	if (v->type == TOML_ARRAY) {
		for (const struct toml_node *c = v->in.first; c; c = c->next) {
			if (source_is_text(t, c) < 0) {
				json_decref(list);
				return NULL;
			}
			json_array_append_new(list, json_string(c->text));
		}
	} else if (source_is_text(t, v) < 0) {
		json_decref(list);
		return NULL;
	} else {
		json_array_append_new(list, json_string(v->text));
	}
	return list;
}

static int source_set_texts(struct source_toml *t, const struct toml_node *v)
{
	json_t *list = source_texts(t, v);

	return list ? json_object_set_new(t->doc, v->key, list) : -1;
}

static int source_set_count(struct source_toml *t, const struct toml_node *v)
{
	json_int_t most = !strcmp(v->key, "port") ? 65535 : 64;

	if (v->type != TOML_INTEGER || v->integer < (most == 64 ? 0 : 1) || v->integer > most)
		return source_error(t, v, "%s must be a number up to %lld", v->key,
				    (long long)most);
	return json_object_set_new(t->doc, v->key, json_integer(v->integer));
}

static int source_set_cpu(struct source_toml *t, const struct toml_node *v)
{
	double n = v->type == TOML_INTEGER ? (double)v->integer
		   : v->type == TOML_FLOAT ? v->real
					   : 0;

	if (!(n >= 0.001 && n <= 1024))
		return source_error(t, v, "%s must be a number of processors: cpu = 2", v->key);
	return json_object_set_new(t->doc, "cpu", json_integer((json_int_t)(n * 1000 + 0.5)));
}

static int source_set_size(struct source_toml *t, const struct toml_node *v)
{
	uint64_t bytes = 0;
	struct err e;

	if (v->type == TOML_INTEGER && v->integer > 0)
		bytes = (uint64_t)v->integer;
	else if (source_is_text(t, v) < 0 || units_parse_size(v->text, &bytes, &e) < 0)
		return source_error(t, v, "%s must be a size: %s = \"4G\"", v->key, v->key);
	return json_object_set_new(t->doc, v->key, json_integer((json_int_t)bytes));
}

/* ---- atoll.toml ---- */

static int source_is_table(struct source_toml *t, const struct toml_node *v, const char *example)
{
	if (v->type == TOML_TABLE)
		return 0;
	return source_error(t, v, "%s is %s: type %s", v->key, toml_type_name(v->type), example);
}

static json_t *source_literal(const char *text)
{
	auto_buf struct buf out = { 0 };

	expand_quote(&out, text);
	return json_string(buf_str(&out));
}

static int source_add_packages(struct source_toml *t, const struct toml_node *v)
{
	static const char *const managers[] = { "pip", "npm", "apt", "gem", "cargo", "go", NULL };

	if (source_is_table(t, v, "packages = { pip = [\"numpy\"] }") < 0)
		return -1;
	for (const struct toml_node *c = v->in.first; c; c = c->next) {
		const char *near = suggest_nearest(c->key, managers);
		json_t *names;

		if (package_manager_named(c->key) < 0)
			return source_error(t, c, "packages has no '%.20s'%s%s", c->key,
					    near ? "; did you mean "
						 : ": pip, npm, apt, gem, cargo, go",
					    near ? near : "");
		names = source_texts(t, c);
		if (!names)
			return -1;
		if (json_array_size(names))
			source_step(t->steps, "PACKAGES", names,
				    json_pack("{s:s}", "manager", c->key), c->line);
		else
			json_decref(names);
	}
	return 0;
}

static int source_add_files(struct source_toml *t, const struct toml_node *v)
{
	if (source_is_table(t, v, "files = { \"app.py\" = \"/srv/app.py\" }") < 0)
		return -1;
	for (const struct toml_node *c = v->in.first; c; c = c->next) {
		if (c->type == TOML_TABLE)
			return source_error(
				t, c, "files: put the name in quotes: \"%.40s....\" = \"/path\"",
				c->key);
		if (source_is_text(t, c) < 0)
			return -1;
		source_step(t->steps, "COPY",
			    json_pack("[o, o]", source_literal(c->key), source_literal(c->text)),
			    NULL, c->line);
	}
	return 0;
}

static int source_add_env(struct source_toml *t, const struct toml_node *v)
{
	json_t *pairs = json_array();
	int failed = source_is_table(t, v, "env = { NAME = \"value\" }");

	for (const struct toml_node *c = failed ? NULL : v->in.first; c && !failed; c = c->next) {
		if (!expand_is_name(c->key)) {
			failed = source_error(t, c, "env: '%.40s' is not a name of a variable",
					      c->key);
		} else if (c->type == TOML_INTEGER || c->type == TOML_BOOLEAN) {
			json_array_append_new(pairs, json_string(c->key));
			json_array_append_new(pairs,
					      c->type == TOML_INTEGER
						      ? json_sprintf("%lld", (long long)c->integer)
						      : json_string(c->truth ? "true" : "false"));
		} else {
			failed = source_is_text(t, c);
			json_array_append_new(pairs, json_string(c->key));
			json_array_append_new(pairs, failed ? json_null() : json_string(c->text));
		}
	}
	if (!failed && json_array_size(pairs))
		source_step(t->steps, "ENV", pairs, NULL, v->line);
	else
		json_decref(pairs);
	return failed;
}

static int source_add_run(struct source_toml *t, const struct toml_node *v)
{
	unsigned line = v->line;
	const struct toml_node *c = v->type == TOML_ARRAY ? v->in.first : NULL;
	json_t *commands = source_texts(t, v), *text;
	size_t i;

	json_array_foreach(commands, i, text)
	{
		source_step(t->steps, "RUN", json_pack("[O]", text), NULL, c ? c->line : line);
		c = c ? c->next : NULL;
	}
	json_decref(commands);
	return commands ? 0 : -1;
}

static int source_add_word(struct source_toml *t, const struct toml_node *v)
{
	if (source_is_text(t, v) < 0)
		return -1;
	source_step(t->steps, !strcmp(v->key, "user") ? "USER" : "WORKDIR",
		    json_pack("[s]", v->text), NULL, v->line);
	return 0;
}

static int source_set_from(struct source_toml *t, const struct toml_node *v)
{
	json_t *stage = json_array_get(json_object_get(t->doc, "stages"), 0);

	if (source_is_text(t, v) < 0)
		return -1;
	if (!v->len)
		return source_error(t, v, "from is empty: type from = \"base\"");
	return json_object_set_new(stage, "from", json_string(v->text));
}

/* In the order in which they take effect: a command sees the packages, the variables and the files. */
static const struct source_key {
	const char *name;
	int (*take)(struct source_toml *t, const struct toml_node *v);
} source_keys[] = {
	{ "name", source_set_name },         { "from", source_set_from },
	{ "packages", source_add_packages }, { "env", source_add_env },
	{ "workdir", source_add_word },      { "files", source_add_files },
	{ "run", source_add_run },           { "user", source_add_word },
	{ "start", source_set_text },        { "ready", source_set_text },
	{ "test", source_set_text },         { "port", source_set_count },
	{ "cpu", source_set_cpu },           { "memory", source_set_size },
	{ "disk", source_set_size },         { "pool", source_set_count },
	{ "lib", source_set_texts },         { "file", source_set_text },
	{ "instructions", source_set_text }, { "description", source_set_text },
	{ "isolation", source_set_text },    { "needs", source_set_texts },
};
enum { SOURCE_KEYS = sizeof(source_keys) / sizeof(source_keys[0]) };

static int source_check_keys(struct source_toml *t, const struct toml_node *table)
{
	const char *names[SOURCE_KEYS + 1] = { 0 };

	for (unsigned i = 0; i < SOURCE_KEYS; i++)
		names[i] = source_keys[i].name;
	for (const struct toml_node *c = table->in.first; c; c = c->next) {
		const char *near = suggest_nearest(c->key, names);
		unsigned i = 0;

		while (i < SOURCE_KEYS && strcmp(names[i], c->key) != 0)
			i++;
		if (i == SOURCE_KEYS)
			return source_error(t, c, "[template] has no '%.40s'%s%s", c->key,
					    near ? "; did you mean " : "", near ? near : "");
	}
	return 0;
}

int source_atoll(struct source_job *j, const char *path, const struct toml_node *table)
{
	struct source_toml t = { .j = j, .path = path };

	t.steps = json_array();
	t.doc = json_pack("{s:[{s:s, s:s, s:o}], s:i}", "stages", "name", "0", "from", "base",
			  "steps", t.steps, "target", 0);
	j->out->definition = t.doc;
	if (source_check_keys(&t, table) < 0)
		return -1;
	for (unsigned i = 0; i < SOURCE_KEYS; i++) {
		const struct toml_node *v = toml_get(table, source_keys[i].name);

		if (v && source_keys[i].take(&t, v) < 0)
			return -1;
	}
	return 0;
}

/* ---- e2b.toml ---- */

/* Its names before version 0.5 of E2B's CLI were id and name. */
static const struct toml_node *source_e2b_get(const struct toml_node *root, const char *name,
					      const char *old)
{
	const struct toml_node *v = toml_get(root, name);

	return v || !old ? v : toml_get(root, old);
}

static void source_e2b_notes(struct source_toml *t, const struct toml_node *root)
{
	static const char *const known[] = { "template_id", "id",         "template_name",
					     "name",        "dockerfile", "start_cmd",
					     "ready_cmd",   "cpu_count",  "memory_mb",
					     "team_id",     NULL };
	json_t *notes = json_object_get(t->doc, "notes");

	if (!notes) {
		notes = json_array();
		json_object_set_new(t->doc, "notes", notes);
	}
	for (const struct toml_node *c = root->in.first; c; c = c->next) {
		const char *const *k = known;

		while (*k && strcmp(*k, c->key) != 0)
			k++;
		if (!*k && json_array_size(notes) < DOCKERFILE_NOTES)
			json_array_append_new(notes, json_sprintf("%s:%u: %.40s has no effect",
								  t->path, c->line, c->key));
	}
	if (!json_array_size(notes))
		json_object_del(t->doc, "notes");
}

static int source_e2b_settings(struct source_toml *t, const struct toml_node *root)
{
	const struct toml_node *name = source_e2b_get(root, "template_name", "name"),
			       *start = toml_get(root, "start_cmd"),
			       *ready = toml_get(root, "ready_cmd"),
			       *cpu = toml_get(root, "cpu_count"),
			       *memory = toml_get(root, "memory_mb");

	if ((name && source_set_name(t, name) < 0) || (start && source_is_text(t, start) < 0) ||
	    (ready && source_is_text(t, ready) < 0) || (cpu && source_set_cpu(t, cpu) < 0))
		return -1;
	if (memory &&
	    (memory->type != TOML_INTEGER || memory->integer < 1 || memory->integer > (1 << 24)))
		return source_error(t, memory,
				    "memory_mb must be a number of MiB: memory_mb = 512");
	if (memory)
		json_object_set_new(t->doc, "memory", json_integer(memory->integer << 20));
	/* E2B starts start_cmd and nothing else. */
	json_object_del(t->doc, "start");
	json_object_del(t->doc, "cmd");
	json_object_del(t->doc, "ready");
	if (start)
		json_object_set_new(t->doc, "start", json_string(start->text));
	if (ready)
		json_object_set_new(t->doc, "ready", json_string(ready->text));
	return 0;
}

int source_e2b(struct source_job *j, const char *path, const struct toml_node *root)
{
	struct source_toml t = { .j = j, .path = path };
	const struct toml_node *file = toml_get(root, "dockerfile");
	char dockerfile[SOURCE_PATH + 1];

	if (file && source_is_text(&t, file) < 0)
		return -1;
	if (source_path("", file ? file->text : "e2b.Dockerfile", dockerfile, j->e) < 0)
		return err_in(j->e, "%.60s:%u", path, file->line);
	if (source_dockerfile(j, dockerfile, "", NULL, NULL, &j->out->definition) < 0)
		return -1;
	t.doc = j->out->definition;
	source_e2b_notes(&t, root);
	return source_e2b_settings(&t, root);
}
