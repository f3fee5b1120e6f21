/* spec.c - see spec.h. */
#include "jupyter/spec.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ENTRIES = 1024 }; /* of a searched folder */

/* Debian packages of kernels, for the hint about a missing one. */
static const struct {
	const char *name, *apt;
} packages[] = { { "python3", "python3-ipykernel" }, { "ir", "r-cran-irkernel" } };

int spec_name_valid(const char *name)
{
	static const char signs[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strlen(name);

	return n && n <= SPEC_NAME && strspn(name, signs) == n && *name != '.' && *name != '-';
}

void spec_places(struct spec_places *out, const char *home)
{
	unsigned n = 0;

	if (home && *home == '/' &&
	    snprintf(out->home, sizeof(out->home), "%s/.local/share/jupyter/kernels", home) <
		    (int)sizeof(out->home))
		out->path[n++] = out->home;
	out->path[n++] = "/usr/local/share/jupyter/kernels";
	out->path[n++] = "/usr/share/jupyter/kernels";
	out->path[n] = NULL;
}

/* ---- the text ---- */

/* A string that is valid as an argument or a variable. */
static int is_word(const json_t *v, size_t most)
{
	return json_is_string(v) && json_string_length(v) <= most &&
	       strlen(json_string_value(v)) == json_string_length(v);
}

static int check_argv(const json_t *argv, struct err *e)
{
	int has_file = 0;
	json_t *v;
	size_t i;

	if (!json_is_array(argv) || !json_array_size(argv) || json_array_size(argv) > SPEC_WORDS)
		return err_set(e, ERR_INVALID, "argv is not a list of 1 to %d words", SPEC_WORDS);
	json_array_foreach(argv, i, v)
	{
		if (!is_word(v, SPEC_WORD))
			return err_set(e, ERR_INVALID,
				       "word %zu of argv is not a string of at most %d bytes", i,
				       SPEC_WORD);
		has_file |= strstr(json_string_value(v), "{connection_file}") != NULL;
	}
	if (!*json_string_value(json_array_get(argv, 0)))
		return err_set(e, ERR_INVALID, "argv begins with an empty word");
	return has_file ? 0
			: err_set(e, ERR_INVALID,
				  "argv has no {connection_file}: the kernel could not be reached");
}

static int check_env(const json_t *env, struct err *e)
{
	const char *name;
	json_t *v;

	if (!env)
		return 0;
	if (!json_is_object(env) || json_object_size(env) > SPEC_WORDS)
		return err_set(e, ERR_INVALID, "env is not an object of at most %d variables",
			       SPEC_WORDS);
	json_object_foreach((json_t *)env, name, v) if (
		!*name || strlen(name) > 256 || strchr(name, '=') ||
		!is_word(
			v,
			SPEC_WORD)) return err_set(e, ERR_INVALID,
						   "env: '%.40s' is not a valid variable with a string value",
						   name);
	return 0;
}

/* NULL or "" if missing; another type than a string is an error. */
static int text_of(const json_t *doc, const char *name, const char **out, struct err *e)
{
	const json_t *v = json_object_get(doc, name);

	*out = "";
	if (!v || json_is_null(v))
		return 0;
	if (!is_word(v, 256))
		return err_set(e, ERR_INVALID, "%s is not a string of at most 256 bytes", name);
	*out = json_string_value(v);
	return 0;
}

static int spec_check(struct kernel_spec *s, struct err *e)
{
	const char *mode;

	if (!json_is_object(s->doc))
		return err_set(e, ERR_INVALID, "it is not an object");
	s->argv = json_object_get(s->doc, "argv");
	s->env = json_object_get(s->doc, "env");
	if (check_argv(s->argv, e) < 0 || check_env(s->env, e) < 0 ||
	    text_of(s->doc, "display_name", &s->title, e) < 0 ||
	    text_of(s->doc, "language", &s->language, e) < 0 ||
	    text_of(s->doc, "interrupt_mode", &mode, e) < 0)
		return -1;
	s->by_message = !strcmp(mode, "message");
	if (*mode && !s->by_message && strcmp(mode, "signal") != 0)
		return err_set(e, ERR_INVALID, "interrupt_mode is '%.20s', not signal or message",
			       mode);
	return 0;
}

int spec_parse(struct kernel_spec *out, const char *text, size_t len, struct err *e)
{
	struct kernel_spec s = { 0 };
	json_error_t why;

	if (len > SPEC_BYTES)
		return err_set(e, ERR_INVALID, "it has more than %d bytes", SPEC_BYTES);
	s.doc = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!s.doc)
		return err_set(e, ERR_INVALID, "line %d: %.100s", why.line, why.text);
	if (spec_check(&s, e) < 0) {
		json_decref(s.doc);
		return -1;
	}
	*out = s;
	return 0;
}

/* ---- the file ---- */

