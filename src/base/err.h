/* err.h - one failure, with its kind, errno and message. Plain data: copy it, keep it, send it
 * through a socket. A guest that exits 1 or runs out of memory is a result, not an err; only
 * internal failures are. */
#pragma once

enum err_kind {
	ERR_NONE,
	ERR_INVALID,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_LIMIT,
	ERR_DENIED,
	ERR_SYS
};

struct err {
	enum err_kind kind;
	int sys; /* errno at the moment of failure, or 0 */
	char msg[240];
};

/* All return -1, so that a failure is one line at the call site. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Saves errno first and appends its text. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prepends "where: " to the message. */
int err_in(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *err_kind_name(enum err_kind kind); /* "invalid", "not_found", ... */

#define must_check __attribute__((warn_unused_result))
