/* patch.c - see patch.h. */
#include "tools/patch.h"
#include "base/cleanup.h"

#include <string.h>

#define BEGIN "*** Begin Patch"
#define END "*** End Patch"
#define ADD "*** Add File: "
#define UPDATE "*** Update File: "
#define DELETE "*** Delete File: "
#define MOVE "*** Move to: "
#define END_OF_FILE "*** End of File"

/* ---- lines ---- */

struct patch_line {
	const char *p;
	size_t n; /* without its end */
};

struct patch_reader {
	const char *at, *end;
	unsigned number; /* of the line that was read last */
};

/* 0: there is none left. */
static int next_line(struct patch_reader *r, struct patch_line *out)
{
	const char *nl;

	if (r->at >= r->end)
		return 0;
	nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
	out->p = r->at;
	out->n = (size_t)((nl ? nl : r->end) - r->at);
	if (out->n && out->p[out->n - 1] == '\r')
		out->n--;
	r->at = nl ? nl + 1 : r->end;
	r->number++;
	return 1;
}

static int patch_begins(struct patch_line l, const char *mark)
{
	return l.n >= strlen(mark) && !memcmp(l.p, mark, strlen(mark));
}

static int patch_is(struct patch_line l, const char *mark)
{
	while (l.n && (l.p[l.n - 1] == ' ' || l.p[l.n - 1] == '\t'))
		l.n--;
	return l.n == strlen(mark) && patch_begins(l, mark);
}

static struct patch_text patch_behind(struct patch_line l, const char *mark)
{
	struct patch_text t = { l.p + strlen(mark), l.n - strlen(mark) };

	while (t.n && t.p[t.n - 1] == ' ')
		t.n--;
	return t;
}

/* ---- the files ---- */

static const struct {
	const char *mark;
	enum patch_kind kind;
} heads[] = { { ADD, PATCH_ADD }, { UPDATE, PATCH_UPDATE }, { DELETE, PATCH_DELETE } };

/* 1: a file begins here. */
static int read_head(struct patch_line l, struct patch_file *out)
{
	for (unsigned i = 0; i < ARRAY_LEN(heads); i++)
		if (patch_begins(l, heads[i].mark)) {
			*out = (struct patch_file){ .kind = heads[i].kind,
						    .path = patch_behind(l, heads[i].mark) };
			return 1;
		}
	return 0;
}

static int patch_bad(struct err *e, unsigned number, const char *what)
{
	return err_set(e, ERR_INVALID, "line %u of the patch: %s", number, what);
}

static int patch_is_path(struct patch_text t)
{
	return t.n && !memchr(t.p, 0, t.n);
}

static int add_file(struct patch_file *out, int *count, struct patch_line l, struct patch_reader *r,
		    struct err *e)
{
	struct patch_reader peek = *r;
	struct patch_line move;
	struct patch_file f;

	if (!read_head(l, &f))
		return patch_bad(e, r->number, "is neither the head of a file nor a part of one");
	if (*count == PATCH_FILES)
		return patch_bad(e, r->number, "there are too many files in it, at most 64");
	if (!patch_is_path(f.path))
		return patch_bad(e, r->number, "names no file");
	if (f.kind == PATCH_UPDATE && next_line(&peek, &move) && patch_begins(move, MOVE)) {
		f.move = patch_behind(move, MOVE);
		*r = peek;
		if (!patch_is_path(f.move))
			return patch_bad(e, r->number, "names no file");
	}
	f.body = (struct patch_text){ r->at, 0 };
	out[(*count)++] = f;
	return 0;
}

int patch_parse(const char *text, size_t n, struct patch_file out[PATCH_FILES], struct err *e)
{
	struct patch_reader r = { text, text + n, 0 };
	struct patch_line l = { 0 };
	int count = 0;

	while (next_line(&r, &l) && l.n == 0)
		;
	if (!patch_is(l, BEGIN))
		return patch_bad(e, r.number, "must be '" BEGIN "'");
	while (next_line(&r, &l)) {
		if (patch_is(l, END))
			return count ? count : patch_bad(e, r.number, "the patch changes nothing");
		if (count && (!patch_begins(l, "*** ") || patch_is(l, END_OF_FILE))) {
			out[count - 1].body.n = (size_t)(r.at - out[count - 1].body.p);
			continue;
		}
		if (add_file(out, &count, l, &r, e) < 0)
			return -1;
	}
	return patch_bad(e, r.number, "'" END "' is missing");
}

