/* mutate.c - see mutate.h. */
#include "repair/mutate.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKENS_MOST = 20000,
	EDITS_MOST = 20000, /* before the most likely ones are chosen */
	NEAR = 6,           /* names that are tried instead of one */
	NEAR_TOKENS = 150,
};

static const struct mutate_format { /* properties in which languages differ */
	const char *language;
	int generics;     /* < may start a list of types */
	int preprocessor; /* lines that begin with # */
	int backquotes;   /* texts in them */
	int ticks;        /* 'a may be no text */
	int slashes;      /* /.../ may be a text */
	int bare_if;      /* no parentheses around a condition, semicolons are optional */
} manners[] = {
	{ .language = "node", .backquotes = 1, .slashes = 1 },
	{ .language = "typescript", .generics = 1, .backquotes = 1, .slashes = 1 },
	{ .language = "c", .preprocessor = 1 },
	{ .language = "c++", .generics = 1, .preprocessor = 1 },
	{ .language = "go", .backquotes = 1, .bare_if = 1 },
	{ .language = "java", .generics = 1 },
	{ .language = "rust", .generics = 1, .ticks = 1, .bare_if = 1 },
};

static const struct mutate_format *format_of(const char *language)
{
	for (unsigned i = 0; i < ARRAY_LEN(manners); i++)
		if (!strcmp(manners[i].language, language))
			return &manners[i];
	return NULL;
}

int mutate_knows(const char *language)
{
	return format_of(language) != NULL;
}

/* ---- tokens ---- */

static int is_name(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '$' || c >= 0x80;
}

static size_t init_conn_box_ended(const char *s, size_t n, size_t at)
{
	const char *end = memchr(s + at, '\n', n - at);

	return end ? (size_t)(end - s) : n;
}

static int at_line_start(const char *s, size_t at)
{
	while (at && (s[at - 1] == ' ' || s[at - 1] == '\t'))
		at--;
	return at == 0 || s[at - 1] == '\n';
}

/* Skips blanks, comments and lines for a preprocessor. */
static size_t skip_blank(const struct mutate_format *m, const char *s, size_t n, size_t at)
{
	while (at < n) {
		if (isspace((unsigned char)s[at])) {
			at++;
		} else if (n - at >= 2 && s[at] == '/' && s[at + 1] == '/') {
			at = init_conn_box_ended(s, n, at);
		} else if (n - at >= 2 && s[at] == '/' && s[at + 1] == '*') {
			const char *end = memmem(s + at + 2, n - at - 2, "*/", 2);

			at = end ? (size_t)(end - s) + 2 : n;
		} else if (m->preprocessor && s[at] == '#' && at_line_start(s, at)) {
			at = init_conn_box_ended(s, n, at);
		} else {
			break;
		}
	}
	return at;
}

/* Skips a string literal that begins here with its quote. */
static size_t skip_text(const char *s, size_t n, size_t at)
{
	char quote = s[at++];

	while (at < n && s[at] != quote && (s[at] != '\n' || quote == '`'))
		at += s[at] == '\\' && at + 1 < n ? 2 : 1;
	return at < n ? at + 1 : n;
}

static int begins_text(const struct mutate_format *m, const char *s, size_t n, size_t at)
{
	if (s[at] == '\'' && m->ticks) /* 'a: is a lifetime, 'a' is a character */
		return at + 2 < n && (s[at + 1] == '\\' || s[at + 2] == '\'');
	return s[at] == '"' || s[at] == '\'' || (s[at] == '`' && m->backquotes);
}

/* In the position of a value, on one line, and closed there. */
static int begins_pattern(const struct mutate_format *m, const char *s, size_t n, size_t at)
{
	size_t before = at;

	if (!m->slashes || s[at] != '/')
		return 0;
	while (before && isspace((unsigned char)s[before - 1]))
		before--;
	if (before && !strchr("(,=:[!&|?{};", s[before - 1]))
		return 0;
	return memchr(s + at + 1, '/', init_conn_box_ended(s, n, at) - at - 1) != NULL;
}

