/* fix.h - the fixes that a diagnosis can apply, each a small function: one change, or none.
 * Owns: nothing. A fix creates at most one child of the artifact. */
#pragma once
#include "document/document.h"
#include "debug/rules.h"
#include "base/buf.h"

enum { FAILURE_TEXT = 256, FAILURE_FILE_BYTES = 1 << 20 };

/* A failed run under examination. */
struct failure_case {
	const json_t *plan, *artifact, *result, *before;
	const json_t *phase;     /* the failed phase of the result; NULL: none */
	const struct lang *lang; /* NULL: an unknown language */

	/* The finding. */
	const char *category, *name; /* name: of the rule, or of the fact */
	const struct rule *rule;     /* NULL: a fact */
	double confidence;
	char group[RULE_GROUPS][FAILURE_TEXT];
	char subject[FAILURE_TEXT], meant[FAILURE_TEXT];
	char path[FAILURE_TEXT]; /* the concerned file of the artifact, or "" */
	char file[FAILURE_TEXT]; /* as printed */
	long line, column;       /* 0: unknown */
	json_t *evidence;
	struct buf why;

	/* The fix. */
	const char *kind; /* NULL so far */
	struct buf detail;
	json_t *child;
	char question_name[FAILURE_TEXT];
	struct buf question;
	const char *fixable; /* NULL: the category's */
};

struct fix {
	const char *name;
	int (*run)(struct failure_case *s); /* 1: applied; 0: not applicable */
};
const struct fix *fix_named(const char *name); /* NULL: there is none */

/* ---- for the steps ---- */

const char *failure_message(const struct failure_case *s,
			    const char *path); /* of a file; NULL: there is none */
const char *failure_main(
	const struct failure_case *s); /* the file to change: that of the failure, else the entry */
/* The file of the artifact for this path, independent of the working folder; NULL: none. */
const char *failure_file(const struct failure_case *s, const char *said);

/* Adds evidence; line: of the text, 0: none. */
void failure_seen(struct failure_case *s, const char *source, long line, const char *text);
/* Creates a child to change; then failure_done() with a description. */
json_t *failure_child(struct failure_case *s);
int failure_done(struct failure_case *s, const char *kind, json_t *take_child, const char *fmt, ...)
	__attribute__((format(printf, 4, 5))); /* 0: it does not differ; the child is freed */
int failure_edit(struct failure_case *s, const char *path, const struct buf *text, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));
int failure_ask(struct failure_case *s, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int failure_stop(struct failure_case *s, const char *fixable, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The start of a line (from 1) of a text, and its length without the newline. NULL: no such
 * line. */
const char *text_line(const char *text, long line, size_t *n);
void text_splice(struct buf *out, const char *text, size_t at, size_t gone, const char *with);
/* The first occurrence of a whole word in the text, or NULL. */
const char *text_word(const char *text, const char *word);
