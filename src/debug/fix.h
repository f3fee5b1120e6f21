/* fix.h - the steps that a diagnosis can take, each a small function: one change, or none.
 * Owns: nothing. A step makes at most one child of the artifact. */
#pragma once
#include "document/document.h"
#include "debug/rules.h"
#include "base/buf.h"

enum { FAILURE_TEXT = 256, FAILURE_FILE_BYTES = 1 << 20 };

/* A failed run under examination. */
struct failure_case {
	const json_t *plan, *artifact, *result, *before;
	const json_t *phase;     /* of the result: where it failed; NULL: it has none */
	const struct lang *lang; /* NULL: a language that we do not know */

	/* What was found. */
	const char *category, *name; /* name: the rule's, or of a fact */
	const struct rule *rule;     /* NULL: a fact */
	double confidence;
	char group[RULE_GROUPS][FAILURE_TEXT];
	char subject[FAILURE_TEXT], meant[FAILURE_TEXT];
	char path[FAILURE_TEXT]; /* the file of the artifact that it is about, or "" */
	char file[FAILURE_TEXT]; /* as it was said */
	long line, column;       /* 0: unknown */
	json_t *evidence;
	struct buf why;

	/* What is done about it. */
	const char *kind; /* NULL so far */
	struct buf detail;
	json_t *child;
	char question_name[FAILURE_TEXT];
	struct buf question;
	const char *fixable; /* NULL: the category's */
};

struct fix {
	const char *name;
	int (*run)(struct failure_case *s); /* 1: something is done; 0: it cannot help here */
};
const struct fix *fix_named(const char *name); /* NULL: there is none */

/* ---- for the steps ---- */

const char *failure_message(const struct failure_case *s,
			    const char *path); /* of a file; NULL: there is none */
const char *failure_main(
	const struct failure_case *s); /* the file to change: where it happened, else the entry */
/* The artifact's file that this path means, whichever folder it was run in; NULL: none. */
const char *failure_file(const struct failure_case *s, const char *said);

/* Evidence; the line is that of its text, 0: none. */
void failure_seen(struct failure_case *s, const char *source, long line, const char *text);
/* A child to change; then failure_done() with the words. */
json_t *failure_child(struct failure_case *s);
int failure_done(struct failure_case *s, const char *kind, json_t *take_child, const char *fmt, ...)
	__attribute__((format(printf, 4, 5))); /* 0: it does not differ; child is gone */
int failure_edit(struct failure_case *s, const char *path, const struct buf *text, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));
int failure_ask(struct failure_case *s, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int failure_stop(struct failure_case *s, const char *fixable, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The line (from 1) of a text: where it begins; its length without the newline. NULL: no such line. */
const char *text_line(const char *text, long line, size_t *n);
void text_splice(struct buf *out, const char *text, size_t at, size_t gone, const char *with);
/* Is there a word like this in the text, not as a part of a longer one? Returns where, or NULL. */
const char *text_word(const char *text, const char *word);
