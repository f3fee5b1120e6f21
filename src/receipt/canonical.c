/* canonical.c - see canonical.h. */
#include "receipt/canonical.h"
#include "base/cleanup.h"
#include "base/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

/* In UTF-8 the order of bytes is that of code points. In UTF-16 it is the same, except that characters beyond
 * U+FFFF (first byte F0 to F4) come before U+E000 to U+FFFF (EE, EF). */
static int canonical_compare(const char *a, const char *b)
{
	const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;

	while (*x && *x == *y)
		x++, y++;
	if (*x >= 0xee && *y >= 0xee && (*x >= 0xf0) != (*y >= 0xf0))
		return *x >= 0xf0 ? -1 : 1;
	return (int)*x - (int)*y;
}

static int canonical_compare_keys(const void *a, const void *b)
{
	return canonical_compare(*(const char *const *)a, *(const char *const *)b);
}

/* ---- numbers ---- */

/* As ECMAScript writes it: the fewest digits that mean this number; digits[0].digits[1...] times 10^exponent. */
static void canonical_digits(double x, char digits[24], int *exponent)
{
	char text[40];
	unsigned n = 0;
	char *at;

	for (int precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, x);
		if (strtod(text, NULL) == x)
			break;
	}
	for (at = text; *at != 'e'; at++)
		if (*at != '.')
			digits[n++] = *at;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	digits[n] = 0;
	*exponent = atoi(at + 1);
}

static void canonical_real(struct buf *out, double x)
{
	char digits[24];
	int exponent, n;

	if (x == 0) {
		buf_putc(out, '0'); /* also for -0 */
		return;
	}
	if (x < 0) {
		buf_putc(out, '-');
		x = -x;
	}
	canonical_digits(x, digits, &exponent);
	n = (int)strlen(digits);
	if (exponent < -6 || exponent > 20) {
		buf_printf(out, "%c%s%se%+d", digits[0], n > 1 ? "." : "", digits + 1, exponent);
	} else if (exponent < 0) {
		buf_puts(out, "0.");
		for (int i = exponent; i < -1; i++)
			buf_putc(out, '0');
		buf_puts(out, digits);
	} else if (n <= exponent + 1) {
		buf_puts(out, digits);
		for (int i = n; i < exponent + 1; i++)
			buf_putc(out, '0');
	} else {
		buf_printf(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	}
}

/* ---- values ---- */

static void canonical_array(struct buf *out, const json_t *list)
{
	json_t *v;
	size_t i;

	buf_putc(out, '[');
	json_array_foreach((json_t *)list, i, v)
	{
		if (i)
			buf_putc(out, ',');
		canonical_write(out, v);
	}
	buf_putc(out, ']');
}

static void canonical_object(struct buf *out, const json_t *object)
{
	size_t n = json_object_size(object), i = 0;
	auto_free const char **keys = calloc(n + 1, sizeof(*keys));
	const char *key;
	json_t *v;

	if (!keys)
		abort();
	json_object_foreach((json_t *)object, key, v) keys[i++] = key;
	qsort(keys, n, sizeof(*keys), canonical_compare_keys);
	buf_putc(out, '{');
	for (i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		quote_json(out, keys[i], strlen(keys[i]));
		buf_putc(out, ':');
		canonical_write(out, json_object_get(object, keys[i]));
	}
	buf_putc(out, '}');
}

void canonical_write(struct buf *out, const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		canonical_object(out, v);
		break;
	case JSON_ARRAY:
		canonical_array(out, v);
		break;
	case JSON_STRING:
		quote_json(out, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		buf_printf(out, "%lld", (long long)json_integer_value(v));
		break;
	case JSON_REAL:
		canonical_real(out, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		buf_puts(out, json_is_true(v) ? "true" : "false");
		break;
	case JSON_NULL:
		buf_puts(out, "null");
		break;
	}
}

json_t *canonical_parse(const char *text, size_t n, struct err *e)
{
	auto_buf struct buf again = { 0 };
	json_error_t why;
	json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	size_t at = 0;

	if (!doc) {
		err_set(e, ERR_INVALID, "not JSON: %.120s (byte %d)", why.text, why.position);
		return NULL;
	}
	canonical_write(&again, doc);
	if (again.len == n && memcmp(buf_str(&again), text, n) == 0)
		return doc;
	while (at < n && at < again.len && text[at] == again.p[at])
		at++;
	err_set(e, ERR_INVALID, "not canonical JSON: byte %zu differs from the canonical form",
		at + 1);
	json_decref(doc);
	return NULL;
}
