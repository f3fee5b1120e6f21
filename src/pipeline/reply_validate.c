/* reply_validate.c - see reply_validate.h. */
#include "pipeline/reply_validate.h"
#include "pipeline/report.h"
#include "debug/imports.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILES = 100,
	FILE_BYTES = 1 << 20,
	PATH_BYTES = 200,
	LIST = 30,
	TEXT = 2000,
	STDIN = 1 << 20
};

/* ---- paths ---- */

int reply_validate_path(const char *path, struct err *e)
{
	const char *at = path;

	if (!*path || strlen(path) > PATH_BYTES)
		return err_set(e, ERR_INVALID, "a path has 1 to %d bytes", PATH_BYTES);
	if (*path == '/' || *path == '~')
		return err_set(e, ERR_INVALID, "'%.60s' must be relative to the workspace", path);
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127 || *c == '\\')
			return err_set(e, ERR_INVALID,
				       "a path has no control characters and no backslash");
	do {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return err_set(
				e, ERR_INVALID,
				"'%.60s' must stay in the workspace: no '..', no '.', no '//'",
				path);
		at += n + (at[n] == '/');
		if (!*at && at[-1] == '/')
			return err_set(e, ERR_INVALID, "'%.60s' names a folder", path);
	} while (*at);
	return 0;
}

/* ---- whole files ---- */

static const char *const elisions[] = {
	/* clang-format off */
	"rest of the code",    "rest of your code",    "rest of the file",        "rest of the program",
	"rest of the function", "rest of implementation", "rest of the implementation", "remaining code",
	"existing code",       "your code here",       "code goes here",          "implementation goes here",
	"implement this",      "implementation here",  "omitted for brevity",     "code omitted",
	"same as before",      "unchanged from before", "fill in the",            "to be implemented",
	/* clang-format on */
};

static const char *behind_comment(const char *line, size_t n)
{
	static const char *const marks[] = { "//", "/*",   "#",      "--",  ";",
					     "%",  "<!--", "\"\"\"", "'''", "*" };

	while (n && isspace((unsigned char)*line)) {
		line++;
		n--;
	}
	for (unsigned i = 0; i < ARRAY_LEN(marks); i++) {
		size_t len = strlen(marks[i]);

		if (n >= len && memcmp(line, marks[i], len) == 0)
			return line + len;
	}
	return NULL;
}

/* A comment anywhere in the line, also after code. */
static const char *comment_in(const char *line)
{
	const char *c = strstr(line, "//"), *hash = strchr(line, '#');

	return c && (!hash || c < hash) ? c + 2
	       : hash                   ? hash + 1
	       : strstr(line, "/*")     ? strstr(line, "/*") + 2
					: NULL;
}

static int validate_elides(const char *line)
{
	const char *comment = behind_comment(line, strlen(line));
	const char *said = comment ? comment : comment_in(line);

	if (!said)
		return 0;
	while (isspace((unsigned char)*said))
		said++;
	/* "# ...", "// ... more": such a program is incomplete. */
	if (comment && (strncmp(said, "...", 3) == 0 || strncmp(said, "\xe2\x80\xa6", 3) == 0))
		return 1;
	if (strncmp(said, "TODO", 4) == 0 || strncmp(said, "FIXME", 5) == 0)
		return 1;
	for (unsigned i = 0; i < ARRAY_LEN(elisions); i++)
		if (strcasestr(said, elisions[i]))
			return 1;
	return 0;
}

static int has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = text; n && (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && (!at[n] || at[n] == '\n'))
			return 1;
	return 0;
}

int reply_validate_whole(const char *path, const char *text, const char *was, struct err *e)
{
	unsigned number = 1;

	if (strncmp(text, "```", 3) == 0)
		return err_set(e, ERR_INVALID, "%.60s: line 1: no fences around a file, please",
			       path);
	for (const char *at = text; *at; number++) {
		size_t n = strcspn(at, "\n");
		char line[300];

		snprintf(line, sizeof(line), "%.*s", (int)(n < 299 ? n : 299), at);
		if (validate_elides(line) && !(was && has_line(was, line)))
			return err_set(e, ERR_INVALID,
				       "%.60s: line %u is a placeholder for missing code: '%.60s'",
				       path, number, line);
		at += n + (at[n] == '\n');
	}
	return 0;
}

