/* driver.h - which languages keep a state between cells, and the program that does it.
 * Owns: the table. The programs lie in every box below DRIVER_DIR (keeper/drivers.S). */
#pragma once

#define DRIVER_DIR "/opt/atoll/"
enum { DRIVER_WORDS = 9 };

struct driver {
	const char *language;           /* as in lang.h */
	const char *argv[DRIVER_WORDS]; /* NULL-terminated */
	int seeded;                     /* there may be one that waits: START asks for it */
};
/* NULL: each cell is a program of its own. "jupyter:NAME" has one, whether or not there is such a kernel:
 * the box knows. */
const struct driver *driver_of(const char *language);
/* Its command for this language; the words are the row's and the language's own. */
void driver_words(const struct driver *d, const char *language, const char *out[DRIVER_WORDS]);
