/* detect_language.h - the language that a task asks for: by name, file extension, or library
 * name. */
#pragma once
#include "plan/words.h"

struct lang;

/* NULL: unknown. Words that only name the language are marked in `spoken` (one per word). */
const struct lang *detect_language(const struct words *w, unsigned char *spoken);