/* ---- lists ---- */

static int validate_few(const json_t *answer, const char *name, size_t most, struct err *e)
{
	if (json_array_size(json_object_get(answer, name)) > most)
		return err_set(e, ERR_LIMIT, "%s: more than %zu", name, most);
	return 0;
}

static int package_fits(const json_t *p, const struct lang *l, struct err *e)
{
	const char *name = doc_text(p, "name");
	struct import found;

	if (!*name || strlen(name) > 100 || *name == '-' || strpbrk(name, " \t\n;|&$`<>\"'\\"))
		return err_set(e, ERR_INVALID, "'%.40s' is not a package name", name);
	if (strpbrk(doc_text(p, "version"), " \t\n;|&$`\"'\\"))
		return err_set(e, ERR_INVALID, "'%.40s' is not a version", doc_text(p, "version"));
	if (!l)
		return 0;
	import_find(l, name, &found);
	if (found.kind == IMPORT_SUSPECT)
		return err_set(e, ERR_INVALID, "'%.40s' is one letter away from %.60s", name,
			       found.meant);
	return 0;
}

/* The existing packages and those of the answer. NULL: e. */
static json_t *packages_of(const json_t *answer, const json_t *before, const char *language,
			   struct err *e)
{
	const struct lang *l = lang_named(language);
	json_t *all = json_is_array(before) ? json_deep_copy(before) : json_array(), *p, *old;
	size_t i, k;

	if (validate_few(answer, "packages", LIST, e) < 0) {
		json_decref(all);
		return NULL;
	}
	json_array_foreach(json_object_get(answer, "packages"), i, p)
	{
		json_t *one;

		if (package_fits(p, l, e) < 0) {
			err_in(e, "packages[%zu]", i);
			json_decref(all);
			return NULL;
		}
		json_array_foreach(all, k,
				   old) if (!strcmp(doc_text(old, "name"), doc_text(p, "name")) &&
					    !strcmp(doc_text(old, "manager"),
						    doc_text(p, "manager"))) break;
		if (k < json_array_size(all))
			continue;
		one = json_pack("{s:O, s:O, s:O}", "manager", json_object_get(p, "manager"), "name",
				json_object_get(p, "name"), "reason", json_object_get(p, "reason"));
		if (*doc_text(p, "version"))
			json_object_set(one, "version", json_object_get(p, "version"));
		json_array_append_new(all, one);
	}
	return all;
}

static void validate_carry(json_t *to, const json_t *from, const char *const *names)
{
	for (; *names; names++)
		if (json_object_get(from, *names))
			json_object_set(to, *names, json_object_get(from, *names));
}

static double validate_share(const json_t *answer)
{
	double n = json_number_value(json_object_get(answer, "confidence"));

	return n >= 0 && n <= 1 ? n : n > 1 ? 1 : 0;
}

/* ---- a plan ---- */

static int check_fits(const json_t *c, struct err *e)
{
	const char *kind = doc_text(c, "kind"), *arg = doc_text(c, "arg");
	regex_t re;
	char *end;

	if (strlen(arg) > 4096)
		return err_set(e, ERR_LIMIT, "arg: too long");
	if (!strcmp(kind, "exit"))
		return strtol(arg, &end, 10) < 0 || *end || !*arg
			       ? err_set(e, ERR_INVALID, "arg: exit takes a number")
			       : 0;
	if (!strcmp(kind, "file_exists"))
		return reply_validate_path(arg, e);
	if (strcmp(kind, "stdout_regex") != 0)
		return 0;
	if (regcomp(&re, arg, REG_EXTENDED | REG_NOSUB) != 0)
		return err_set(e, ERR_INVALID, "arg: '%.60s' is not a POSIX extended expression",
			       arg);
	regfree(&re);
	return 0;
}

