/* cli_error.h - an error for people, in three parts: what, why with the value seen, what to type.
 *
 *	atoll: no box named 'dmeo'
 *	  close: demo
 *	  list:  atoll ps
 *
 * With --json the same as {"error":{...}}. Always on stderr. */
#pragma once
#include "base/err.h"

enum {
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_NOT_FOUND = 3,
	STATUS_NOT_ALLOWED = 4,
	STATUS_OURS = 125,
	STATUS_CANNOT_RUN = 126,
	STATUS_NO_PROGRAM = 127,
};

struct cli_error {
	const char *code; /* "usage", "not_found", ...: for programs */
	char what[320], why[320];
	struct {
		char label[12], text[240];
	} hints[8];
	unsigned nhints;
};

#define CLI_ERROR_FORMAT(f, a) __attribute__((format(printf, f, a)))
/* Begins one; returns t. */
struct cli_error *cli_error_what(struct cli_error *t, const char *code, const char *fmt, ...)
	CLI_ERROR_FORMAT(3, 4);
void cli_error_why(struct cli_error *t, const char *fmt, ...) CLI_ERROR_FORMAT(2, 3);
void cli_error_hint(struct cli_error *t, const char *label, const char *fmt, ...)
	CLI_ERROR_FORMAT(3, 4);

int cli_error_print(const struct cli_error *t, int json, int status); /* returns status */

/* Text from elsewhere as it may be shown: 40 bytes at most, nothing that moves a cursor. */
#define SHOWN 64
const char *cli_error_shown(const char *foreign, char out[SHOWN]);
