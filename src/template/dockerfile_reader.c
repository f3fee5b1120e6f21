/* dockerfile_reader.c - see dockerfile_reader.h. */
#include "template/dockerfile_reader.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DOCKERFILE_SHOWN = 60 }; /* bytes of a line in an error */

struct dockerfile_text {
	const char *p;
	size_t n;
};

static int dockerfile_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct dockerfile_text dockerfile_reader_line(struct dockerfile_reader *r)
{
	struct dockerfile_text t = { r->p, 0 };
	const char *end = memchr(r->p, '\n', (size_t)(r->end - r->p));

	t.n = (size_t)((end ? end : r->end) - r->p);
	r->p = end ? end + 1 : r->end;
	r->line++;
	if (t.n && t.p[t.n - 1] == '\r')
		t.n--;
	return t;
}

static struct dockerfile_text dockerfile_trimmed(struct dockerfile_text t)
{
	while (t.n && dockerfile_is_blank(*t.p)) {
		t.p++;
		t.n--;
	}
	while (t.n && dockerfile_is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

int dockerfile_fail(const struct dockerfile_reader *r, const struct dockerfile_instruction *in,
		    struct err *e, const char *fmt, ...)
{
	char what[170];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	what[utf8_complete(what, strlen(what), &(int){ 0 })] = 0;
	return err_set(e, ERR_INVALID, "%.60s:%u: %s: '%.*s'", r->file, in->line, what,
		       in->shown_len, in->shown);
}

/* ---- directives ---- */

/* "# name = value"; 0: it is none. */
static int dockerfile_directive(struct dockerfile_text t, struct dockerfile_text *out_name,
				struct dockerfile_text *out_value)
{
	const char *eq;

	t = dockerfile_trimmed(t);
	if (!t.n || *t.p != '#')
		return 0;
	t = dockerfile_trimmed((struct dockerfile_text){ t.p + 1, t.n - 1 });
	eq = memchr(t.p, '=', t.n);
	if (!eq)
		return 0;
	*out_name = dockerfile_trimmed((struct dockerfile_text){ t.p, (size_t)(eq - t.p) });
	*out_value = dockerfile_trimmed(
		(struct dockerfile_text){ eq + 1, (size_t)(t.p + t.n - eq - 1) });
	for (size_t i = 0; i < out_name->n; i++)
		if (!isalnum((unsigned char)out_name->p[i]))
			return 0;
	return out_name->n > 0 && out_value->n > 0;
}

static int dockerfile_is(struct dockerfile_text t, const char *name)
{
	return t.n == strlen(name) && !strncasecmp(t.p, name, t.n);
}

/* The first line that is no directive ends them. */
static int dockerfile_reader_directives(struct dockerfile_reader *r, struct err *e)
{
	for (;;) {
		struct dockerfile_reader before = *r;
		struct dockerfile_text t = dockerfile_reader_line(r), name, value;

		if (!dockerfile_directive(t, &name, &value) ||
		    !(dockerfile_is(name, "escape") || dockerfile_is(name, "syntax") ||
		      dockerfile_is(name, "check"))) {
			r->p = before.p;
			r->line = before.line;
			return 0;
		}
		if (dockerfile_is(name, "syntax"))
			snprintf(r->syntax, sizeof(r->syntax), "%.*s", (int)value.n, value.p);
		if (!dockerfile_is(name, "escape"))
			continue;
		if (value.n != 1 || !strchr("\\`", *value.p))
			return err_set(e, ERR_INVALID,
				       "%.60s:%u: escape is '%.*s': it can be \\ or `", r->file,
				       before.line, (int)(value.n > 40 ? 40 : value.n), value.p);
		r->escape = *value.p;
	}
}

static unsigned dockerfile_line_of(const char *text, const char *place)
{
	unsigned line = 1;

	for (; text < place; text++)
		line += *text == '\n';
	return line;
}

int dockerfile_reader_init(struct dockerfile_reader *r, const char *file, const char *text,
			   size_t len, struct err *e)
{
	const char *nul = memchr(text, 0, len);
	int bad = 0;
	size_t good = utf8_complete(text, len, &bad);

	*r = (struct dockerfile_reader){
		.file = file, .p = text, .end = text + len, .line = 1, .escape = '\\'
	};
	if (nul || good < len)
		return err_set(e, ERR_INVALID,
			       "%.60s:%u: not a text file: byte %zu is not UTF-8 or a NUL", file,
			       dockerfile_line_of(text, nul ? nul : text + good),
			       nul ? (size_t)(nul - text) : good);
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		r->p += 3;
	return dockerfile_reader_directives(r, e);
}

/* ---- instructions ---- */

void dockerfile_instruction_fini(struct dockerfile_instruction *in)
{
	buf_fini(&in->name);
	buf_fini(&in->rest);
	for (unsigned i = 0; i < in->nheredocs; i++)
		buf_fini(&in->heredocs[i].text);
	memset(in, 0, sizeof(*in));
}

/* Does the line end with the escape character, so that the next one belongs to it? Cuts that off. */
static int dockerfile_continues(const struct dockerfile_reader *r, struct dockerfile_text *t)
{
	size_t n = t->n;

	while (n && (t->p[n - 1] == ' ' || t->p[n - 1] == '\t'))
		n--;
	if (!n || t->p[n - 1] != r->escape || (n > 1 && t->p[n - 2] == r->escape))
		return 0;
	t->n = n - 1;
	return 1;
}

/* Appends a line and those that continue it. Comments and empty lines between them are left out. */
static void dockerfile_reader_join(struct dockerfile_reader *r, struct dockerfile_text t,
				   struct buf *out)
{
	int more = dockerfile_continues(r, &t);

	buf_add(out, t.p, t.n);
	while (more && r->p < r->end) {
		struct dockerfile_text bare;

		t = dockerfile_reader_line(r);
		bare = dockerfile_trimmed(t);
		if (!bare.n || *bare.p == '#')
			continue;
		more = dockerfile_continues(r, &t);
		buf_add(out, t.p, t.n);
	}
}

int dockerfile_reader_word(const struct dockerfile_reader *r, const char **p, struct buf *out)
{
	const char *q = *p;
	char quote = 0;

	while (*q && (dockerfile_is_blank(*q) || *q == '\n'))
		q++;
	buf_cut(out, 0);
	for (; *q && (quote || !(dockerfile_is_blank(*q) || *q == '\n')); q++) {
		if (*q == r->escape && quote != '\'' && q[1])
			buf_putc(out, *q++);
		else if (quote == *q)
			quote = 0;
		else if (!quote && (*q == '"' || *q == '\''))
			quote = *q;
		buf_putc(out, *q);
	}
	*p = q;
	return out->len > 0;
}

/* ---- heredocs ---- */

/* Is the word one: <<NAME, <<-NAME, <<"NAME", 3<<NAME? *tabs: those at the begin of lines are removed. */
static int dockerfile_heredoc_word(const char *word, struct dockerfile_heredoc *h, int *tabs)
{
	size_t n = 0;

	while (isdigit((unsigned char)*word))
		word++;
	if (strncmp(word, "<<", 2) != 0)
		return 0;
	word += 2;
	*tabs = *word == '-';
	word += *tabs;
	h->quoted = !!strpbrk(word, "\"'\\");
	for (; *word; word++) {
		if (*word == '<' || n + 1 == sizeof(h->name))
			return 0;
		if (!strchr("\"'\\", *word))
			h->name[n++] = *word;
	}
	h->name[n] = 0;
	return n > 0;
}

static int dockerfile_heredoc_read(struct dockerfile_reader *r, struct dockerfile_instruction *in,
				   struct dockerfile_heredoc *h, int tabs, struct err *e)
{
	while (r->p < r->end) {
		struct dockerfile_text t = dockerfile_reader_line(r);

		while (tabs && t.n && *t.p == '\t') {
			t.p++;
			t.n--;
		}
		if (t.n == strlen(h->name) && !memcmp(t.p, h->name, t.n))
			return 0;
		if (h->text.len + t.n >= DOCKERFILE_HEREDOC_BYTES)
			return dockerfile_fail(
				r, in, e, "the text up to %s is longer than %d KiB: COPY a file",
				h->name, DOCKERFILE_HEREDOC_BYTES >> 10);
		buf_add(&h->text, t.p, t.n);
		buf_putc(&h->text, '\n');
	}
	return dockerfile_fail(r, in, e, "the file ends before the line %s", h->name);
}

static int dockerfile_reader_heredocs(struct dockerfile_reader *r,
				      struct dockerfile_instruction *in, struct err *e)
{
	auto_buf struct buf word = { 0 };
	const char *p = buf_str(&in->rest);

	while (dockerfile_reader_word(r, &p, &word)) {
		struct dockerfile_heredoc h = { 0 }, *place = &in->heredocs[in->nheredocs];
		int tabs;

		if (!dockerfile_heredoc_word(buf_str(&word), &h, &tabs))
			continue;
		if (in->nheredocs == DOCKERFILE_HEREDOCS)
			return dockerfile_fail(r, in, e, "more than %d heredocs",
					       DOCKERFILE_HEREDOCS);
		*place = h;
		in->nheredocs++;
		if (dockerfile_heredoc_read(r, in, place, tabs, e) < 0)
			return -1;
	}
	return 0;
}

static int dockerfile_has_heredocs(const char *name)
{
	return !strcmp(name, "RUN") || !strcmp(name, "COPY") || !strcmp(name, "ADD");
}

int dockerfile_reader_next(struct dockerfile_reader *r, struct dockerfile_instruction *in,
			   struct err *e)
{
	auto_buf struct buf text = { 0 };
	struct dockerfile_text t = { NULL, 0 }, bare = { NULL, 0 };
	const char *p;

	dockerfile_instruction_fini(in);
	while (r->p < r->end && (!bare.n || *bare.p == '#')) {
		in->line = r->line;
		t = dockerfile_reader_line(r);
		bare = dockerfile_trimmed(t);
	}
	if (!bare.n || *bare.p == '#')
		return 0;
	in->shown = bare.p;
	in->shown_len =
		(int)(bare.n > DOCKERFILE_SHOWN ? utf8_cut(bare.p, DOCKERFILE_SHOWN) : bare.n);
	dockerfile_reader_join(r, (struct dockerfile_text){ bare.p, t.n - (size_t)(bare.p - t.p) },
			       &text);
	p = buf_str(&text);
	for (; *p && !dockerfile_is_blank(*p); p++)
		buf_putc(&in->name, (char)toupper((unsigned char)*p));
	t = dockerfile_trimmed((struct dockerfile_text){ p, strlen(p) });
	buf_add(&in->rest, t.p, t.n);
	if (dockerfile_has_heredocs(buf_str(&in->name)) && strstr(buf_str(&in->rest), "<<") &&
	    dockerfile_reader_heredocs(r, in, e) < 0)
		return -1;
	return 1;
}
