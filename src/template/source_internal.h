/* source_internal.h - the formats that source.c knows. Each makes a definition without `files`. */
#pragma once
#include "base/toml.h"
#include "template/dockerfile.h"
#include "template/source.h"

struct source_job {
	source_read *read;
	void *ctx;
	const struct source_options *o;
	struct source *out;
	size_t matches; /* of files of the manifest with sources of COPY, so far */
	struct err *e;
};

/* -1 also without the file. path: below the folder. */
must_check int source_text(struct source_job *j, const char *path, struct buf *out);
/* The definition of a Dockerfile. args and target NULL: those of the options. context: the folder that its COPY means, ""
 * is the whole one. */
must_check int source_dockerfile(struct source_job *j, const char *path, const char *context,
				 const json_t *args, const char *target, json_t **out);
/* folder/path without "." and ".."; ERR_INVALID: it is outside. */
must_check int source_path(const char *folder, const char *path, char out[SOURCE_PATH + 1],
			   struct err *e);
/* Takes over args and further, which may be NULL. */
void source_step(json_t *steps, const char *type, json_t *take_args, json_t *take_further,
		 unsigned line);

must_check int source_atoll(struct source_job *j, const char *path, const struct toml_node *table);
must_check int source_e2b(struct source_job *j, const char *path, const struct toml_node *root);
must_check int source_devcontainer(struct source_job *j, const char *path, const char *text,
				   size_t len);
