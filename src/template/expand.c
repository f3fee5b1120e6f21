/* expand.c - see expand.h. */
#include "template/expand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct expansion {
	const char *text, *p;
	expand_lookup *look; /* NULL: nothing is set, and nothing is missing */
	void *ctx;
	struct buf *out;
	size_t begin; /* length of out before */
	struct err *e;
};

/* Parameters of a shell that no build has: $1, $@, $$ ... */
static int expand_is_special(char c)
{
	return c && (isdigit((unsigned char)c) || strchr("@*#?-$!", c));
}

static int expand_name_begins(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static size_t expand_name_length(const char *p)
{
	size_t n = 0;

	if (expand_is_special(*p))
		return 1;
	if (!expand_name_begins(*p))
		return 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

int expand_is_name(const char *name)
{
	return expand_name_begins(*name) && !name[expand_name_length(name)];
}

/* ---- replacing ---- */

static int expand_put(struct expansion *x, const char *bytes, size_t n, int emit)
{
	if (!emit)
		return 0;
	if (x->out->len - x->begin + n > EXPAND_BYTES)
		return err_set(x->e, ERR_LIMIT, "'%.40s' becomes longer than %d bytes", x->text,
			       EXPAND_BYTES);
	buf_add(x->out, bytes, n);
	return 0;
}

/* Takes the name at p. *out_value: NULL, it is not set. */
static int expand_value(struct expansion *x, char name[EXPAND_NAME + 1], const char **out_value)
{
	size_t n = expand_name_length(x->p);

	if (n > EXPAND_NAME)
		return err_set(x->e, ERR_INVALID, "'%.40s...' is a name of more than %d bytes",
			       x->p, EXPAND_NAME);
	memcpy(name, x->p, n);
	name[n] = 0;
	x->p += n;
	*out_value = x->look && expand_is_name(name) ? x->look(x->ctx, name) : NULL;
	return 0;
}

static int expand_until(struct expansion *x, char stop, unsigned depth, int emit);

static int expand_missing(struct expansion *x, const char *name, size_t from)
{
	char why[81];
	size_t n = x->out->len - from;

	snprintf(why, sizeof(why), "%s", n ? buf_str(x->out) + from : "it is not set");
	buf_cut(x->out, from);
	return err_set(x->e, ERR_INVALID, "%s: %s", name, why);
}

/* p is after the name in ${NAME and at a modifier. */
static int expand_modified(struct expansion *x, const char *name, const char *value, unsigned depth,
			   int emit)
{
	int colon = *x->p == ':', word;
	size_t from = x->out->len;
	char op;

	if (value && colon && !*value)
		value = NULL;
	x->p += colon;
	op = *x->p;
	if (!op || !strchr("-+?", op))
		return err_set(
			x->e, ERR_INVALID,
			"'${%.40s%s%.8s' is not supported: use ${NAME}, ${NAME:-x}, ${NAME:+x} or ${NAME:?x}",
			name, colon ? ":" : "", x->p);
	x->p++;
	word = op == '+' ? !!value : !value;
	if (op != '+' && value && expand_put(x, value, strlen(value), emit) < 0)
		return -1;
	if (expand_until(x, '}', depth + 1, emit && word) < 0)
		return -1;
	return op == '?' && !value && emit && x->look ? expand_missing(x, name, from) : 0;
}

/* p is after "${". */
static int expand_braced(struct expansion *x, unsigned depth, int emit)
{
	const char *begin = x->p - 2, *value;
	char name[EXPAND_NAME + 1];

	if (depth >= EXPAND_DEPTH)
		return err_set(x->e, ERR_LIMIT, "more than %d levels of ${}", EXPAND_DEPTH);
	if (expand_value(x, name, &value) < 0)
		return -1;
	if (!*name)
		return err_set(x->e, ERR_INVALID, "'%.40s' has no name after ${", begin);
	if (*x->p == '}') {
		if (value && expand_put(x, value, strlen(value), emit) < 0)
			return -1;
	} else if (*x->p && expand_modified(x, name, value, depth, emit) < 0) {
		return -1;
	}
	if (*x->p != '}')
		return err_set(x->e, ERR_INVALID, "'%.40s' has no closing }", begin);
	x->p++;
	return 0;
}

static int expand_variable(struct expansion *x, unsigned depth, int emit)
{
	char name[EXPAND_NAME + 1];
	const char *value;

	x->p++;
	if (*x->p == '{') {
		x->p++;
		return expand_braced(x, depth, emit);
	}
	if (!expand_name_length(x->p))
		return expand_put(x, "$", 1, emit);
	if (expand_value(x, name, &value) < 0)
		return -1;
	return value ? expand_put(x, value, strlen(value), emit) : 0;
}

static int expand_until(struct expansion *x, char stop, unsigned depth, int emit)
{
	const char *escaped = stop ? "\\$}" : "\\$";

	while (*x->p && *x->p != stop) {
		if (*x->p == '$') {
			if (expand_variable(x, depth, emit) < 0)
				return -1;
			continue;
		}
		if (*x->p == '\\' && x->p[1] && strchr(escaped, x->p[1]))
			x->p++;
		if (expand_put(x, x->p++, 1, emit) < 0)
			return -1;
	}
	return 0;
}

int expand_text(struct buf *out, const char *text, expand_lookup *look, void *ctx, struct err *e)
{
	struct expansion x = { .text = text,
			       .p = text,
			       .look = look,
			       .ctx = ctx,
			       .out = out,
			       .begin = out->len,
			       .e = e };

	return expand_until(&x, 0, 0, 1);
}

/* ---- words of a Dockerfile ---- */

struct expand_source {
	const char *p;
	char escape;
	unsigned depth; /* of ${} */
	struct buf *out;
	struct err *e;
};

static void expand_put_literal(struct buf *out, char c, int in_braces)
{
	if (c == '$' || c == '\\' || (in_braces && c == '}'))
		buf_putc(out, '\\');
	buf_putc(out, c);
}

void expand_quote(struct buf *out, const char *literal)
{
	for (; *literal; literal++)
		expand_put_literal(out, *literal, 0);
}

static void expand_take_literal(struct expand_source *s)
{
	expand_put_literal(s->out, *s->p++, s->depth > 0);
}

static int expand_word_until(struct expand_source *s, char stop);

/* p is at a dollar. A name always gets its braces, because what follows it may have been quoted. */
static int expand_word_variable(struct expand_source *s)
{
	const char *begin = s->p++;
	int braces = *s->p == '{';
	size_t n = expand_name_length(s->p + braces);

	if (!braces && !n) {
		buf_puts(s->out, "\\$");
		return 0;
	}
	s->p += braces;
	buf_printf(s->out, "${%.*s", (int)n, s->p);
	s->p += n;
	if (braces) {
		if (++s->depth > EXPAND_DEPTH)
			return err_set(s->e, ERR_LIMIT, "more than %d levels of ${}", EXPAND_DEPTH);
		if (expand_word_until(s, '}') < 0)
			return -1;
		s->depth--;
		if (*s->p != '}')
			return err_set(s->e, ERR_INVALID, "'%.40s' has no closing }", begin);
		s->p++;
	}
	buf_putc(s->out, '}');
	return 0;
}

static int expand_word_single(struct expand_source *s)
{
	const char *begin = s->p++;

	while (*s->p && *s->p != '\'')
		expand_take_literal(s);
	if (!*s->p)
		return err_set(s->e, ERR_INVALID, "%.40s has no closing '", begin);
	s->p++;
	return 0;
}

static int expand_word_double(struct expand_source *s)
{
	const char *begin = s->p++;

	while (*s->p && *s->p != '"') {
		if (*s->p == '$') {
			if (expand_word_variable(s) < 0)
				return -1;
			continue;
		}
		if (*s->p == s->escape && s->p[1] &&
		    (s->p[1] == '"' || s->p[1] == '$' || s->p[1] == s->escape))
			s->p++;
		expand_take_literal(s);
	}
	if (!*s->p)
		return err_set(s->e, ERR_INVALID, "%.40s has no closing \"", begin);
	s->p++;
	return 0;
}

static int expand_word_until(struct expand_source *s, char stop)
{
	int failed = 0;

	while (!failed && *s->p && *s->p != stop) {
		if (*s->p == '\'') {
			failed = expand_word_single(s);
		} else if (*s->p == '"') {
			failed = expand_word_double(s);
		} else if (*s->p == '$') {
			failed = expand_word_variable(s);
		} else if (*s->p != s->escape) {
			expand_take_literal(s);
		} else if (*++s->p) {
			expand_take_literal(s);
		}
	}
	return failed;
}

int expand_word(struct buf *out, const char *word, char escape, struct err *e)
{
	struct expand_source s = { .p = word, .escape = escape, .out = out, .e = e };
	size_t from = out->len;
	auto_buf struct buf unused = { 0 };

	if (expand_word_until(&s, 0) < 0)
		return -1;
	return expand_text(&unused, buf_str(out) + from, NULL, NULL, e);
}
