/* task_examples.c - see task_examples.h. */
#include "plan/task_examples.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_CALL = 2048 }; /* bounds the scans of nested brackets */

static void task_examples_blank(char *from, const char *to)
{
	for (; from < to; from++)
		if (*from != '\n')
			*from = ' ';
}

static char *init_conn_box_ended(char *p)
{
	return p + strcspn(p, "\n");
}

static char *next_line(char *p)
{
	p = init_conn_box_ended(p);
	return *p ? p + 1 : p;
}

static int is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static char *task_examples_skip(char *p)
{
	return p + strspn(p, " \t");
}

/* ---- a call and what it gives ---- */

size_t task_examples_callee(const char *call)
{
	size_t n = 0;

	if (isdigit((unsigned char)*call))
		return 0;
	while (is_name(call[n]))
		n++;
	return n && call[n] == '(' ? n : 0;
}

/* Skips to the end of the outermost bracket; NULL: not closed in this line. */
static char *task_examples_balanced(char *p)
{
	const char *far = p + LONGEST_CALL;
	int depth = 0;

	for (; *p && *p != '\n' && p < far; p++) {
		if (*p == '"' || *p == '\'') {
			char quote = *p++;

			while (*p && *p != '\n' && *p != quote)
				p += *p == '\\' && p[1] ? 2 : 1;
			if (*p != quote)
				return NULL;
		} else if (strchr("([{", *p)) {
			depth++;
		} else if (strchr(")]}", *p)) {
			depth--;
		}
		if (depth < 0)
			return NULL;
		if (!depth)
			return p + 1;
	}
	return NULL;
}

static int begins_value(const char *p)
{
	static const char *const names[] = {
		"True", "False", "None", "true", "false", "null", "nil"
	};

	if (*p == '-')
		p++;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strncmp(p, names[i], strlen(names[i])) && !is_name(p[strlen(names[i])]))
			return 1;
	return isdigit((unsigned char)*p) || (*p && strchr("([{\"'", *p));
}

/* One literal: in brackets, in quotes, or up to a blank; a full stop after it is not part of it. */
static char *value_end(char *p)
{
	char *to;

	if (!begins_value(p))
		return NULL;
	if (strchr("([{\"'", *p))
		return task_examples_balanced(p);
	to = p + strcspn(p, " \t\n,;)");
	if (to > p && to[-1] == '.')
		to--;
	return to > p ? to : NULL;
}

/* The type of an argument by its first character: a quote, a bracket and its content, a digit. */
static int is_kind(const char *arg, const char *type, size_t n)
{
	int list = *arg == '[' || *arg == '(', text, number;

	arg += list;
	arg += strspn(arg, " ");
	text = *arg == '"' || *arg == '\'';
	number = isdigit((unsigned char)*arg) || *arg == '-';
	if (n == 3 && !memcmp(type, "any", n))
		return 1;
	if (!strncmp(type, "numbers", n) && n == 7)
		return list && (number || strchr("])", *arg));
	if (!strncmp(type, "integers", n) && n == 8)
		return list && (number || strchr("])", *arg));
	if (!strncmp(type, "texts", n) && n == 5)
		return list && text;
	if (!strncmp(type, "text", n) && n == 4)
		return !list && text;
	if (!strncmp(type, "integer", n) && n == 7)
		return !list && number && !strchr(".", arg[1 + strspn(arg + 1, "0123456789")]);
	return !strncmp(type, "number", n) && n == 6 && !list && number;
}

int task_examples_takes(const char *call, const char *types)
{
	char *copy = strdup(call), *p, *end;
	int fits = 1;

	if (!copy)
		abort();
	p = copy + task_examples_callee(copy);
	end = task_examples_balanced(p);
	p = task_examples_skip(p + 1);
	while (fits && end && p < end - 1) {
		size_t n = strcspn(types, " ");

		fits = n && is_kind(p, types, n);
		types += n + strspn(types + n, " ");
		while (p < end - 1 && *p != ',') { /* skips this argument */
			char *over = strchr("([{\"'", *p) ? task_examples_balanced(p) : p + 1;

			p = over ? over : end;
		}
		p = task_examples_skip(p + (p < end - 1));
	}
	fits = fits && end && !*types;
	free(copy);
	return fits;
}

