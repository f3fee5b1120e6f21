/* glob.c - see glob.h. A set of positions in the pattern, one bit each, is moved over the path byte by byte. */
#include "base/glob.h"

#include <string.h>

#define BIT(i) ((unsigned __int128)1 << (i))

static void glob_take_all(struct glob *g, unsigned __int128 bit, int slash)
{
	for (unsigned c = 1; c < 256; c++)
		if (slash || c != '/')
			g->takes[c] |= bit;
}

/* p is after "["; returns the position after "]", NULL without one. */
static const char *glob_compile_set(struct glob *g, const char *p)
{
	int other = *p == '!' || *p == '^', in[256] = { 0 };
	const char *first = p += other;

	for (; *p && (*p != ']' || p == first); p++) {
		unsigned from = (unsigned char)*p, to = from;

		if (p[1] == '-' && p[2] && p[2] != ']') {
			to = (unsigned char)p[2];
			p += 2;
		}
		for (; from <= to; from++)
			in[from] = 1;
	}
	if (!*p)
		return NULL;
	for (unsigned c = 1; c < 256; c++)
		if (c != '/' && in[c] != other)
			g->takes[c] |= BIT(g->n);
	return p + 1;
}

/* p is at the first of some stars; returns the position after them. */
static const char *glob_compile_stars(struct glob *g, const char *pattern, const char *p)
{
	const char *end = p + strspn(p, "*");
	int whole_name = p == pattern || p[-1] == '/';

	if (end - p == 1) {
		g->star |= BIT(g->n);
	} else if (whole_name && *end == '/') {
		while (!strncmp(end, "/**/", 4)) /* the same again */
			end += 3;
		g->dirs |= BIT(g->n);
		end++;
	} else {
		g->globstar |= BIT(g->n);
	}
	return end;
}

int glob_compile(struct glob *g, const char *pattern, struct err *e)
{
	const char *p = pattern;

	memset(g, 0, sizeof(*g));
	if (!*p || strlen(p) > GLOB_BYTES)
		return err_set(e, ERR_INVALID, "a pattern of %zu bytes, from 1 to %d", strlen(p),
			       GLOB_BYTES);
	while (*p) {
		if (*p == '*') {
			p = glob_compile_stars(g, pattern, p);
		} else if (*p == '[') {
			p = glob_compile_set(g, p + 1);
			if (!p)
				return err_set(e, ERR_INVALID, "'%.60s' has a [ without its ]",
					       pattern);
		} else if (*p == '?') {
			glob_take_all(g, BIT(g->n), 0);
			p++;
		} else {
			if (*p == '\\' && !*++p)
				return err_set(e, ERR_INVALID, "'%.60s' ends with a \\", pattern);
			g->takes[(unsigned char)*p++] |= BIT(g->n);
		}
		g->n++;
	}
	return 0;
}

/* Tokens that may match nothing: a star anywhere, ** at the start of a name. A star never follows a
 * star. */
static unsigned __int128 glob_skip(const struct glob *g, unsigned __int128 at, int name_begins)
{
	if (name_begins)
		at |= (at & g->dirs) << 1;
	return at | (at & (g->star | g->globstar)) << 1;
}

static int glob_match_path(const struct glob *g, const char *path, int below)
{
	unsigned __int128 at = glob_skip(g, 1, 1);

	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		unsigned __int128 stay = g->globstar | g->dirs | (*p != '/' ? g->star : 0);

		if (below && *p == '/' && (at & BIT(g->n)))
			return 1;
		at = glob_skip(g, (at & g->takes[*p]) << 1 | (at & stay), *p == '/');
		if (!at)
			return 0;
	}
	return !!(at & BIT(g->n));
}

int glob_match(const struct glob *g, const char *path)
{
	return glob_match_path(g, path, 0);
}

int glob_match_below(const struct glob *g, const char *path)
{
	return glob_match_path(g, path, 1);
}
