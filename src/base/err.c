/* err.c - see err.h. No allocation: this also runs between clone and exec. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	e->sys = 0;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t n;

	e->kind = ERR_SYS;
	e->sys = saved;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(saved));
	return -1;
}

int err_in(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->msg)];
	va_list ap;
	size_t n;

	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", old);
	return -1;
}

const char *err_kind_name(enum err_kind kind)
{
	static const char *const names[] = {
		[ERR_NONE] = "none",           [ERR_INVALID] = "invalid",
		[ERR_NOT_FOUND] = "not_found", [ERR_CONFLICT] = "conflict",
		[ERR_LIMIT] = "limit",         [ERR_DENIED] = "denied",
		[ERR_SYS] = "system",
	};

	return (unsigned)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}