static json_t *steps_of(const json_t *answer)
{
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "steps"), i, one) json_array_append_new(
		all, json_pack("{s:I, s:O}", "id", (json_int_t)(i + 1), "goal", one));
	return all;
}

static int plan_fits(const json_t *answer, struct err *e)
{
	static const char *const lists[] = { "steps", "checks", "inputs_needed", "assumptions",
					     NULL };
	json_t *one;
	size_t i;

	for (unsigned k = 0; lists[k]; k++)
		if (validate_few(answer, lists[k], LIST, e) < 0)
			return -1;
	if (reply_validate_path(doc_text(answer, "entry"), e) < 0)
		return err_in(e, "entry");
	json_array_foreach(json_object_get(answer, "checks"), i,
			   one) if (check_fits(one, e) < 0) return err_in(e, "checks[%zu]", i);
	json_array_foreach(json_object_get(answer, "inputs_needed"), i, one) if (
		!*doc_text(one, "question") ||
		!*doc_text(
			one,
			"name")) return err_set(e, ERR_INVALID,
						"inputs_needed[%zu]: name and question are needed",
						i);
	return 0;
}

json_t *reply_validate_plan(const json_t *answer, const json_t *task, const char *model,
			    struct err *e)
{
	static const char *const told[] = { "files",  "stdin",   "examples", "tests",
					    "limits", "network", NULL };
	static const char *const said[] = { "language",      "entry",       "checks",
					    "inputs_needed", "assumptions", NULL };
	json_t *plan, *packages;
	const char *wanted = doc_text(task, "language");

	if (plan_fits(answer, e) < 0)
		return NULL;
	if (*wanted && lang_named(wanted) &&
	    lang_named(wanted) != lang_named(doc_text(answer, "language"))) {
		err_set(e, ERR_INVALID, "language: the task requires %.40s", wanted);
		return NULL;
	}
	packages = packages_of(answer, NULL, doc_text(answer, "language"), e);
	if (!packages)
		return NULL;
	plan = json_pack("{s:s, s:s, s:n, s:{}, s:o, s:o, s:f, s:o}", "schema", AGENT_PLAN, "task",
			 doc_text(task, "task"), "template", "slots", "steps", steps_of(answer),
			 "packages", packages, "confidence", validate_share(answer), "source",
			 json_sprintf("llm:%s", model));
	json_object_set_new(plan, "files", json_object());
	json_object_set_new(plan, "stdin", json_string(""));
	json_object_set_new(plan, "examples", json_array());
	json_object_set_new(plan, "tests", json_array());
	json_object_set_new(plan, "limits", json_object());
	json_object_set_new(plan, "network", json_false());
	validate_carry(plan, task, told);
	validate_carry(plan, answer, said);
	return plan;
}

/* ---- a program ---- */

/* files: the existing files; those of the answer are added. */
static int add_files(json_t *files, const json_t *list, struct err *e)
{
	json_t *f;
	size_t i;

	if (json_array_size(list) > FILES)
		return err_set(e, ERR_LIMIT, "files: more than %d", FILES);
	json_array_foreach(list, i, f)
	{
		const char *path = doc_text(f, "path"),
			   *was = json_string_value(json_object_get(files, path));

		if (reply_validate_path(path, e) < 0)
			return err_in(e, "files[%zu].path", i);
		if (json_string_length(json_object_get(f, "content")) > FILE_BYTES)
			return err_set(e, ERR_LIMIT, "files[%zu].content: more than %d bytes", i,
				       FILE_BYTES);
		if (reply_validate_whole(path, doc_text(f, "content"), was, e) < 0)
			return err_in(e, "files[%zu].content", i);
		json_object_set(files, path, json_object_get(f, "content"));
	}
	return 0;
}

