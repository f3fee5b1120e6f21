/* program.c - see program.h. */
#include "v1/program.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "fleet/bounds.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *program_in_home(const char *path, char out[512])
{
	if (*path == '/')
		return path;
	snprintf(out, 512, "%s/%s", BOX_HOME, path);
	return out;
}

static const char *program_text(const json_t *body, const char *name)
{
	return json_string_value(json_object_get(body, name));
}

int program_in(const json_t *body)
{
	return json_object_get(body, "code") || json_object_get(body, "entry") ||
	       (json_object_get(body, "language") && json_object_get(body, "files") &&
		!json_object_get(body, "command"));
}

/* ---- language ---- */

static int program_unknown(const char *name, struct err *e)
{
	return err_set(e, ERR_INVALID, "language: '%.40s' is not one of those in GET /v1/languages",
		       name);
}

static int find_language(struct program *p, const json_t *body, struct err *e)
{
	const char *wanted = program_text(body, "language"), *entry = program_text(body, "entry"),
		   *with = program_text(body, "compiler");
	const json_t *file = entry ? json_object_get(json_object_get(body, "files"), entry) : NULL;
	char name[LANG_NAME + 1];

	p->pin = wanted ? lang_pin(wanted, name) : "";
	if (wanted)
		p->lang = lang_named(name);
	else if (entry)
		p->lang = lang_of(entry, json_is_string(file) ? json_string_value(file) : "",
				  json_string_length(file));
	if (!p->lang)
		return program_unknown(wanted ? name : entry ? entry : "", e);
	if (!lang_present(p->lang) && !p->layered) {
		auto_buf struct buf how = { 0 };

		lang_install(p->lang, &how);
		return err_set(e, ERR_NOT_FOUND, "language: %s is not installed on this host: %s",
			       p->lang->name, buf_str(&how));
	}
	if (p->pin[strspn(p->pin, "0123456789.")] || strlen(p->pin) > LANG_VERSION)
		return err_set(e, ERR_INVALID, "language: '%.40s' is no version", p->pin);
	p->compile = lang_compiler(p->lang, with);
	if (!p->compile)
		return err_set(e, ERR_INVALID, "compiler: %s knows no '%.40s'", p->lang->name,
			       with);
	if (with && !p->layered && access(p->compile[0], X_OK) < 0)
		return err_set(e, ERR_NOT_FOUND, "compiler: %s is not installed on this host",
			       with);
	return 0;
}

/* ---- files ---- */

/* The only file of the language, or the one with the default name; NULL: ambiguous. */
static const char *likely_entry(const struct lang *l, json_t *files)
{
	const char *path, *only = NULL;
	unsigned n = 0;
	json_t *v;

	json_object_foreach(files, path, v)
	{
		if (!strcmp(path, l->file))
			return path;
		if (lang_has_ending(l, path)) {
			only = path;
			n++;
		}
	}
	return n == 1 ? only : NULL;
}

static void find_sources(struct program *p, json_t *files)
{
	size_t n = 0;
	const char *path;
	char *to;
	json_t *v;

	p->sources = calloc(1, (json_object_size(files) + 2) * (sizeof(char *) + 512));
	if (!p->sources)
		abort();
	to = (char *)(p->sources + json_object_size(files) + 2);
	p->sources[n++] = p->source;
	json_object_foreach(files, path, v)
	{
		char full[512];
		const char *place = program_in_home(path, full);

		if (!lang_has_ending(p->lang, path) || !strcmp(place, p->source))
			continue;
		p->sources[n++] = to;
		to += snprintf(to, 512, "%s", place) + 1;
	}
}

static int place_source(struct program *p, const json_t *body, const char *entry, struct err *e)
{
	const json_t *code = json_object_get(body, "code");
	char full[512], name[LANG_UNIT];

	if (!entry && code) {
		lang_file_of(p->lang, json_string_value(code), json_string_length(code), name);
		entry = name;
	}
	if (!entry)
		return err_set(e, ERR_INVALID, "entry: which of the files is to be run?");
	entry = program_in_home(entry, full);
	if (strlen(entry) >= sizeof(p->source) - 16)
		return err_set(e, ERR_INVALID, "entry: is too long");
	snprintf(p->source, sizeof(p->source), "%s", entry);
	return 0;
}

/* In another folder, so that the binary is not among the files of the program. */
static void place_binary(struct program *p)
{
	const char *name = strrchr(p->source, '/') + 1, *dot = strrchr(name, '.');

	snprintf(p->binary, sizeof(p->binary), "/tmp/%.*s.out",
		 dot && dot != name ? (int)(dot - name) : (int)strlen(name), name);
}

int program_read(struct program *p, const json_t *body, struct err *e)
{
	json_t *files = json_object_get(body, "files");
	const json_t *code = json_object_get(body, "code");
	const char *entry = program_text(body, "entry");

	*p = (struct program){ .pin = "", .layered = p->layered };
	if (find_language(p, body, e) < 0)
		return -1;
	if (!entry && !code)
		entry = likely_entry(p->lang, files);
	if (!entry && !code && json_is_true(json_object_get(body, "test")))
		entry = p->lang->file; /* only its folder matters */
	if (place_source(p, body, entry, e) < 0)
		return -1;
	place_binary(p);
	find_sources(p, files);
	code = code ? code : entry ? json_object_get(files, entry) : NULL;
	lang_unit_of(p->lang, p->source, json_is_string(code) ? json_string_value(code) : "",
		     json_string_length(code), p->unit);
	p->warm = lang_warm(p->lang, json_is_string(code) ? json_string_value(code) : "",
			    json_string_length(code));
	return 0;
}

void program_fini(struct program *p)
{
	free(p->sources);
	p->sources = NULL;
}

/* ---- commands ---- */

const char **program_words(const struct program *p, const char *const *row, const json_t *args,
			   uint64_t memory)
{
	struct lang_job job = { .source = p->source,
				.program = p->binary,
				.sources = p->sources,
				.unit = p->unit,
				.memory = memory };
	auto_free const char **words = calloc(json_array_size(args) + 1, sizeof(*words));

	if (!words)
		abort();
	for (size_t i = 0; i < json_array_size(args); i++)
		words[i] = json_string_value(json_array_get(args, i));
	return lang_words(row, &job, words);
}

void program_limits(const struct program *p, const struct wire_limits *most, struct wire_limits *l)
{
	const struct lang_limits *want = &p->lang->limits;

	if (want->memory && l->mem_bytes == WIRE_DEFAULT)
		l->mem_bytes = want->memory;
	if (want->disk && l->disk_bytes == WIRE_DEFAULT)
		l->disk_bytes = want->disk;
	if (want->processes && l->pids == (uint32_t)WIRE_DEFAULT)
		l->pids = want->processes;
	bounds_lower(most, l);
}
