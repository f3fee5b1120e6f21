/* lang.h - which runtime runs which file.
 * Owns: the table of templates that need no more than this machine's own /usr. */
#pragma once
#include "base/err.h"
#include <stddef.h>

enum { LANG_ARGS = 12 };

struct lang {
	const char *name;
	const char *endings;      /* ".js .mjs", each followed by a space or the end */
	const char *interpreters; /* last part of a #! line: "python3 python" */
	const char *package;      /* what brings it on Debian */
	/* @ is the source, % the compiled program next to it. No compile: run reads the source. */
	const char *compile[LANG_ARGS], *run[LANG_ARGS];
};
extern const struct lang lang_rows[];
extern const unsigned lang_nrows;

const struct lang *lang_named(const char *name);
/* By the ending of its name, else by its first line; NULL if neither says anything. */
const struct lang *lang_of(const char *file_name, const char *head, size_t head_len);
/* An ELF file or a #! script: it is run as it is. */
int lang_is_program(const char *head, size_t head_len);
/* What the row runs first. A box shows the same file at the same place. */
const char *lang_program(const struct lang *l);
int lang_present(const struct lang *l);

/* Fills out (NULL-terminated) from a row; `source` and `binary` are paths in the box. Returns how many. */
unsigned lang_command(const char *const row[LANG_ARGS], const char *source, const char *binary,
		      const char *out[LANG_ARGS + 1]);
