/* fix_old.c - fixes for programs that were written for another version or runtime. */
#include "debug/fix_steps.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Python 2 ---- */

/* The end of the code of a line, before blanks and a comment. */
static size_t statement_end(const char *line, size_t n)
{
	char quote = 0;
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (quote) {
			quote = line[i] == '\\' ? (i++, quote) : line[i] == quote ? 0 : quote;
		} else if (line[i] == '#' || line[i] == ';') {
			break;
		} else if (line[i] == '"' || line[i] == '\'') {
			quote = line[i];
		}
		if (i < n && (quote || !isspace((unsigned char)line[i])))
			end = i + 1;
	}
	return end < n ? end : n;
}

/* print x, y  ->  print(x, y);  print >>f, x  ->  print(x, file=f);  a comma at the end: no new line. */
static int new_print(struct buf *out, const char *line, size_t n)
{
	size_t blanks = strspn(line, " \t"), end = statement_end(line, n), from = blanks + 5;
	const char *file = NULL;
	size_t file_n = 0;
	int comma;

	if (n < from || strncmp(line + blanks, "print", 5) != 0 ||
	    (n > from && line[from] != ' ' && line[from] != '"' && line[from] != '\'' &&
	     line[from] != '#'))
		return 0;
	from += strspn(line + from, " ");
	if (from < end && line[from] == '(' && line[end - 1] == ')')
		return 0;
	if (end > from + 2 && !strncmp(line + from, ">>", 2)) {
		file = line + from + 2 + strspn(line + from + 2, " ");
		file_n = strcspn(file, ",\n");
		from = (size_t)(file + file_n - line);
		from += line[from] == ',';
		from += strspn(line + from, " ");
	}
	from = from < end ? from : end;
	comma = end > from && line[end - 1] == ',';
	buf_add(out, line, blanks);
	buf_printf(out, "print(%.*s%s%s%.*s)",
		   (int)(end > from + (size_t)comma ? end - from - (size_t)comma : 0), line + from,
		   comma ? ", end=\" \"" : "", file ? ", file=" : "", (int)file_n,
		   file ? file : "");
	buf_add(out, line + (end > blanks + 5 ? end : blanks + 5),
		n - (end > blanks + 5 ? end : blanks + 5));
	return 1;
}

/* except A, e:  ->  except A as e: */
static int new_except(struct buf *out, const char *line, size_t n)
{
	size_t blanks = strspn(line, " \t");
	const char *comma = memchr(line, ',', n);

	if (strncmp(line + blanks, "except ", 7) != 0 || !comma || memchr(line, '(', n))
		return 0;
	buf_add(out, line, (size_t)(comma - line));
	buf_puts(out, " as ");
	comma += 1 + strspn(comma + 1, " ");
	buf_add(out, comma, (size_t)(line + n - comma));
	return 1;
}

int fix_python2(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	unsigned changed = 0;

	while (text && *text) {
		size_t n = strcspn(text, "\n");

		if (new_print(&out, text, n) || new_except(&out, text, n))
			changed++;
		else
			buf_add(&out, text, n);
		text += n;
		if (*text)
			buf_putc(&out, *text++);
	}
	return changed &&
	       failure_edit(s, path, &out, "print and except are written as in Python 3");
}

/* ---- JavaScript's two kinds of modules, and TypeScript ---- */

/* Changes the extension of the entry; imports of it are not searched: no file imports an entry. */
static int new_ending(struct failure_case *s, const char *kind, const char *ending,
		      const char *language, const char *why)
{
	const char *entry = doc_text(s->artifact, "entry"), *dot = strrchr(entry, '.');
	const json_t *text = json_object_get(json_object_get(s->artifact, "files"), entry);
	char name[FAILURE_TEXT];
	json_t *child;

	if (!text || !dot || strchr(dot, '/') || !strcmp(dot, ending))
		return 0;
	snprintf(name, sizeof(name), "%.*s%s", (int)(dot - entry), entry, ending);
	if (json_object_get(json_object_get(s->artifact, "files"), name))
		return 0;
	child = failure_child(s);
	json_object_set(json_object_get(child, "files"), name, (json_t *)text);
	json_object_del(json_object_get(child, "files"), entry);
	json_object_set_new(child, "entry", json_string(name));
	if (language)
		json_object_set_new(child, "language", json_string(language));
	return failure_done(s, kind, child, "%s is now %s: %s", entry, name, why);
}

int fix_esm(struct failure_case *s)
{
	return new_ending(s, "rename", ".mjs", NULL, "it is an ES module");
}

int fix_cjs(struct failure_case *s)
{
	return new_ending(s, "rename", ".cjs", NULL, "it is a CommonJS module");
}

/* Something that only TypeScript has. */
static int is_typescript(const char *text)
{
	static const char *const signs[] = {
		"(^|\n)[ \t]*(export )?(interface|type|enum|declare|namespace) [A-Za-z_]+",
		"(const|let|var) [A-Za-z_$][A-Za-z0-9_$]*: *[A-Za-z{(\\[]",
		"[(,] *[A-Za-z_$][A-Za-z0-9_$]*\\??: *(string|number|boolean|any|void|unknown|[A-Z])",
		"\\): *(string|number|boolean|any|void|never|Promise|[A-Z])[A-Za-z<>\\[\\]]* *(\\{|=>)",
		" as (string|number|any|const|unknown)\\b",
	};

	for (unsigned i = 0; i < ARRAY_LEN(signs); i++) {
		regex_t re;
		int found;

		if (regcomp(&re, signs[i], REG_EXTENDED | REG_NOSUB) != 0)
			abort();
		found = regexec(&re, text, 0, NULL, 0) == 0;
		regfree(&re);
		if (found)
			return 1;
	}
	return 0;
}

int fix_typescript(struct failure_case *s)
{
	const char *text = failure_message(s, doc_text(s->artifact, "entry"));

	if (!text || !is_typescript(text) ||
	    !new_ending(s, "change_runtime", ".ts", "typescript", "it is TypeScript"))
		return 0;
	s->category = "interpreter_wrong";
	return 1;
}

/* Missing type declarations do not prevent the run. */
int fix_ts_nocheck(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };

	if (!text || strstr(text, "@ts-nocheck"))
		return 0;
	buf_printf(&out, "// @ts-nocheck\n%s", text);
	return failure_edit(s, path, &out, "types that were left out are not asked for");
}

/* ---- names of another version ---- */

/* A member that was renamed: [renames] has "collections.Mapping" and the like. */
int fix_renamed(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	const struct toml_node *table = rules_table(s->lang, "renames");
	auto_buf struct buf out = { 0 };

	for (const struct toml_node *k = table ? table->in.first : NULL; k && text; k = k->next) {
		const char *last = strrchr(k->key, '.');

		/* The name alone, or its unknown part. */
		if (strcmp(k->key, s->subject) != 0 && (!last || strcmp(last + 1, s->subject) != 0))
			continue;
		buf_cut(&out, 0);
		if (text_rename(&out, text, k->key, k->text))
			return failure_edit(s, path, &out, "%s is called %s today", k->key,
					    k->text);
	}
	return 0;
}
