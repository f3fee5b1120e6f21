/* fix_text.c - fixes for syntax errors: surrounding prose, quotes, blanks, brackets. */
#include "debug/fix_steps.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- markdown ---- */

static int is_fence(const char *line)
{
	line += strspn(line, " \t");
	return !strncmp(line, "```", 3) || !strncmp(line, "~~~", 3);
}

/* The longest fenced block; the text around it is prose. A single fence: only its line is
 * removed. */
int fix_fences(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	const char *from = NULL, *best = NULL;
	size_t longest = 0;
	auto_buf struct buf out = { 0 };

	for (const char *at = text; at && *at;
	     at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		if (!is_fence(at))
			continue;
		if (from && (size_t)(at - from) > longest) {
			best = from;
			longest = (size_t)(at - from);
		}
		from = from || !strchr(at, '\n') ? NULL : strchr(at, '\n') + 1;
	}
	if (from && strlen(from) > longest) {
		best = from;
		longest = strlen(from);
	}
	if (!best)
		return 0;
	buf_add(&out, best, longest);
	s->category = "syntax";
	return failure_edit(s, path, &out, "the fences and the words around the code are gone");
}

/* ---- letters that look like others ---- */

static const struct {
	/* clang-format off */
	const char *from, *to;
} letters[] = {
	{ "\xe2\x80\x9c", "\"" }, { "\xe2\x80\x9d", "\"" }, { "\xe2\x80\x9e", "\"" }, /* double quotes */
	{ "\xe2\x80\x98", "'" },  { "\xe2\x80\x99", "'" },  { "\xe2\x80\x9a", "'" },  /* single ones */
	{ "\xc2\xa0", " " },      { "\xe2\x80\x8b", "" },   { "\xef\xbb\xbf", "" },   /* blanks, none, a mark */
	{ "\xe2\x80\x93", "-" },  { "\xe2\x80\x94", "-" },  { "\xe2\x88\x92", "-" },  /* dashes, a minus */
	{ "\xef\xbc\x88", "(" },  { "\xef\xbc\x89", ")" },  { "\xef\xbc\x8c", "," },  /* wide ones */
	{ "\xef\xbc\x9a", ":" },  { "\xef\xbc\x9b", ";" },  { "\xe2\x80\xa8", "\n" },
	/* clang-format on */
};

int fix_quotes(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	unsigned n = 0;

	while (text && *text) {
		unsigned i = 0;

		while (i < ARRAY_LEN(letters) &&
		       strncmp(text, letters[i].from, strlen(letters[i].from)) != 0)
			i++;
		if (i == ARRAY_LEN(letters)) {
			buf_putc(&out, *text++);
			continue;
		}
		buf_puts(&out, letters[i].to);
		text += strlen(letters[i].from);
		n++;
	}
	return n &&
	       failure_edit(s, path, &out, "typographic quotes, dashes and blanks are plain ones");
}

/* ---- blanks ---- */

/* Blanks for the tabs in front of each line. */
static void fix_text_untab(const char *text, unsigned tab, struct buf *out)
{
	while (*text) {
		size_t blanks = strspn(text, " \t"), len = strcspn(text, "\n"), width = 0;

		for (size_t i = 0; i < blanks; i++)
			width += text[i] == '\t' ? tab - width % tab : 1;
		buf_printf(out, "%*s", (int)width, "");
		buf_add(out, text + blanks, len - blanks + (text[len] == '\n'));
		text += len + (text[len] == '\n');
	}
}

/* Does every dedent return to the indentation of an opening line? */
static int indents_fit(const char *text)
{
	size_t level[32] = { 0 };
	unsigned n = 1;
	int opened = 0;

	for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != 0)) {
		size_t blanks = strspn(text, " "), len = strcspn(text, "\n");

		if (blanks == len || text[blanks] == '#')
			continue;
		if (blanks > level[n - 1]) {
			if (!opened || n == ARRAY_LEN(level))
				return 0;
			level[n++] = blanks;
		}
		while (n > 1 && level[n - 1] > blanks)
			n--;
		if (level[n - 1] != blanks)
			return 0;
		opened = text[len - 1] == ':';
	}
	return 1;
}