int patch_content(struct patch_text body, struct buf *out, struct err *e)
{
	struct patch_reader r = { body.p, body.p + body.n, 0 };
	struct patch_line l;

	while (next_line(&r, &l)) {
		if (!l.n || l.p[0] != '+')
			return err_set(e, ERR_INVALID,
				       "line %u of a new file does not begin with '+'", r.number);
		buf_add(out, l.p + 1, l.n - 1);
		buf_putc(out, '\n');
	}
	return 0;
}

/* ---- a hunk ---- */

enum { WORK = 4000000 }; /* maximum of line comparisons */

struct patch_lines {
	struct patch_line *v;
	size_t n, room;
	size_t work; /* comparisons so far */
};

static void lines_add(struct patch_lines *a, struct patch_line l)
{
	if (a->n == a->room) {
		a->room = a->room ? 2 * a->room : 64;
		a->v = realloc(a->v, a->room * sizeof(*a->v));
		if (!a->v)
			abort();
	}
	a->v[a->n++] = l;
}

static void lines_fini(struct patch_lines *a)
{
	free(a->v);
	*a = (struct patch_lines){ 0 };
}
#define auto_lines __attribute__((cleanup(lines_fini)))

static struct patch_line patch_trimmed(struct patch_line l, int level)
{
	while (level > 0 && l.n && strchr(" \t\r", l.p[l.n - 1]) && l.p[l.n - 1])
		l.n--;
	while (level > 1 && l.n && (*l.p == ' ' || *l.p == '\t')) {
		l.p++;
		l.n--;
	}
	return l;
}

static int patch_same(struct patch_line a, struct patch_line b, int level)
{
	a = patch_trimmed(a, level);
	b = patch_trimmed(b, level);
	return a.n == b.n && (a.n == 0 || !memcmp(a.p, b.p, a.n));
}

static int patch_fits(struct patch_lines *file, size_t at, const struct patch_lines *what,
		      int level)
{
	if (at + what->n > file->n)
		return 0;
	for (size_t i = 0; i < what->n; i++)
		if (file->work++ > WORK || !patch_same(file->v[at + i], what->v[i], level))
			return 0;
	return 1;
}

/* -1: not found from there on. */
static long patch_find(struct patch_lines *file, size_t from, const struct patch_lines *what,
		       int at_end)
{
	for (int level = 0; level < 3; level++) {
		if (at_end && file->n >= what->n + from &&
		    patch_fits(file, file->n - what->n, what, level))
			return (long)(file->n - what->n);
		for (size_t at = from; at + what->n <= file->n && file->work <= WORK; at++)
			if (patch_fits(file, at, what, level))
				return (long)at;
	}
	return -1;
}

struct hunk {
	struct patch_lines old, new; /* new: lines that start with ' ' keep the text of the file */
	int at_end;
};

static void hunk_fini(struct hunk *h)
{
	lines_fini(&h->old);
	lines_fini(&h->new);
}

static void put_line(struct buf *out, struct patch_line l)
{
	buf_add(out, l.p, l.n);
	buf_putc(out, '\n');
}

/* Context lines are written as the file has them. */
static void write_hunk(const struct hunk *h, const struct patch_lines *file, size_t at,
		       struct buf *out)
{
	size_t old = 0;

	for (size_t i = 0; i < h->new.n; i++) {
		struct patch_line l = h->new.v[i];

		if (l.n && l.p[0] == '+') {
			put_line(out, (struct patch_line){ l.p + 1, l.n - 1 });
			continue;
		}
		if (l.n && l.p[0] == '-') {
			old++;
			continue;
		}
		put_line(out, file->v[at + old++]);
	}
}

static int not_found(const struct hunk *h, struct err *e)
{
	struct patch_line l = h->old.v[0];

	for (size_t i = 0; i < h->old.n && patch_trimmed(l, 2).n == 0; i++)
		l = h->old.v[i];
	return err_set(e, ERR_CONFLICT, "these lines are not in the file: '%.*s' and %zu more",
		       (int)(l.n < 120 ? l.n : 120), l.p, h->old.n - 1);
}

static int apply_hunk(struct hunk *h, struct patch_lines *file, size_t *from, struct buf *out,
		      struct err *e)
{
	long at;

