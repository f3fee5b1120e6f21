/* route.c - splits and decodes the path once, then compares every row with the segments. */
#include "http/route.h"
#include "base/hex.h"

#include <stdio.h>
#include <string.h>

enum { SEGMENTS = 16, PATH_MAX_BYTES = 2048 };

struct segment {
	const char *p;
	unsigned n;
};

struct path {
	unsigned count;
	struct segment segments[SEGMENTS];
	char text[PATH_MAX_BYTES + 1]; /* decoded */
};

/* Decodes [from, end) to out. The bytes written, or -1. */
static int route_decode(const char *from, const char *end, char *out)
{
	char *p = out;

	for (; from < end; from++) {
		int byte = (unsigned char)*from;

		if (byte == '%') {
			if (end - from < 3 || hex_digit(from[1]) < 0 || hex_digit(from[2]) < 0)
				return -1;
			byte = hex_digit(from[1]) << 4 | hex_digit(from[2]);
			from += 2;
		}
		if (byte == 0)
			return -1;
		*p++ = (char)byte;
	}
	return (int)(p - out);
}

static int is_name(const char *p, int n)
{
	return n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.');
}

/* 0, 400 or 414. More segments than any pattern has are counted, not kept. */
static int route_cut(const char *path, struct path *out)
{
	char *text = out->text;

	out->count = 0;
	if (path[0] != '/')
		return 400;
	if (strlen(path) > PATH_MAX_BYTES)
		return 414;
	if (path[1] == 0)
		return 0;
	while (*path == '/') {
		const char *end = strchrnul(path + 1, '/');
		int n;

		if (path[1] == 0) /* one slash at the end is ignored */
			return 0;
		n = route_decode(path + 1, end, text);

		if (!is_name(text, n))
			return 400;
		if (out->count < SEGMENTS)
			out->segments[out->count] = (struct segment){ text, (unsigned)n };
		out->count++;
		text += n;
		path = end;
	}
	return 0;
}

/* The pattern after the segment, or NULL where they differ. Compared byte by byte: most rows
 * differ at once. */
static const char *route_same(const char *pattern, const struct segment *s)
{
	for (unsigned i = 0; i < s->n; i++)
		/* The pattern's end is a NUL, which no segment has; a slash in a segment was encoded, and
		 * separates nothing. */
		if (pattern[i] != s->p[i] || s->p[i] == '/')
			return NULL;
	pattern += s->n;
	return *pattern == '/' || *pattern == 0 ? pattern : NULL;
}

/* Does the pattern match? Then *params has a bit for every segment that is a parameter. */
static int route_matches(const char *pattern, const struct path *path, unsigned *params)
{
	unsigned i = 0;

	*params = 0;
	if (pattern[1] == 0)
		return path->count == 0;
	for (; *pattern == '/'; i++) {
		if (i == path->count)
			return 0;
		if (pattern[1] == '{') {
			*params |= 1u << i;
			while (*pattern++ != '}')
				;
		} else {
			pattern = route_same(pattern + 1, &path->segments[i]);
			if (!pattern)
				return 0;
		}
	}
	return i == path->count;
}

/* Literal before parameter, at the first place where two patterns differ: the lowest bit that only
 * one of them has. */
static int is_closer(unsigned params, unsigned than)
{
	unsigned differ = params ^ than;

	return differ && (than & (differ & -differ));
}

/* The handler of GET also answers HEAD. */
static int route_serves(const struct route *r, const char *method)
{
	return strcmp(r->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

static void route_allow(struct route_match *m, const char *method)
{
	size_t len = strlen(m->allow_text), n = strlen(method);

	for (const char *p = m->allow_text; (p = strstr(p, method)); p += n)
		if (p[n] == ',' || p[n] == 0)
			return;
	if (len + n + 3 <= sizeof(m->allow_text))
		snprintf(m->allow_text + len, sizeof(m->allow_text) - len, "%s%s", len ? ", " : "",
			 method);
	if (strcmp(method, "GET") == 0)
		route_allow(m, "HEAD");
}

static int take_params(const struct path *path, unsigned params, struct route_match *out)
{
	for (unsigned i = 0; i < path->count; i++) {
		const struct segment *s = &path->segments[i];

		if (!(params & 1u << i))
			continue;
		if (s->n >= ROUTE_TEXT)
			return 414;
		if (out->nparams == ROUTE_PARAMS)
			return 404; /* a row with more parameters than a match can hold */
		memcpy(out->params[out->nparams], s->p, s->n);
		out->params[out->nparams++][s->n] = 0;
	}
	return 0;
}

int route_find(const struct route *table, unsigned count, const char *method, const char *path,
	       struct route_match *out)
{
	unsigned params, best = 0;
	struct path p;
	int status = route_cut(path, &p);

	out->route = NULL;
	out->nparams = 0;
	out->allow = NULL;
	out->allow_text[0] = 0;
	if (status)
		return status;
	if (p.count > SEGMENTS)
		return 404;
	for (unsigned i = 0; i < count; i++) {
		if (!route_serves(&table[i], method) ||
		    !route_matches(table[i].pattern, &p, &params))
			continue;
		if (!out->route || is_closer(params, best)) {
			out->route = &table[i];
			best = params;
		}
	}
	if (out->route)
		return take_params(&p, best, out);
	for (unsigned i = 0; i < count; i++)
		if (route_matches(table[i].pattern, &p, &params))
			route_allow(out, table[i].method);
	if (!out->allow_text[0])
		return 404;
	out->allow = out->allow_text;
	return 405;
}
