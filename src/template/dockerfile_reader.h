/* dockerfile_reader.h - a Dockerfile as instructions: directives, comments, continued lines, heredocs.
 * Owns: the text of the current instruction. Borrows the file. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { DOCKERFILE_HEREDOCS = 16, DOCKERFILE_HEREDOC_BYTES = 64 << 10 };

struct dockerfile_heredoc {
	char name[64];
	struct buf text;
	int quoted; /* no variables are replaced in it */
};

struct dockerfile_instruction {
	unsigned line;     /* its first */
	const char *shown; /* the text of that line, for errors */
	int shown_len;
	struct buf name; /* in upper case */
	struct buf rest; /* all after the name: continued lines are joined */
	struct dockerfile_heredoc heredocs[DOCKERFILE_HEREDOCS];
	unsigned nheredocs;
};

struct dockerfile_reader {
	const char *file; /* its name in errors */
	const char *p, *end;
	unsigned line;   /* of p, from 1 */
	char escape;     /* \ or ` */
	char syntax[64]; /* of the directive; "" without one */
};

/* Reads the directives at the begin. ERR_INVALID also for text that is not UTF-8 or has a NUL. */
must_check int dockerfile_reader_init(struct dockerfile_reader *r, const char *file,
				      const char *text, size_t len, struct err *e);
/* 1: in is the next one; 0: there is none; -1. in: zeroed, or from the call before. */
must_check int dockerfile_reader_next(struct dockerfile_reader *r,
				      struct dockerfile_instruction *in, struct err *e);
void dockerfile_instruction_fini(struct dockerfile_instruction *in);

/* "Dockerfile:3: WHAT: 'the line'". Returns -1. */
int dockerfile_fail(const struct dockerfile_reader *r, const struct dockerfile_instruction *in,
		    struct err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The first word of *p, quotes and escapes kept; *p is set to what follows it. 0: there is none. */
int dockerfile_reader_word(const struct dockerfile_reader *r, const char **p, struct buf *out);