static size_t operator_length(const char *s, size_t n)
{
	static const char *const all[] = {
		">>>=", "===", "!==", "**=", "<<=", ">>=", ">>>", "...", "&&=", "||=",
		"..=",  "<=",  "=>",  ">=",  "==",  "!=",  "&&",  "||",  "++",  "--",
		"+=",   "-=",  "*=",  "/=",  "%=",  "&=",  "|=",  "^=",  "<<",  ">>",
		"->",   "::",  ":=",  "**",  "??",  "?.",  "..",  "<-"
	};

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (strlen(all[i]) <= n && memcmp(all[i], s, strlen(all[i])) == 0)
			return strlen(all[i]);
	return 1;
}

static size_t skip_number(const char *s, size_t n, size_t at)
{
	while (at < n && (is_name((unsigned char)s[at]) ||
			  (s[at] == '.' && at + 1 < n && isdigit((unsigned char)s[at + 1]))))
		at++;
	return at;
}

static size_t skip_name(const char *s, size_t n, size_t at)
{
	while (at < n && is_name((unsigned char)s[at]))
		at++;
	return at;
}

static struct token next_token(const struct mutate_format *m, const char *s, size_t n, size_t *at)
{
	size_t from = skip_blank(m, s, n, *at), to;
	enum token_kind kind = TOKEN_OPERATOR;

	if (from >= n) {
		*at = n;
		return (struct token){ TOKEN_END, s + n, 0 };
	}
	if (isdigit((unsigned char)s[from])) {
		kind = TOKEN_NUMBER;
		to = skip_number(s, n, from);
	} else if (is_name((unsigned char)s[from])) {
		kind = TOKEN_NAME;
		to = skip_name(s, n, from);
	} else if (begins_text(m, s, n, from) || begins_pattern(m, s, n, from)) {
		kind = TOKEN_TEXT;
		to = skip_text(s, n, from);
	} else {
		to = from + operator_length(s + from, n - from);
	}
	*at = to;
	return (struct token){ kind, s + from, to - from };
}

struct token token_next(const char *language, const char *source, size_t n, size_t *at)
{
	const struct mutate_format *m = format_of(language);

	return next_token(m ? m : &manners[0], source, n, at);
}

/* ---- edits ---- */

struct guess {
	struct edit edit;
	unsigned likely, order;
};

struct mutate_builder {
	const struct mutate_format *format;
	const char *source;
	size_t len;
	struct token *t;
	unsigned nt;
	struct guess *v;
	unsigned n;
};

static int mutate_is(const struct token *t, const char *word)
{
	return t->n == strlen(word) && memcmp(t->p, word, t->n) == 0;
}

static int mutate_same(const struct token *a, const struct token *b)
{
	return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* Is it one of these words? */
static int is_among(const struct token *t, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == t->n && memcmp(words, t->p, n) == 0)
			return 1;
		words += n + (words[n] == ' ');
	}
	return 0;
}

static void mutate_put(struct mutate_builder *k, const char *rule, unsigned likely,
		       const char *from, const char *to, const char *text, size_t len)
{
	struct guess *g = &k->v[k->n];

	if (k->n == EDITS_MOST || len > EDIT_NEW || (size_t)(to - from) > EDIT_CUT ||
	    (len == (size_t)(to - from) && memcmp(from, text, len) == 0))
		return;
	*g = (struct guess){ .edit = { .at = (size_t)(from - k->source),
				       .cut = (size_t)(to - from),
				       .len = len },
			     .likely = likely,
			     .order = k->n++ };
	snprintf(g->edit.rule, sizeof(g->edit.rule), "%s", rule);
	g->edit.text = strndup(text, len);
	if (!g->edit.text)
		abort();
}

