/* driver.h - which languages keep a state between cells, and the program that does it.
 * Owns: the table. The programs are in every box below DRIVER_DIR (keeper/drivers.S). */
#pragma once

#define DRIVER_DIR "/opt/atoll/"
enum { DRIVER_WORDS = 9 };

struct driver {
	const char *language;           /* as in lang.h */
	const char *argv[DRIVER_WORDS]; /* NULL-terminated */
	int warm;                       /* a warm interpreter may exist: START requests it */
};
/* NULL: each cell is a separate program. "jupyter:NAME" always has a driver; whether the kernel
 * exists is checked in the box. */
const struct driver *driver_of(const char *language);
/* The command of the driver for this language; the strings belong to the row and the language. */
void driver_words(const struct driver *d, const char *language, const char *out[DRIVER_WORDS]);
