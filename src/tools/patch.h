/* patch.h - patches as models write them: "*** Begin Patch", files, hunks without line numbers.
 * Pure text functions, without boxes.
 * Owns: nothing; results are views into the patch. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { PATCH_FILES = 64 };

enum patch_kind { PATCH_ADD, PATCH_UPDATE, PATCH_DELETE };

struct patch_text {
	const char *p;
	size_t n;
};

struct patch_file {
	enum patch_kind kind;
	struct patch_text path, move; /* move.n 0: it stays */
	struct patch_text body;       /* its lines, each with its mark */
};

/* The number of files, or -1: invalid, and e names the line. */
int patch_parse(const char *text, size_t n, struct patch_file out[PATCH_FILES], struct err *e);
/* The content of a new file: lines that begin with '+'. */
must_check int patch_content(struct patch_text body, struct buf *out, struct err *e);
/* Applies the hunks to `old`. Hunks are found by their lines: exactly, else without blanks at the
 * ends of lines, else without those at their beginnings too; in the order of the file. */
must_check int patch_apply(struct patch_text body, const char *old, size_t n, struct buf *out,
			   struct err *e);
