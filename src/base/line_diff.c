/* line_diff.c - see line_diff.h. The shortest list of edits: Myers, "An O(ND) Difference Algorithm and Its Variations". */
#include "base/line_diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const char *p;
	size_t n; /* with its newline */
	uint32_t hash;
	int differs; /* it is deleted, or added */
};

struct lines {
	struct line *v;
	size_t n;
};

struct line_span { /* what lies between equal lines at the begin and at the end */
	struct line *v;
	int n;
};

static uint32_t line_hash(const char *p, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ (unsigned char)*p++) * 16777619u;
	return h;
}

static int lines_split(struct lines *l, const char *p, size_t n)
{
	const char *end = p + n;

	*l = (struct lines){ .v = calloc(LINE_DIFF_LINES, sizeof(*l->v)) };
	if (!l->v)
		abort();
	while (n && p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = newline ? (size_t)(newline - p) + 1 : (size_t)(end - p);

		if (l->n == LINE_DIFF_LINES)
			return -1;
		l->v[l->n++] = (struct line){ .p = p, .n = len, .hash = line_hash(p, len) };
		p += len;
	}
	return 0;
}

static int line_equal(const struct line *a, const struct line *b)
{
	return a->hash == b->hash && a->n == b->n && !memcmp(a->p, b->p, a->n);
}

static void span_set(const struct line_span *s)
{
	for (int i = 0; i < s->n; i++)
		s->v[i].differs = 1;
}

/* Farthest x on the diagonals -d .. d after d edits, one row for each d. */
static int *diff_row(int *rows, int d)
{
	return rows + (size_t)d * (2 * LINE_DIFF_EDITS + 3) + LINE_DIFF_EDITS + 1;
}

/* How diagonal k is reached after d edits: where x was before the last one. -1: it is not. */
struct diff_move {
	int from, down; /* down: a line is added, else deleted */
};

static struct diff_move diff_move(const struct line_span *a, const struct line_span *b,
				  const int *before, int d, int k)
{
	int right = k > -d ? before[k - 1] : -1, down = k < d ? before[k + 1] : -1;

	if (right == a->n)
		right = -1;
	if (down >= 0 && down - (k + 1) == b->n)
		down = -1;
	/* The one that is farther: a deleted line is a step of x. */
	if (down > right || right < 0)
		return (struct diff_move){ down, 1 };
	return (struct diff_move){ right, 0 };
}

/* Number of edits, or -1: more than the limit. */
static int diff_search(const struct line_span *a, const struct line_span *b, int *rows)
{
	for (int d = 0; d <= LINE_DIFF_EDITS; d++) {
		int *row = diff_row(rows, d);

		for (int k = -d; k <= d; k += 2) {
			struct diff_move m = { 0, 1 };
			int x;

			if (d)
				m = diff_move(a, b, diff_row(rows, d - 1), d, k);
			x = m.from < 0 ? -1 : m.from + !m.down;
			while (x >= 0 && x < a->n && x - k < b->n &&
			       line_equal(&a->v[x], &b->v[x - k]))
				x++;
			row[k] = x;
			if (x == a->n && x - k == b->n)
				return d;
		}
	}
	return -1;
}

static void diff_trace(const struct line_span *a, const struct line_span *b, int *rows, int d)
{
	int k = a->n - b->n;

	for (; d > 0; d--) {
		struct diff_move m = diff_move(a, b, diff_row(rows, d - 1), d, k);

		k += m.down ? 1 : -1; /* before it */
		if (m.down)
			b->v[m.from - k].differs = 1;
		else
			a->v[m.from].differs = 1;
	}
}

