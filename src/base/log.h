/* log.h - log lines on stderr.
 * Owns: the level, the format, the list of secrets; all set before the first thread starts.
 *
 * log_info("box made", LOG_S("box", id), LOG_U("us", took_us));
 * {"ts":"2026-11-15T12:00:00.123Z","level":"info","msg":"box made","box":"k3v7","us":812}
 *
 * Never fails its caller and never waits long: a line is one write(2) of at most PIPE_BUF bytes, so
 * that lines of several processes do not mix. A reader that does not read loses lines, and their
 * number is logged. Untrusted text is truncated, made valid UTF-8, and escaped; keys and every
 * secret registered here are replaced by "***". */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum log_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR, LEVEL_NONE };
enum log_form { LOG_JSON, LOG_TEXT };
enum {
	LOG_LINE = 4096,
	LOG_VALUE = 1024
}; /* bytes of a line; of one value in it, before escapes */

struct log_field {
	const char *key; /* NULL ends a list */
	enum { LOG_IS_TEXT, LOG_IS_UNSIGNED, LOG_IS_SIGNED, LOG_IS_TRUTH } is;
	union {
		struct {
			const char *text; /* NULL: the field is left out */
			size_t len;
		};
		uint64_t u;
		int64_t i;
	};
};
#define LOG_S(k, s) log_text(k, s, SIZE_MAX) /* a string */
#define LOG_B(k, p, n) log_text(k, p, n)     /* bytes */
#define LOG_U(k, n) ((struct log_field){ .key = (k), .is = LOG_IS_UNSIGNED, .u = (n) })
#define LOG_I(k, n) ((struct log_field){ .key = (k), .is = LOG_IS_SIGNED, .i = (n) })
#define LOG_T(k, so) ((struct log_field){ .key = (k), .is = LOG_IS_TRUTH, .u = !!(so) })
#define LOG_E(e) log_text("error", (e)->msg, SIZE_MAX) /* a struct err */

static inline struct log_field log_text(const char *key, const char *text, size_t len)
{
	return (struct log_field){ .key = key, .is = LOG_IS_TEXT, .text = text, .len = len };
}

void log_setup(int fd, enum log_form form, enum log_level least); /* else: stderr, text, info */
int log_level_of(const char *name);                               /* "debug" ... "none"; -1 */
/* Redacted in every line; copied. Secrets below 6 bytes would hide too much and are ignored. */
void log_secret(const char *value);
void log_forget_secrets(void);

int log_wants(enum log_level level);
void log_write(enum log_level level, const char *msg, const struct log_field *fields);
/* The line itself, newline included; returns its length. */
size_t log_line(char out[LOG_LINE], enum log_form form, enum log_level level, uint64_t wall_ns,
		const char *msg, const struct log_field *fields);
/* Lost lines since the last one that was written. */
uint64_t log_lost(void);
uint64_t log_lost_ever(void); /* all lost lines */

#define LOG_AT(level, msg, ...)                                                                    \
	do {                                                                                       \
		if (log_wants(level))                                                              \
			log_write(level, msg,                                                      \
				  (const struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ 0 } });  \
	} while (0)
#define log_debug(...) LOG_AT(LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) LOG_AT(LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) LOG_AT(LEVEL_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LEVEL_ERROR, __VA_ARGS__)
