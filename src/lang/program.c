/* program.c - see program.h. */
#include "lang/program.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "client/box_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRY_MAX = 240 };

const char *program_path(const char *path, char out[512])
{
	if (*path == '/')
		return path;
	snprintf(out, 512, "%s/%s", BOX_HOME, path);
	return out;
}

/* ---- language ---- */

static const struct program_file *program_find_file(const struct program_spec *s, const char *path)
{
	for (const struct program_file *f = s->files; f && f->path; f++)
		if (!strcmp(f->path, path))
			return f;
	return NULL;
}

static int program_find_language(struct program *p, const struct program_spec *s, struct err *e)
{
	const struct program_file *file = s->entry ? program_find_file(s, s->entry) : NULL;
	char name[LANG_NAME + 1];

	p->pin = s->language ? lang_pin(s->language, name) : "";
	if (s->language)
		p->lang = lang_named(name);
	else if (s->entry)
		p->lang = lang_of(s->entry, file && file->text ? file->text : "",
				  file ? file->len : 0);
	if (!p->lang)
		return err_set(e, ERR_INVALID,
			       "language: '%.40s' is not one of those in GET /v1/languages",
			       s->language ? name
			       : s->entry  ? s->entry
					   : "");
	if (!lang_present(p->lang) && !s->layered) {
		auto_buf struct buf how = { 0 };

		lang_install(p->lang, &how);
		return err_set(e, ERR_NOT_FOUND, "language: %s is not installed on this host: %s",
			       p->lang->name, buf_str(&how));
	}
	if (p->pin[strspn(p->pin, "0123456789.")] || strlen(p->pin) > LANG_VERSION)
		return err_set(e, ERR_INVALID, "language: '%.40s' is not a version", p->pin);
	return 0;
}

static int program_find_compiler(struct program *p, const struct program_spec *s, struct err *e)
{
	p->compile = lang_compiler(p->lang, s->compiler);
	if (!p->compile)
		return err_set(e, ERR_INVALID, "compiler: %s has no '%.40s'", p->lang->name,
			       s->compiler);
	if (s->compiler && !s->layered && access(p->compile[0], X_OK) < 0)
		return err_set(e, ERR_NOT_FOUND, "compiler: %s is not installed on this host",
			       s->compiler);
	return 0;
}

/* ---- files ---- */

/* The only file of the language, or the one with the default name; NULL: ambiguous. */
static const char *program_likely_entry(const struct lang *l, const struct program_file *files)
{
	const char *only = NULL;
	unsigned n = 0;

	for (const struct program_file *f = files; f && f->path; f++) {
		if (!strcmp(f->path, l->file))
			return f->path;
		if (lang_has_ending(l, f->path)) {
			only = f->path;
			n++;
		}
	}
	return n == 1 ? only : NULL;
}