/* A link is followed: its user could read the target as well. Only regular files are read. */
static int read_file(int dir, struct buf *out, struct err *e)
{
	auto_fd int fd = openat(dir, "kernel.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open it");
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "it is not a regular file");
	while (n > 0 && out->len <= SPEC_BYTES) {
		n = read(fd, buf_space(out, 4096), 4096);
		if (n < 0)
			return err_sys(e, "read it");
		buf_grew(out, (size_t)n);
	}
	return 0;
}

static int spec_load(struct kernel_spec *out, const char *place, const char *name, struct err *e)
{
	auto_buf struct buf text = { 0 }, folder = { 0 };
	auto_fd int dir = -1;

	buf_printf(&folder, "%s/%s", place, name);
	dir = open(buf_str(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "open %.100s", buf_str(&folder));
	if (read_file(dir, &text, e) < 0 || spec_parse(out, buf_str(&text), text.len, e) < 0)
		return err_in(e, "%.100s/kernel.json", buf_str(&folder));
	snprintf(out->name, sizeof(out->name), "%s", name);
	out->folder = buf_steal(&folder);
	return 0;
}

void spec_fini(struct kernel_spec *s)
{
	json_decref(s->doc);
	free(s->folder);
	*s = (struct kernel_spec){ 0 };
}

/* ---- the places ---- */

/* Folders with a kernel.json of any content. */
static int names_in(const char *place, char names[SPEC_LISTED][SPEC_NAME + 1])
{
	DIR *d = opendir(place);
	const struct dirent *x;
	int n = 0, seen = 0;

	while (d && n < SPEC_LISTED && seen++ < ENTRIES && (x = readdir(d))) {
		char file[SPEC_NAME + 16];

		if (!spec_name_valid(x->d_name))
			continue;
		snprintf(file, sizeof(file), "%.*s/kernel.json", SPEC_NAME, x->d_name);
		if (faccessat(dirfd(d), file, F_OK, 0) == 0)
			snprintf(names[n++], SPEC_NAME + 1, "%.*s", SPEC_NAME, x->d_name);
	}
	if (d)
		closedir(d);
	qsort(names, (size_t)n, SPEC_NAME + 1, (int (*)(const void *, const void *))strcmp);
	return n;
}

static int not_here(const struct spec_places *places, const char *name, struct err *e)
{
	char names[SPEC_LISTED][SPEC_NAME + 1];
	auto_buf struct buf here = { 0 };
	const char *apt = NULL;

	for (unsigned p = 0; places->path[p]; p++)
		for (int i = 0, n = names_in(places->path[p], names); i < n; i++)
			buf_printf(&here, "%s%s", here.len ? ", " : "", names[i]);
	for (unsigned i = 0; i < ARRAY_LEN(packages); i++)
		if (!strcmp(packages[i].name, name))
			apt = packages[i].apt;
	return err_set(e, ERR_NOT_FOUND,
		       "there is no Jupyter kernel '%s' here%s%s; there is: %.100s", name,
		       apt ? ": sudo apt-get install " : "", apt ? apt : "",
		       here.len ? buf_str(&here) : "none");
}

int spec_find(struct kernel_spec *out, const struct spec_places *places, const char *name,
	      struct err *e)
{
	char names[SPEC_LISTED][SPEC_NAME + 1];

	if (!spec_name_valid(name))
		return err_set(e, ERR_INVALID, "'%.40s' is not the name of a Jupyter kernel", name);
	for (unsigned p = 0; places->path[p]; p++)
		for (int i = 0, n = names_in(places->path[p], names); i < n; i++)
			if (!strcasecmp(names[i], name))
				return spec_load(out, places->path[p], names[i], e);
	return not_here(places, name, e);
}

/* The first folder with a name hides it in later ones. */
static int is_hidden(const struct spec_places *places, unsigned place, const char *name)
{
	char names[SPEC_LISTED][SPEC_NAME + 1];

	for (unsigned p = 0; p < place; p++)
		for (int i = 0, n = names_in(places->path[p], names); i < n; i++)
			if (!strcasecmp(names[i], name))
				return 1;
	return 0;
}

static void spec_note(json_t *list, const struct kernel_spec *s)
{
	char name[SPEC_NAME + sizeof(SPEC_PREFIX)];

	snprintf(name, sizeof(name), SPEC_PREFIX "%s", s->name);
	json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", name, "title", s->title,
					      "language", s->language));
}

json_t *spec_json(const struct spec_places *places)
{
	char names[SPEC_LISTED][SPEC_NAME + 1];
	json_t *list = json_array();

	for (unsigned p = 0; places->path[p]; p++)
		for (int i = 0, n = names_in(places->path[p], names); i < n; i++) {
			struct kernel_spec s;
			struct err e;

			if (json_array_size(list) == SPEC_LISTED ||
			    is_hidden(places, p, names[i]) ||
			    spec_load(&s, places->path[p], names[i], &e) < 0)
				continue;
			spec_note(list, &s);
			spec_fini(&s);
		}
	return list;
}
