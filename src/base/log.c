/* log.c - see log.h. A line is built in a buffer on the stack, without allocation. */
#include "base/log.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MOST_SECRETS = 16, SHORTEST_SECRET = 6, KEY_HEX = 40, PATIENCE_MS = 20 };

static struct {
	int fd;
	enum log_form form;
	enum log_level least;
	struct {
		char *text;
		size_t len;
	} secrets[MOST_SECRETS];
	unsigned nsecrets;
	atomic_uint_least64_t lost, lost_ever;
} log_state = { .fd = 2, .form = LOG_TEXT, .least = LEVEL_INFO };

static const char *const level_names[] = {
	[LEVEL_DEBUG] = "debug", [LEVEL_INFO] = "info", [LEVEL_WARN] = "warn",
	[LEVEL_ERROR] = "error", [LEVEL_NONE] = "none",
};

/* ---- secrets ---- */

static size_t api_key(const char *p, size_t n)
{
	size_t len = 4;

	if (n < 4 + KEY_HEX || memcmp(p, "e2b_", 4) != 0)
		return 0;
	while (len < n && hex_digit(p[len]) >= 0)
		len++;
	return len >= 4 + KEY_HEX ? len : 0;
}

static size_t log_registered(const char *p, size_t n)
{
	for (unsigned i = 0; i < log_state.nsecrets; i++)
		if (log_state.secrets[i].len <= n &&
		    !memcmp(p, log_state.secrets[i].text, log_state.secrets[i].len))
			return log_state.secrets[i].len;
	return 0;
}

/* The length of a header name and the text before its value, as in
 * `Authorization: Bearer x`, `"x-api-key": "x"` or `Bearer x`. */
static size_t before_a_credential(const char *p, size_t n)
{
	static const char *const names[] = { "authorization", "x-api-key", "bearer " };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]), end = len;

		if (n <= len || strncasecmp(p, names[i], len) != 0)
			continue;
		while (end < n && end < len + 8 && strchr(" \t:=\"'", p[end]) && p[end])
			end++;
		return end > len || names[i][len - 1] == ' ' ? end : 0;
	}
	return 0;
}

static size_t log_credential(const char *p, size_t n)
{
	size_t len = 0;

	while (len < n && p[len] != '\r' && p[len] != '\n' && p[len] != '"')
		len++;
	return len;
}

static int names_a_secret(const char *key)
{
	static const char *const names[] = { "authorization", "x-api-key", "api_key",
					     "password",      "secret",    "token" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strcasecmp(key, names[i]))
			return 1;
	return 0;
}

/* ---- a line ---- */

struct base_line {
	char *p;
	size_t n, room;
	int cut; /* something did not fit */
};

static void log_put(struct base_line *l, const char *bytes, size_t n)
{
	if (n > l->room - l->n) {
		l->cut = 1;
		l->room = l->n; /* nothing after a gap */
		return;
	}
	memcpy(l->p + l->n, bytes, n);
	l->n += n;
}

static void puts_line(struct base_line *l, const char *s)
{
	log_put(l, s, strlen(s));
}

/* The length of a printable UTF-8 character, or 0. */
static unsigned shown_utf8(const char *p, size_t n)
{
	uint32_t c;
	unsigned len = utf8_decode(p, n, &c);

	return c < 0xa0 ? 0 : len; /* C1 control characters also move cursors */
}

static size_t put_char(struct base_line *l, const char *p, size_t n)
{
	static const char letters[] = "\"\\\n\r\t", means[] = "\"\\nrt";
	const char *letter = *p ? strchr(letters, *p) : NULL;
	unsigned char c = (unsigned char)*p;
	char text[8];

	if (letter) {
		log_put(l, (char[]){ '\\', means[letter - letters] }, 2);
	} else if (c < 0x20 || c == 0x7f) {
		snprintf(text, sizeof(text), "\\u%04x", c);
		puts_line(l, text);
	} else if (c < 0x80) {
		log_put(l, p, 1);
	} else {
		unsigned len = shown_utf8(p, n);

		log_put(l, len ? p : UTF8_REPLACEMENT, len ? len : 3);
		return len ? len : 1;
	}
	return 1;
}

static void put_escaped(struct base_line *l, const char *text, size_t n)
{
	size_t end = n > LOG_VALUE ? LOG_VALUE : n, i = 0;

	/* Secrets are searched before the text is truncated, so that no part of one is printed. */
	while (i < end) {
		size_t hide = api_key(text + i, n - i), name;

		hide = hide ? hide : log_registered(text + i, n - i);
		if (hide) {
			puts_line(l, "***");
			i += hide;
			continue;
		}
		name = before_a_credential(text + i, n - i);
		if (name) {
			for (size_t k = 0; k < name; k++)
				put_char(l, text + i + k, 1);
			i += name;
			hide = log_credential(text + i, n - i);
			puts_line(l, hide ? "***" : "");
			i += hide;
			continue;
		}
		i += put_char(l, text + i, n - i);
	}
	if (i < n)
		puts_line(l, "...");
}

static size_t length_of(const struct log_field *f)
{
	return f->len == SIZE_MAX ? strnlen(f->text, LOG_LINE) : f->len;
}

