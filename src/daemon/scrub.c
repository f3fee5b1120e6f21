/* scrub.c - see scrub.h. */
#include "daemon/scrub.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { VALUE_LEAST = 4, WORD_LEAST = 20 };

static int scrub_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '+' || c == '=' ||
	       c == '.' || c == '~';
}

/* Bytes of a known value at the beginning of the text; 0: none. */
static size_t scrub_value(const char *p, size_t n, const char *const *values)
{
	for (; values && *values; values++) {
		size_t len = strlen(*values);

		if (len >= VALUE_LEAST && len <= n && !memcmp(p, *values, len))
			return len;
	}
	return 0;
}

static int scrub_is_secret_name(const char *p, size_t n)
{
	static const char *const words[] = { "key",           "token",  "secret", "passw",
					     "authorization", "bearer", "cookie", "credential",
					     "signature",     "private" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		for (size_t at = 0, len = strlen(words[i]); at + len <= n; at++)
			if (!strncasecmp(p + at, words[i], len))
				return 1;
	return 0;
}

/* A version such as 1.2.3-4 has letters at most as a suffix; a name has no digits. */
static int scrub_is_token(const char *p, size_t n)
{
	size_t digits = 0, letters = 0;

	for (size_t i = 0; i < n; i++) {
		digits += isdigit((unsigned char)p[i]) != 0;
		letters += isalpha((unsigned char)p[i]) != 0;
	}
	return n >= WORD_LEAST && digits && letters;
}

/* After a name: separators, then the value; returns the bytes of both, 0: no value follows. The value ends with its quote,
 * or where a word would. "Authorization: Bearer x" has two words. */
static size_t scrub_assigned(const char *p, size_t n, size_t *out_value)
{
	size_t at = 0, begin;
	char quote = 0;

	while (at < n && at < 4 && strchr("\"' \t", p[at]))
		at++;
	if (at == n || (p[at] != '=' && p[at] != ':'))
		return 0;
	for (at++; at < n && strchr(" \t[", p[at]); at++)
		;
	if (at < n && (p[at] == '"' || p[at] == '\''))
		quote = p[at++];
	begin = at;
	while (at < n && p[at] != '\n' && (quote ? p[at] != quote : !strchr(",;&}])\"'", p[at])))
		at++;
	*out_value = begin;
	return at > begin ? at : 0;
}

/* "//user:password@": bytes up to the '@'; 0: the address has none. */
static size_t scrub_user(const char *p, size_t n)
{
	size_t at = 2;

	if (n < 3 || p[0] != '/' || p[1] != '/')
		return 0;
	while (at < n && !strchr("@/ \t\n\"'?#", p[at]))
		at++;
	return at < n && p[at] == '@' && at > 2 ? at : 0;
}

void scrub_text(struct buf *out, const char *text, size_t n, const char *const *values)
{
	for (size_t at = 0, len, begin; at < n;) {
		const char *p = text + at;
		size_t left = n - at, word = 0;

		if ((len = scrub_value(p, left, values))) {
			buf_puts(out, SCRUB_MARK);
			at += len;
			continue;
		}
		if ((len = scrub_user(p, left))) {
			buf_puts(out, "//" SCRUB_MARK);
			at += len;
			continue;
		}
		/* A known value may begin inside of a word. */
		while (word < left && scrub_is_word(p[word]) && p[word] != '=' &&
		       !(word && scrub_value(p + word, left - word, values)))
			word++;
		if (word && scrub_is_secret_name(p, word) &&
		    (len = scrub_assigned(p + word, left - word, &begin))) {
			buf_add(out, p, word + begin);
			buf_puts(out, SCRUB_MARK);
			at += word + len;
		} else if (word) {
			if (scrub_is_token(p, word))
				buf_puts(out, SCRUB_MARK);
			else
				buf_add(out, p, word);
			at += word;
		} else {
			buf_putc(out, *p);
			at++;
		}
	}
}
