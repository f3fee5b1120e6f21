/* fix.h - the steps that a diagnosis can take, each a small function: one change, or none.
 * Owns: nothing. A step makes at most one child of the artifact. */
#pragma once
#include "document/document.h"
#include "debug/rules.h"
#include "base/buf.h"

enum { SICK_TEXT = 256, SICK_FILE_BYTES = 1 << 20 };

/* A failed run under examination. */
struct sick {
	const json_t *plan, *artifact, *result, *before;
	const json_t *phase; /* of the result: where it failed; NULL: it has none */
	const struct lang *lang; /* NULL: a language that we do not know */

	/* What was found. */
	const char *category, *name; /* name: the rule's, or of a fact */
	const struct rule *rule;     /* NULL: a fact */
	double confidence;
	char group[RULE_GROUPS][SICK_TEXT];
	char subject[SICK_TEXT], meant[SICK_TEXT];
	char path[SICK_TEXT]; /* the file of the artifact that it is about, or "" */
	char file[SICK_TEXT]; /* as it was said */
	long line, column;    /* 0: unknown */
	json_t *evidence;
	struct buf why;

	/* What is done about it. */
	const char *kind; /* NULL so far */
	struct buf detail;
	json_t *child;
	char question_name[SICK_TEXT];
	struct buf question;
	const char *fixable; /* NULL: the category's */
};

struct mend {
	const char *name;
	int (*run)(struct sick *s); /* 1: something is done; 0: it cannot help here */
};
const struct mend *mend_named(const char *name); /* NULL: there is none */

/* ---- for the steps ---- */

const char *sick_text(const struct sick *s, const char *path); /* of a file; NULL: there is none */
const char *sick_main(const struct sick *s); /* the file to change: where it happened, else the entry */
/* The artifact's file that this path means, whichever folder it was run in; NULL: none. */
const char *sick_file(const struct sick *s, const char *said);

/* Evidence; the line is that of its text, 0: none. */
void sick_seen(struct sick *s, const char *source, long line, const char *text);
/* A child to change; then sick_done() with the words. */
json_t *sick_child(struct sick *s);
int sick_done(struct sick *s, const char *kind, json_t *take_child, const char *fmt, ...)
	__attribute__((format(printf, 4, 5))); /* 0: it does not differ; child is gone */
int sick_edit(struct sick *s, const char *path, const struct buf *text, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int sick_ask(struct sick *s, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int sick_stop(struct sick *s, const char *fixable, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The line (from 1) of a text: where it begins; its length without the newline. NULL: no such line. */
const char *text_line(const char *text, long line, size_t *n);
void text_splice(struct buf *out, const char *text, size_t at, size_t gone, const char *with);
/* Is there a word like this in the text, not as a part of a longer one? Returns where, or NULL. */
const char *text_word(const char *text, const char *word);
