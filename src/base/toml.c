/* toml.c - see toml.h. Statements, keys, tables and arrays. There are two passes. The first checks
 * all bytes for what TOML forbids everywhere (invalid UTF-8, control characters, a CR alone), so
 * that the parser need not. The second parses the grammar. A table stores how it was created,
 * because that decides what may be added to it later:
 *
 *	IMPLIED   the header [a.b] created a        one header or dotted keys may define it
 *	HEADER    [a]                               the lines below it, and headers of tables in it
 *	DOTTED    a.b = 1                           dotted keys of the same section, headers of tables in it
 *	WHOLE     { } or [ ]                        nothing
 *	REPEATED  [[a]], an array                   another [[a]] */
#include "base/toml_scan.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IMPLIED, HEADER, DOTTED, WHOLE, REPEATED };
enum { CHUNK = 16 << 10 };

struct toml_chunk {
	struct toml_chunk *next;
	size_t used, room;
	max_align_t bytes[];
};

struct toml_key { /* the parts of a.b.c */
	struct toml_text part[TOML_MAX_DEPTH];
	const char *at[TOML_MAX_DEPTH]; /* where each began */
	unsigned n;
};

/* ---- memory and messages ---- */

void *toml_alloc(struct toml *t, size_t n)
{
	struct toml_chunk *c = t->chunks;
	void *p;

	n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!c || c->room - c->used < n) {
		size_t room = n > CHUNK ? n : CHUNK;

		c = calloc(1, sizeof(*c) + room);
		if (!c)
			abort();
		c->room = room;
		c->next = t->chunks;
		t->chunks = c;
	}
	p = (char *)c->bytes + c->used;
	c->used += n;
	return p;
}

static void toml_where(const struct toml_scan *s, const char *at, unsigned *line, unsigned *column)
{
	*line = *column = 1;
	for (const char *c = s->text; c < at; c++) {
		if (*c == '\n') {
			++*line;
			*column = 1;
		} else {
			*column += !utf8_continues(*c); /* characters, not bytes */
		}
	}
}

int toml_fail(struct toml_scan *s, const char *at, const char *fmt, ...)
{
	unsigned line, column;
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	toml_where(s, at, &line, &column);
	return err_set(s->e, ERR_INVALID, "%.120s:%u:%u: %s", s->name, line, column, what);
}

const char *toml_saw(const char *at, char out[TOML_SAW])
{
	unsigned n = 1;

	if (!*at)
		return strcpy(out, "the end of the file");
	if (*at == '\n' || *at == '\r')
		return strcpy(out, "the end of the line");
	if (*at == '\t')
		return strcpy(out, "a tab");
	while (utf8_continues(at[n]))
		n++;
	snprintf(out, TOML_SAW, "'%.*s'", (int)n, at);
	return out;
}

/* ---- bytes ---- */