static void program_append_source(struct program *p, const char *path)
{
	if ((p->nsources & (p->nsources + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
		p->sources = realloc(p->sources, (2 * (p->nsources + 1) + 1) * sizeof(*p->sources));
		if (!p->sources)
			abort();
	}
	p->sources[p->nsources++] = buf_text("%s", path);
	p->sources[p->nsources] = NULL;
}

void program_add_source(struct program *p, const char *path)
{
	auto_free char *full =
		*path == '/' ? buf_text("%s", path) : buf_text("%s/%s", BOX_HOME, path);

	if (lang_has_ending(p->lang, path) && strcmp(full, p->source) != 0)
		program_append_source(p, full);
}

void program_place(struct program *p, const char *entry, const char *text, size_t len,
		   int binary_beside)
{
	const char *name, *dot;

	p->source = *entry == '/' ? buf_text("%s", entry) : buf_text("%s/%s", BOX_HOME, entry);
	name = strrchr(p->source, '/') + 1;
	dot = strrchr(name, '.');
	p->binary = binary_beside
			    ? buf_text("%s.out", p->source)
			    : buf_text("/tmp/%.*s.out",
				       dot && dot != name ? (int)(dot - name) : (int)strlen(name),
				       name);
	program_append_source(p, p->source);
	if (!p->lang)
		return;
	lang_unit_of(p->lang, p->source, text ? text : "", text ? len : 0, p->unit);
	p->warm = lang_warm(p->lang, text ? text : "", text ? len : 0);
}

int program_plan(struct program *p, const struct program_spec *s, struct err *e)
{
	const char *entry = s->entry, *text = s->code;
	const struct program_file *file;
	size_t len = s->code_len;
	char name[LANG_UNIT];

	*p = (struct program){ .pin = "" };
	if (program_find_language(p, s, e) < 0 || program_find_compiler(p, s, e) < 0)
		return -1;
	if (!entry && !s->code)
		entry = program_likely_entry(p->lang, s->files);
	if (!entry && !s->code && s->any_entry)
		entry = p->lang->file;
	file = entry && !s->code ? program_find_file(s, entry) : NULL;
	if (file) {
		text = file->text;
		len = file->len;
	}
	if (!entry && s->code) {
		lang_file_of(p->lang, s->code, s->code_len, name);
		entry = name;
	}
	if (!entry)
		return err_set(e, ERR_INVALID, "entry: which of the files is to be run?");
	if (strlen(entry) + (*entry == '/' ? 0 : strlen(BOX_HOME) + 1) >= ENTRY_MAX)
		return err_set(e, ERR_INVALID, "entry: is too long");
	program_place(p, entry, text, len, s->binary_beside);
	for (const struct program_file *f = s->files; f && f->path; f++)
		program_add_source(p, f->path);
	return 0;
}

void program_fini(struct program *p)
{
	for (unsigned i = 0; i < p->nsources; i++)
		free((char *)p->sources[i]);
	free(p->sources);
	free(p->source);
	free(p->binary);
	*p = (struct program){ .pin = "" };
}

/* ---- commands ---- */

int program_steps(const struct program *p, int test, struct program_step out[PROGRAM_STEPS],
		  struct err *e)
{
	int n = 0;

	if (*p->pin)
		out[n++] = (struct program_step){ PROGRAM_VERSION, p->lang->version };
	if (test) {
		if (!p->lang->test[0])
			return err_set(e, ERR_INVALID, "test: %s has no command for tests",
				       p->lang->name);
		out[n++] = (struct program_step){ "test", p->lang->test };
		return n;
	}
	if (p->compile[0])
		out[n++] = (struct program_step){ "compile", p->compile };
	out[n++] = (struct program_step){ "run", p->lang->run };
	return n;
}

const char **program_words(const struct program *p, const char *const *row, const char *const *args,
			   uint64_t memory)
{
	struct lang_job job = { .source = p->source,
				.program = p->binary,
				.sources = p->sources,
				.unit = p->unit,
				.memory = memory };

	return lang_words(row, &job, args);
}

/* ---- from JSON ---- */

struct program_file *program_files(const json_t *files)
{
	struct program_file *all = calloc(json_object_size(files) + 1, sizeof(*all));
	const char *path;
	unsigned n = 0;
	json_t *v;

	if (!all)
		abort();
	json_object_foreach((json_t *)files, path, v) all[n++] =
		(struct program_file){ path, json_string_value(v), json_string_length(v) };
	return all;
}

const char **program_args(const json_t *list)
{
	const char **words = calloc(json_array_size(list) + 1, sizeof(*words));

	if (!words)
		abort();
	for (size_t i = 0; i < json_array_size(list); i++)
		words[i] = json_string_value(json_array_get(list, i));
	return words;
}

const char **program_command(const json_t *command)
{
	const char **argv;

	if (!json_is_string(command))
		return program_args(command);
	argv = calloc(4, sizeof(*argv));
	if (!argv)
		abort();
	argv[0] = "/bin/bash";
	argv[1] = "-c";
	argv[2] = json_string_value(command);
	return argv;
}