static int files_fit(const json_t *files, const char *entry, struct err *e)
{
	const char *path;
	json_t *text;
	size_t all = 0;

	json_object_foreach((json_t *)files, path, text) all +=
		strlen(path) + json_string_length(text);
	if (all > AGENT_FILES_BYTES)
		return err_set(e, ERR_LIMIT, "files: more than %d bytes together",
			       AGENT_FILES_BYTES);
	if (!json_string_length(json_object_get(files, entry)))
		return err_set(e, ERR_INVALID,
			       "entry: there is no such file, or it is empty: '%.60s'", entry);
	return 0;
}

static json_t *files_before(const json_t *doc)
{
	const json_t *files = json_object_get(doc, "files");

	return json_is_object(files) ? json_copy((json_t *)files) : json_object();
}

json_t *reply_validate_code(const json_t *answer, const json_t *plan, const char *model,
			    struct err *e)
{
	static const char *const told[] = { "language", "examples", "tests", "checks",
					    "limits",   "network",  NULL };
	json_t *files = files_before(plan), *packages = NULL, *a,
	       *input = json_object_get(answer, "stdin");

	if (add_files(files, json_object_get(answer, "files"), e) == 0 &&
	    files_fit(files, doc_text(answer, "entry"), e) == 0)
		packages = packages_of(answer, json_object_get(plan, "packages"),
				       doc_text(plan, "language"), e);
	if (packages && json_string_length(input) > STDIN) {
		err_set(e, ERR_LIMIT, "stdin: more than %d bytes", STDIN);
		json_decref(steal(&packages));
	}
	if (!packages) {
		json_decref(files);
		return NULL;
	}
	/* Files of the task are not replaced. */
	if (*doc_text(plan, "stdin") || !json_is_string(input))
		input = json_object_get(plan, "stdin");
	a = json_pack("{s:s, s:o, s:O, s:o, s:s, s:{}, s:o, s:n, s:n}", "schema", AGENT_ARTIFACT,
		      "files", files, "entry", json_object_get(answer, "entry"), "packages",
		      packages, "stdin", json_is_string(input) ? json_string_value(input) : "",
		      "env", "provenance", json_sprintf("llm:%s", model), "parent",
		      "changed_because");
	validate_carry(a, plan, told);
	artifact_set_hash(a);
	return a;
}

/* ---- a diagnosis ---- */

static int apply_edit(json_t *files, const json_t *x, struct err *e)
{
	const char *path = doc_text(x, "path"), *old = doc_text(x, "old"),
		   *fresh = doc_text(x, "new"),
		   *was = json_string_value(json_object_get(files, path)), *at;
	auto_buf struct buf now = { 0 };

	if (reply_validate_path(path, e) < 0)
		return err_in(e, "path");
	if (!*old) {
		buf_puts(&now, fresh);
	} else {
		at = was ? strstr(was, old) : NULL;
		if (!at || strstr(at + 1, old))
			return err_set(e, ERR_INVALID, "old: it is %s %.60s",
				       at ? "more than once in" : "not in", path);
		buf_add(&now, was, (size_t)(at - was));
		buf_puts(&now, fresh);
		buf_puts(&now, at + strlen(old));
	}
	if (now.len > FILE_BYTES)
		return err_set(e, ERR_LIMIT, "new: more than %d bytes", FILE_BYTES);
	if (reply_validate_whole(path, buf_str(&now), was, e) < 0)
		return err_in(e, "new");
	json_object_set_new(files, path, json_stringn(buf_str(&now), now.len));
	return 0;
}

static json_t *validate_edited(const json_t *answer, const json_t *artifact, const char *model,
			       struct err *e)
{
	json_t *files = files_before(artifact), *child, *x, *packages = NULL;
	int fits = validate_few(answer, "edits", LIST, e);
	char from[80];
	size_t i;