static void put_token(struct mutate_builder *k, const char *rule, unsigned likely,
		      const struct token *t, const char *text, size_t len)
{
	mutate_put(k, rule, likely, t->p, t->p + t->n, text, len);
}

static void __attribute__((format(printf, 6, 7)))
put_text(struct mutate_builder *k, const char *rule, unsigned likely, const char *from,
	 const char *to, const char *fmt, ...)
{
	char text[EDIT_NEW + 2];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= 0 && n <= EDIT_NEW)
		mutate_put(k, rule, likely, from, to, text, (size_t)n);
}

/* Words of a row instead of this token, the most likely first. */
static void put_words(struct mutate_builder *k, const char *rule, unsigned likely,
		      const struct token *t, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		put_token(k, rule, likely--, t, words, n);
		words += n + (words[n] == ' ');
	}
}

/* ---- what may be wrong ---- */

static const struct {
	/* clang-format off */
	const char *op, *to, *rule;
	unsigned likely;
} swaps[] = {
	{ "<", "<= > >= !=", "compare", 100 },	 { "<=", "< >= >", "compare", 100 },
	{ ">", ">= < <= !=", "compare", 100 },	 { ">=", "> <= <", "compare", 100 },
	{ "==", "!= <= >=", "compare", 98 },	 { "!=", "== < >", "compare", 98 },
	{ "===", "!== <= >=", "compare", 98 },	 { "!==", "=== < >", "compare", 98 },
	{ "+", "- * / %", "arithmetic", 97 },	 { "-", "+ * / %", "arithmetic", 97 },
	{ "*", "+ / - %", "arithmetic", 96 },	 { "/", "* % - +", "arithmetic", 96 },
	{ "%", "/ * - +", "arithmetic", 96 },	 { "**", "* + -", "arithmetic", 90 },
	{ "&&", "||", "boolean", 95 },		 { "||", "&&", "boolean", 95 },
	{ "+=", "-= *= =", "arithmetic", 96 },	 { "-=", "+= *= =", "arithmetic", 96 },
	{ "*=", "+= /= =", "arithmetic", 95 },	 { "/=", "*= -= %=", "arithmetic", 94 },
	{ "%=", "/= -=", "arithmetic", 90 },	 { "++", "--", "arithmetic", 85 },
	{ "--", "++", "arithmetic", 85 },	 { "<<", ">>", "arithmetic", 80 },
	{ ">>", "<<", "arithmetic", 80 },	 { "..", "..=", "range", 95 },
	{ "..=", "..", "range", 95 },
	/* clang-format on */
};

static const char *const siblings[] = {
	"min max",
	"floor ceil round trunc",
	"Floor Ceil Round",
	"Min Max",
	"toUpperCase toLowerCase",
	"ToUpper ToLower",
	"toupper tolower",
	"to_uppercase to_lowercase",
	"isupper islower isalpha",
	"isalpha isdigit isalnum",
	"startsWith endsWith includes",
	"HasPrefix HasSuffix Contains",
	"push unshift",
	"pop shift",
	"some every",
	"any all",
	"indexOf lastIndexOf",
	"Index LastIndex",
	"find rfind",
	"map filter",
	"trim trimStart trimEnd",
	"isUpperCase isLowerCase",
	"begin end",
	"first last",
	"front back",
	"parseInt parseFloat",
	"keys values entries",
};

static const char keywords[] =
	"if else for while do switch case default break continue return function let const var int long short char "
	"double float bool boolean void string String struct class static public private final new delete in of "
	"typeof true false null None nil undefined this self fn mut pub impl use let match loop func package "
	"import export range make len append unsigned signed size_t auto using namespace std enum i32 i64 u32 "
	"u64 usize f64 f32 u8 vec Vec Some Ok Err as type interface extends throw throws try catch finally async "
	"await yield goto include sizeof where trait mod error int64 int32 float64 byte rune map chan go defer "
	"module exports require console Math println printf print fmt strings math System out Integer List";