static void add_example(struct task_examples *out, const char *one, const char *from, size_t n,
			const char *expected, size_t expected_n, const char *tail)
{
	char *given = strndup(from, n), *wanted = malloc(expected_n + 2);

	if (!given || !wanted)
		abort();
	memcpy(wanted, expected, expected_n);
	strcpy(wanted + expected_n, tail);
	if (json_array_size(out->examples) < TASK_EXAMPLES_MOST)
		json_array_append_new(out->examples,
				      json_pack("{s:s, s:s}", one, given, "expected", wanted));
	free(given);
	free(wanted);
}

/* The arrow after a call, in every notation. */
static char *behind_arrow(char *p)
{
	static const char *const arrows[] = { "->",        "=>",      "→",
					      "==",        "=",       "should return",
					      "should be", "returns", "gives",
					      "prints",    "yields" };

	p = task_examples_skip(p);
	for (unsigned i = 0; i < ARRAY_LEN(arrows); i++) {
		size_t n = strlen(arrows[i]);

		if (!strncasecmp(p, arrows[i], n) && !(is_name(arrows[i][0]) && is_name(p[n])))
			return task_examples_skip(p + n);
	}
	return NULL;
}

static void task_examples_trim(const char *from, size_t *n)
{
	while (*n && isspace((unsigned char)from[*n - 1]))
		--*n;
}

/* assert f(2) == 4, "why" */
static int take_assert(struct task_examples *out, char *line)
{
	char *p = task_examples_skip(line), *call, *end, *value, *to;

	if (strncmp(p, "assert ", 7) != 0)
		return 0;
	call = task_examples_skip(p + 7);
	if (!task_examples_callee(call) ||
	    !(end = task_examples_balanced(call + task_examples_callee(call))))
		return 0;
	value = task_examples_skip(end);
	if (strncmp(value, "==", 2) != 0)
		return 0;
	value = task_examples_skip(value + 2);
	to = value;
	while (*to && *to != '\n' &&
	       *to != ',') { /* a comma outside of brackets starts the message */
		char *over = strchr("([{\"'", *to) ? task_examples_balanced(to) : to + 1;

		if (!over)
			return 0;
		to = over;
	}
	if (to == value)
		return 0;
	size_t n = (size_t)(to - value);
	task_examples_trim(value, &n);
	add_example(out, "call", call, (size_t)(end - call), value, n, "");
	task_examples_blank(line, init_conn_box_ended(line));
	return 1;
}

/* >>> f(2), and below it 4 */
static int take_doctest(struct task_examples *out, char *line)
{
	char *p = task_examples_skip(line), *end, *value;
	size_t n;

	if (strncmp(p, ">>>", 3) != 0)
		return 0;
	p = task_examples_skip(p + 3);
	value = task_examples_skip(next_line(p));
	n = strcspn(value, "\n");
	task_examples_trim(value, &n);
	if (task_examples_callee(p) &&
	    (end = task_examples_balanced(p + task_examples_callee(p))) && n &&
	    strncmp(value, ">>>", 3) != 0) {
		add_example(out, "call", p, (size_t)(end - p), value, n, "");
		task_examples_blank(value, value + n);
	}
	task_examples_blank(line, init_conn_box_ended(line));
	return 1;
}

/* f(2) -> 4, anywhere in the line. */
static void take_arrows(struct task_examples *out, char *line)
{
	char *end = init_conn_box_ended(line);

	for (char *p = line; p < end; p++) {
		char *call_end, *value, *to;

		if ((p > line && (is_name(p[-1]) || p[-1] == '.')) || !task_examples_callee(p))
			continue;
		call_end = task_examples_balanced(p + task_examples_callee(p));
		value = call_end ? behind_arrow(call_end) : NULL;
		to = value ? value_end(value) : NULL;
		if (!to)
			continue;
		add_example(out, "call", p, (size_t)(call_end - p), value, (size_t)(to - value),
			    "");
		task_examples_blank(p, to);
		p = to - 1;
	}
}

