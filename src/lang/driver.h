/* driver.h - which languages keep a state between cells, and the program that does it.
 * Owns: the table. The programs lie in every box below DRIVER_DIR (keeper/drivers.S). */
#pragma once

#define DRIVER_DIR "/opt/atoll/"

struct driver {
	const char *language; /* as in lang.h */
	const char *argv[9];  /* NULL-terminated */
	int seeded;           /* there may be one that waits: START asks for it */
};
const struct driver *driver_of(const char *language); /* NULL: each cell is a program of its own */