	/* Context lines start with a blank: an empty last line is not one. */
	while (h->new.n && h->new.v[h->new.n - 1].n == 0) {
		h->new.n--;
		h->old.n--;
	}
	if (!h->new.n)
		return 0;
	/* Only new lines: added at the end, or after the anchor of @@. */
	at = h->old.n ? patch_find(file, *from, &h->old, h->at_end)
		      : (long)(h->at_end || !*from ? file->n : *from);
	if (at < 0)
		return not_found(h, e);
	for (size_t i = *from; i < (size_t)at; i++)
		put_line(out, file->v[i]);
	write_hunk(h, file, (size_t)at, out);
	*from = (size_t)at + h->old.n;
	return 0;
}

/* "@@ class Foo": the hunk is after this line. */
static int patch_seek(struct patch_lines *file, size_t *from, struct patch_line context,
		      struct buf *out, struct err *e)
{
	struct patch_lines one = { &context, 1, 1, 0 };
	long at = patch_find(file, *from, &one, 0);

	if (at < 0)
		return err_set(e, ERR_CONFLICT, "this line is not in the file: '%.*s'",
			       (int)(context.n < 120 ? context.n : 120), context.p);
	for (size_t i = *from; i <= (size_t)at; i++)
		put_line(out, file->v[i]);
	*from = (size_t)at + 1;
	return 0;
}

static int read_mark(struct hunk *h, struct patch_line l, unsigned number, struct err *e)
{
	char mark = l.n ? l.p[0] : ' ';

	if (mark != '+' && mark != '-' && mark != ' ')
		return err_set(e, ERR_INVALID,
			       "line %u of the change begins with none of '+', '-', ' ' and '@@'",
			       number);
	lines_add(&h->new, l);
	if (mark != '+')
		lines_add(&h->old, l.n ? (struct patch_line){ l.p + 1, l.n - 1 } : l);
	return 0;
}

static struct patch_line context_of(struct patch_line l)
{
	struct patch_line c = { l.p + 2, l.n - 2 };

	if (c.n && *c.p == ' ') {
		c.p++;
		c.n--;
	}
	/* "@@ -1,4 +1,6 @@" of unified diffs is ignored. */
	if (c.n > 2 && (*c.p == '-' || *c.p == '+') && !memcmp(c.p + c.n - 2, "@@", 2))
		c.n = 0;
	return patch_trimmed(c, 1);
}

static int patch_do_apply(struct patch_reader *r, struct patch_lines *file, struct hunk *h,
			  struct buf *out, struct err *e)
{
	size_t from = 0;
	struct patch_line l;

	while (next_line(r, &l)) {
		if (patch_is(l, END_OF_FILE)) {
			h->at_end = 1;
			continue;
		}
		if (!patch_begins(l, "@@")) {
			if (read_mark(h, l, r->number, e) < 0)
				return -1;
			continue;
		}
		if (apply_hunk(h, file, &from, out, e) < 0)
			return -1;
		hunk_fini(h);
		*h = (struct hunk){ 0 };
		l = context_of(l);
		if (l.n && patch_seek(file, &from, l, out, e) < 0)
			return -1;
	}
	if (apply_hunk(h, file, &from, out, e) < 0)
		return -1;
	for (; from < file->n; from++)
		put_line(out, file->v[from]);
	return 0;
}

int patch_apply(struct patch_text body, const char *old, size_t n, struct buf *out, struct err *e)
{
	struct patch_reader r = { body.p, body.p + body.n, 0 }, lines = { old, old + n, 0 };
	auto_lines struct patch_lines file = { 0 };
	struct hunk h = { 0 };
	struct patch_line l;
	int rc;

	while (next_line(&lines, &l)) {
		/* A CR is part of the line here: unchanged lines keep it. */
		if (l.p + l.n < old + n && l.p[l.n] == '\r')
			l.n++;
		lines_add(&file, l);
	}
	rc = patch_do_apply(&r, &file, &h, out, e);
	hunk_fini(&h);
	/* A file without a final newline stays so, unless its last lines were changed. */
	if (rc == 0 && n && old[n - 1] != '\n' && file.n && out->len > file.v[file.n - 1].n) {
		struct patch_line last = file.v[file.n - 1];
		size_t begin =
			out->len - 1 - last.n; /* of the last line, if it is still the same */

		if ((!begin || out->p[begin - 1] == '\n') &&
		    !memcmp(out->p + begin, last.p, last.n))
			buf_cut(out, out->len - 1);
	}
	return rc;
}
