/* shipped.h - templates that come with the server: the folders of share/templates, each as an archive
 * inside the executable. They are listed, and built like those of clients, on request.
 * Owns: nothing. */
#pragma once
#include "base/err.h"
#include "lang/install.h"
#include "store/packages.h"
#include <jansson.h>

struct builds;
struct shipped_template {
	const char *archive, *end; /* tar (ustar): atoll.toml and the files that it copies */
	const char *name;
};
extern const struct shipped_template shipped_templates[], shipped_templates_end[];

const struct shipped_template *shipped_template_find(const char *name); /* NULL: none */
/* SHA-256 of the archive: the name under which its COPY steps find it. */
void shipped_template_hash(const struct shipped_template *t, char out[STORE_HASH + 1]);
/* The definition that its atoll.toml describes. */
must_check int shipped_template_definition(const struct shipped_template *t, json_t **out,
					   struct err *e);
/* Makes its archive an upload of the team, as its COPY steps need it. */
must_check int shipped_template_upload(const struct shipped_template *t, struct builds *b,
				       const char *team, struct err *e);
/* What its build needs and this daemon does not have, as texts: "npm packages:
 * packages.npm_registry is not set". */
json_t *shipped_template_missing(const struct shipped_template *t, const struct install_conf *conf);
