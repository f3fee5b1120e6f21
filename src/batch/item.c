/* item.c - see item.h. A line is not trusted: unknown fields are rejected, so that a typing
 * error does not become a default; every size is bounded by that of the line. */
#include "fleet/bounds.h"
#include "base/units.h"
#include "batch/item.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "client/box_handle.h"

#include <stdio.h>
#include <string.h>

/* ---- reading fields ---- */

static int item_wrong(struct err *e, const char *name, const char *must)
{
	return err_set(e, ERR_INVALID, "%s: must be %s", name, must);
}

static int is_texts(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *one = json_array_get(v, i);

		if (!json_is_string(one) ||
		    strlen(json_string_value(one)) != json_string_length(one))
			return 0;
	}
	return json_array_size(v) <= ITEM_WORDS;
}

static int read_number(const json_t *v, const char *name, int64_t least, int64_t most,
		       uint64_t *out, struct err *e)
{
	json_int_t n = json_integer_value(v);
	int is_number = json_is_integer(v);
	uint64_t u;

	if (!v || json_is_null(v))
		return 0;
	if (json_is_string(v) && units_has_field(name)) { /* "512M", "30s" */
		if (units_parse_field(name, json_string_value(v), &u, e) < 0)
			return err_in(e, "%s", name);
		n = u > INT64_MAX ? INT64_MAX : (json_int_t)u;
		is_number = 1;
	}
	if (!is_number || n < least || n > most)
		return err_set(e, ERR_INVALID, "%s: must be a number from %lld to %lld", name,
			       (long long)least, (long long)most);
	*out = (uint64_t)n;
	return 0;
}

static int read_limits(const json_t *v, struct wire_limits *l, struct err *e)
{
	static const char *const names[] = {
		"mem", "disk", "files", "cpu_milli", "pids", "cpu_ms"
	};
	uint64_t n[ARRAY_LEN(names)] = { l->mem_bytes, l->disk_bytes, l->disk_files,
					 l->cpu_milli, l->pids,       l->cpu_ms };
	const char *name;
	json_t *one;

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_object(v))
		return item_wrong(e, "limits", "an object");
	json_object_foreach((json_t *)v, name, one)
	{
		unsigned i = 0;

		while (i < ARRAY_LEN(names) && strcmp(names[i], name) != 0)
			i++;
		if (i == ARRAY_LEN(names))
			return err_set(e, ERR_INVALID, "limits.%.40s: there is no such limit",
				       name);
		if (read_number(one, name, 1, i == 3 || i == 4 ? UINT32_MAX - 1 : INT64_MAX, &n[i],
				e) < 0)
			return err_in(e, "limits");
	}
	*l = (struct wire_limits){ n[0], n[1], n[2], n[5], (uint32_t)n[3], (uint32_t)n[4] };
	return 0;
}

/* ---- what is expected ---- */

static int read_code(struct batch_item *x, const json_t *code, struct err *e)
{
	uint64_t n = 0;

	if (json_is_null(code)) { /* given as null: any value */
		x->any_code = 1;
		return 0;
	}
	if (read_number(code, "expected.exit_code", 0, 255, &n, e) < 0)
		return -1;
	x->want_code = (int)n;
	return 0;
}

static int read_expected(struct batch_item *x, const json_t *v, struct err *e)
{
	const json_t *text = v;
	const char *name;
	json_t *one;

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v) && !json_is_object(v))
		return item_wrong(e, "expected", "a text, or {stdout, compare, exit_code}");
	json_object_foreach((json_t *)v, name, one)
	{
		if (!strcmp(name, "exit_code")) {
			if (read_code(x, one, e) < 0)
				return -1;
		} else if (!strcmp(name, "compare")) {
			if (!json_is_string(one) ||
			    output_compare_parse(json_string_value(one), &x->how) < 0)
				return item_wrong(e, "expected.compare",
						  "exact, trimmed or tokens");
		} else if (strcmp(name, "stdout") != 0) {
			return err_set(e, ERR_INVALID, "expected.%.40s: there is no such field",
				       name);
		}
	}
	if (json_is_object(v))
		text = json_object_get(v, "stdout");
	if (!text || json_is_null(text))
		return 0;
	if (!json_is_string(text))
		return item_wrong(e, "expected.stdout", "a text");
	x->want = json_string_value(text);
	x->want_len = json_string_length(text);
	return 0;
}

