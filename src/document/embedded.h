/* embedded.h - data files that are inside our executable (images.S), and their tables.
 * Owns: nothing; a set that was read stays for the life of the process. */
#pragma once
#include "base/toml.h"

struct image {
	const char *text, *end, *name;
};
extern const struct image task_images[], rule_images[], import_images[],
	scan_images[]; /* each ends with zeros */

/* The file as a tree. The files are embedded and tested: an invalid one ends the process. */
void image_read(const struct image *i, struct toml *out);
/* A member of a table; "" and 0 if missing. */
const char *image_text(const struct toml_node *table, const char *key);
unsigned image_number(const struct toml_node *table, const char *key);
/* Is the text in this array? NULL is an empty array. */
int image_has(const struct toml_node *array, const char *text);
/* Prints the error of an embedded file and ends the process. */
_Noreturn void image_bad(const char *name, const struct toml_node *at, const char *what);
