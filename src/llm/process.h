/* process.h - the process that has the keys: fronts ask it, it asks models.
 * Owns: the book, the connections to models, the lines to fronts.
 *
 *   front ── {ask: n, request} ──►            {cancel: n}
 *         ◄── {book} at first, {said: n, event}, {done: n, answer, kind?}
 *
 * A front is not trusted with a key, and what models say is not trusted at all: behind the walls there is
 * no file, no program to start, and nobody to connect to but by name. */
#pragma once
#include "base/err.h"

/* The whole process, until `warden` hangs up and the last answer is told: MODEL + fd on it brings a
 * front. walls() is called when nothing needs to be opened any more. The exit status. */
int llm_main(const char *book_path, int supervisor, int (*walls)(void *ctx, struct err *e),
	     void *ctx);