/* ---- what to run ---- */

static const char **item_words(size_t n)
{
	const char **w = calloc(n + 1, sizeof(*w));

	if (!w)
		abort();
	return w;
}

/* named_ms: the time that the item or the batch names; 0: none. */
static void add_step(struct batch_item *x, const char *what, const char **take_argv,
		     uint32_t named_ms, uint32_t usual_ms)
{
	x->steps[x->nsteps++] =
		(struct batch_item_step){ what, take_argv, named_ms ? named_ms : usual_ms,
					  !named_ms };
}

static int plan_command(struct batch_item *x, const json_t *command, uint32_t run_ms, struct err *e)
{
	if (!json_is_string(command) &&
	    (!json_is_array(command) || !json_array_size(command) || !is_texts(command)))
		return item_wrong(e, "command", "a text for the shell, or a list of texts");
	add_step(x, "run", program_command(command), run_ms, ITEM_RUN_MS);
	return 0;
}

static const char **row_words(const struct batch_item *x, const char *const *row,
			      const json_t *args)
{
	uint64_t memory = x->limits.mem_bytes;
	auto_free const char **more = program_args(args);

	return program_words(&x->program, row, more, memory == WIRE_DEFAULT ? 0 : memory);
}

static int plan_language(struct batch_item *x, const char *name, const struct wire_limits *most,
			 uint32_t run_ms, uint32_t compile_ms, struct err *e)
{
	const json_t *args = json_object_get(x->doc, "args");
	auto_free struct program_file *files = program_files(x->files);
	struct program_spec spec = { .language = name,
				     .entry = json_string_value(json_object_get(x->doc, "entry")),
				     .code = x->code,
				     .code_len = x->code_len,
				     .files = files,
				     .binary_beside = 1 };
	struct program_step steps[PROGRAM_STEPS];
	int n;

	if (spec.entry && strlen(spec.entry) > 200)
		return item_wrong(e, "entry", "at most 200 bytes");
	if (name && strchr(name, '@')) /* no step of an item checks the version */
		return err_set(e, ERR_INVALID,
			       "language: '%.40s' is not one of those in GET /v1/languages", name);
	if (program_plan(&x->program, &spec, e) < 0) {
		e->kind = ERR_INVALID;
		return -1;
	}
	bounds_for_language(&x->program.lang->limits, most, &x->limits);
	n = program_steps(&x->program, 0, steps, e);
	for (int i = 0; i < n; i++) {
		int last = i == n - 1;

		add_step(x, steps[i].what, row_words(x, steps[i].row, last ? args : NULL),
			 last ? run_ms : compile_ms, last ? ITEM_RUN_MS : ITEM_COMPILE_MS);
	}
	return n < 0 ? -1 : 0;
}

static int check_files(const json_t *files, struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	const char *path;
	json_t *v;

	if (files && !json_is_object(files))
		return item_wrong(e, "files", "an object of paths");
	if (json_object_size(files) > ITEM_FILES)
		return err_set(e, ERR_INVALID, "files: more than %d", ITEM_FILES);
	json_object_foreach((json_t *)files, path, v)
	{
		const json_t *coded = json_object_get(v, "base64");
		char full[512];

		if (!*path || strlen(path) > 400 || path[strlen(path) - 1] == '/')
			return err_set(e, ERR_INVALID, "files: '%.60s' is not a path of a file",
				       path);
		if (strncmp(program_path(path, full), BOX_HOME "/", sizeof(BOX_HOME)) != 0 ||
		    strstr(path, ".."))
			return err_set(e, ERR_INVALID, "files: '%.60s' is not below " BOX_HOME,
				       path);
		buf_cut(&bytes, 0);
		if (!json_is_string(v) &&
		    (!json_is_string(coded) || base64_decode(&bytes, json_string_value(coded),
							     json_string_length(coded)) < 0))
			return err_set(e, ERR_INVALID,
				       "files: '%.60s' must be text, or {\"base64\": ...}", path);
	}
	return 0;
}