static int log_plain(const char *text, size_t n)
{
	static const char bytes[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@+,-";

	for (size_t i = 0; i < n; i++)
		if (!text[i] || !strchr(bytes, text[i]))
			return 0;
	return n > 0;
}

static void put_value(struct base_line *l, enum log_form form, const struct log_field *f)
{
	char number[24];

	if (f->is == LOG_IS_TEXT) {
		size_t n = length_of(f);
		int bare = form == LOG_TEXT && log_plain(f->text, n);

		puts_line(l, bare ? "" : "\"");
		if (names_a_secret(f->key))
			puts_line(l, "***");
		else
			put_escaped(l, f->text, n);
		puts_line(l, bare ? "" : "\"");
		return;
	}
	if (f->is == LOG_IS_TRUTH)
		snprintf(number, sizeof(number), "%s", f->u ? "true" : "false");
	else if (f->is == LOG_IS_SIGNED)
		snprintf(number, sizeof(number), "%lld", (long long)f->i);
	else
		snprintf(number, sizeof(number), "%llu", (unsigned long long)f->u);
	puts_line(l, number);
}

/* The complete field or nothing. */
static void put_field(struct base_line *l, enum log_form form, const struct log_field *f)
{
	size_t before = l->n, room = l->room;
	int cut = l->cut;

	if (f->is == LOG_IS_TEXT && !f->text)
		return;
	l->cut = 0;
	puts_line(l, form == LOG_JSON ? ",\"" : " ");
	put_escaped(l, f->key, strlen(f->key));
	puts_line(l, form == LOG_JSON ? "\":" : "=");
	put_value(l, form, f);
	if (l->cut) {
		l->n = before;
		l->room = room;
	}
	l->cut |= cut;
}

static void put_time(struct base_line *l, uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / 1000000000u);
	char text[48];
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03uZ", (unsigned)(wall_ns / 1000000u % 1000));
	puts_line(l, text);
}

size_t log_line(char out[LOG_LINE], enum log_form form, enum log_level level, uint64_t wall_ns,
		const char *msg, const struct log_field *fields)
{
	static const char cut_json[] = ",\"cut\":true", truncate_text[] = " cut=true";
	struct base_line l = { .p = out, .room = LOG_LINE - sizeof(cut_json) - 2 };

	if (form == LOG_JSON)
		puts_line(&l, "{\"ts\":\"");
	put_time(&l, wall_ns);
	puts_line(&l, form == LOG_JSON ? "\",\"level\":\"" : " ");
	puts_line(&l, level_names[level]);
	puts_line(&l, form == LOG_JSON ? "\",\"msg\":\"" : " ");
	/* Even if every byte is escaped, 3 KiB of message leave space for the rest. */
	put_escaped(&l, msg, strnlen(msg, LOG_VALUE / 2));
	puts_line(&l, form == LOG_JSON ? "\"" : "");
	for (; fields && fields->key; fields++)
		put_field(&l, form, fields);
	l.room = LOG_LINE;
	if (l.cut)
		puts_line(&l, form == LOG_JSON ? cut_json : truncate_text);
	puts_line(&l, form == LOG_JSON ? "}\n" : "\n");
	return l.n;
}

/* ---- out ---- */

void log_setup(int fd, enum log_form form, enum log_level least)
{
	log_state.fd = fd;
	log_state.form = form;
	log_state.least = least;
}

int log_level_of(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(level_names); i++)
		if (!strcmp(level_names[i], name))
			return (int)i;
	return -1;
}

void log_secret(const char *value)
{
	size_t len = strlen(value);

	if (len < SHORTEST_SECRET || log_state.nsecrets == MOST_SECRETS ||
	    log_registered(value, len) == len)
		return;
	log_state.secrets[log_state.nsecrets].text = strdup(value);
	if (!log_state.secrets[log_state.nsecrets].text)
		abort();
	log_state.secrets[log_state.nsecrets++].len = len;
}

void log_forget_secrets(void)
{
	while (log_state.nsecrets)
		free(log_state.secrets[--log_state.nsecrets].text);
}

int log_wants(enum log_level level)
{
	return level >= log_state.least && level < LEVEL_NONE;
}

uint64_t log_lost(void)
{
	return atomic_load(&log_state.lost);
}

uint64_t log_lost_ever(void)
{
	return atomic_load(&log_state.lost_ever);
}

/* A pipe that is writable has a free page, so PIPE_BUF bytes are written without waiting. A pipe
 * that was full the last time is not waited for again: a reader that does not read delays only
 * the first line, by some milliseconds. */
static int can_write(void)
{
	struct pollfd p = { .fd = log_state.fd, .events = POLLOUT };

	/* Without a reader a write would be SIGPIPE; an error comes with POLLOUT. */
	return poll(&p, 1, log_lost() ? 0 : PATIENCE_MS) == 1 && p.revents == POLLOUT;
}

static int log_emit(enum log_level level, const char *msg, const struct log_field *fields)
{
	char line[LOG_LINE];
	ssize_t wrote;
	size_t n;

	if (!can_write())
		return -1;
	n = log_line(line, log_state.form, level, clock_ns(CLOCK_REALTIME), msg, fields);
	do {
		wrote = write(log_state.fd, line, n);
	} while (wrote < 0 && errno == EINTR);
	return wrote == (ssize_t)n ? 0 : -1;
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
	int saved = errno; /* a log line in an error path must not change the error */
	uint64_t lost = log_lost();
	struct log_field told[] = { LOG_U("lost", lost), { 0 } };

	if (lost && log_emit(LEVEL_WARN, "log lines were lost", told) == 0)
		atomic_fetch_sub(&log_state.lost, lost);
	if (log_lost() || log_emit(level, msg, fields) < 0) {
		atomic_fetch_add(&log_state.lost, 1);
		atomic_fetch_add(&log_state.lost_ever, 1);
	}
	errno = saved;
}
