/* lang_file.h - a language's file, read into its row.
 * Owns: the text and the arrays that the row points to, until runtime_fini(). */
#pragma once
#include "lang/lang.h"

/* name: what to call the text in errors. Unknown keys are errors, and so are words with an unknown
 * {place}. On -1 there is nothing to free. */
must_check int runtime_read(struct lang *out, const char *name, const char *text, size_t len,
			    struct err *e);
/* Do its patterns compile? For a test: they are in our executable and do not change. */
must_check int runtime_check(const struct lang *l, struct err *e);
void runtime_fini(struct lang *l);

/* The files in our executable, in the order of meson.build. */
struct runtime_image {
	const char *text, *end, *name;
};
extern const struct runtime_image runtime_images[], runtime_images_end[];