static void diff_mark(struct lines *a, struct lines *b)
{
	struct line_span x = { a->v, (int)a->n }, y = { b->v, (int)b->n };
	int *rows, d;

	while (x.n && y.n && line_equal(x.v, y.v)) {
		x.v++, x.n--;
		y.v++, y.n--;
	}
	while (x.n && y.n && line_equal(&x.v[x.n - 1], &y.v[y.n - 1])) {
		x.n--;
		y.n--;
	}
	if (!x.n || !y.n) {
		span_set(&x);
		span_set(&y);
		return;
	}
	rows = calloc((size_t)(LINE_DIFF_EDITS + 1) * (2 * LINE_DIFF_EDITS + 3), sizeof(*rows));
	if (!rows)
		abort();
	d = diff_search(&x, &y, rows);
	if (d < 0) {
		span_set(&x);
		span_set(&y);
	} else {
		diff_trace(&x, &y, rows, d);
	}
	free(rows);
}

/* ---- output ---- */

static void hunk_line(struct buf *out, char sign, const struct line *l)
{
	buf_putc(out, sign);
	buf_add(out, l->p, l->n);
	if (l->p[l->n - 1] != '\n')
		buf_puts(out, "\n\\ No newline at end of file\n");
}

static void hunk_range(struct buf *out, char sign, size_t from, size_t to)
{
	/* An empty range is named by the line before it. */
	buf_printf(out, "%c%zu", sign, to > from ? from + 1 : from);
	if (to - from != 1)
		buf_printf(out, ",%zu", to - from);
}

struct hunk {
	size_t a, b, a_end, b_end;
};

static void hunk_write(struct buf *out, const struct lines *a, const struct lines *b,
		       const struct hunk *h)
{
	size_t i = h->a, k = h->b;

	buf_puts(out, "@@ ");
	hunk_range(out, '-', h->a, h->a_end);
	buf_putc(out, ' ');
	hunk_range(out, '+', h->b, h->b_end);
	buf_puts(out, " @@\n");
	while (i < h->a_end || k < h->b_end) {
		if (i < h->a_end && a->v[i].differs)
			hunk_line(out, '-', &a->v[i++]);
		else if (k < h->b_end && b->v[k].differs)
			hunk_line(out, '+', &b->v[k++]);
		else
			hunk_line(out, ' ', (k++, &a->v[i++]));
	}
}

/* From a pair of positions on: 0: only equal lines follow. */
static int hunk_find(const struct lines *a, const struct lines *b, size_t *i, size_t *k)
{
	while (*i < a->n && *k < b->n && !a->v[*i].differs && !b->v[*k].differs)
		++*i, ++*k;
	return *i < a->n || *k < b->n;
}

static void hunks_write(struct buf *out, const struct lines *a, const struct lines *b)
{
	size_t i = 0, k = 0;

	while (hunk_find(a, b, &i, &k)) {
		size_t before = i < LINE_DIFF_CONTEXT ? i : LINE_DIFF_CONTEXT, equal = 0;
		struct hunk h = { .a = i - before, .b = k - before };

		/* Until so many equal lines follow that the next difference is a hunk of its own. */
		while ((i < a->n || k < b->n) && equal <= 2 * LINE_DIFF_CONTEXT) {
			int deleted = i < a->n && a->v[i].differs;
			int added = k < b->n && b->v[k].differs;

			i += deleted || !added;
			k += added || !deleted;
			equal = deleted || added ? 0 : equal + 1;
		}
		before = equal > LINE_DIFF_CONTEXT ? equal - LINE_DIFF_CONTEXT : 0;
		h.a_end = i - before;
		h.b_end = k - before;
		hunk_write(out, a, b, &h);
	}
}

int line_diff_unified(const char *a, size_t a_len, const char *b, size_t b_len, struct buf *out)
{
	struct lines x = { 0 }, y = { 0 };
	int rc = lines_split(&x, a, a_len) < 0 || lines_split(&y, b, b_len) < 0 ? -1 : 0;

	if (rc == 0) {
		diff_mark(&x, &y);
		hunks_write(out, &x, &y);
	}
	free(x.v);
	free(y.v);
	return rc;
}
