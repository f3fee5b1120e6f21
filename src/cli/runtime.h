/* runtime.h - selects the template for a program: the requested one, or the one that matches the
 * file. */
#pragma once
#include "cli/cli_error.h"
#include "lang/lang.h"

/* wanted NULL: by the file's suffix and its first bytes. *out NULL: the program runs without a
 * template. Returns 0, or the exit status that belongs to t. */
must_check int runtime_choose(const struct lang **out, const char *wanted, const char *file,
			      const char *head, size_t n, struct cli_error *t);
/* No language has this name. Returns the exit status. */
int runtime_unknown(const char *name, struct cli_error *t);
void runtime_list(struct cli_error *t); /* adds the names as a hint */
