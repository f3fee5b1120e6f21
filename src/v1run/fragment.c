/* fragment.c - see fragment.h. */
#include "v1run/fragment.h"
#include "api/fragment_session.h"
#include "api/isolation.h"
#include "template/builtin.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "lang/driver.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

enum { FILES_MAX = 1000, SESSION_MAX = 90, TAG_MAX = 256 };

#define FRAGMENT_FIELDS                                                                                 \
	{ "template", FIELD_NAME,     0,                                                                \
	  0,          STORE_TEMPLATE, "template of the box: base, code-interpreter-v1, ...",            \
	  NULL },                                                                                       \
		{ "code", FIELD_ANY, 0, 0, 0, "the program text; alternative to files", NULL },         \
		{ "files", FIELD_ANY, 0,                                                                \
		  0,       0,         "the files: [{file_path, file_content}], or {path: text}",        \
		  NULL },                                                                               \
		{ "file_path", FIELD_TEXT, 0, 0, 400, "path for the code, or the file to run", NULL },  \
		{ "additional_dependencies",                                                            \
		  FIELD_TEXTS,                                                                          \
		  0,                                                                                    \
		  0,                                                                                    \
		  1000,                                                                                 \
		  "names of the packages that install_dependencies_command installs",                   \
		  NULL },                                                                               \
		{ "has_additional_dependencies", FIELD_BOOL, 0, 0, 0, "false: install nothing", NULL }, \
		{ "install_dependencies_command",      FIELD_TEXT, 0, 0, 1 << 16,                       \
		  "command to run before the program", NULL },                                          \
		{ "start_command",                                                                      \
		  FIELD_TEXT,                                                                           \
		  0,                                                                                    \
		  0,                                                                                    \
		  1 << 16,                                                                              \
		  "command that serves the port (default: the template's)",                             \
		  NULL },                                                                               \
		{ "port", FIELD_INT, 0, 1, 65535, "port on which the web application listens", NULL },  \
		{ "timeout_ms",                                                                         \
		  FIELD_INT,                                                                            \
		  0,                                                                                    \
		  1,                                                                                    \
		  UINT32_MAX,                                                                           \
		  "time limit of the program; for a server: until it answers (default 60 s)",           \
		  NULL },                                                                               \
		{ "session",   FIELD_TEXT,                                                              \
		  0,           0,                                                                       \
		  SESSION_MAX, "use the box of this session; create it if it does not exist",           \
		  NULL },                                                                               \
		{ "sessionId", FIELD_TEXT, 0, 0, SESSION_MAX, "same as session", NULL },                \
		{ "sessionID", FIELD_TEXT, 0, 0, SESSION_MAX, "same as session", NULL },                \
		{ "userID", FIELD_TEXT,  0,                                                             \
		  0,        SESSION_MAX, "a tag; also the session if none is given",                    \
		  NULL },                                                                               \
		{ "teamID", FIELD_TEXT, 0, 0, TAG_MAX, "a tag", NULL }, ISOLATION_FIELDS,               \
	{                                                                                               \
		FIELDS_OTHERS, FIELD_ANY, 0, 0, 0, "title, commentary, ...: taken and ignored",         \
			NULL                                                                            \
	}

const struct field fragment_fields[] = {
	FRAGMENT_FIELDS,
	{ 0 },
};

/* The body is the fragment itself, or has it in a field: front ends do both. */
const struct field fragment_request_fields[] = {
	FRAGMENT_FIELDS,
	{ "fragment", FIELD_OBJECT, 0, 0, 0, "object that contains all other fields",
	  fragment_fields },
	{ "config", FIELD_OBJECT, 0, 0, 0, "same as fragment, for older front ends",
	  fragment_fields },
	{ 0 },
};

struct fragment_work {
	const json_t *doc, *outer;
	const char *path;
	fragment_lookup *find;
	void *ctx;
	struct fragment_template template;
	json_t *out, *files;
	const char *entry; /* the file to run */
	struct err *e;
};

static int fragment_bad(struct fragment_work *w, const char *field, const char *want)
{
	return err_set(w->e, ERR_INVALID, "%s%s%s: %s", w->path, *w->path ? "." : "", field, want);
}

static const json_t *fragment_given(const json_t *doc, const char *name)
{
	const json_t *v = json_object_get(doc, name);

	return json_is_null(v) ? NULL : v;
}

static const char *fragment_text(const json_t *doc, const char *name)
{
	const char *s = json_string_value(fragment_given(doc, name));

	return s && *s ? s : NULL;
}

/* ---- files ---- */

