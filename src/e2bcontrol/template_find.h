/* template_find.h - templates and builds that the path or body of an E2B request names.
 * Owns: nothing. Each function that returns NULL or 0 has answered the request. */
#pragma once
#include "e2b/e2b.h"
#include "template/templates.h"

/* `[team/]name[:tag]` or an id, percent-decoded. ERR_NOT_FOUND, ERR_INVALID. */
must_check int template_find_named(const struct call *c, const char *reference,
				   struct template_found *out, struct err *e);
/* A template of the caller's own team, which it may change. Built-in ones are rejected with 403. */
int template_find_own(struct call *c, const char *reference, struct template_found *out);
/* The build that parameters 0 and 1 of the path name, of the caller's team. */
int template_find_build(struct call *c, struct store_build *out);

/* Appends a tag in lower case to an array, once. ERR_INVALID: not a tag. */
must_check int template_find_tag(json_t *tags, const char *text, struct err *e);
/* Tags of an array of texts, in addition to those that *tags has. */
must_check int template_find_tags(json_t *tags, const json_t *texts, struct err *e);