static int is_operand(const struct token *t)
{
	return t->kind == TOKEN_NUMBER || t->kind == TOKEN_TEXT || mutate_is(t, ")") ||
	       mutate_is(t, "]") ||
	       (t->kind == TOKEN_NAME && !is_among(t, "return case in of typeof"));
}

static int is_spaced(const struct mutate_builder *k, const struct token *t)
{
	return t->p > k->source && isspace((unsigned char)t->p[-1]) &&
	       t->p + t->n < k->source + k->len && isspace((unsigned char)t->p[t->n]);
}

/* Between two values, as far as tokens can show. */
static int is_binary(const struct mutate_builder *k, unsigned i)
{
	const struct token *t = &k->t[i];

	if (is_among(t, "++ --"))
		return 1;
	if (i == 0 || !is_operand(&k->t[i - 1]))
		return 0;
	if (is_among(t, "* & <<") || (k->format->generics && is_among(t, "< > >>")))
		return is_spaced(k, t) || (mutate_is(t, "*") && k->format->slashes);
	return 1;
}

static void on_operator(struct mutate_builder *k, unsigned i)
{
	const struct token *t = &k->t[i];

	if (mutate_is(t, "!") && !is_operand(&k->t[i ? i - 1 : 0]))
		put_token(k, "unwrap", 75, t, "", 0);
	if (!is_binary(k, i))
		return;
	for (unsigned s = 0; s < ARRAY_LEN(swaps); s++)
		if (mutate_is(t, swaps[s].op))
			put_words(k, swaps[s].rule, swaps[s].likely, t, swaps[s].to);
}

static void on_number(struct mutate_builder *k, unsigned i)
{
	const struct token *t = &k->t[i];
	char digits[24], *end;
	long long v;

	if (t->n >= 18)
		return;
	snprintf(digits, sizeof(digits), "%.*s", (int)t->n, t->p);
	v = strtoll(digits, &end, 10);
	if (*end || (digits[0] == '0' && t->n > 1)) /* 1.5, 0x10, 017, 10u: not changed */
		return;
	put_text(k, "constant", 93, t->p, t->p + t->n, "%lld", v + 1);
	if (v > 0)
		put_text(k, "constant", 93, t->p, t->p + t->n, "%lld", v - 1);
	put_words(k, "constant", 84, t, v == 0 ? "2 -1" : v == 1 ? "-1 3" : "0 1 -1");
	put_text(k, "constant", 70, t->p, t->p + t->n, "%lld", v + 2);
}

static int is_call(const struct mutate_builder *k, unsigned i)
{
	return i + 1 < k->nt && mutate_is(&k->t[i + 1], "(");
}

/* A variable, judged by its form. */
static int is_variable(const struct mutate_builder *k, unsigned i)
{
	const struct token *t = &k->t[i];

	return t->kind == TOKEN_NAME && !is_among(t, keywords) && !is_call(k, i) &&
	       !(i && is_among(&k->t[i - 1], ". -> :: function class struct func fn ?.")) &&
	       !(i + 1 < k->nt && is_among(&k->t[i + 1], ":: =>"));
}

static int is_declared(const struct mutate_builder *k, unsigned i)
{
	return i && k->t[i - 1].kind == TOKEN_NAME &&
	       !is_among(&k->t[i - 1], "return in of else case");
}

/* Other names nearby, the nearest first. */
static void on_variable(struct mutate_builder *k, unsigned i)
{
	const struct token *near[NEAR];
	unsigned n = 0;

	for (unsigned d = 1; d < NEAR_TOKENS && n < NEAR; d++)
		for (int side = -1; side <= 1 && n < NEAR; side += 2) {
			long at = (long)i + side * (long)d;
			unsigned j = 0;

			if (at < 0 || at >= (long)k->nt || !is_variable(k, (unsigned)at))
				continue;
			while (j < n && !mutate_same(near[j], &k->t[at]))
				j++;
			if (j == n && !mutate_same(&k->t[at], &k->t[i]))
				near[n++] = &k->t[at];
		}
	for (unsigned j = 0; j < n; j++)
		put_token(k, "name", 78 - j, &k->t[i], near[j]->p, near[j]->n);
	if (i + 1 < k->nt && is_among(&k->t[i + 1], ") ] ; ,")) {
		const char *end = k->t[i].p + k->t[i].n;

		mutate_put(k, "constant", 68, end, end, " + 1", 4);
		mutate_put(k, "constant", 68, end, end, " - 1", 4);
	}
}

