/* literal.c - see literal.h. A language is a row: its quotes, its escapes, its brackets. */
#include "plan/literal.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "lang/lang.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Escapes for control characters and for invisible characters (direction marks, line separators);
 * NULL for the latter where a string is bytes and they may stay. */
struct style {
	const char *lang;
	const char *open, *close; /* of a text */
	const char
		*quote; /* a quote in a text where nothing else is escaped; NULL: that of a shell */
	const char *special;             /* characters that are escaped, besides \ and the quote */
	const char *control;             /* format of a byte below 0x20 and of 0x7f */
	const char *hidden, *hidden_far; /* format of an invisible character; above 0xffff */
	int ascii; /* escape all non-ASCII: the file encoding is not certain */
	int nul;   /* a string may contain a NUL */
	const char *list, *list_end, *between;
	const char *reals, *integers, *texts; /* prefix of a list of this type; or NULL */
	int dot;                              /* a real must look like one: 3.0 */
	const char *far;                      /* suffix of integers over 32 bits; or NULL */
	const char *also;                     /* another language with the same literals; or NULL */
};

static const struct style styles[] = {
	{ .lang = "python",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\x%02x",
	  .hidden = "\\u%04x",
	  .hidden_far = "\\U%08x",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	{ .lang = "node",
	  .also = "javascript-wasm",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\x%02x",
	  .hidden = "\\u{%x}",
	  .hidden_far = "\\u{%x}",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	{ .lang = "typescript",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\x%02x",
	  .hidden = "\\u{%x}",
	  .hidden_far = "\\u{%x}",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	/* Octal with three digits, because \x has no fixed length. ?? would start a trigraph. */
	{ .lang = "c",
	  .open = "\"",
	  .close = "\"",
	  .special = "?",
	  .control = "\\%03o",
	  .nul = 1,
	  .list = "{",
	  .list_end = "}",
	  .between = ", " },
	{ .lang = "c++",
	  .open = "\"",
	  .close = "\"",
	  .special = "?",
	  .control = "\\%03o",
	  .nul = 1,
	  .list = "{",
	  .list_end = "}",
	  .between = ", " },
	{ .lang = "go",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\x%02x",
	  .hidden = "\\u%04x",
	  .hidden_far = "\\U%08x",
	  .nul = 1,
	  .list = "{",
	  .list_end = "}",
	  .between = ", ",
	  .reals = "[]float64",
	  .integers = "[]int",
	  .texts = "[]string" },
	{ .lang = "rust",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\x%02x",
	  .hidden = "\\u{%x}",
	  .hidden_far = "\\u{%x}",
	  .nul = 1,
	  .list = "vec![",
	  .list_end = "]",
	  .between = ", ",
	  .dot = 1 },
	/* Not \u for line ends and quotes: javac expands those before it parses strings. */
	{ .lang = "java",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\%03o",
	  .hidden = "\\u%04x",
	  .nul = 1,
	  .list = "{",
	  .list_end = "}",
	  .between = ", ",
	  .reals = "new double[]",
	  .integers = "new long[]",
	  .far = "L",
	  .texts = "new String[]" },
	{ .lang = "ruby",
	  .open = "\"",
	  .close = "\"",
	  .special = "#",
	  .control = "\\x%02x",
	  .hidden = "\\u{%x}",
	  .hidden_far = "\\u{%x}",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	{ .lang = "php",
	  .open = "\"",
	  .close = "\"",
	  .special = "$",
	  .control = "\\x%02x",
	  .hidden = "\\u{%x}",
	  .hidden_far = "\\u{%x}",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	{ .lang = "perl",
	  .open = "\"",
	  .close = "\"",
	  .special = "$@",
	  .control = "\\x{%02x}",
	  .nul = 1,
	  .list = "(",
	  .list_end = ")",
	  .between = ", " },
	{ .lang = "lua",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\%03u",
	  .nul = 1,
	  .list = "{",
	  .list_end = "}",
	  .between = ", " },
	{ .lang = "r",
	  .open = "\"",
	  .close = "\"",
	  .special = "",
	  .control = "\\u%04x",
	  .hidden = "\\u%04x",
	  .hidden_far = "\\U%08x",
	  .ascii = 1,
	  .list = "c(",
	  .list_end = ")",
	  .between = ", " },
	{ .lang = "julia",
	  .open = "\"",
	  .close = "\"",
	  .special = "$",
	  .control = "\\x%02x",
	  .hidden = "\\u%04x",
	  .hidden_far = "\\U%08x",
	  .nul = 1,
	  .list = "[",
	  .list_end = "]",
	  .between = ", " },
	/* In single quotes all characters are literal, and only the quote is not allowed. */
	{ .lang = "bash", .open = "'", .close = "'", .list = "(", .list_end = ")", .between = " " },
	{ .lang = "sqlite",
	  .open = "'",
	  .close = "'",
	  .quote = "''",
	  .list = "(",
	  .list_end = ")",
	  .between = ", " },
};

static const struct style *style_of(const struct lang *l)
{
	for (unsigned i = 0; l && i < ARRAY_LEN(styles); i++)
		if ((styles[i].also && !strcmp(l->name, styles[i].also)) ||
		    (!strncmp(l->name, styles[i].lang, strlen(styles[i].lang)) &&
		     (!l->name[strlen(styles[i].lang)] ||
		      !strcmp(l->name + strlen(styles[i].lang), "-wasm")))) /* the same language */
			return &styles[i];
	return NULL;
}

/* ---- texts ---- */

/* Characters that are invisible or change the display: controls, directions, joiners,
 * separators. */
static int literal_hides(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe0fff) || (c & 0xfffe) == 0xfffe;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats are the rows above */
static void add_escaped(struct buf *out, const char *format, uint32_t c)
{
	buf_printf(out, format, c);
}
#pragma GCC diagnostic pop

static void add_ascii(struct buf *out, const struct style *s, unsigned char c)
{
	static const char shown[] = "\n\r\t", letters[] = "nrt";
	const char *hit = c ? strchr(shown, c) : NULL;

	if (!s->control) {
		if (c == '\'')
			buf_puts(out, s->quote ? s->quote : "'\\''");
		else
			buf_putc(out, (char)c);
		return;
	}
	if (hit) {
		buf_putc(out, '\\');
		buf_putc(out, letters[hit - shown]);
	} else if (c < 0x20 || c == 0x7f) {
		add_escaped(out, s->control, c);
	} else {
		if (c == '\\' || c == (unsigned char)*s->close || strchr(s->special, c))
			buf_putc(out, '\\');
		buf_putc(out, (char)c);
	}
}

static int add_text(struct buf *out, const struct style *s, const char *text, size_t n,
		    struct err *e)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t c;

	if (!s->nul && memchr(text, 0, n))
		return err_set(e, ERR_INVALID, "a text of %s cannot have a NUL in it", s->lang);
	buf_puts(out, s->open);
	while (n) {
		unsigned took = utf8_decode(p, n, &c);

		took += !took; /* a byte that is not UTF-8 becomes U+FFFD */
		if (c < 0x80)
			add_ascii(out, s, (unsigned char)c);
		else if (s->hidden && (literal_hides(c) || s->ascii) &&
			 (c <= 0xffff || s->hidden_far))
			add_escaped(out, c <= 0xffff ? s->hidden : s->hidden_far, c);
		else if (c == 0xfffd)
			buf_puts(out, UTF8_REPLACEMENT);
		else
			buf_add(out, p, took);
		p += took;
		n -= took;
	}
	buf_puts(out, s->close);
	return 0;
}

/* ---- numbers ---- */

/* The shortest notation of the same number. */
static void add_real(struct buf *out, double v)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_puts(out, text);
	if (!strpbrk(text, ".e"))
		buf_puts(out, ".0");
}

/* Without the suffix javac reads an int, for which this number is too large. */
static int is_far(json_int_t v)
{
	return v < INT32_MIN || v > INT32_MAX;
}

static void add_number(struct buf *out, const struct style *s, const json_t *v, int real)
{
	if (json_is_real(v))
		add_real(out, json_real_value(v));
	else if (real && s->dot)
		add_real(out, (double)json_integer_value(v));
	else
		buf_printf(out, "%lld%s", (long long)json_integer_value(v),
			   s->far && is_far(json_integer_value(v)) ? s->far : "");
}

/* ---- anything ---- */

static int add_item(struct buf *out, const struct style *s, const json_t *v, int real,
		    struct err *e)
{
	if (json_is_string(v))
		return add_text(out, s, json_string_value(v), json_string_length(v), e);
	if (!json_is_number(v))
		return err_set(e, ERR_INVALID, "a value is neither a text nor a number");
	add_number(out, s, v, real);
	return 0;
}

int literal_add(struct buf *out, const struct lang *l, const json_t *value, int real,
		enum literal_as as, struct err *e)
{
	const struct style *s = style_of(l);
	const char *before;
	size_t i;
	json_t *v;

	if (!s)
		return err_set(e, ERR_INVALID, "no literals are known of %.40s",
			       l ? l->name : "nothing");
	if (!json_is_array(value))
		return add_item(out, s, value, real, e);
	before = json_is_string(json_array_get(value, 0)) ? s->texts
		 : real                                   ? s->reals
							  : s->integers;
	if (as == LITERAL_WHOLE)
		buf_printf(out, "%s%s", before ? before : "", s->list);
	json_array_foreach(value, i, v)
	{
		if (i)
			buf_puts(out, s->between);
		if (add_item(out, s, v, real, e) < 0)
			return -1;
	}
	if (as == LITERAL_WHOLE)
		buf_puts(out, s->list_end);
	return 0;
}