int fix_tabs(struct failure_case *s)
{
	static const unsigned widths[] = { 4, 8, 2 };
	const char *path = failure_main(s), *text = failure_message(s, path);

	for (unsigned i = 0; text && strchr(text, '\t') && i < ARRAY_LEN(widths); i++) {
		auto_buf struct buf out = { 0 };

		fix_text_untab(text, widths[i], &out);
		if (indents_fit(buf_str(&out)))
			return failure_edit(s, path, &out,
					    "a tab at the beginning of a line is %u blanks",
					    widths[i]);
	}
	return 0;
}

/* The common prefix of all non-empty lines. */
static size_t fix_text_margin(const char *text)
{
	size_t least = SIZE_MAX;

	for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != 0)) {
		size_t blanks = strspn(text, " \t");

		if (text[blanks] && text[blanks] != '\n' && blanks < least)
			least = blanks;
	}
	return least == SIZE_MAX ? 0 : least;
}

/* A line with too much indentation gets that of the previous line. */
static int dedent_line(struct failure_case *s, const char *path, const char *text)
{
	size_t n = 0, m = 0, want, has;
	const char *line = text_line(text, s->line, &n);
	const char *before = s->line > 1 ? text_line(text, s->line - 1, &m) : NULL;
	auto_buf struct buf out = { 0 };

	if (!line || !before || !m)
		return 0;
	want = strspn(before, " \t");
	has = strspn(line, " \t");
	if (has <= want)
		return 0;
	text_splice(&out, text, (size_t)(line - text), has - want, "");
	return failure_edit(s, path, &out, "line %ld begins where the one before it does", s->line);
}

int fix_dedent(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	size_t least = text ? fix_text_margin(text) : 0;

	if (!text)
		return 0;
	if (!least)
		return dedent_line(s, path, text);
	while (*text) {
		size_t n = strcspn(text, "\n"), blanks = strspn(text, " \t");

		blanks = blanks < least ? blanks : least;
		buf_add(&out, text + blanks, n - blanks + (text[n] == '\n'));
		text += n + (text[n] == '\n');
	}
	return failure_edit(s, path, &out, "the text begins at the left margin");
}

/* ---- brackets ---- */

enum { DEPTH = 64, CLOSE_MOST = 4 };

struct brackets {
	char open[DEPTH];
	size_t at[DEPTH]; /* where it was opened */
	unsigned n;
	int lost;   /* too deep, or a closing bracket without an opening one: the scan stops */
	int within; /* a string or a comment when it ended */
};

static int fix_text_begins(const char *at, const char *with)
{
	return *with && !strncmp(at, with, strlen(with));
}

/* The end of the string that starts here; an unclosed string ends with the text. */
static const char *skip_string(const char *at, int triple, int *open)
{
	char quote = *at;

	*open = 0;
	if (triple && at[1] == quote && at[2] == quote) {
		for (at += 3; *at; at++) {
			if (at[0] == quote && at[1] == quote && at[2] == quote)
				return at + 3;
			at += *at == '\\' && at[1];
		}
		*open = 1;
		return at;
	}
	for (at++; *at && *at != quote; at++) {
		if (*at == '\n' && quote != '`')
			return at; /* the parser reports it; a bracket after it counts */
		at += *at == '\\' && at[1];
	}
	*open = !*at;
	return *at ? at + 1 : at;
}

/* A lifetime or a digit separator is no string: a letter in quotes is closed soon. */
static int is_string(const struct lang *l, const char *at)
{
	const char *quotes = rules_word(l, "text", "quotes");

	if (!strchr(quotes, *at))
		return 0;
	return *at != '\'' || strcmp(l->name, "rust") != 0 || at[1] == '\\' ||
	       (at[1] && at[2] == '\'');
}

static void close_one(struct brackets *b, char c)
{
	static const char opens[] = "([{", closes[] = ")]}";
	char want = opens[strchr(closes, c) - closes];

	if (b->n && b->open[b->n - 1] == want)
		b->n--;
	else
		b->lost = 1;
}

