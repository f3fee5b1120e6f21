/* diag.c - see diag.h. A pattern is applied to a few lines at a time, each truncated: the cost of a
 * regular expression depends on the length of the text, and this text is untrusted. */
#include "lang/diag.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "record/changes.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512, LINES_MAX = 600, WINDOW_LINES = 3, RESULTS = 50, GROUPS = 10 };

/* Copies some lines, from `at` on. */
struct window {
	char text[WINDOW_LINES * (LINE_BYTES + 1) + 1];
	regmatch_t group[GROUPS];
};

static const char *init_conn_box_ended(const char *at, const char *end)
{
	const char *nl = memchr(at, '\n', (size_t)(end - at));

	return nl ? nl : end;
}

static void diag_look(struct window *w, const char *at, const char *end, unsigned lines)
{
	char *to = w->text;

	lines = lines > WINDOW_LINES ? WINDOW_LINES : lines ? lines : 1;
	for (unsigned i = 0; i < lines && at < end; i++) {
		const char *stop = init_conn_box_ended(at, end);
		size_t n = (size_t)(stop - at) < LINE_BYTES ? (size_t)(stop - at) : LINE_BYTES;

		if (i)
			*to++ = '\n';
		memcpy(to, at, n);
		to += n;
		if (to > w->text && to[-1] == '\r')
			to--;
		at = stop + 1;
	}
	*to = 0;
	/* A NUL would end the text for the patterns. */
	for (char *p = w->text; p < to; p++)
		*p = *p ? *p : ' ';
}

static int diag_matches(const regex_t *re, struct window *w)
{
	return regexec(re, w->text, GROUPS, w->group, 0) == 0;
}

static json_t *group_text(struct window *w, uint32_t group)
{
	char *from;
	json_t *value;
	char kept;
	regoff_t end;

	if (!group || group >= GROUPS || w->group[group].rm_so < 0)
		return json_null();
	from = w->text + w->group[group].rm_so;
	end = w->group[group].rm_eo;
	kept = w->text[end];
	w->text[end] = 0;
	value = json_text(from);
	w->text[end] = kept;
	return value;
}

static json_t *group_number(struct window *w, uint32_t group)
{
	if (!group || group >= GROUPS || w->group[group].rm_so < 0)
		return json_null();
	return json_integer(strtol(w->text + w->group[group].rm_so, NULL, 10));
}

/* Files are reported by the names of the request. */
static json_t *group_file(struct window *w, uint32_t group)
{
	json_t *path = group_text(w, group);
	const char *text = json_string_value(path);
	json_t *inside;

	if (!text || strncmp(text, BOX_HOME "/", strlen(BOX_HOME "/")) != 0)
		return path;
	inside = json_string(text + strlen(BOX_HOME "/"));
	json_decref(path);
	return inside;
}

/* ---- compilers ---- */

static json_t *diag_severity(struct window *w, uint32_t group)
{
	json_t *said = group_text(w, group);
	const char *text = json_string_value(said);

	if (text && !strcmp(text, "fatal error")) {
		json_decref(said);
		return json_string("error");
	}
	return json_is_null(said) ? json_string("error") : said;
}

static json_t *diag_column(struct window *w, const struct lang_pattern *p)
{
	const regmatch_t *m = &w->group[p->caret];

	if (p->caret && p->caret < GROUPS && m->rm_so >= 0)
		return json_integer(m->rm_eo - m->rm_so + 1);
	return group_number(w, p->column);
}

static json_t *error_of(struct window *w, const struct lang_pattern *p)
{
	json_t *doc = json_object();

	json_object_set_new(doc, "file", group_file(w, p->file));
	json_object_set_new(doc, "line", group_number(w, p->line));
	json_object_set_new(doc, "column", diag_column(w, p));
	json_object_set_new(doc, "severity", diag_severity(w, p->severity));
	json_object_set_new(doc, "message", group_text(w, p->message));
	return doc;
}

enum { PATTERNS = 8 };

static unsigned diag_compile(const struct lang_pattern *p, regex_t out[PATTERNS])
{
	unsigned n = 0;

	for (; p[n].match && n < PATTERNS; n++)
		if (regcomp(&out[n], p[n].match, REG_EXTENDED | REG_NEWLINE) != 0)
			break;
	return n;
}

