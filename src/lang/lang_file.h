/* lang_file.h - reads the file of a language into its row.
 * Owns: the text and the arrays that the row points to, until runtime_fini(). */
#pragma once
#include "lang/lang.h"

/* name: the name of the text in errors. Unknown keys and unknown {placeholders} are errors. On -1
 * there is nothing to free. */
must_check int runtime_read(struct lang *out, const char *name, const char *text, size_t len,
			    struct err *e);
/* Do its patterns compile? For a test: they are part of the executable and do not change. */
must_check int runtime_check(const struct lang *l, struct err *e);
void runtime_fini(struct lang *l);

/* The embedded files, in the order of meson.build. */
struct runtime_image {
	const char *text, *end, *name;
};
extern const struct runtime_image runtime_images[], runtime_images_end[];
