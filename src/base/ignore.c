/* ignore.c - see ignore.h. */
#include "base/ignore.h"
#include "base/buf.h"
#include "base/glob.h"

#include <stdlib.h>
#include <string.h>

struct ignore_rule {
	struct glob glob;
	int include;                /* it began with ! */
	char begin[GLOB_BYTES + 1]; /* of the pattern, up to the first wildcard */
};

const char *const ignore_names[] = { ".atollignore", ".dockerignore", ".e2bignore", NULL };

/* Appends the parts of a pattern without ".", empty ones and what ".." removes. */
static void ignore_clean(struct buf *out, const char *p, size_t n)
{
	const char *end = p + n;

	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t part = (size_t)((slash ? slash : end) - p);

		if (part == 2 && !memcmp(p, "..", 2)) {
			const char *last = strrchr(buf_str(out), '/');

			buf_cut(out, last ? (size_t)(last - buf_str(out)) : 0);
		} else if (part && !(part == 1 && *p == '.')) {
			if (out->len)
				buf_putc(out, '/');
			buf_add(out, p, part);
		}
		p += part + 1;
	}
}

static int ignore_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* One line without its end. 0: it has no pattern. */
static int ignore_add(struct ignore *g, const char *p, size_t n, struct err *e)
{
	struct ignore_rule *rule = &g->rules[g->n];
	auto_buf struct buf pattern = { 0 };

	if (n && *p == '#')
		return 0;
	memset(rule, 0, sizeof(*rule));
	while (n && ignore_is_blank(p[n - 1]))
		n--;
	for (; n && (ignore_is_blank(*p) || (*p == '!' && !rule->include)); p++, n--)
		rule->include |= *p == '!';
	ignore_clean(&pattern, p, n);
	if (!pattern.len)
		return rule->include && !n ? err_set(e, ERR_INVALID, "no pattern after !") : 0;
	if (glob_compile(&rule->glob, buf_str(&pattern), e) < 0)
		return -1;
	memcpy(rule->begin, buf_str(&pattern), strcspn(buf_str(&pattern), "*?[\\"));
	g->n++;
	return 0;
}

static int ignore_add_lines(struct ignore *g, const char *file, const char *text, size_t len,
			    struct err *e)
{
	const char *end = text + len;

	for (unsigned line = 1; text < end; line++) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);

		if (g->n == IGNORE_RULES)
			return err_set(e, ERR_LIMIT, "%.60s:%u: more than %d patterns", file, line,
				       IGNORE_RULES);
		if (memchr(text, 0, n))
			return err_set(e, ERR_INVALID, "%.60s:%u: a NUL byte", file, line);
		if (ignore_add(g, text, n, e) < 0)
			return err_in(e, "%.60s:%u", file, line);
		text += n + 1;
	}
	return 0;
}

static unsigned ignore_count_lines(const char *text, size_t len)
{
	unsigned lines = 1;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	return lines < IGNORE_RULES ? lines : IGNORE_RULES;
}

int ignore_parse(struct ignore *g, const char *file, const char *text, size_t len, struct err *e)
{
	memset(g, 0, sizeof(*g));
	if (len > IGNORE_BYTES)
		return err_set(e, ERR_LIMIT, "%.60s has %zu bytes, of at most %d", file, len,
			       IGNORE_BYTES);
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	if (posix_memalign((void **)&g->rules, _Alignof(struct ignore_rule),
			   ignore_count_lines(text, len) * sizeof(*g->rules)) != 0)
		abort();
	if (ignore_add_lines(g, file, text, len, e) == 0)
		return 0;
	ignore_fini(g);
	return -1;
}

int ignore_match(const struct ignore *g, const char *path)
{
	int ignored = 0;

	for (unsigned i = 0; i < g->n; i++)
		if (ignored == g->rules[i].include && glob_match_below(&g->rules[i].glob, path))
			ignored = !ignored;
	return ignored;
}

/* May the pattern match a path in the folder? Its begin must agree with the folder as far as both go. */
static int ignore_reaches(const struct ignore_rule *rule, const char *folder)
{
	size_t n = strlen(folder), m = strlen(rule->begin);

	return !strncmp(rule->begin, folder, n < m ? n : m);
}

int ignore_match_all(const struct ignore *g, const char *folder)
{
	if (!ignore_match(g, folder))
		return 0;
	for (unsigned i = 0; i < g->n; i++)
		if (g->rules[i].include && ignore_reaches(&g->rules[i], folder))
			return 0;
	return 1;
}

void ignore_fini(struct ignore *g)
{
	free(g->rules);
	memset(g, 0, sizeof(*g));
}