static int fragment_plain(const json_t *v)
{
	return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

static int good_path(const json_t *v)
{
	return fragment_plain(v) && json_string_length(v) > 0 && json_string_length(v) <= 400;
}

static const json_t *first_of(const json_t *item, const char *const *names, const char **out_name)
{
	*out_name = names[0];
	for (; *names; names++)
		if (fragment_given(item, *names)) {
			*out_name = *names;
			return fragment_given(item, *names);
		}
	return NULL;
}

static int add_item(struct fragment_work *w, const char *field, size_t i, const json_t *item)
{
	static const char *const paths[] = { "file_path", "path", "file_name", NULL },
				 *const contents[] = { "file_content", "content", "code", NULL };
	const char *path_name, *content_name;
	const json_t *path = first_of(item, paths, &path_name),
		     *content = first_of(item, contents, &content_name);
	char at[96];

	if (!json_is_object(item)) {
		snprintf(at, sizeof(at), "%s[%zu]", field, i);
		return fragment_bad(w, at, "must be an object with file_path and file_content");
	}
	if (!good_path(path)) {
		snprintf(at, sizeof(at), "%s[%zu].%s", field, i, path_name);
		return fragment_bad(w, at, "must be a path of 1 to 400 bytes");
	}
	if (!json_is_string(content)) {
		snprintf(at, sizeof(at), "%s[%zu].%s", field, i, content_name);
		return fragment_bad(w, at, "must be a string");
	}
	json_object_set(w->files, json_string_value(path), (json_t *)content);
	if (!w->entry)
		w->entry = json_string_value(path);
	return 0;
}

static int add_map(struct fragment_work *w, const char *field, const json_t *map)
{
	const char *path;
	json_t *content;
	char at[96];

	json_object_foreach((json_t *)map, path, content)
	{
		snprintf(at, sizeof(at), "%s.%.60s", field, path);
		if (!*path || strlen(path) > 400)
			return fragment_bad(w, at, "must be a path of 1 to 400 bytes");
		if (!json_is_string(content))
			return fragment_bad(w, at, "must be a string");
		json_object_set(w->files, path, content);
		if (!w->entry)
			w->entry = path;
	}
	return 0;
}

static int add_files(struct fragment_work *w, const char *field)
{
	const json_t *all = fragment_given(w->doc, field);

	if (!all)
		return 0;
	if (json_object_size(all) > FILES_MAX || json_array_size(all) > FILES_MAX)
		return fragment_bad(w, field, "has too many files, at most 1000");
	if (json_is_object(all))
		return add_map(w, field, all);
	if (!json_is_array(all))
		return fragment_bad(w, field, "must be an array of files, or an object of texts");
	for (size_t i = 0; i < json_array_size(all); i++)
		if (add_item(w, field, i, json_array_get(all, i)) < 0)
			return -1;
	return 0;
}

/* Adds the code as a file; without a file name, run_request_plan.c chooses one. */
static int add_code(struct fragment_work *w)
{
	const json_t *code = fragment_given(w->doc, "code");
	const char *path = fragment_text(w->doc, "file_path");

	if (json_is_array(code))
		return add_files(w, "code");
	if (!code)
		return 0;
	if (!fragment_plain(code))
		return fragment_bad(w, "code",
				    "must be a string without NUL, or an array of files");
	if (path)
		json_object_set(w->files, path, (json_t *)code);
	else if (!w->entry)
		json_object_set(w->out, "code", (json_t *)code);
	else
		return fragment_bad(w, "file_path", "is missing: it names the file for the code");
	return 0;
}

/* ---- what to run ---- */

static int plan_server(struct fragment_work *w, unsigned port)
{
	const char *start = fragment_text(w->doc, "start_command"), *own = w->template.start;
	char number[12];

	snprintf(number, sizeof(number), "%u", port);
	json_object_set_new(w->out, "env", json_pack("{s:s}", "PORT", number));
	json_object_set_new(w->out, "background", json_true());
	json_object_set_new(w->out, "tag", json_string(FRAGMENT_APP));
	json_object_set_new(w->out, "port", json_integer(port));
	if (!start && w->template.start_any && port != w->template.port)
		own = w->template.start_any;
	if (!start && !own)
		return 0;
	json_object_set_new(w->out, "command", json_string(start ? start : own));
	if (w->template.reloads && !start)
		json_object_set_new(w->out, "reload", json_true());
	if (json_object_get(w->out, "code") && !start && w->template.file) {
		json_object_set(w->files, w->template.file, json_object_get(w->out, "code"));
		json_object_del(w->out, "code");
	}
	if (json_object_get(w->out, "code")) {
		json_object_del(w->out, "code");
		return fragment_bad(w, "file_path", "is missing: it names the file for the code");
	}
	return 0;
}

static int plan_program(struct fragment_work *w)
{
	if (json_object_get(w->out, "command"))
		return 0;
	if (w->entry)
		json_object_set_new(w->out, "entry", json_string(w->entry));
	else if (!json_object_get(w->out, "code"))
		return fragment_bad(w, "code", "is missing, and there are no files");
	if (!w->entry || !lang_of(w->entry, "", 0))
		json_object_set_new(w->out, "language", json_string(w->template.language));
	return 0;
}

/* Code of an interpreter template is executed as a cell if its language has an interpreter; files
 * are written first. */
static int plan_cell(struct fragment_work *w)
{
	const json_t *code = fragment_given(w->doc, "code");
	const char *path = fragment_text(w->doc, "file_path");
	const struct lang *l = path ? lang_of(path, "", 0) : NULL;
	const char *language = l ? l->name : w->template.language;

	if (!w->template.cells || !json_is_string(code) || !driver_of(language))
		return 0;
	json_object_del(w->out, "code");
	json_object_set(w->out, "cell_code", (json_t *)code);
	json_object_set_new(w->out, "cell_language", json_string(language));
	return 1;
}

static void plan_install(struct fragment_work *w)
{
	const char *install = fragment_text(w->doc, "install_dependencies_command");

	if (install && !json_is_false(fragment_given(w->doc, "has_additional_dependencies")))
		json_object_set_new(w->out, "install", json_string(install));
}

/* ---- the box ---- */

int fragment_builtin(void *ctx, const char *name, struct fragment_template *out, struct err *e)
{
	const struct builtin_template *t = builtin_template_find(name);
	auto_buf struct buf names = { 0 };

	(void)ctx;
	if (!t) {
		builtin_template_names(&names, 0);
		return err_set(e, ERR_NOT_FOUND, "there is no such one; there are %.200s",
			       buf_str(&names));
	}
	*out = (struct fragment_template){ .name = t->name,
					   .reference = "base",
					   .language = t->language,
					   .file = t->start && !strcmp(t->language, "python")
							   ? "app.py"
							   : NULL,
					   .start = t->start,
					   .cells = t->cells,
					   .reloads = t->reloads };
	return 0;
}

static int fragment_find_template(struct fragment_work *w)
{
	const char *name = fragment_text(w->doc, "template");
	struct err e;

	if (!name)
		return fragment_bad(w, "template", "is missing");
	if (w->find(w->ctx, name, &w->template, &e) < 0)
		return fragment_bad(w, "template", e.msg);
	json_object_set_new(w->out, "template", json_string(w->template.reference));
	return 0;
}

static void set_owner(struct fragment_work *w)
{
	static const char *const tags[] = { "userID", "teamID" };
	json_t *metadata = json_pack("{s:s}", "template", w->template.name);
	const char *session = fragment_session(w->doc, w->outer);
	char key[STORE_SESSION + 1];

	for (unsigned i = 0; i < ARRAY_LEN(tags); i++) {
		const char *tag = fragment_text_of(w->doc, w->outer, tags[i]);

		if (tag)
			json_object_set_new(metadata, tags[i], json_string(tag));
	}
	json_object_set_new(w->out, "metadata", metadata);
	/* Boxes of several templates of front ends may have the same template here, and a session
	 * has one box for each. */
	if (session) {
		snprintf(key, sizeof(key), "%s/%s", w->template.name, session);
		json_object_set_new(w->out, "session", json_string(key));
	}
}

static int fragment_fill(struct fragment_work *w)
{
	const json_t *given = fragment_given(w->doc, "port"),
		     *timeout = fragment_given(w->doc, "timeout_ms");
	unsigned port;

	if (fragment_find_template(w) < 0 || add_files(w, "files") < 0 || add_code(w) < 0)
		return -1;
	if (fragment_text(w->doc, "file_path"))
		w->entry = fragment_text(w->doc, "file_path");
	port = given ? (unsigned)json_integer_value(given) : w->template.port;
	if (timeout) /* for a server: the time until it must listen; the server itself has no time
		      * limit */
		json_object_set(w->out, port ? "ready_ms" : "timeout_ms", (json_t *)timeout);
	for (unsigned i = 0; i < 2; i++) { /* next to the fragment, or in it */
		static const char *const names[] = { "isolation", "trust" };
		const json_t *v = fragment_given(w->doc, names[i]);

		v = v ? v : fragment_given(w->outer, names[i]);
		if (v)
			json_object_set(w->out, names[i], (json_t *)v);
	}
	set_owner(w);
	plan_install(w);
	if (port && plan_server(w, port) < 0)
		return -1;
	return !port && plan_cell(w) ? 0 : plan_program(w);
}

json_t *fragment_translate(const json_t *body, fragment_lookup *find, void *ctx, struct err *e)
{
	struct fragment_work w = { .outer = body, .find = find, .ctx = ctx, .e = e };

	w.doc = fragment_of_body(body, &w.path);
	w.out = json_object();
	w.files = json_object();
	json_object_set_new(w.out, "files", w.files);
	if (fragment_fill(&w) == 0)
		return w.out;
	json_decref(w.out);
	return NULL;
}
