/* edit.h - one change of a program, in one place.
 * Owns: the inserted text. It may come from a box, so it is always an edit of the known source:
 * anything but one small change of it is rejected. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>

enum {
	EDIT_NEW = 200,  /* maximum number of new bytes */
	EDIT_CUT = 8192, /* bytes that go */
	EDIT_RULE = 24,
};

struct edit {
	size_t at, cut; /* removed bytes */
	char *text;     /* this comes */
	size_t len;
	char rule[EDIT_RULE]; /* the kind of the change, one word */
};

/* From {at, cut, new, rule}. */
must_check int edit_read(struct edit *x, const json_t *doc, struct err *e);
/* -1: not a small change of this source; e has the reason. */
must_check int edit_check(const struct edit *x, const char *source, size_t n, struct err *e);
void edit_apply(const struct edit *x, const char *source, size_t n, struct buf *out);
unsigned edit_line(const struct edit *x, const char *source); /* from 1 */
/* The lines before and after, each with the prefix - or +. */
void edit_show(const struct edit *x, const char *source, size_t n, struct buf *out);
void edit_fini(struct edit *x); /* fine on a zeroed one */
