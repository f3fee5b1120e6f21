/* detect_language.h - in which language a task wants its program: by name, by a file's ending, by a library's
 * name. */
#pragma once
#include "plan/words.h"

struct lang;

/* NULL: nothing says so. Words that speak of the language and of nothing else are set in `spoken`
 * (one per word). */
const struct lang *detect_language(const struct words *w, unsigned char *spoken);