static void brackets_of(const struct lang *l, const char *text, struct brackets *b)
{
	const char *line = rules_word(l, "text", "comment"),
		   *block = rules_word(l, "text", "block");
	const char *at = text;

	*b = (struct brackets){ 0 };
	while (*at && !b->lost) {
		if (fix_text_begins(at, line)) {
			at += strcspn(at, "\n");
		} else if (fix_text_begins(at, block)) {
			const char *end = strstr(at + 2, rules_word(l, "text", "block_end"));

			b->within = !end;
			at = end ? end + 2 : at + strlen(at);
		} else if (is_string(l, at)) {
			at = skip_string(at, !strcmp(l->name, "python"), &b->within);
		} else {
			if (strchr("([{", *at)) {
				b->lost = b->n == DEPTH;
				b->open[b->n % DEPTH] = *at;
				b->at[b->n % DEPTH] = (size_t)(at - text);
				b->n += !b->lost;
			} else if (strchr(")]}", *at)) {
				close_one(b, *at);
			}
			at++;
		}
	}
}

/* A line end at which no statement ends. */
static int looks_cut(const char *text)
{
	size_t n = strlen(text);

	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	return n && (strchr(",=+-*/&|(.<[\\", text[n - 1]) ||
		     (n > 2 && !strncmp(text + n - 3, "...", 3)));
}

static int is_cut(struct failure_case *s)
{
	s->category = "truncated_code";
	return failure_ask(s, failure_main(s), "%s is not complete. What is its whole text?",
			   failure_main(s));
}

static char fix_text_closer(char open)
{
	return open == '(' ? ')' : open == '[' ? ']' : '}';
}

/* In a line-based language an open bracket ends with its line if the next line starts a
 * statement. */
static int close_in_line(struct failure_case *s, const char *path, const char *text,
			 const struct brackets *b)
{
	size_t at = b->at[b->n - 1] + strcspn(text + b->at[b->n - 1], "\n");
	size_t from = b->at[b->n - 1];
	auto_buf struct buf out = { 0 };
	char with[2] = { fix_text_closer(b->open[b->n - 1]), 0 };

	while (from && text[from - 1] != '\n')
		from--;
	if (b->n != 1 || !text[at] || !text[at + 1] ||
	    strspn(text + at + 1, " \t") > strspn(text + from, " \t"))
		return 0;
	while (at && (text[at - 1] == ' ' || text[at - 1] == '\t'))
		at--;
	/* The colon after it is kept: def f(x: */
	if (at && text[at - 1] == ':')
		at--;
	text_splice(&out, text, at, 0, with);
	return failure_edit(s, path, &out, "the %c left open is closed at the end of its line",
			    b->open[b->n - 1]);
}

int fix_close(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	struct brackets b;

	if (!text || !s->lang || !*rules_word(s->lang, "text", "quotes"))
		return 0;
	brackets_of(s->lang, text, &b);
	if (b.within)
		return is_cut(s);
	if (b.lost || !b.n)
		return 0;
	if (*rules_word(s->lang, "text", "lines") && close_in_line(s, path, text, &b))
		return 1;
	if (b.n > CLOSE_MOST || looks_cut(text))
		return is_cut(s);
	buf_puts(&out, text);
	if (out.len && out.p[out.len - 1] == '\n' && b.open[b.n - 1] != '{')
		buf_cut(&out, out.len - 1);
	while (b.n--) {
		buf_putc(&out, fix_text_closer(b.open[b.n]));
		if (b.open[b.n] == '{' || !b.n)
			buf_putc(&out, '\n');
	}
	return failure_edit(s, path, &out, "what was left open is closed at the end");
}

/* A language whose blocks end with a word. */
int fix_end(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };

	if (!text)
		return 0;
	if (looks_cut(text))
		return is_cut(s);
	buf_printf(&out, "%s%s%s\n", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n",
		   *s->meant ? s->meant : "end");
	return failure_edit(s, path, &out, "what was left open is ended at the end");
}

/* ---- one character ---- */

/* After the last word before the place that the compiler names, in this or an earlier line. */
int fix_semicolon(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	size_t n = 0, at;
	const char *line = text && s->line ? text_line(text, s->line, &n) : NULL;

	if (!line)
		return 0;
	at = (size_t)(line - text);
	at += s->column > 0 && (size_t)s->column <= n + 1 ? (size_t)s->column - 1 : n;
	while (at && isspace((unsigned char)text[at - 1]))
		at--;
	if (!at || strchr(";{", text[at - 1]))
		return 0;
	text_splice(&out, text, at, 0, ";");
	return failure_edit(s, path, &out, "a ; is put where it was missing");
}

