/* redact.c - see redact.h. */
#include "tools/redact.h"
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int redact_suspects(const char *name)
{
	static const char *const marks[] = { "*_KEY", "*_TOKEN", "*SECRET*", "*PASSWORD*" };

	for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (fnmatch(marks[i], name, FNM_CASEFOLD) == 0)
			return 1;
	return 0;
}

/* The longest first: one may be a prefix of another. */
static void redact_take(struct redact *k, const char *name, const char *value, size_t n)
{
	unsigned at = k->n;

	if (k->n == REDACT_SECRETS)
		return;
	while (at > 0 && k->v[at - 1].n < n) {
		k->v[at] = k->v[at - 1];
		at--;
	}
	k->v[at].name = strdup(name);
	k->v[at].value = malloc(n);
	k->v[at].n = n;
	if (!k->v[at].name || !k->v[at].value)
		abort();
	memcpy(k->v[at].value, value, n);
	k->n++;
}

void redact_init(struct redact *k, const char *env_json)
{
	json_t *env = env_json ? json_loads(env_json, 0, NULL) : NULL, *v;
	const char *name;

	*k = (struct redact){ 0 };
	json_object_foreach(env, name, v) if (json_string_length(v) >= REDACT_SHORTEST &&
					      redact_suspects(name))
		redact_take(k, name, json_string_value(v), json_string_length(v));
	json_decref(env);
}

void redact_fini(struct redact *k)
{
	for (unsigned i = 0; i < k->n; i++) {
		free(k->v[i].name);
		free(k->v[i].value);
	}
	buf_fini(&k->rest[0]);
	buf_fini(&k->rest[1]);
	k->n = 0;
}

/* 1: secret number *which starts here. -1: the text may be the beginning of one. */
static int redact_meets(const struct redact *k, const char *at, size_t n, int whole,
			unsigned *which)
{
	for (unsigned i = 0; i < k->n; i++) {
		size_t same = n < k->v[i].n ? n : k->v[i].n;

		if ((whole && n < k->v[i].n) || memcmp(at, k->v[i].value, same) != 0)
			continue;
		*which = i;
		return same == k->v[i].n ? 1 : -1;
	}
	return 0;
}

/* Returns the number of handled bytes. */
static size_t redact_replace(const struct redact *k, const char *text, size_t n, int whole,
			     struct buf *out)
{
	size_t i = 0;

	while (i < n) {
		unsigned which;
		int met = redact_meets(k, text + i, n - i, whole, &which);

		if (met < 0)
			return i;
		if (met == 1) {
			buf_printf(out, "[%s]", k->v[which].name);
			i += k->v[which].n;
		} else {
			buf_putc(out, text[i++]);
		}
	}
	return n;
}

void redact_pass(struct redact *k, unsigned stream, const char *bytes, size_t n, struct buf *out)
{
	struct buf *rest = &k->rest[stream], left = { 0 };
	size_t done;

	if (k->n == 0) {
		buf_add(out, bytes, n);
		return;
	}
	buf_add(rest, bytes, n);
	done = redact_replace(k, rest->p, rest->len, 0, out);
	buf_add(&left, rest->p + done, rest->len - done);
	buf_fini(rest);
	*rest = left;
}

void redact_flush(struct redact *k, unsigned stream, struct buf *out)
{
	struct buf *rest = &k->rest[stream];

	if (rest->len)
		redact_replace(k, rest->p, rest->len, 1, out);
	buf_fini(rest);
}

void redact_text(const struct redact *k, const char *text, size_t n, struct buf *out)
{
	if (k->n == 0)
		buf_add(out, text, n);
	else
		redact_replace(k, text, n, 1, out);
}