/* The length of "input:" or a similar label at p. */
static size_t task_examples_label(const char *p, const char *name)
{
	size_t n = strlen(name), more;

	if (strncasecmp(p, name, n) != 0)
		return 0;
	more = strspn(p + n, " \t0123456789");
	return p[n + more] == ':' ? n + more + 1 : 0;
}

static char *find_label(char *from, const char *to, const char *name)
{
	for (char *p = from; p < to; p++)
		if ((p == from || !is_name(p[-1])) && task_examples_label(p, name))
			return p;
	return NULL;
}

/* Input: 3 1 2  Output: 6, in one line or in several; an empty line or the next input ends it. */
static void take_inputs(struct task_examples *out)
{
	char *end = out->rest + out->len, *p = out->rest;

	while (json_array_size(out->examples) < TASK_EXAMPLES_MOST &&
	       (p = find_label(p, end, "input")) != NULL) {
		char *from = p + task_examples_label(p, "input"),
		     *mid = find_label(from, end, "output"), *to, *value;
		char *next = find_label(from, end, "input");
		size_t n, m;

		if (!mid || (next && next < mid))
			return;
		value = mid + task_examples_label(mid, "output");
		to = next ? next : end;
		value += strspn(value, " \t\n");
		if (value < to && strstr(value, "\n\n") && strstr(value, "\n\n") < to)
			to = strstr(value, "\n\n");
		if (value > to)
			return;
		from += strspn(from, " \t\n");
		n = mid > from ? (size_t)(mid - from) : 0;
		task_examples_trim(from, &n);
		while (n && strchr(",;", from[n - 1]))
			n--;
		m = (size_t)(to - value);
		task_examples_trim(value, &m);
		if (n && m) {
			char *given = strndup(from, n);

			if (!given)
				abort();
			given = realloc(given, n + 2);
			if (!given)
				abort();
			strcpy(given + n, "\n");
			add_example(out, "input", given, n + 1, value, m, "\n");
			free(given);
		}
		task_examples_blank(p, to);
		p = to;
	}
}

/* ---- fences ---- */

static int only_examples(const char *from, const char *to)
{
	int any = 0;

	while (from < to) {
		const char *p = from + strspn(from, " \t");

		if (!strncmp(p, "assert ", 7) || !strncmp(p, ">>>", 3))
			any = 1;
		else if (*p != '\n' && !any)
			return 0;
		from += strcspn(from, "\n") + 1;
	}
	return any;
}

/* The first fence with code is the program; asserts in a fence are examples. */
static void take_fences(struct task_examples *out)
{
	for (char *p = out->rest; *p; p = next_line(p)) {
		char *tag = task_examples_skip(p), *from, *to;
		size_t n;

		if (strncmp(tag, "```", 3) != 0)
			continue;
		tag += 3;
		from = next_line(tag);
		for (to = from; *to && strncmp(task_examples_skip(to), "```", 3) != 0;
		     to = next_line(to))
			;
		if (only_examples(from, to)) {
			task_examples_blank(p, from);
			task_examples_blank(to, init_conn_box_ended(to));
			continue;
		}
		n = strcspn(tag, " \t\n{");
		if (!out->code && n < sizeof(out->tag) && to > from) {
			memcpy(out->tag, tag, n);
			out->tag[n] = 0;
			out->code = strndup(from, (size_t)(to - from));
		}
		task_examples_blank(p, init_conn_box_ended(to));
		p = to;
	}
}

void task_examples_read(struct task_examples *out, const char *text, size_t len)
{
	*out = (struct task_examples){ .len = len,
				       .examples = json_array(),
				       .rest = malloc(len + 1) };
	if (!out->rest)
		abort();
	/* A NUL would end the search early. */
	for (size_t i = 0; i < len; i++)
		out->rest[i] = text[i] ? text[i] : ' ';
	out->rest[len] = 0;
	take_fences(out);
	for (char *p = out->rest; *p; p = next_line(p))
		if (!take_assert(out, p) && !take_doctest(out, p))
			take_arrows(out, p);
	take_inputs(out);
}

void task_examples_fini(struct task_examples *s)
{
	free(s->rest);
	free(s->code);
	json_decref(s->examples);
	*s = (struct task_examples){ 0 };
}