/* The usual variables, those of the language, then the item's, which override both. */
static int plan_env(struct batch_item *x, const json_t *env, struct err *e)
{
	const struct lang_pair *own = x->program.lang ? x->program.lang->env : NULL;
	unsigned n = 0, at = 0;
	const char *name;
	json_t *v;

	if (env && (!json_is_object(env) || json_object_size(env) > ITEM_WORDS))
		return item_wrong(e, "env", "an object of texts");
	for (unsigned i = 0; box_default_env[i]; i++) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)strcspn(box_default_env[i], "="),
			 box_default_env[i]);
		if (json_object_get(env, key))
			continue;
		buf_add(&x->env_text, box_default_env[i], strlen(box_default_env[i]) + 1);
		n++;
	}
	for (; own && own->key; own++) {
		if (json_object_get(env, own->key))
			continue;
		buf_printf(&x->env_text, "%s=%s", own->key, own->value);
		buf_putc(&x->env_text, 0);
		n++;
	}
	json_object_foreach((json_t *)env, name, v)
	{
		if (!*name || strchr(name, '=') || !json_is_string(v) ||
		    strlen(json_string_value(v)) != json_string_length(v))
			return err_set(e, ERR_INVALID, "env: '%.40s' cannot be a variable", name);
		buf_printf(&x->env_text, "%s=%s", name, json_string_value(v));
		buf_putc(&x->env_text, 0);
		n++;
	}
	x->env = item_words(n);
	for (unsigned i = 0; i < n; at += (unsigned)strlen(x->env_text.p + at) + 1)
		x->env[i++] = x->env_text.p + at;
	return 0;
}

static int plan_times(const json_t *doc, uint64_t *run_ms, uint64_t *compile_ms, struct err *e)
{
	const json_t *all = json_object_get(doc, "timeouts");
	const char *name;
	json_t *v;

	if (all && !json_is_object(all))
		return item_wrong(e, "timeouts", "{run_ms, compile_ms}");
	json_object_foreach((json_t *)all, name, v)
	{
		if (strcmp(name, "run_ms") != 0 && strcmp(name, "compile_ms") != 0)
			return err_set(e, ERR_INVALID, "timeouts.%.40s: there is no such time",
				       name);
	}
	if (read_number(json_object_get(doc, "timeout_ms"), "timeout_ms", 1, 3600000, run_ms, e) <
		    0 ||
	    read_number(json_object_get(all, "run_ms"), "timeouts.run_ms", 1, 3600000, run_ms, e) <
		    0)
		return -1;
	return read_number(json_object_get(all, "compile_ms"), "timeouts.compile_ms", 1, 3600000,
			   compile_ms, e);
}

/* ---- the whole ---- */

static int check_names(const json_t *doc, struct err *e)
{
	static const char *const known[] = {
		"id",     "language",   "command",  "code",  "files",
		"entry",  "args",       "env",      "stdin", "expected",
		"limits", "timeout_ms", "timeouts", "cwd",   "max_output",
	};
	static const char *const texts[] = { "language", "code", "entry", "stdin", "cwd" };
	/* These become C strings: a NUL would silently cut them. */
	static const char *const words[] = { "language", "command", "entry", "cwd" };
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)doc, name, v)
	{
		unsigned i = 0;

		while (i < ARRAY_LEN(known) && strcmp(known[i], name) != 0)
			i++;
		if (i == ARRAY_LEN(known))
			return err_set(e, ERR_INVALID, "%.40s: there is no such field", name);
		for (i = 0; i < ARRAY_LEN(texts); i++)
			if (!strcmp(texts[i], name) && !json_is_string(v))
				return item_wrong(e, name, "a text");
		for (i = 0; i < ARRAY_LEN(words); i++)
			if (!strcmp(words[i], name) && json_is_string(v) &&
			    strlen(json_string_value(v)) != json_string_length(v))
				return err_set(e, ERR_INVALID, "%s: must not have a NUL in it",
					       name);
	}
	return 0;
}

