/* source.h - from the files of a folder to a definition (docs/templates.md, "Sources"). The first of these that exists:
 *
 *	the file that the options name; atoll.toml with [template]; e2b.toml; Dockerfile; e2b.Dockerfile;
 *	.devcontainer/devcontainer.json; .devcontainer.json
 *
 * Pure: files are read through a function of the caller. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "template/definition.h"

enum { SOURCE_NAME = 128, SOURCE_PATH = 255, SOURCE_BYTES = 1 << 20 };

/* Appends the text of a file of the folder, at most SOURCE_BYTES. 0: there is no such file. */
typedef int source_read(void *ctx, const char *path, struct buf *out, struct err *e);

struct source_options {
	const char *file;   /* relative to the folder; NULL: to be found */
	const json_t *args; /* build args {"NAME": "value"}, or NULL */
	const char *target; /* stage of a Dockerfile, or NULL */
	const char *arch;   /* NULL: of this machine */
	const char *files;  /* hash of the archive of the folder, for COPY; NULL: there is none */
	/* What the archive has: {path: mode and hash of the content, or "link ..."}; NULL: not known. With it, the
	 * cache key of a COPY depends on the files that it reads, and not on the whole archive. */
	const json_t *manifest;
};

struct source {
	json_t *definition;
	char name[SOURCE_NAME + 1]; /* of the template, if the file has one; else "" */
	char file[SOURCE_PATH + 1]; /* that was found */
};

/* ERR_NOT_FOUND: the last file that was read does not exist. ERR_CONFLICT: a step copies files, and there is no archive.
 * ERR_INVALID: the folder has none of these files, or the file and the line of a mistake. */
must_check int template_source(source_read *read, void *ctx, const struct source_options *o,
			       struct source *out, struct err *e);
void source_fini(struct source *s); /* fine on a zeroed one */