/* For compilers that name the unexpected word: before its line. */
int fix_semicolon_before(struct failure_case *s)
{
	const char *text = failure_message(s, failure_main(s));
	size_t n, at;
	const char *line = text && s->line > 1 ? text_line(text, s->line, &n) : NULL;

	if (!line)
		return 0;
	for (at = (size_t)(line - text); at && isspace((unsigned char)text[at - 1]);)
		at--;
	if (!at || strchr(";{}(,:>[.=", text[at - 1]))
		return 0;
	s->column = 1;
	return fix_semicolon(s);
}

/* The end of the code of a line, before blanks or a comment. */
static size_t code_end(const char *line, size_t n)
{
	const char *comment = memchr(line, '#', n);

	n = comment && !memchr(line, '"', n) && !memchr(line, '\'', n) ? (size_t)(comment - line)
								       : n;
	while (n && isspace((unsigned char)line[n - 1]))
		n--;
	return n;
}

int fix_colon(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	size_t n = 0;
	const char *line = text && s->line ? text_line(text, s->line, &n) : NULL;

	if (!line || !(n = code_end(line, n)) || line[n - 1] == ':')
		return 0;
	text_splice(&out, text, (size_t)(line - text) + n, 0, ":");
	return failure_edit(s, path, &out, "a : is added to the end of line %ld", s->line);
}

/* if x = 1: compares. */
int fix_equals(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	size_t n = 0;
	const char *line = text && s->line ? text_line(text, s->line, &n) : NULL;

	for (size_t i = 1; line && i + 1 < n; i++)
		if (line[i] == '=' && line[i + 1] != '=' && !strchr("=!<>+-*/%:", line[i - 1])) {
			text_splice(&out, text, (size_t)(line + i - text), 1, "==");
			return failure_edit(s, path, &out, "line %ld compares with ==", s->line);
		}
	return 0;
}

/* ---- shells ---- */

/* Lines that end as on Windows. */
int fix_crlf(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };

	if (!text || !strchr(text, '\r'))
		return 0;
	for (; *text; text++)
		if (text[0] != '\r' || text[1] != '\n')
			buf_putc(&out, *text);
	return failure_edit(s, path, &out, "lines end without a carriage return");
}

static const struct {
	const char *open, *close;
} blocks[] = { { "if", "fi" }, { "do", "done" }, { "case", "esac" }, { "{", "}" } };

/* The last block that is not ended; words at the start of a line or after a ; count. */
static const char *open_block(const char *text)
{
	const char *stack[DEPTH];
	unsigned n = 0;

	for (; *text; text += !!*text) {
		size_t len;

		text += strspn(text, " \t\n;");
		if (*text == '#')
			text += strcspn(text, "\n");
		len = strcspn(text, " \t\n;");
		for (unsigned i = 0; i < ARRAY_LEN(blocks); i++) {
			if (len == strlen(blocks[i].open) && !strncmp(text, blocks[i].open, len) &&
			    n < DEPTH)
				stack[n++] = blocks[i].close;
			if (len == strlen(blocks[i].close) &&
			    !strncmp(text, blocks[i].close, len) && n)
				n--;
		}
		if (!len)
			break;
		text += len - 1;
	}
	return n ? stack[n - 1] : NULL;
}

int fix_shell_end(struct failure_case *s)
{
	const char *text = failure_message(s, failure_main(s)),
		   *word = text ? open_block(text) : NULL;

	if (!word)
		return 0;
	snprintf(s->meant, sizeof(s->meant), "%s", word);
	return fix_end(s);
}

int fix_shell_cut(struct failure_case *s)
{
	return is_cut(s);
}

/* x = 1 is a command x with two arguments. */
int fix_blanks_around(struct failure_case *s)
{
	const char *path = failure_main(s), *text = failure_message(s, path);
	auto_buf struct buf out = { 0 };
	size_t n = 0, name = strlen(s->subject), from, to;
	const char *line = text && s->line ? text_line(text, s->line, &n) : NULL;

	if (!line)
		return 0;
	from = strspn(line, " \t");
	if (strncmp(line + from, s->subject, name) != 0)
		return 0;
	from += name;
	to = from + strspn(line + from, " ");
	if (to >= n || line[to] != '=' || to == from)
		return 0;
	to++;
	to += strspn(line + to, " ");
	text_splice(&out, text, (size_t)(line - text) + from, to - from, "=");
	s->category = "syntax";
	return failure_edit(s, path, &out, "there are no blanks around the = of line %ld", s->line);
}
