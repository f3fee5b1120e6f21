/* fix_place.c - fixes for the environment of a program: files, ports, input, limits. The isolation
 * of a box is never reduced. */
#include "debug/fix_steps.h"
#include "base/edit_distance.h"
#include "base/cleanup.h"
#include "lang/package.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- files ---- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Replaces a quoted string of the program. */
static int replace_quoted(struct failure_case *s, const char *from, const char *to, const char *why)
{
	const char *path = failure_main(s);

	for (size_t i = 0; path; path = failure_path(s, i++)) {
		const char *text = failure_message(s, path), *at = text ? strstr(text, from) : NULL;
		auto_buf struct buf out = { 0 };

		while (at &&
		       (at == text || !strchr("'\"` =/", at[-1]) ||
			(isalnum((unsigned char)at[strlen(from)]) || at[strlen(from)] == '.')))
			at = strstr(at + 1, from);
		if (!at)
			continue;
		text_splice(&out, text, (size_t)(at - text), strlen(from), to);
		return failure_edit(s, path, &out, "%s is %s: %s", from, to, why);
	}
	return 0;
}

/* The project has a file of that or a similar name in another folder. */
int fix_file_path(struct failure_case *s)
{
	const char *wanted = base_of(s->subject), *near = NULL;

	for (size_t i = 0; *wanted && failure_path(s, i); i++) {
		const char *path = failure_path(s, i);

		if (!strcmp(base_of(path), wanted) && strcmp(path, s->subject) != 0)
			return replace_quoted(s, s->subject, path, "a file of the project");
		if (strlen(wanted) > 4 && edit_distance(base_of(path), wanted) == 1)
			near = path;
		if (!strcasecmp(base_of(path), wanted))
			near = path;
	}
	return near && replace_quoted(s, s->subject, near, "a file of the project");
}

/* A file of the plan that is missing in the artifact. */
static int from_plan(struct failure_case *s)
{
	const json_t *text = json_object_get(json_object_get(s->plan, "files"), s->subject);
	json_t *child;

	if (!json_is_string(text) || failure_message(s, s->subject))
		return 0;
	child = failure_child(s);
	json_object_set(json_object_get(child, "files"), s->subject, (json_t *)text);
	return failure_done(s, "edit", child, "%s comes from the task", s->subject);
}

int fix_file_ask(struct failure_case *s)
{
	if (from_plan(s))
		return 1;
	/* Files of the machine cannot be added. */
	if (!*s->subject || (s->subject[0] == '/' && strncmp(s->subject, "/home/user/", 11) != 0))
		return 0;
	return failure_ask(s, base_of(s->subject), "The program reads %s. What is in it?",
			   base_of(s->subject));
}

/* The runtime names no file: uses the quoted string of the failing line. */
int fix_quoted_file(struct failure_case *s)
{
	const char *text = failure_message(s, failure_main(s)), *line, *from, *end;
	size_t n;

	line = text && s->line > 0 ? text_line(text, s->line, &n) : NULL;
	from = line ? memchr(line, '"', n) : NULL;
	end = from ? memchr(from + 1, '"', n - (size_t)(from + 1 - line)) : NULL;
	if (!end || end - from < 3 || end - from > FAILURE_TEXT - 1 ||
	    memchr(from, ' ', (size_t)(end - from)))
		return 0;
	snprintf(s->subject, sizeof(s->subject), "%.*s", (int)(end - from - 1), from + 1);
	return fix_file_path(s) || fix_file_ask(s);
}

/* A path that is not writable in a box: uses the same name in the folder of the program. */
int fix_path_here(struct failure_case *s)
{
	return s->subject[0] == '/' && *base_of(s->subject) &&
	       replace_quoted(s, s->subject, base_of(s->subject),
			      "it cannot be written where it was, and is in the program's folder");
}

/* ---- ports and letters ---- */

int fix_port(struct failure_case *s)
{
	long port = strtol(s->subject, NULL, 10);
	char other[16];

	if (port < 1 || port > 65000)
		return 0;
	snprintf(other, sizeof(other), "%ld", port < 1024 ? port + 8000 : port + 1);
	for (size_t i = 0; failure_path(s, i); i++) {
		const char *path = failure_path(s, i), *text = failure_message(s, path);
		auto_buf struct buf out = { 0 };

		if (text && text_rename(&out, text, s->subject, other))
			return failure_edit(s, path, &out, "port %s is taken; it is %s", s->subject,
					    other);
	}
	return 0;
}

int fix_utf8(struct failure_case *s)
{
	json_t *child;

	if (*doc_text(json_object_get(s->artifact, "env"), "PYTHONUTF8") ||
	    *doc_text(json_object_get(s->artifact, "env"), "LC_ALL"))
		return 0;
	child = failure_child(s);
	child_env(child, "LC_ALL", "C.UTF-8");
	child_env(child, "PYTHONUTF8", "1");
	return failure_done(s, "edit", child, "texts are UTF-8");
}

/* ---- input ---- */

static const char *example_input(const struct failure_case *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(s->artifact, "examples"), i,
			   one) if (*doc_text(one, "input")) return doc_text(one, "input");
	return doc_text(s->plan, "stdin");
}

