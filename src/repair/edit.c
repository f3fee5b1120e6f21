/* edit.c - see edit.h. */
#include "repair/edit.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int is_word(const char *s)
{
	size_t n = strlen(s);

	for (const char *c = s; *c; c++)
		if (!islower((unsigned char)*c) && *c != '-')
			return 0;
	return n > 0 && n < EDIT_RULE;
}

int edit_read(struct edit *x, const json_t *doc, struct err *e)
{
	const json_t *at = json_object_get(doc, "at"), *cut = json_object_get(doc, "cut"),
		     *text = json_object_get(doc, "new"), *rule = json_object_get(doc, "rule");

	*x = (struct edit){ 0 };
	if (!json_is_integer(at) || json_integer_value(at) < 0 || !json_is_integer(cut) ||
	    json_integer_value(cut) < 0 || !json_is_string(text) || !json_is_string(rule) ||
	    !is_word(json_string_value(rule)))
		return err_set(e, ERR_INVALID, "no edit");
	if (json_string_length(text) > EDIT_NEW + EDIT_CUT)
		return err_set(e, ERR_LIMIT, "an edit puts in at most %d bytes", EDIT_NEW);
	x->at = (size_t)json_integer_value(at);
	x->cut = (size_t)json_integer_value(cut);
	x->len = json_string_length(text);
	x->text = malloc(x->len + 1);
	if (!x->text)
		abort();
	memcpy(x->text, json_string_value(text), x->len + 1);
	memcpy(x->rule, json_string_value(rule), json_string_length(rule) + 1);
	return 0;
}

/* At a character boundary. */
static int is_border(const char *source, size_t n, size_t at)
{
	return at == n || !utf8_continues(source[at]);
}

/* The new text is a few bytes, or the old text with a few bytes around it, or a part of the old
 * text. */
static int is_small(const struct edit *x, const char *old)
{
	if (x->len <= EDIT_NEW)
		return 1;
	if (x->len >= x->cut)
		return x->len - x->cut <= EDIT_NEW && memmem(x->text, x->len, old, x->cut) != NULL;
	return memmem(old, x->cut, x->text, x->len) != NULL;
}

int edit_check(const struct edit *x, const char *source, size_t n, struct err *e)
{
	if (x->at > n || x->cut > n - x->at)
		return err_set(e, ERR_INVALID, "the edit is after the end of the program");
	if (x->cut > EDIT_CUT)
		return err_set(e, ERR_LIMIT, "an edit removes at most %d bytes", EDIT_CUT);
	if (!is_border(source, n, x->at) || !is_border(source, n, x->at + x->cut))
		return err_set(e, ERR_INVALID, "an edit within a character");
	if (memchr(x->text, 0, x->len))
		return err_set(e, ERR_INVALID, "an edit with a NUL");
	if (x->len == x->cut && memcmp(x->text, source + x->at, x->cut) == 0)
		return err_set(e, ERR_INVALID, "an edit that changes nothing");
	if (!is_small(x, source + x->at))
		return err_set(e, ERR_LIMIT, "an edit in more than one place");
	return 0;
}

void edit_apply(const struct edit *x, const char *source, size_t n, struct buf *out)
{
	buf_add(out, source, x->at);
	buf_add(out, x->text, x->len);
	buf_add(out, source + x->at + x->cut, n - x->at - x->cut);
}

unsigned edit_line(const struct edit *x, const char *source)
{
	unsigned line = 1;

	for (size_t i = 0; i < x->at; i++)
		line += source[i] == '\n';
	return line;
}

/* The complete lines [a, b) of text, each with a prefix. */
static void edit_do_show(struct buf *out, char sign, const char *text, size_t a, size_t b)
{
	while (a < b) {
		const char *end = memchr(text + a, '\n', b - a);
		size_t to = end ? (size_t)(end - text) : b;

		buf_putc(out, sign);
		buf_add(out, text + a, to - a);
		buf_putc(out, '\n');
		a = to + 1;
	}
}

void edit_show(const struct edit *x, const char *source, size_t n, struct buf *out)
{
	auto_buf struct buf after = { 0 };
	size_t a = x->at, b = x->at + x->cut;

	edit_apply(x, source, n, &after);
	while (a && source[a - 1] != '\n')
		a--;
	while (b < n && source[b] != '\n')
		b++;
	edit_do_show(out, '-', source, a, b);
	edit_do_show(out, '+', after.p, a, b - x->cut + x->len);
}

void edit_fini(struct edit *x)
{
	free(x->text);
	*x = (struct edit){ 0 };
}