static int check_bytes(struct toml_scan *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s->text, *end = p + len;

	if (len >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		return toml_fail(s, s->text, "a byte order mark is not part of TOML");
	while (p < end) {
		unsigned n = utf8_length(p, (size_t)(end - p));

		if (!n)
			return toml_fail(s, (const char *)p, "byte 0x%02x is not UTF-8", *p);
		if (*p == '\r' && (p + 1 == end || p[1] != '\n'))
			return toml_fail(s, (const char *)p,
					 "a carriage return without a line feed");
		if ((*p < 0x20 && *p != '\t' && *p != '\n' && *p != '\r') || *p == 0x7f)
			return toml_fail(s, (const char *)p, "control character 0x%02x", *p);
		p += n;
	}
	return 0;
}

/* ---- between the words ---- */

int toml_newline(struct toml_scan *s)
{
	s->at += *s->at == '\r'; /* the bytes after it have been checked */
	if (*s->at != '\n')
		return 0;
	s->at++;
	s->line++;
	return 1;
}

static void skip_blanks(struct toml_scan *s)
{
	s->at += strspn(s->at, " \t");
}

static void skip_comment(struct toml_scan *s)
{
	if (*s->at == '#')
		s->at += strcspn(s->at, "\r\n");
}

static void skip_lines(struct toml_scan *s) /* blanks, comments and newlines, as in an array */
{
	do {
		skip_blanks(s);
		skip_comment(s);
	} while (toml_newline(s));
}

static int toml_expect(struct toml_scan *s, char c, const char *where_it_belongs)
{
	char saw[TOML_SAW];

	if (*s->at != c)
		return toml_fail(s, s->at, "expected '%c' %s, saw %s", c, where_it_belongs,
				 toml_saw(s->at, saw));
	s->at++;
	return 0;
}

static int end_of_statement(struct toml_scan *s, const char *what)
{
	char saw[TOML_SAW];

	skip_blanks(s);
	skip_comment(s);
	if (*s->at && !toml_newline(s))
		return toml_fail(s, s->at, "expected the end of the line after %s, saw %s", what,
				 toml_saw(s->at, saw));
	return 0;
}

/* ---- keys ---- */

static int toml_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int key_part(struct toml_scan *s, struct toml_text *out)
{
	char saw[TOML_SAW];

	if (*s->at == '"' || *s->at == '\'')
		return toml_string(s, 1, out);
	out->p = s->at;
	while (toml_bare(*s->at))
		s->at++;
	out->n = (size_t)(s->at - out->p);
	if (!out->n)
		return toml_fail(s, s->at, "expected a key, saw %s", toml_saw(s->at, saw));
	return 0;
}

static int parse_key(struct toml_scan *s, unsigned depth, struct toml_key *k)
{
	k->n = 0;
	do {
		if (depth + k->n >= TOML_MAX_DEPTH)
			return toml_fail(s, s->at, "more than %d levels", TOML_MAX_DEPTH);
		if (s->doc->nkeys++ >= TOML_MAX_KEYS)
			return toml_fail(s, s->at, "more than %d keys", TOML_MAX_KEYS);
		s->at += k->n > 0; /* over the dot */
		skip_blanks(s);
		k->at[k->n] = s->at;
		if (key_part(s, &k->part[k->n]) < 0)
			return -1;
		k->n++;
		skip_blanks(s);
	} while (*s->at == '.');
	return 0;
}

/* ---- the tree ---- */

static int new_node(struct toml_scan *s, enum toml_type type, struct toml_node **out)
{
	if (s->doc->nvalues++ >= TOML_MAX_VALUES)
		return toml_fail(s, s->at, "more than %d values", TOML_MAX_VALUES);
	*out = toml_alloc(s->doc, sizeof(**out));
	(*out)->type = type;
	(*out)->line = s->line;
	return 0;
}

static void toml_append(struct toml_node *in, struct toml_node *n)
{
	if (in->in.last)
		in->in.last->next = n;
	else
		in->in.first = n;
	in->in.last = n;
	in->in.count++;
}

static struct toml_node *toml_lookup(const struct toml_node *table, struct toml_text key)
{
	for (struct toml_node *n = table->in.first; n; n = n->next)
		if (n->key_len == key.n && !memcmp(n->key, key.p, key.n))
			return n;
	return NULL;
}

static void toml_add(struct toml_scan *s, struct toml_node *table, struct toml_text key,
		     struct toml_node *n)
{
	char *copy = toml_alloc(s->doc, key.n + 1);

	memcpy(copy, key.p, key.n);
	n->key = copy;
	n->key_len = key.n;
	toml_append(table, n);
}

static int toml_taken(struct toml_scan *s, const struct toml_key *k, unsigned i,
		      const struct toml_node *by)
{
	return toml_fail(s, k->at[i], "'%.*s' is already defined, as %s on line %u",
			 (int)(k->part[i].n > 40 ? 40 : k->part[i].n), k->part[i].p,
			 toml_type_name(by->type), by->line);
}

static int is_container(const struct toml_node *n)
{
	return n->type == TOML_TABLE || n->type == TOML_ARRAY;
}

static int make_table(struct toml_scan *s, struct toml_node *in, struct toml_text key,
		      unsigned made, struct toml_node **out)
{
	if (new_node(s, TOML_TABLE, out) < 0)
		return -1;
	(*out)->in.made = made;
	toml_add(s, in, key, *out);
	return 0;
}

/* One part of a header: enters a table, or the last one of an array of tables. */
static int toml_enter(struct toml_scan *s, const struct toml_key *k, unsigned i,
		      struct toml_node **table)
{
	struct toml_node *n = toml_lookup(*table, k->part[i]);

	if (!n)
		return make_table(s, *table, k->part[i], IMPLIED, table);
	if (!is_container(n) || n->in.made == WHOLE)
		return toml_taken(s, k, i, n);
	*table = n->type == TOML_ARRAY ? n->in.last : n;
	return 0;
}

/* One part of a dotted key: enters a table that this section defines. */
static int enter_dotted(struct toml_scan *s, const struct toml_key *k, unsigned i, unsigned section,
			struct toml_node **table)
{
	struct toml_node *n = toml_lookup(*table, k->part[i]);

	if (!n && make_table(s, *table, k->part[i], IMPLIED, &n) < 0)
		return -1;
	if (n->type != TOML_TABLE || n->in.made == HEADER || n->in.made == WHOLE ||
	    (n->in.made == DOTTED && n->in.section != section))
		return toml_taken(s, k, i, n);
	n->in.made = DOTTED;
	n->in.section = section;
	*table = n;
	return 0;
}

/* ---- values ---- */

static int toml_value(struct toml_scan *s, unsigned depth, struct toml_node **out);

static int toml_array(struct toml_scan *s, unsigned depth, struct toml_node *a)
{
	const char *open = s->at++;
	struct toml_node *n = NULL;
	char saw[TOML_SAW];

	a->type = TOML_ARRAY;
	a->in.made = WHOLE;
	for (;;) {
		skip_lines(s);
		if (!*s->at)
			return toml_fail(s, open, "an array that does not end");
		if (*s->at == ']')
			break;
		if (toml_value(s, depth + 1, &n) < 0)
			return -1;
		toml_append(a, n);
		skip_lines(s);
		if (*s->at == ',')
			s->at++;
		else if (*s->at && *s->at != ']')
			return toml_fail(s, s->at, "expected ',' or ']' in an array, saw %s",
					 toml_saw(s->at, saw));
	}
	s->at++;
	return 0;
}

static int toml_pair(struct toml_scan *s, struct toml_node *table, unsigned depth, unsigned section)
{
	struct toml_node *n = NULL, *old;
	struct toml_key k;

	if (parse_key(s, depth, &k) < 0 || toml_expect(s, '=', "after a key") < 0)
		return -1;
	skip_blanks(s);
	if (toml_value(s, depth + k.n, &n) < 0)
		return -1;
	for (unsigned i = 0; i + 1 < k.n; i++)
		if (enter_dotted(s, &k, i, section, &table) < 0)
			return -1;
	old = toml_lookup(table, k.part[k.n - 1]);
	if (old)
		return toml_taken(s, &k, k.n - 1, old);
	toml_add(s, table, k.part[k.n - 1], n);
	return 0;
}

static int inline_table(struct toml_scan *s, unsigned depth, struct toml_node *t)
{
	unsigned section = ++s->sections;
	char saw[TOML_SAW];

	s->at++;
	t->type = TOML_TABLE;
	skip_blanks(s);
	while (*s->at != '}') {
		if (toml_pair(s, t, depth, section) < 0)
			return -1;
		skip_blanks(s);
		if (*s->at == '}')
			break;
		if (*s->at != ',')
			return toml_fail(s, s->at, "expected ',' or '}' in an inline table, saw %s",
					 toml_saw(s->at, saw));
		s->at++;
		skip_blanks(s);
		if (*s->at == '}')
			return toml_fail(s, s->at, "an inline table has no ',' before its '}'");
	}
	s->at++;
	t->in.made = WHOLE;
	return 0;
}

static int toml_value(struct toml_scan *s, unsigned depth, struct toml_node **out)
{
	struct toml_text text = { 0 };

	/* Before every recursion: the text controls the depth of the stack. */
	if (depth > TOML_MAX_DEPTH)
		return toml_fail(s, s->at, "more than %d levels", TOML_MAX_DEPTH);
	if (new_node(s, TOML_STRING, out) < 0)
		return -1;
	if (*s->at == '[')
		return toml_array(s, depth, *out);
	if (*s->at == '{')
		return inline_table(s, depth, *out);
	if (*s->at != '"' && *s->at != '\'')
		return toml_word(s, *out);
	if (toml_string(s, 0, &text) < 0)
		return -1;
	(*out)->text = text.p;
	(*out)->len = text.n;
	return 0;
}

/* ---- statements ---- */

/* [a.b]: the last part is a table that is not defined yet. */
static int open_table(struct toml_scan *s, const struct toml_key *k, struct toml_node **table)
{
	unsigned last = k->n - 1;
	struct toml_node *n = toml_lookup(*table, k->part[last]);

	if (!n)
		return make_table(s, *table, k->part[last], HEADER, table);
	if (n->type != TOML_TABLE || n->in.made != IMPLIED)
		return toml_taken(s, k, last, n);
	n->in.made = HEADER;
	n->line = s->line; /* here it is defined; before it was only implied */
	*table = n;
	return 0;
}

/* [[a.b]]: the last part is an array of tables, which gets one more. */
static int open_repeated(struct toml_scan *s, const struct toml_key *k, struct toml_node **table)
{
	unsigned last = k->n - 1;
	struct toml_node *n = toml_lookup(*table, k->part[last]), *element = NULL;

	if (n && (n->type != TOML_ARRAY || n->in.made != REPEATED))
		return toml_taken(s, k, last, n);
	if (!n) {
		if (new_node(s, TOML_ARRAY, &n) < 0)
			return -1;
		n->in.made = REPEATED;
		toml_add(s, *table, k->part[last], n);
	}
	if (new_node(s, TOML_TABLE, &element) < 0)
		return -1;
	element->in.made = HEADER;
	toml_append(n, element);
	*table = element;
	return 0;
}

static int toml_header(struct toml_scan *s, struct toml_node **out_table, unsigned *out_depth)
{
	struct toml_node *table = s->doc->root;
	int repeated = s->at[1] == '[';
	struct toml_key k;

	s->at += 1 + repeated;
	if (parse_key(s, 0, &k) < 0)
		return -1;
	for (unsigned i = 0; i + 1 < k.n; i++)
		if (toml_enter(s, &k, i, &table) < 0)
			return -1;
	if ((repeated ? open_repeated(s, &k, &table) : open_table(s, &k, &table)) < 0 ||
	    toml_expect(s, ']', "after the name of a table") < 0 ||
	    (repeated && toml_expect(s, ']', "after the name of an array of tables") < 0))
		return -1;
	s->sections++;
	*out_table = table;
	*out_depth = k.n;
	return end_of_statement(s, "a header");
}

static int toml_statements(struct toml_scan *s)
{
	struct toml_node *table = s->doc->root;
	unsigned depth = 0, section = 0;

	for (;;) {
		skip_lines(s);
		if (!*s->at)
			return 0;
		if (*s->at == '[') {
			if (toml_header(s, &table, &depth) < 0)
				return -1;
			section = s->sections;
		} else if (toml_pair(s, table, depth, section) < 0 ||
			   end_of_statement(s, "a value") < 0) {
			return -1;
		}
	}
}

int toml_parse(struct toml *out, const char *name, const char *text, size_t len, struct err *e)
{
	struct toml doc = { 0 };
	struct toml_scan s = { .doc = &doc, .name = name, .line = 1, .e = e };
	char *copy;

	if (len > TOML_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "%.120s: %zu bytes; at most %d are read", name, len,
			       TOML_MAX_BYTES);
	copy = toml_alloc(&doc, len + 1);
	if (len)
		memcpy(copy, text, len);
	s.text = s.at = copy;
	doc.root = toml_alloc(&doc, sizeof(*doc.root));
	*doc.root = (struct toml_node){ .type = TOML_TABLE, .line = 1, .in.made = HEADER };
	if (check_bytes(&s, len) < 0 || toml_statements(&s) < 0) {
		toml_fini(&doc);
		return -1;
	}
	*out = doc;
	return 0;
}

void toml_fini(struct toml *t)
{
	struct toml_chunk *c;

	while ((c = t->chunks)) {
		t->chunks = c->next;
		free(c);
	}
	*t = (struct toml){ 0 };
}

const struct toml_node *toml_get(const struct toml_node *table, const char *key)
{
	return toml_lookup(table, (struct toml_text){ key, strlen(key) });
}

const char *toml_type_name(enum toml_type type)
{
	static const char *const names[] = {
		[TOML_TABLE] = "a table",
		[TOML_ARRAY] = "an array",
		[TOML_STRING] = "a string",
		[TOML_INTEGER] = "an integer",
		[TOML_FLOAT] = "a float",
		[TOML_BOOLEAN] = "a boolean",
		[TOML_DATETIME] = "a date and time",
		[TOML_LOCAL_DATETIME] = "a local date and time",
		[TOML_DATE] = "a date",
		[TOML_TIME] = "a time of day",
	};

	return names[type];
}
