/* toml_scalar.c - see toml_scan.h. Strings, numbers, booleans, dates. A word (everything unquoted)
 * is extracted first and then parsed, so that a message can show all of it. */
#include "base/toml_scan.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- strings ---- */

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(b, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_putc(b, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_putc(b, (char)(0xe0 | c >> 12));
		} else {
			buf_putc(b, (char)(0xf0 | c >> 18));
			buf_putc(b, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_putc(b, (char)(0x80 | (c & 0x3f)));
}

/* After \u or \U. */
static int toml_scalar_unicode(struct toml_scan *s, unsigned digits, struct buf *b)
{
	const char *start = s->at - 2;
	char saw[TOML_SAW];
	uint32_t c = 0;

	for (unsigned i = 0; i < digits; i++, s->at++) {
		if (hex_digit(*s->at) < 0)
			return toml_fail(s, s->at, "\\%c needs %u hex digits, saw %s", start[1],
					 digits, toml_saw(s->at, saw));
		c = c << 4 | (uint32_t)hex_digit(*s->at);
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return toml_fail(s, start, "'%.*s' is not a character", (int)digits + 2, start);
	put_utf8(b, c);
	return 0;
}

/* A backslash at the end of a line: skips all blanks and newlines. 0: not such a line. */
static int joins_lines(struct toml_scan *s)
{
	const char *c = s->at + strspn(s->at, " \t");

	if (*c != '\n' && *c != '\r')
		return 0;
	s->at = c;
	while (toml_newline(s))
		s->at += strspn(s->at, " \t");
	return 1;
}

/* After a backslash. */
static int toml_scalar_escape(struct toml_scan *s, int multi, struct buf *b)
{
	static const char letters[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
	const char *letter;
	char saw[TOML_SAW];

	if (multi && joins_lines(s))
		return 0;
	letter = *s->at ? strchr(letters, *s->at) : NULL;
	if (letter) {
		buf_putc(b, means[letter - letters]);
		s->at++;
		return 0;
	}
	if (*s->at == 'u' || *s->at == 'U') {
		s->at++;
		return toml_scalar_unicode(s, s->at[-1] == 'u' ? 4 : 8, b);
	}
	return toml_fail(s, s->at - 1, "unknown escape: a backslash and %s", toml_saw(s->at, saw));
}

static int toml_scalar_unterminated(struct toml_scan *s, const char *open, int multi)
{
	return toml_fail(s, open, "a string that does not end%s",
			 multi || !*s->at ? "" : " on its line");
}

static unsigned toml_scalar_quotes(const char *at, char quote)
{
	unsigned n = 0;

	while (n < 5 && at[n] == quote)
		n++;
	return n;
}

static int one_line_string(struct toml_scan *s, char quote, struct buf *b)
{
	const char *open = s->at++;

	while (*s->at != quote) {
		if (!*s->at || *s->at == '\n' || *s->at == '\r')
			return toml_scalar_unterminated(s, open, 0);
		if (*s->at != '\\' || quote == '\'') {
			buf_putc(b, *s->at++);
			continue;
		}
		s->at++;
		if (toml_scalar_escape(s, 0, b) < 0)
			return -1;
	}
	s->at++;
	return 0;
}

static int multi_line_string(struct toml_scan *s, char quote, struct buf *b)
{
	const char *open = s->at;
	unsigned n;

	s->at += 3;
	toml_newline(s); /* a newline directly after the quotes is not part of it */
	while ((n = toml_scalar_quotes(s->at, quote)) < 3) {
		if (!*s->at)
			return toml_scalar_unterminated(s, open, 1);
		if (toml_newline(s)) {
			buf_putc(b, '\n'); /* CRLF, too: text, not bytes */
		} else if (*s->at != '\\' || quote == '\'') {
			buf_putc(b, *s->at++);
		} else {
			s->at++;
			if (toml_scalar_escape(s, 1, b) < 0)
				return -1;
		}
	}
	buf_add(b, s->at, n - 3); /* up to two quotes may precede the closing ones */
	s->at += n;
	return 0;
}

int toml_string(struct toml_scan *s, int one_line, struct toml_text *out)
{
	auto_buf struct buf b = { 0 };
	char quote = *s->at, *copy;
	int multi = toml_scalar_quotes(s->at, quote) >= 3;

	if (multi && one_line)
		return toml_fail(s, s->at, "a multi-line string cannot be a key");
	if ((multi ? multi_line_string(s, quote, &b) : one_line_string(s, quote, &b)) < 0)
		return -1;
	copy = toml_alloc(s->doc, b.len + 1);
	memcpy(copy, buf_str(&b), b.len);
	*out = (struct toml_text){ copy, b.len };
	return 0;
}

/* ---- numbers ---- */

/* Digits with single underscores between them. 0: invalid. */
static int toml_scalar_digits(const char **p, unsigned base)
{
	const char *c = *p;

	if (hex_digit(*c) < 0 || (unsigned)hex_digit(*c) >= base)
		return 0;
	for (c++;; c++) {
		if (*c == '_' && hex_digit(c[1]) >= 0 && (unsigned)hex_digit(c[1]) < base)
			continue;
		if (hex_digit(*c) < 0 || (unsigned)hex_digit(*c) >= base)
			break;
	}
	*p = c;
	return 1;
}

static void drop_underscores(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '_')
			*to++ = *text;
	*to = 0;
}

static int to_integer(struct toml_scan *s, char *word, char *number, int base,
		      struct toml_node *out)
{
	char shown[48];

	memcpy(shown, word, strnlen(word, 40) + 1);
	shown[40] = 0;
	drop_underscores(number);
	errno = 0;
	out->type = TOML_INTEGER;
	out->integer = strtoll(number, NULL, base);
	if (errno)
		return toml_fail(s, s->at, "'%s' does not fit into 64 bits", shown);
	return 0;
}

static int to_float(struct toml_scan *s, char *word, struct toml_node *out)
{
	char shown[48];

	memcpy(shown, word, strnlen(word, 40) + 1);
	shown[40] = 0;
	drop_underscores(word);
	errno = 0;
	out->type = TOML_FLOAT;
	out->real = strtod(word, NULL); /* no locale is set, so the decimal point is a point */
	if (errno && (out->real > 1 || out->real < -1)) /* an underflow is zero */
		return toml_fail(s, s->at, "'%s' is too large for a float", shown);
	return 0;
}

static int not_a_value(struct toml_scan *s, const char *word)
{
	char saw[TOML_SAW];

	if (!*word)
		return toml_fail(s, s->at, "expected a value, saw %s", toml_saw(s->at, saw));
	return toml_fail(s, s->at, "'%.40s' is not a number, boolean, date or time%s", word,
			 word[0] == '0' && word[1] >= '0' && word[1] <= '9'
				 ? "; numbers have no leading zeros"
				 : "; text needs quotes");
}

static int toml_scalar_number(struct toml_scan *s, char *word, struct toml_node *out)
{
	const char *c = word + (*word == '+' || *word == '-');
	int is_float = 0;

	if (!strcmp(c, "inf") || !strcmp(c, "nan"))
		return to_float(s, word, out);
	if (word[0] == '0' && word[1] && strchr("xob", word[1])) {
		int base = word[1] == 'x' ? 16 : word[1] == 'o' ? 8 : 2;

		c = word + 2;
		return toml_scalar_digits(&c, (unsigned)base) && !*c
			       ? to_integer(s, word, word + 2, base, out)
			       : not_a_value(s, word);
	}
	if (*c == '0')
		c++;
	else if (!toml_scalar_digits(&c, 10))
		return not_a_value(s, word);
	if (*c == '.') {
		is_float = 1;
		c++;
		if (!toml_scalar_digits(&c, 10))
			return not_a_value(s, word);
	}
	if (*c == 'e' || *c == 'E') {
		is_float = 1;
		c++;
		c += *c == '+' || *c == '-';
		if (!toml_scalar_digits(&c, 10))
			return not_a_value(s, word);
	}
	if (*c)
		return not_a_value(s, word);
	return is_float ? to_float(s, word, out) : to_integer(s, word, word, 10, out);
}

/* ---- dates ---- */

/* Reads n digits as a number and skips them. -1: fewer digits. */
static int toml_scalar_fixed(const char **p, unsigned n)
{
	int value = 0;

	for (unsigned i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return -1;
		value = value * 10 + (**p - '0');
	}
	return value;
}

static int toml_scalar_between(const char **p, unsigned n, int low, int high)
{
	int value = toml_scalar_fixed(p, n);

	return value >= low && value <= high;
}

static int toml_scalar_over(const char **p, char c)
{
	*p += **p == c;
	return (*p)[-1] == c;
}

static int toml_scalar_date(const char **p)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = toml_scalar_fixed(p, 4), month, day, leap;

	if (year < 1 || !toml_scalar_over(p, '-'))
		return 0;
	month = toml_scalar_fixed(p, 2);
	if (month < 1 || month > 12 || !toml_scalar_over(p, '-'))
		return 0;
	day = toml_scalar_fixed(p, 2);
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

static int clock_time(const char **p)
{
	if (!toml_scalar_between(p, 2, 0, 23) || !toml_scalar_over(p, ':') ||
	    !toml_scalar_between(p, 2, 0, 59) || !toml_scalar_over(p, ':') ||
	    !toml_scalar_between(p, 2, 0, 59))
		return 0;
	if (**p != '.')
		return 1;
	++*p;
	if (**p < '0' || **p > '9')
		return 0;
	*p += strspn(*p, "0123456789");
	return 1;
}

static int toml_scalar_offset(const char **p)
{
	if (**p == 'Z' || **p == 'z')
		return ++*p, 1;
	++*p; /* the sign */
	return toml_scalar_between(p, 2, 0, 23) && toml_scalar_over(p, ':') &&
	       toml_scalar_between(p, 2, 0, 59);
}

/* 0: well-formed, and out has its type. */
static int toml_scalar_when(const char *word, struct toml_node *out)
{
	const char *p = word;

	if (word[2] == ':') {
		out->type = TOML_TIME;
		return clock_time(&p) && !*p ? 0 : -1;
	}
	out->type = TOML_DATE;
	if (!toml_scalar_date(&p))
		return -1;
	if (!*p)
		return 0;
	out->type = TOML_LOCAL_DATETIME;
	if ((*p != 'T' && *p != 't' && *p != ' ') || (p++, !clock_time(&p)))
		return -1;
	if (!*p)
		return 0;
	out->type = TOML_DATETIME;
	return strchr("Zz+-", *p) && toml_scalar_offset(&p) && !*p ? 0 : -1;
}

static int looks_like_time(const char *w)
{
	size_t n = strspn(w, "0123456789");

	return (n == 4 && w[4] == '-') || (n == 2 && w[2] == ':');
}

/* ---- words ---- */

static const char word_bytes[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_.:";

/* "1979-05-27 07:32:00" is one word, although there is a blank in it. */
static size_t word_length(const char *at)
{
	size_t n = strspn(at, word_bytes);

	if (n == 10 && looks_like_time(at) && at[10] == ' ' && strspn(at + 11, "0123456789") == 2 &&
	    at[13] == ':')
		n += 1 + strspn(at + 11, word_bytes);
	return n;
}

int toml_word(struct toml_scan *s, struct toml_node *out)
{
	size_t n = word_length(s->at);
	char *word = toml_alloc(s->doc, n + 1);

	memcpy(word, s->at, n);
	if (looks_like_time(word)) {
		if (toml_scalar_when(word, out) < 0)
			return toml_fail(s, s->at, "'%.40s' is not a date or time", word);
		out->text = word;
		out->len = n;
	} else if (!strcmp(word, "true") || !strcmp(word, "false")) {
		out->type = TOML_BOOLEAN;
		out->truth = *word == 't';
	} else if (toml_scalar_number(s, word, out) < 0) {
		return -1;
	}
	s->at += n;
	return 0;
}
