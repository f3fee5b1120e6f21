/* words.c - see words.h. */
#include "plan/words.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_BYTES = 64, LONGEST_QUOTE = 16 * 1024 };

struct library_reader {
	struct words *out;
	const char *text, *at, *end;
};

static int is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static int words_among(char c, const char *set)
{
	return c && strchr(set, c);
}

/* ---- families of words ---- */

static int words_ends(const char *p, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n >= len && !memcmp(p + n - len, with, len);
}

/* Simple; it only has to be the same for words of the library and of a task. */
void words_stem(const char *p, size_t n, char out[WORD_STEM])
{
	if (n >= WORD_STEM)
		n = WORD_STEM - 1;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)p[i]);
	if (n > 4 && words_ends(out, n, "'s"))
		n -= 2;
	if (n > 4 && words_ends(out, n, "ies"))
		n -= 2;
	else if (n > 3 && out[n - 1] == 's' && !words_among(out[n - 2], "sui"))
		n--;
	if (n > 5 && words_ends(out, n, "ing"))
		n -= 3;
	else if (n > 4 && words_ends(out, n, "ed"))
		n -= 2;
	else if (n > 7 && words_ends(out, n, "tion"))
		n -= 3;
	if (n > 3 && out[n - 1] == 'e')
		n--;
	if (n > 3 && out[n - 1] == out[n - 2] && !isdigit((unsigned char)out[n - 1]))
		n--;
	if (n > 3 && out[n - 1] == 'y')
		out[n - 1] = 'i';
	out[n] = 0;
}

int word_is(const struct word *w, const char *plain)
{
	return w->kind == WORD_PLAIN && strlen(plain) == w->n && !strncasecmp(w->p, plain, w->n);
}

int word_is_mark(const struct word *w, char mark)
{
	return w->kind == WORD_MARK && *w->p == mark;
}

/* ---- one word ---- */

static struct word *words_add(struct library_reader *r, enum word_kind kind, const char *p,
			      size_t n)
{
	struct words *out = r->out;
	struct word *w = &out->all[out->n++];

	*w = (struct word){ .kind = kind, .p = p, .n = n, .at = (size_t)(r->at - r->text) };
	w->glued = r->at > r->text && !isspace((unsigned char)r->at[-1]);
	return w;
}

static int take_url(struct library_reader *r)
{
	size_t n = 0, left = (size_t)(r->end - r->at);

	if (!(left > 8 && !strncasecmp(r->at, "https://", 8)) &&
	    !(left > 7 && !strncasecmp(r->at, "http://", 7)))
		return 0;
	while (n < left && !isspace((unsigned char)r->at[n]) && !words_among(r->at[n], "\"'`<>"))
		n++;
	while (n && words_among(r->at[n - 1], ".,;:!?)"))
		n--;
	words_add(r, WORD_URL, r->at, n);
	r->at += n;
	return 1;
}

static const char *words_find(const char *from, const char *end, const char *what)
{
	return memmem(from, (size_t)(end - from), what, strlen(what));
}

/* The quote of "it's" opens nothing: a single quote opens and closes only at a word boundary. */
static int take_quoted(struct library_reader *r)
{
	static const struct {
		const char *open, *close;
	} quotes[] = { { "\"", "\"" }, { "'", "'" }, { "`", "`" }, { "“", "”" },
		       { "‘", "’" },   { "„", "“" }, { "«", "»" } };

	for (unsigned i = 0; i < ARRAY_LEN(quotes); i++) {
		size_t open = strlen(quotes[i].open), close = strlen(quotes[i].close);
		const char *from = r->at + open, *to = from;

		if ((size_t)(r->end - r->at) < open || memcmp(r->at, quotes[i].open, open))
			continue;
		if (*r->at == '\'' && r->at > r->text && is_letter(r->at[-1]))
			continue;
		for (;;) {
			to = words_find(to, r->end, quotes[i].close);
			if (!to || to - from > LONGEST_QUOTE)
				break;
			if (to > from && to[-1] == '\\' && close == 1)
				to++;
			else if (*r->at == '\'' && to + 1 < r->end && is_letter(to[1]))
				to++;
			else
				break;
		}
		if (!to || to - from > LONGEST_QUOTE)
			continue;
		words_add(r, WORD_TEXT, from, (size_t)(to - from));
		r->at = to + close;
		return 1;
	}
	return 0;
}

static size_t words_digits(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && isdigit((unsigned char)p[n]))
		n++;
	return n;
}

static size_t date_len(const char *p, const char *end)
{
	size_t a = words_digits(p, end), b, c;
	char sep;

	if ((a != 4 && a != 2 && a != 1) || p + a >= end || !words_among(p[a], "-/."))
		return 0;
	sep = p[a];
	b = words_digits(p + a + 1, end);
	if (b < 1 || b > 2 || p + a + 1 + b >= end || p[a + 1 + b] != sep)
		return 0;
	c = words_digits(p + a + b + 2, end);
	if ((a == 4 && (c < 1 || c > 2)) || (a != 4 && c != 4))
		return 0;
	return a + b + c + 2;
}

