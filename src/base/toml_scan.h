/* toml_scan.h - shared by the two halves of the TOML parser: the text and the position. toml.c
 * knows tables, toml_scalar.c knows strings, numbers and dates. No other file includes this. */
#pragma once
#include "base/toml.h"

struct toml_scan {
	struct toml *doc;
	const char *name;
	const char *text; /* NUL-terminated, without other NULs; valid UTF-8; CR only before LF */
	const char *at;
	unsigned line;
	unsigned sections; /* tables opened so far */
	struct err *e;
};

struct toml_text {
	const char *p;
	size_t n;
};

/* Always -1: "name:line:column: ..." for a place in the text. */
int toml_fail(struct toml_scan *s, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Describes the next character for a message: "'x'", "the end of the line", "the end of the
 * file". */
#define TOML_SAW 32
const char *toml_saw(const char *at, char out[TOML_SAW]);
void *toml_alloc(struct toml *t, size_t n); /* zeroed, lives as long as the tree */

int toml_newline(struct toml_scan *s); /* steps over LF or CRLF; 0: there is none */

/* At a quote. one_line: as a key may be written. */
must_check int toml_string(struct toml_scan *s, int one_line, struct toml_text *out);
/* At a letter, digit or sign: number, boolean, date, time. */
must_check int toml_word(struct toml_scan *s, struct toml_node *out);
