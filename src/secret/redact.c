/* redact.c - see redact.h. */
#include "secret/redact.h"
#include "base/base64.h"

#include <fnmatch.h>
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

	if (n < REDACT_SHORTEST)
		return;
	for (unsigned i = 0; i < k->n; i++)
		if (k->v[i].n == n && memcmp(k->v[i].value, value, n) == 0)
			return;
	k->v = realloc(k->v, (k->n + 1) * sizeof(*k->v));
	if (!k->v)
		abort();
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
	k->first[(unsigned char)value[0]] = 1;
	k->n++;
}

/* In base64, the letters of a value depend on its offset in the encoded text modulo 3, and at both ends a
 * letter also depends on the neighbours. The letters in between are recognised, in both alphabets. */
static void redact_take_base64(struct redact *k, const char *name, const char *value, size_t n)
{
	static const unsigned foreign[] = { 0, 2, 3 }; /* letters that depend on bytes before it */

	for (unsigned offset = 0; offset < 3; offset++) {
		auto_buf struct buf plain = { 0 }, coded = { 0 };
		size_t from = foreign[offset], to = (offset + n) * 8 / 6;

		buf_add(&plain, "\0\0", offset);
		buf_add(&plain, value, n);
		base64_encode(&coded, plain.p, plain.len);
		if (!offset) /* the value alone, to its end */
			redact_take(k, name, coded.p, coded.len);
		redact_take(k, name, coded.p + from, to - from);
		for (size_t i = from; i < to; i++)
			coded.p[i] = (char)(coded.p[i] == '+'   ? '-'
					    : coded.p[i] == '/' ? '_'
								: coded.p[i]);
		redact_take(k, name, coded.p + from, to - from);
		explicit_bzero(plain.p, plain.len);
		explicit_bzero(coded.p, coded.len);
	}
}

/* As browsers write it (%2F and %20), and as other programs do (%2f, and + for a space). */
static void redact_take_url(struct redact *k, const char *name, const char *value, size_t n,
			    int lower)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";
	auto_buf struct buf coded = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (value[i] == ' ')
			buf_puts(&coded, lower ? "+" : "%20");
		else if (value[i] && strchr(plain, value[i]))
			buf_putc(&coded, value[i]);
		else
			buf_printf(&coded, lower ? "%%%02x" : "%%%02X", (unsigned char)value[i]);
	}
	redact_take(k, name, coded.p, coded.len);
	explicit_bzero(coded.p, coded.len);
}

void redact_add(struct redact *k, const char *name, const char *value, size_t n)
{
	if (n < REDACT_SHORTEST)
		return;
	redact_take(k, name, value, n);
	redact_take_base64(k, name, value, n);
	redact_take_url(k, name, value, n, 0);
	redact_take_url(k, name, value, n, 1);
}

void redact_init(struct redact *k, const char *env_json)
{
	json_t *env = env_json ? json_loads(env_json, 0, NULL) : NULL, *v;
	const char *name;

	*k = (struct redact){ 0 };
	json_object_foreach(env, name, v) if (json_is_string(v) && redact_suspects(name))
		redact_add(k, name, json_string_value(v), json_string_length(v));
	json_decref(env);
}

void redact_fini(struct redact *k)
{
	for (unsigned i = 0; i < k->n; i++) {
		explicit_bzero(k->v[i].value, k->v[i].n);
		free(k->v[i].name);
		free(k->v[i].value);
	}
	free(k->v);
	buf_fini(&k->rest[0]);
	buf_fini(&k->rest[1]);
	*k = (struct redact){ 0 };
}

/* 1: secret number *which starts here. -1: the text may be the beginning of one. */
static int redact_meets(const struct redact *k, const char *at, size_t n, int whole,
			unsigned *which)
{
	for (unsigned i = 0; i < k->n && k->first[(unsigned char)*at]; i++) {
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

void redact_json(const struct redact *k, json_t *doc)
{
	const char *name;
	json_t *one;
	size_t i;

	if (k->n == 0)
		return;
	if (json_is_string(doc)) {
		auto_buf struct buf plain = { 0 };

		redact_text(k, json_string_value(doc), json_string_length(doc), &plain);
		if (plain.len != json_string_length(doc) ||
		    memcmp(buf_str(&plain), json_string_value(doc), plain.len) != 0)
			json_string_setn(doc, buf_str(&plain), plain.len);
	}
	json_array_foreach(doc, i, one) redact_json(k, one);
	json_object_foreach(doc, name, one) redact_json(k, one);
}