/* "1,000,000" is one number, "1,2,3" are three: only the former has groups of three digits. */
static size_t grouped_len(const char *p, const char *end)
{
	size_t n = words_digits(p, end), zero = 0;

	if (n < 1 || n > 3 || p[0] == '0')
		return 0;
	while (p + n + 3 < end && p[n] == ',' && words_digits(p + n + 1, end) == 3) {
		zero |= p[n + 1] == '0';
		n += 4;
	}
	return zero ? n : 0;
}

static size_t number_len(const char *p, const char *end)
{
	size_t n = grouped_len(p, end), more;

	if (!n)
		for (n = words_digits(p, end);
		     p + n + 1 < end && p[n] == '_' && words_digits(p + n + 1, end);)
			n += 1 + words_digits(p + n + 1, end);
	if (n && p + n + 1 < end && p[n] == '.' && (more = words_digits(p + n + 1, end)) > 0)
		n += 1 + more;
	if (n && p + n + 1 < end && (p[n] == 'e' || p[n] == 'E')) {
		size_t sign = p[n + 1] == '-' || p[n + 1] == '+';

		more = words_digits(p + n + 1 + sign, end);
		if (more && (p + n + 1 + sign + more >= end || !is_letter(p[n + 1 + sign + more])))
			n += 1 + sign + more;
	}
	return n;
}

static void value_of(struct word *w)
{
	char text[NUMBER_BYTES];
	size_t n = 0;
	char *stop;

	for (size_t i = 0; i < w->n && n < sizeof(text) - 1; i++)
		if (w->p[i] != '_' && w->p[i] != ',')
			text[n++] = w->p[i];
	text[n] = 0;
	w->number = strtod(text, NULL);
	if (strpbrk(text, ".eE"))
		return;
	w->integer = strtoll(text, &stop, 10);
	w->whole = !*stop && (double)w->integer == w->number && fabs(w->number) < 9.2e18;
}

/* 10MB, 4 KiB: bytes. After a blank only unambiguous units count. */
static size_t size_unit(const char *p, const char *end, uint64_t *out_times)
{
	static const char letters[] = "kmgt";
	const char *from = p, *hit;
	size_t n;

	if (p < end && *p == ' ')
		p++;
	hit = p < end ? strchr(letters, tolower((unsigned char)*p)) : NULL;
	if (!hit || !*hit)
		return 0;
	n = 1 + (p + 1 < end && p[1] == 'i');
	if (p + n >= end || (p[n] != 'B' && p[n] != 'b'))
		return 0;
	n++;
	if (p + n < end && is_letter(p[n]))
		return 0;
	*out_times = 1ull << (10 * (hit - letters + 1));
	return (size_t)(p - from) + n;
}

static int take_number(struct library_reader *r)
{
	int sign = (*r->at == '-' || *r->at == '+') &&
		   (r->at == r->text || (!is_letter(r->at[-1]) && !words_among(r->at[-1], ")]}")));
	const char *p = r->at + sign;
	size_t n = p < r->end ? date_len(p, r->end) : 0, rest;
	uint64_t times;
	struct word *w;

	if (!sign && n && (p + n >= r->end || !is_letter(p[n]))) {
		words_add(r, WORD_DATE, p, n);
		r->at += n;
		return 1;
	}
	if ((!isdigit((unsigned char)*r->at) && !sign) || !(n = number_len(p, r->end)))
		return 0;
	rest = 0;
	if (p + n + 2 <= r->end && (!strncasecmp(p + n, "st", 2) || !strncasecmp(p + n, "nd", 2) ||
				    !strncasecmp(p + n, "rd", 2) || !strncasecmp(p + n, "th", 2)))
		rest = 2;
	if (p + n + rest < r->end && is_letter(p[n + rest]))
		rest = 0;
	w = words_add(r, WORD_NUMBER, r->at, n + (size_t)sign);
	value_of(w);
	r->at += n + (size_t)sign + rest;
	if (rest)
		return 1;
	rest = size_unit(r->at, r->end, &times);
	if (rest && w->number >= 0 && w->number * (double)times < 9e18) {
		w->kind = WORD_SIZE;
		w->integer = (int64_t)(w->number * (double)times);
		w->n += rest;
		r->at += rest;
	}
	return 1;
}