static void on_name(struct mutate_builder *k, unsigned i)
{
	const struct token *t = &k->t[i];

	if (mutate_is(t, "true"))
		put_token(k, "constant", 92, t, "false", 5);
	else if (mutate_is(t, "false"))
		put_token(k, "constant", 92, t, "true", 4);
	else if (mutate_is(t, "break"))
		put_token(k, "jump", 60, t, "continue", 8);
	else if (mutate_is(t, "continue"))
		put_token(k, "jump", 60, t, "break", 5);
	for (unsigned s = 0; is_call(k, i) && s < ARRAY_LEN(siblings); s++)
		if (is_among(t, siblings[s]))
			put_words(k, "sibling", 88, t, siblings[s]);
	if (is_variable(k, i) && !is_declared(k, i))
		on_variable(k, i);
}

/* ---- conditions, statements ---- */

/* The token that closes the bracket at i; nt: there is none. */
static unsigned mutate_closing(const struct mutate_builder *k, unsigned i)
{
	unsigned depth = 0;

	for (; i < k->nt; i++) {
		if (is_among(&k->t[i], "( [ {"))
			depth++;
		else if (is_among(&k->t[i], ") ] }") && --depth == 0)
			return i;
	}
	return k->nt;
}

static void mutate_negate(struct mutate_builder *k, const char *from, const char *to)
{
	if (to > from && to - from <= EDIT_NEW - 3)
		put_text(k, "negate", 80, from, to, "!(%.*s)", (int)(to - from), from);
}

static void on_condition(struct mutate_builder *k, unsigned i)
{
	unsigned open = i + 1, end;

	if (!is_among(&k->t[i], "if while") || open >= k->nt)
		return;
	if (mutate_is(&k->t[open], "(") && !k->format->bare_if) {
		end = mutate_closing(k, open);
		if (end < k->nt)
			mutate_negate(k, k->t[open].p + 1, k->t[end].p);
	} else if (k->format->bare_if) {
		for (end = open; end < k->nt && !is_among(&k->t[end], "{ ;"); end++)
			;
		if (end < k->nt && end > open && mutate_is(&k->t[end], "{") &&
		    !mutate_is(&k->t[open], "let"))
			mutate_negate(k, k->t[open].p, k->t[end - 1].p + k->t[end - 1].n);
	}
}

/* From i, which starts a statement, to its semicolon: no statement with a block, no declaration. */
static void on_statement(struct mutate_builder *k, unsigned i)
{
	unsigned end = i;

	if (is_among(
		    &k->t[i],
		    "return let const var if for while else } case default throw import package use") ||
	    k->t[i].kind != TOKEN_NAME || (i + 1 < k->nt && k->t[i + 1].kind == TOKEN_NAME))
		return;
	while (end < k->nt && !is_among(&k->t[end], "; { }"))
		end++;
	if (end < k->nt && mutate_is(&k->t[end], ";") && end > i)
		mutate_put(k, "delete", 62, k->t[i].p, k->t[end].p, "", 0);
}