int fix_input(struct failure_case *s)
{
	const char *input = example_input(s);
	json_t *child;

	if (*doc_text(s->artifact, "stdin"))
		return failure_ask(
			s, "stdin",
			"The program reads more than its input has. What should it read?");
	if (!*input)
		return failure_ask(s, "stdin",
				   "The program reads from its input. What should it read?");
	child = failure_child(s);
	json_object_set_new(child, "stdin", json_string(input));
	return failure_done(s, "supply_input", child, "it reads the first example's input");
}

/* ---- limits ---- */

static const json_int_t run_ms_most = 120000, install_ms_most = 600000;
static const json_int_t memory_most = (json_int_t)2 << 30;

static int raised_before(const struct failure_case *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(s->before, i,
			   one) if (!strcmp(doc_text(json_object_get(one, "action"), "kind"),
					    "raise_limit")) return 1;
	return 0;
}

/* Doubles the limit, once, up to a maximum; `usual` is the value if the artifact has none.
 * limits.fixed: the caller allows no change. */
static int fix_place_raise(struct failure_case *s, const char *name, json_int_t usual,
			   json_int_t most, unsigned times)
{
	const json_t *limits = json_object_get(s->artifact, "limits");
	json_int_t now = json_integer_value(json_object_get(limits, name));
	json_int_t then;
	json_t *child;

	now = now > 0 ? now : usual;
	then = now > most / times ? most : now * times;
	if (raised_before(s) || then <= now || json_is_true(json_object_get(limits, "fixed")))
		return 0;
	child = failure_child(s);
	if (!json_is_object(json_object_get(child, "limits")))
		json_object_set_new(child, "limits", json_object());
	json_object_set_new(json_object_get(child, "limits"), name, json_integer(then));
	return failure_done(s, "raise_limit", child, "%s is %lld instead of %lld, once", name,
			    (long long)then, (long long)now);
}

/* A program without output so far is not given more time. */
int fix_raise_time(struct failure_case *s)
{
	return *doc_text(s->phase, "stdout") &&
	       fix_place_raise(s, "run_ms",
			       s->lang && s->lang->times.run ? s->lang->times.run : 10000,
			       run_ms_most, 3);
}

/* A server that starts slowly has no output, too. */
int fix_raise_wait(struct failure_case *s)
{
	return fix_place_raise(s, "run_ms",
			       s->lang && s->lang->times.run ? s->lang->times.run : 10000,
			       run_ms_most, 3);
}

int fix_raise_memory(struct failure_case *s)
{
	return fix_place_raise(s, "memory",
			       s->lang && s->lang->limits.memory
				       ? (json_int_t)s->lang->limits.memory
				       : (json_int_t)512 << 20,
			       memory_most, 2);
}

int fix_raise_install(struct failure_case *s)
{
	return fix_place_raise(s, "install_ms",
			       s->lang && s->lang->times.install ? s->lang->times.install : 120000,
			       install_ms_most, 2);
}

/* ---- where it crashed ---- */

/* Builds the program again with diagnostics. The build environment is not part of the program: the
 * next child keeps it, and the final artifact is returned without it. */
int fix_locate(struct failure_case *s)
{
	static const char how[] = "-g -fsanitize=address,undefined -fno-sanitize-recover=all";
	json_t *child;

	if (!s->lang || (strcmp(s->lang->name, "c") != 0 && strcmp(s->lang->name, "c++") != 0) ||
	    *doc_text(json_object_get(s->artifact, "env"), "CFLAGS"))
		return 0;
	child = failure_child(s);
	child_env(child, "CFLAGS", how);
	return failure_done(s, "edit", child, "built with sanitizers, to learn where it crashes");
}

/* ---- the rest ---- */

int fix_cut(struct failure_case *s)
{
	return failure_ask(s, failure_main(s), "%s is not complete. What is its whole text?",
			   failure_main(s));
}

/* A #! line with a missing interpreter: the program is run by the command of the language. */
int fix_own_runtime(struct failure_case *s)
{
	const char *path = doc_text(s->artifact, "entry"), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };

	if (!text || strncmp(text, "#!", 2) != 0)
		return 0;
	text_splice(&out, text, 0, strcspn(text, "\n"), "");
	return failure_edit(s, path, &out, "the first line named an interpreter that is not there");
}

/* A program that is started by name and not one of the files: it is no missing file. */
int fix_command_missing(struct failure_case *s)
{
	const char *text = failure_message(s, failure_main(s));

	if (!text || strchr(s->subject, '.') || strchr(s->subject, '/') ||
	    (!strstr(text, "subprocess") && !strstr(text, "os.exec") && !strstr(text, "Popen")))
		return 0;
	s->category = "interpreter_missing";
	return failure_stop(s, "human", "the command %s is not there", s->subject);
}

/* The runtime names no port: uses the number in the program that could be one. */
int fix_port_of_line(struct failure_case *s)
{
	const char *text = failure_message(s, failure_main(s));
	long only = 0;

	for (const char *at = text; at && *at; at++) {
		char *end;
		long n;

		if (!isdigit((unsigned char)*at) ||
		    (at > text && (isalnum((unsigned char)at[-1]) || strchr("._", at[-1]))))
			continue;
		n = strtol(at, &end, 10);
		at = end - 1;
		if (n < 80 || n > 65000 || *end == '.')
			continue;
		if (only && only != n)
			return 0;
		only = n;
	}
	snprintf(s->subject, sizeof(s->subject), "%ld", only);
	return only && fix_port(s);
}