/* Extensions of file names without a folder. */
static int is_file_ending(const char *p, size_t n)
{
	static const char known[] =
		" csv tsv txt json jsonl ndjson xml yaml yml ini toml log md html htm css py js mjs cjs ts c h cc cpp cxx "
		"hpp go rs java rb php pl lua r jl sh bash sql db sqlite sqlite3 png jpg jpeg gif svg bmp pdf zip tar "
		"gz bz2 xz tgz dat bin conf cfg env xlsx xls parquet ics eml out tmp bak lock properties ";
	char want[16];

	if (n < 1 || n > 10)
		return 0;
	want[0] = ' ';
	for (size_t i = 0; i < n; i++)
		want[i + 1] = (char)tolower((unsigned char)p[i]);
	want[n + 1] = ' ';
	want[n + 2] = 0;
	return strstr(known, want) != NULL;
}

/* "node.js" is no file. */
static int is_product(const char *p, size_t n)
{
	static const char *const names[] = { "node.js",  "vue.js",     "next.js",  "d3.js",
					     "react.js", "express.js", "three.js", "chart.js" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == n && !strncasecmp(names[i], p, n))
			return 1;
	return 0;
}

/* "/etc/hosts" and "./x"; in "4/13" and "and/or" the slash separates. */
static int is_path(const struct library_reader *r, const char *p, size_t n)
{
	if (p > r->text && is_letter(p[-1]))
		return 0;
	if (*p == '/')
		return isalpha((unsigned char)p[1]) != 0;
	return n > 2 && (!strncmp(p, "./", 2) || !strncmp(p, "~/", 2));
}

static int take_file(struct library_reader *r)
{
	const char *p = r->at, *dot = NULL;
	size_t n = 0, left = (size_t)(r->end - r->at);
	struct word *w;

	while (n < left && (is_letter(p[n]) || words_among(p[n], "./~-*")))
		n++;
	while (n && words_among(p[n - 1], ".-"))
		n--;
	for (size_t i = 0; i < n; i++)
		if (p[i] == '.')
			dot = p + i;
		else if (p[i] == '/')
			dot = NULL;
	if (n < 2 || is_product(p, n) || !memcmp(p, "..", 2))
		return 0;
	if (!(dot && dot > p && is_file_ending(dot + 1, (size_t)(p + n - dot - 1))) &&
	    !is_path(r, p, n))
		return 0;
	w = words_add(r, WORD_FILE, p, n);
	if (dot)
		words_stem(dot + 1, (size_t)(p + n - dot - 1), w->stem);
	r->at += n;
	return 1;
}

static void words_spell(struct word *w)
{
	static const struct {
		const char *name;
		int value;
	} spelled[] = { { "three", 3 },       { "four", 4 },         { "five", 5 },
			{ "six", 6 },         { "seven", 7 },        { "eight", 8 },
			{ "nine", 9 },        { "ten", 10 },         { "eleven", 11 },
			{ "twelve", 12 },     { "fifteen", 15 },     { "twenty", 20 },
			{ "thirty", 30 },     { "fifty", 50 },       { "hundred", 100 },
			{ "thousand", 1000 }, { "million", 1000000 } };

	for (unsigned i = 0; i < ARRAY_LEN(spelled); i++)
		if (word_is(w, spelled[i].name)) {
			w->spelled = w->whole = 1;
			w->integer = spelled[i].value;
			w->number = spelled[i].value;
		}
}

static int take_plain(struct library_reader *r)
{
	size_t n = 0, left = (size_t)(r->end - r->at);
	const char *p = r->at;
	struct word *w;

	if (!is_letter(*p))
		return 0;
	while (n < left &&
	       (is_letter(p[n]) || (p[n] == '\'' && n + 1 < left && is_letter(p[n + 1]))))
		n++;
	if (n == 1 && words_among(*p, "cC") && n < left && p[1] == '+' && left > 2 && p[2] == '+')
		n = 3;
	else if (n == 1 && words_among(*p, "cCfF") && n < left && p[1] == '#')
		n = 2;
	else if (n + 3 <= left && is_product(p, n + 3))
		n += 3;
	w = words_add(r, WORD_PLAIN, p, n);
	words_stem(p, n, w->stem);
	words_spell(w);
	r->at += n;
	return 1;
}

void words_read(struct words *out, const char *text, size_t len)
{
	struct library_reader r = { .out = out };

	out->n = 0;
	out->text = malloc(len + 1);
	/* A word has at least one byte. */
	out->all = malloc(sizeof(*out->all) * (len < WORDS_MOST ? len + 1 : WORDS_MOST));
	if (!out->text || !out->all)
		abort();
	memcpy(out->text, text, len);
	out->text[len] = 0;
	r.text = r.at = out->text;
	r.end = out->text + len;
	while (r.at < r.end && out->n < WORDS_MOST) {
		if (*r.at != '\n' && (isspace((unsigned char)*r.at) || !*r.at)) {
			r.at++;
			continue;
		}
		if (take_url(&r) || take_quoted(&r) || take_file(&r) || take_number(&r) ||
		    take_plain(&r))
			continue;
		words_add(&r, WORD_MARK, r.at, 1);
		r.at++;
	}
}

void words_fini(struct words *w)
{
	free(w->all);
	free(w->text);
	*w = (struct words){ 0 };
}
