/* output_compare.c - see output_compare.h. Each mode is a reader that returns the next piece
 * that counts; two texts are the same when their readers return the same pieces. Nothing is
 * copied. */
#include "batch/output_compare.h"
#include "base/cleanup.h"

#include <string.h>

struct compare_reader {
	const char *at, *end;
	unsigned line;
};

struct compare_piece {
	const char *p;
	size_t n;
	int is; /* 0: the end */
	unsigned line;
};

static const char *const names[JUDGE_COUNT] = {
	[JUDGE_TRIMMED] = "trimmed",
	[JUDGE_EXACT] = "exact",
	[JUDGE_TOKENS] = "tokens",
};

int output_compare_parse(const char *name, enum output_compare *out)
{
	for (unsigned i = 0; i < JUDGE_COUNT; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum output_compare)i;
			return 0;
		}
	return -1;
}

static int compare_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/* With its newline: a text that ends without one is another text. */
static struct compare_piece next_exact(struct compare_reader *r)
{
	const char *nl = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
	struct compare_piece p = { r->at, (size_t)((nl ? nl + 1 : r->end) - r->at), r->at < r->end,
				   r->line };

	r->at += p.n;
	r->line++;
	return p;
}

/* The blanks at the end of the whole text are removed before, so the last line is not empty. */
static struct compare_piece next_trimmed(struct compare_reader *r)
{
	struct compare_piece p = next_exact(r);

	while (p.n && compare_blank(p.p[p.n - 1]))
		p.n--;
	return p;
}

static struct compare_piece next_token(struct compare_reader *r)
{
	struct compare_piece p;

	for (; r->at < r->end && compare_blank(*r->at); r->at++)
		r->line += *r->at == '\n';
	p = (struct compare_piece){ r->at, 0, r->at < r->end, r->line };
	for (; r->at < r->end && !compare_blank(*r->at); r->at++)
		p.n++;
	return p;
}

static struct compare_piece compare_next(enum output_compare how, struct compare_reader *r)
{
	return how == JUDGE_EXACT    ? next_exact(r)
	       : how == JUDGE_TOKENS ? next_token(r)
				     : next_trimmed(r);
}

static struct compare_reader compare_begin(enum output_compare how, const char *text, size_t n)
{
	while (how == JUDGE_TRIMMED && n && compare_blank(text[n - 1]))
		n--;
	return (struct compare_reader){ text, text + n, 1 };
}

unsigned output_compare_line(enum output_compare how, const char *got, size_t got_len,
			     const char *want, size_t want_len)
{
	struct compare_reader a = compare_begin(how, got ? got : "", got_len),
			      b = compare_begin(how, want ? want : "", want_len);

	for (;;) {
		struct compare_piece x = compare_next(how, &a), y = compare_next(how, &b);

		if (!x.is && !y.is)
			return 0;
		if (x.is != y.is || x.n != y.n || memcmp(x.p, y.p, x.n) != 0)
			return x.line;
	}
}

int output_compare_same(enum output_compare how, const char *got, size_t got_len, const char *want,
			size_t want_len)
{
	return output_compare_line(how, got, got_len, want, want_len) == 0;
}