	json_array_foreach(json_object_get(answer, "edits"), i,
			   x) if (fits == 0 && apply_edit(files, x, e) < 0) fits =
		err_in(e, "edits[%zu]", i);
	if (fits == 0 && files_fit(files, doc_text(artifact, "entry"), e) == 0)
		packages = packages_of(answer, json_object_get(artifact, "packages"),
				       doc_text(artifact, "language"), e);
	if (!packages) {
		json_decref(files);
		return NULL;
	}
	snprintf(from, sizeof(from), "llm:%.70s", model);
	child = artifact_child(artifact, from, doc_text(answer, "detail"));
	json_object_set_new(child, "files", files);
	json_object_set_new(child, "packages", packages);
	artifact_set_hash(child);
	if (!strcmp(doc_text(child, "hash"), doc_text(artifact, "hash"))) {
		err_set(e, ERR_INVALID,
			"edits: nothing differs; the program must be another one, or the action \"stop\"");
		json_decref(child);
		return NULL;
	}
	return child;
}

/* The last output line of the failed phase: equal for equal failures. */
static const char *reply_last_output(const json_t *result, char out[200])
{
	const json_t *phases = json_object_get(result, "phases"),
		     *phase = json_array_get(
			     phases, json_array_size(phases) ? json_array_size(phases) - 1 : 0);
	const char *text = doc_text(phase, "stderr"), *end = text + strlen(text), *from;
	size_t n = 0;

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	from = end;
	while (from > text && from[-1] != '\n')
		from--;
	for (; from < end && n < 199; from++)
		if (!isdigit((unsigned char)*from))
			out[n++] = *from;
	out[n] = 0;
	return out;
}

static void validate_novelty(const json_t *answer, const json_t *result, char out[65])
{
	char words[200];
	json_t *what = json_pack("[O, s, s]", json_object_get(answer, "category"),
				 doc_text(answer, "file"), doc_text(result, "phase"));

	json_array_append_new(what, json_stringn_nocheck(reply_last_output(result, words),
							 strlen(words)));
	if (!strcmp(doc_text(result, "phase"),
		    "check")) { /* another output is another fault, also in the same category */
		json_array_append_new(what, json_string(report_output(result)));
		json_array_append(what, json_object_get(result, "examples"));
	}
	doc_hash(what, out);
	json_decref(what);
}

json_t *reply_validate_diagnosis(const json_t *answer, const json_t *artifact, const json_t *result,
				 const char *model, struct err *e)
{
	const char *kind = doc_text(answer, "action"), *question = doc_text(answer, "question");
	int changes = !strcmp(kind, "edit") || !strcmp(kind, "install"),
	    asks = !strcmp(kind, "ask");
	json_t *child = NULL, *d;
	char hash[65];

	if (asks && !*question) {
		err_set(e, ERR_INVALID, "question: the action is \"ask\", and nothing is asked");
		return NULL;
	}
	if (changes && !(child = validate_edited(answer, artifact, model, e)))
		return NULL;
	validate_novelty(answer, result, hash);
	d = json_pack("{s:s, s:O, s:f, s:[], s:O, s:s, s:{s:s, s:O}, s:s, s:s}", "schema",
		      AGENT_DIAGNOSIS, "category", json_object_get(answer, "category"),
		      "confidence", validate_share(answer), "evidence", "root_cause",
		      json_object_get(answer, "root_cause"), "fixable",
		      changes ? "auto"
		      : asks  ? "human"
			      : "no",
		      "action", "kind", kind, "detail", json_object_get(answer, "detail"),
		      "novelty", hash, "model", model);
	if (*doc_text(answer, "file")) {
		json_t *where = json_pack("{s:O}", "file", json_object_get(answer, "file"));

		if (json_is_integer(json_object_get(answer, "line")))
			json_object_set(where, "line", json_object_get(answer, "line"));
		json_object_set_new(d, "location", where);
	}
	if (child)
		json_object_set_new(d, "new_artifact", child);
	if (asks)
		json_object_set_new(d, "question",
				    json_pack("{s:s, s:s}", "name", "answer", "question",
					      question));
	return d;
}