/* The returned expression, with an operator around it. */
static void on_return(struct mutate_builder *k, unsigned i)
{
	const char *from, *to;
	unsigned end = i + 1;

	if (!mutate_is(&k->t[i], "return"))
		return;
	while (end < k->nt && !is_among(&k->t[end], "; }"))
		end = is_among(&k->t[end], "( [ {") ? mutate_closing(k, end) + 1 : end + 1;
	if (end >= k->nt || end == i + 1)
		return;
	from = k->t[i + 1].p;
	to = k->t[end - 1].p + k->t[end - 1].n;
	if (to - from > EDIT_NEW / 2)
		return;
	put_text(k, "wrap", 58, from, to, "!(%.*s)", (int)(to - from), from);
	put_text(k, "wrap", 58, from, to, "(%.*s) + 1", (int)(to - from), from);
	put_text(k, "wrap", 58, from, to, "(%.*s) - 1", (int)(to - from), from);
	put_text(k, "wrap", 56, from, to, "-(%.*s)", (int)(to - from), from);
	if (!k->format->slashes)
		return;
	put_text(k, "wrap", 55, from, to, "Math.abs(%.*s)", (int)(to - from), from);
	put_text(k, "wrap", 54, from, to, "(%.*s).length", (int)(to - from), from);
	put_text(k, "wrap", 53, from, to, "(%.*s).reverse()", (int)(to - from), from);
	put_text(k, "wrap", 53, from, to, "(%.*s).sort()", (int)(to - from), from);
}

/* ---- the whole ---- */

/* Declarations and imports are not edited. */
static unsigned skip_header(const struct mutate_builder *k, unsigned i)
{
	size_t line;

	if (!is_among(&k->t[i], "import package use using export") ||
	    !at_line_start(k->source, (size_t)(k->t[i].p - k->source)) ||
	    (mutate_is(&k->t[i], "export") && !(i + 1 < k->nt && mutate_is(&k->t[i + 1], "{"))))
		return i;
	line = init_conn_box_ended(k->source, k->len, (size_t)(k->t[i].p - k->source));
	while (i < k->nt && k->t[i].p < k->source + line)
		i++;
	return i;
}

static void make_all(struct mutate_builder *k)
{
	for (unsigned i = 0; i < k->nt; i++) {
		i = skip_header(k, i);
		if (i >= k->nt)
			break;
		if (k->t[i].kind == TOKEN_OPERATOR)
			on_operator(k, i);
		else if (k->t[i].kind == TOKEN_NUMBER)
			on_number(k, i);
		else if (k->t[i].kind == TOKEN_NAME)
			on_name(k, i);
		on_condition(k, i);
		on_return(k, i);
		if (i && is_among(&k->t[i - 1], "; { }"))
			on_statement(k, i);
	}
}

static int by_likelihood(const void *a, const void *b)
{
	const struct guess *x = a, *y = b;

	if (x->likely != y->likely)
		return x->likely < y->likely ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void *room_for(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

void mutate_make(struct mutations *out, const char *language, const char *source, size_t n,
		 unsigned most)
{
	struct mutate_builder k = { .format = format_of(language), .source = source, .len = n };
	size_t at = 0;

	*out = (struct mutations){ 0 };
	if (!k.format)
		return;
	k.t = room_for(TOKENS_MOST, sizeof(*k.t));
	k.v = room_for(EDITS_MOST, sizeof(*k.v));
	while (k.nt < TOKENS_MOST &&
	       (k.t[k.nt] = next_token(k.format, source, n, &at)).kind != TOKEN_END)
		k.nt++;
	make_all(&k);
	qsort(k.v, k.n, sizeof(*k.v), by_likelihood);
	out->v = room_for(most + 1, sizeof(*out->v));
	out->cut = k.n > most || k.n == EDITS_MOST || k.nt == TOKENS_MOST;
	for (unsigned i = 0; i < k.n; i++)
		if (out->n < most)
			out->v[out->n++] = k.v[i].edit;
		else
			edit_fini(&k.v[i].edit);
	free(k.t);
	free(k.v);
}

void mutations_fini(struct mutations *m)
{
	for (unsigned i = 0; i < m->n; i++)
		edit_fini(&m->v[i]);
	free(m->v);
	*m = (struct mutations){ 0 };
}
