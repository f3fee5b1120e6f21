/* fix.c - see fix.h. */
#include "debug/fix.h"
#include "debug/fix_steps.h"
#include "base/cleanup.h"
#include "record/changes.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct fix fixes[] = {
#define FIX(name) { #name, fix_##name },
	FIXES
#undef FIX
};

const struct fix *fix_named(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixes); i++)
		if (!strcmp(fixes[i].name, name))
			return &fixes[i];
	return NULL;
}

/* ---- files ---- */

const char *failure_message(const struct failure_case *s, const char *path)
{
	const json_t *t = json_object_get(json_object_get(s->artifact, "files"), path);

	return t && json_string_length(t) <= FAILURE_FILE_BYTES ? json_string_value(t) : NULL;
}

const char *failure_main(const struct failure_case *s)
{
	return failure_message(s, s->path) ? s->path : doc_text(s->artifact, "entry");
}

/* "/home/user/a/main.py", "./main.py" and "main.py" are all main.py; the longest such name wins. */
static int fix_means(const char *said, const char *path)
{
	size_t n = strlen(said), m = strlen(path);

	return n >= m && !strcmp(said + n - m, path) && (n == m || said[n - m - 1] == '/');
}

const char *failure_file(const struct failure_case *s, const char *said)
{
	const char *path, *best = NULL;
	const json_t *text;

	if (!*said)
		return NULL;
	json_object_foreach((json_t *)json_object_get(s->artifact, "files"), path,
			    text) if (fix_means(said, path) &&
				      (!best || strlen(path) > strlen(best))) best = path;
	return best;
}

/* ---- what a step leaves behind ---- */

json_t *failure_child(struct failure_case *s)
{
	char by[FAILURE_TEXT];

	snprintf(by, sizeof(by), "debug:%s", s->name);
	return artifact_child(s->artifact, by, "");
}

__attribute__((format(printf, 2, 0))) static void vdetail(struct failure_case *s, const char *fmt,
							  va_list ap)
{
	buf_cut(&s->detail, 0);
	buf_vprintf(&s->detail, fmt, ap);
}

static int fix_finish(struct failure_case *s, const char *kind, json_t *take_child)
{
	json_object_set_new(take_child, "changed_because", json_text(buf_str(&s->detail)));
	json_object_del(take_child, "run_id");
	json_object_del(take_child, "seq");
	json_object_del(take_child, "created_at");
	artifact_set_hash(take_child);
	if (!strcmp(doc_text(take_child, "hash"), doc_text(s->artifact, "hash"))) {
		json_decref(take_child);
		buf_cut(&s->detail, 0);
		return 0;
	}
	s->kind = kind;
	s->child = take_child;
	return 1;
}

int failure_done(struct failure_case *s, const char *kind, json_t *take_child, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdetail(s, fmt, ap);
	va_end(ap);
	return fix_finish(s, kind, take_child);
}

int failure_edit(struct failure_case *s, const char *path, const struct buf *text, const char *fmt,
		 ...)
{
	json_t *child = failure_child(s);
	va_list ap;

	json_object_set_new(json_object_get(child, "files"), path, json_text(buf_str(text)));
	va_start(ap, fmt);
	vdetail(s, fmt, ap);
	va_end(ap);
	return fix_finish(s, "edit", child);
}

int failure_ask(struct failure_case *s, const char *name, const char *fmt, ...)
{
	va_list ap;

	s->kind = "ask";
	snprintf(s->question_name, sizeof(s->question_name), "%s", name);
	va_start(ap, fmt);
	buf_vprintf(&s->question, fmt, ap);
	va_end(ap);
	buf_cut(&s->detail, 0);
	buf_puts(&s->detail, buf_str(&s->question));
	return 1;
}

int failure_stop(struct failure_case *s, const char *fixable, const char *fmt, ...)
{
	va_list ap;

	s->kind = "stop";
	s->fixable = fixable;
	va_start(ap, fmt);
	vdetail(s, fmt, ap);
	va_end(ap);
	return 1;
}

/* ---- text ---- */

const char *text_line(const char *text, long line, size_t *n)
{
	for (; line > 1 && text; line--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (text)
		*n = strcspn(text, "\n");
	return line == 1 ? text : NULL;
}

void text_splice(struct buf *out, const char *text, size_t at, size_t gone, const char *with)
{
	buf_add(out, text, at);
	buf_puts(out, with);
	buf_puts(out, text + at + gone);
}

static int in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

const char *text_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; n && (at = strstr(at, word)); at += n)
		if ((at == text || !in_word(at[-1])) && !in_word(at[n]))
			return at;
	return NULL;
}