static int item_plan(struct batch_item *x, const struct batch_item_defaults *d, struct err *e)
{
	const json_t *command = json_object_get(x->doc, "command"),
		     *code = json_object_get(x->doc, "code"),
		     *args = json_object_get(x->doc, "args"),
		     *input = json_object_get(x->doc, "stdin");
	const char *language = json_string_value(json_object_get(x->doc, "language"));
	uint64_t run_ms = d->run_ms, compile_ms = 0, most = d->max_output;
	int coded = code || json_object_get(x->doc, "entry");

	if (!language && !command && d->language[0])
		language = d->language;
	if (!command == !coded)
		return err_set(e, ERR_INVALID,
			       "give either command, or code (or entry) with language");
	if (args && (!json_is_array(args) || !is_texts(args)))
		return item_wrong(e, "args", "a list of texts");
	x->files = json_object_get(x->doc, "files");
	x->cwd = json_string_value(json_object_get(x->doc, "cwd"));
	x->code = json_string_value(code);
	x->code_len = json_string_length(code);
	x->input = json_string_value(input);
	x->input_len = json_string_length(input);
	x->limits = d->limits;
	if (check_files(x->files, e) < 0 || plan_times(x->doc, &run_ms, &compile_ms, e) < 0 ||
	    read_limits(json_object_get(x->doc, "limits"), &x->limits, e) < 0 ||
	    bounds_check(&d->most, &x->limits, e) < 0 ||
	    read_expected(x, json_object_get(x->doc, "expected"), e) < 0 ||
	    read_number(json_object_get(x->doc, "max_output"), "max_output", 0, ITEM_OUTPUT_MAX,
			&most, e) < 0)
		return -1;
	x->max_output = (uint32_t)most;
	if ((coded ? plan_language(x, language, &d->most, (uint32_t)run_ms, (uint32_t)compile_ms, e)
		   : plan_command(x, command, (uint32_t)run_ms, e)) < 0)
		return -1;
	return plan_env(x, json_object_get(x->doc, "env"), e);
}

static int take_doc(struct batch_item *x, const struct batch_item_defaults *d, struct err *e)
{
	if (!json_is_object(x->doc))
		return err_set(e, ERR_INVALID, "an item must be an object");
	x->id = json_object_get(x->doc, "id");
	if (x->id && !json_is_string(x->id) && !json_is_integer(x->id)) {
		x->id = NULL;
		return item_wrong(e, "id", "a text or a number");
	}
	if (json_string_length(x->id) > 256) {
		x->id = NULL;
		return item_wrong(e, "id", "at most 256 bytes");
	}
	if (check_names(x->doc, e) < 0)
		return -1;
	return item_plan(x, d, e);
}

int batch_item_make(struct batch_item *x, json_t *doc, const struct batch_item_defaults *d,
		    struct err *e)
{
	*x = (struct batch_item){ .how = JUDGE_TRIMMED, .doc = doc };
	return take_doc(x, d, e);
}

int batch_item_parse(struct batch_item *x, const char *line, size_t n,
		     const struct batch_item_defaults *d, struct err *e)
{
	json_error_t where;

	*x = (struct batch_item){ .how = JUDGE_TRIMMED };
	if (n > ITEM_BYTES)
		return err_set(e, ERR_LIMIT, "an item has at most %d bytes", ITEM_BYTES);
	x->doc = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
	if (!x->doc)
		return err_set(e, ERR_INVALID, "not JSON: %.120s, at byte %d", where.text,
			       where.position);
	return take_doc(x, d, e);
}

void batch_item_fini(struct batch_item *x)
{
	for (unsigned i = 0; i < ITEM_STEPS; i++)
		free(x->steps[i].argv);
	free(x->env);
	buf_fini(&x->env_text);
	program_fini(&x->program);
	json_decref(x->doc);
	*x = (struct batch_item){ 0 };
}

static int item_has_layer(const struct batch_item *x, const char *layer)
{
	for (unsigned i = 0; i < x->nlayers; i++)
		if (!strcmp(x->layers[i], layer))
			return 1;
	return 0;
}

int batch_item_begin_with(struct batch_item *x, const struct batch_files *f, struct err *e)
{
	for (unsigned i = 0; i < f->nlayers; i++) {
		if (item_has_layer(x, f->layers[i]))
			continue;
		if (x->nlayers == WIRE_LAYERS)
			return err_set(e, ERR_LIMIT,
				       "the packages of the program and those of the box are more "
				       "than %d layers; install them in one of both",
				       WIRE_LAYERS);
		memcpy(x->layers[x->nlayers++], f->layers[i], sizeof(f->layers[i]));
	}
	memcpy(x->chain, f->chain, sizeof(x->chain));
	x->nchain = f->nchain;
	return 0;
}
