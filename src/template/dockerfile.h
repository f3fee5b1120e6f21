/* dockerfile.h - a Dockerfile as the definition of a template (docs/templates.md). Pure: text in, JSON or one error out.
 *
 * Variables are replaced in FROM only; in all else they stay for the build (expand.h), which knows the environment of
 * the image. Stages that the target does not need are left out. */
#pragma once
#include "base/err.h"
#include "template/definition.h"
#include <stddef.h>

enum { DOCKERFILE_BYTES = 1 << 20, DOCKERFILE_NOTES = 50 };

struct dockerfile_options {
	const char *file;   /* its name in errors; NULL: Dockerfile */
	const json_t *args; /* build args, {"NAME": "value"}; or NULL */
	const char *target; /* the stage to build; NULL: the last */
	const char *arch;   /* "amd64", "arm64"; NULL: of this machine */
};

/* Errors have the name of the file, the line and its text. */
must_check int dockerfile_parse(const char *text, size_t len, const struct dockerfile_options *o,
				json_t **out_definition, struct err *e);

/* Appends words as one command for a shell. */
struct buf;
void dockerfile_shell_words(struct buf *out, const json_t *words);
