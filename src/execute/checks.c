/* checks.c - see execute.h: checks of the exit status and the output of a program. */
#include "execute/execute.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "batch/output_compare.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_BYTES = 400, REPEATS = 1000, LINE_SHOWN = 200 };

/* A pattern is untrusted, and regexec() has no timeout: patterns with exponential time are not
 * tried. */
static int is_harmless(const char *pattern)
{
	unsigned long product = 1;

	if (strlen(pattern) > PATTERN_BYTES)
		return 0;
	for (const char *p = pattern; *p; p++) {
		if (*p == '\\' && p[1]) {
			if (isdigit((unsigned char)p[1]))
				return 0;
			p++;
		} else if (*p == '{' && isdigit((unsigned char)p[1])) {
			unsigned long n = strtoul(p + 1, NULL, 10);
			const char *comma = strchr(p, ',');
			unsigned long most = comma ? strtoul(comma + 1, NULL, 10) : 0;

			n = most > n ? most : n;
			product *= n ? n : 1;
			if (product > REPEATS)
				return 0;
		}
	}
	return 1;
}

static int checks_matches(const char *pattern, const char *text, json_t *row)
{
	regex_t r;
	int found;

	if (!is_harmless(pattern) || regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB)) {
		json_object_set_new(row, "detail", json_string("the pattern cannot be used"));
		return 0;
	}
	found = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return found;
}

static long number_of(const json_t *arg)
{
	return json_is_string(arg) ? strtol(json_string_value(arg), NULL, 10)
				   : (long)json_integer_value(arg);
}

/* The nth line of a text, truncated for a message. */
static json_t *line_of(const char *text, size_t n, unsigned nth)
{
	const char *end = text + n, *nl;

	for (; nth > 1 && text < end; nth--) {
		nl = memchr(text, '\n', (size_t)(end - text));
		text = nl ? nl + 1 : end;
	}
	nl = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
	n = (size_t)((nl ? nl : end) - text);
	return execute_text(text, n < LINE_SHOWN ? n : LINE_SHOWN, "", 0,
			    n < LINE_SHOWN ? n : LINE_SHOWN);
}

static void checks_differs(json_t *row, const char *out, size_t n, const char *want)
{
	unsigned line = output_compare_line(JUDGE_TRIMMED, out, n, want, strlen(want));
	json_t *expected = line_of(want, strlen(want), line), *seen = line_of(out, n, line);

	json_object_set_new(row, "detail",
			    json_sprintf("stdout differs in line %u: expected '%s', seen '%s'",
					 line, json_string_value(expected),
					 json_string_value(seen)));
	json_decref(expected);
	json_decref(seen);
}

/* The expected stdout, and the beginning and end of the actual one. */
static void checks_add_mismatch(json_t *row, const char *wanted, const char *text, const char *out,
				size_t n)
{
	json_t *want = execute_text(text, strnlen(text, LINE_SHOWN), "", 0,
				    strnlen(text, LINE_SHOWN)),
	       *seen;

	if (json_object_get(row, "detail")) /* the pattern is invalid */
		seen = NULL;
	else if (n <= 2 * LINE_SHOWN)
		seen = execute_text(out, n, "", 0, n);
	else
		seen = execute_text(out, LINE_SHOWN, out + n - LINE_SHOWN, LINE_SHOWN, n);
	if (seen)
		json_object_set_new(row, "detail",
				    json_sprintf("expected stdout to %s '%s', seen '%s'", wanted,
						 json_string_value(want), json_string_value(seen)));
	json_decref(want);
	json_decref(seen);
}

/* A failed check names the limit if stdout was longer than what was examined. */
static void say_cut(json_t *row, size_t n, uint64_t all)
{
	const char *detail = json_string_value(json_object_get(row, "detail"));

	json_object_set_new(
		row, "detail",
		json_sprintf("%s%sonly the first %zu of %llu bytes of stdout were looked at",
			     detail ? detail : "", detail ? "; " : "", n, (unsigned long long)all));
}

/* -1: not a check of this kind. */
static int checks_passes(const char *kind, const json_t *arg, int exit_code, const char *out,
			 size_t n, json_t *row)
{
	const char *text = json_string_value(arg) ? json_string_value(arg) : "";
	auto_free char *copy = NULL;
	int same;

	if (!strcmp(kind, "exit")) {
		json_object_set_new(row, "detail", json_sprintf("exit %d", exit_code));
		return exit_code == number_of(arg);
	}
	if (!strcmp(kind, "stdout_equals")) {
		same = output_compare_same(JUDGE_TRIMMED, out, n, text, strlen(text));
		if (!same)
			checks_differs(row, out, n, text);
		return same;
	}
	copy = strndup(n ? out : "", n);
	if (!copy)
		abort();
	if (!strcmp(kind, "stdout_regex")) {
		same = checks_matches(text, copy, row);
		if (!same)
			checks_add_mismatch(row, "match", text, out, n);
		return same;
	}
	if (!strcmp(kind, "stdout_contains")) {
		same = memmem(out, n, text, strlen(text)) != NULL;
		if (!same)
			checks_add_mismatch(row, "contain", text, out, n);
		return same;
	}
	return -1;
}

json_t *execute_checks(const json_t *checks, int exit_code, const char *out, size_t n, uint64_t all)
{
	json_t *rows = json_array();
	const json_t *one;
	size_t i;

	json_array_foreach(checks, i, one)
	{
		const char *kind = doc_text(one, "kind");
		json_t *row =
			json_pack("{s:s, s:O?}", "kind", kind, "arg", json_object_get(one, "arg"));
		int pass = checks_passes(kind, json_object_get(one, "arg"), exit_code, out, n, row);

		if (pass < 0) {
			json_decref(row);
			continue;
		}
		if (!strcmp(kind, "stdout_equals") && all > n)
			pass = 0;
		if (!pass && all > n && !strncmp(kind, "stdout_", 7))
			say_cut(row, n, all);
		json_object_set_new(row, "pass", json_boolean(pass));
		json_array_append_new(rows, row);
	}
	return rows;
}

static void add_clean(struct buf *to, const char *bytes, size_t n)
{
	size_t from = to->len;

	buf_add(to, bytes, n);
	for (size_t i = from; i < to->len; i++)
		if (!to->p[i])
			to->p[i] = '?';
}

json_t *execute_text(const char *head, size_t n, const char *tail, size_t ntail, uint64_t all)
{
	auto_buf struct buf text = { 0 };

	add_clean(&text, head, n);
	if (all > n + ntail)
		buf_printf(&text, "\n[... %llu bytes left out ...]\n",
			   (unsigned long long)(all - n - ntail));
	add_clean(&text, tail, ntail);
	return json_text(buf_str(&text));
}