json_t *diag_errors(const struct lang *l, const char *text, size_t len)
{
	const char *at = text, *end = text + (len < DIAG_BYTES ? len : DIAG_BYTES);
	json_t *all = json_array();
	regex_t re[PATTERNS];
	unsigned n = diag_compile(l->errors, re);
	struct window w;

	for (unsigned line = 0; n && at < end && line < LINES_MAX; line++) {
		for (unsigned i = 0; i < n && json_array_size(all) < RESULTS; i++) {
			diag_look(&w, at, end, l->errors[i].lines);
			if (!diag_matches(&re[i], &w))
				continue;
			json_array_append_new(all, error_of(&w, &l->errors[i]));
			break;
		}
		at = init_conn_box_ended(at, end) + 1;
	}
	for (unsigned i = 0; i < n; i++)
		regfree(&re[i]);
	if (json_array_size(all))
		return all;
	json_decref(all);
	return NULL;
}

/* ---- programs ---- */

/* A frame in a library of the host or outside of the files of the user is skipped. */
static int is_library(const struct window *w, uint32_t group)
{
	const char *path;

	if (!group || group >= GROUPS || w->group[group].rm_so < 0)
		return 0;
	path = w->text + w->group[group].rm_so;
	return !strncmp(path, "/usr/", 5) || !strncmp(path, "/opt/atoll/", 11) || *path == '<' ||
	       !strncmp(path, BOX_HOME "/.local/", strlen(BOX_HOME "/.local/"));
}

/* The last window that matches, or the first one; 0: none. file: the group that names a file, or 0;
 * a window that names a file of the user is preferred. */
static int diag_find(struct window *w, const char *pattern, unsigned lines, int last, uint32_t file,
		     const char *text, const char *end)
{
	const char *found = NULL, *at = text, *other = NULL;
	regex_t re;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE) != 0)
		return 0;
	for (unsigned line = 0; at < end && line < LINES_MAX && (last || !found); line++) {
		diag_look(w, at, end, lines);
		if (diag_matches(&re, w) && is_library(w, file))
			other = last || !other ? at : other;
		else if (diag_matches(&re, w))
			found = at;
		at = init_conn_box_ended(at, end) + 1;
	}
	found = found ? found : other;
	if (found) {
		diag_look(w, found, end, lines);
		(void)diag_matches(&re, w);
	}
	regfree(&re);
	return found != NULL;
}

static json_t *fault_of(const struct lang_pattern *p, const char *text, const char *end)
{
	struct window w, place;
	json_t *doc;

	/* Where the pattern has a file and line, text alone is not enough: any program may print
	 * "x: y". */
	if (!diag_find(&w, p->match, p->lines, 1, 0, text, end) ||
	    (p->at && !diag_find(&place, p->at, 1, (int)p->at_last, p->at_file, text, end)))
		return NULL;
	doc = json_object();
	json_object_set_new(doc, "type", group_text(&w, p->type));
	json_object_set_new(doc, "message", group_text(&w, p->message));
	json_object_set_new(doc, "file",
			    p->at ? group_file(&place, p->at_file) : group_file(&w, p->file));
	json_object_set_new(doc, "line",
			    p->at ? group_number(&place, p->at_line) : group_number(&w, p->line));
	return doc;
}

json_t *diag_fault(const struct lang *l, const char *text, size_t len)
{
	const char *end = text + len;
	json_t *doc = NULL;

	text = len > DIAG_BYTES ? end - DIAG_BYTES : text;
	for (const struct lang_pattern *p = l->faults; p->match && !doc; p++)
		doc = fault_of(p, text, end);
	return doc;
}

/* ---- what is kept ---- */

void diag_head(struct buf *kept, const char *bytes, size_t n)
{
	size_t space = kept->len < DIAG_BYTES ? DIAG_BYTES - kept->len : 0;

	buf_add(kept, bytes, n < space ? n : space);
}

void diag_tail(struct buf *kept, const char *bytes, size_t n)
{
	if (n > DIAG_BYTES) {
		bytes += n - DIAG_BYTES;
		n = DIAG_BYTES;
	}
	if (kept->len + n > 2 * DIAG_BYTES) {
		memmove(kept->p, kept->p + kept->len - DIAG_BYTES, DIAG_BYTES);
		buf_cut(kept, DIAG_BYTES);
	}
	buf_add(kept, bytes, n);
}
