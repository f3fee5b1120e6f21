/* templates.h - the registry: finds the build that a reference names, for a team.
 *
 *   reference: NAME, NAME:TAG, ID, ID:TAG or an alias; the tag is `default` if there is none. In place of
 *   the tag, or alone, it may have the id of a build
 *   a row of the team, else a public one, else one that comes with the server (shipped.h), else a
 *   built-in template (builtin.h)
 *
 * Owns: nothing; the rows are in store/templates.h and store/builds.h. */
#pragma once
#include "store/builds.h"
#include "template/builtin.h"
#include "template/shipped.h"
#include <jansson.h>

#define TEMPLATE_BASE "base"
#define TEMPLATE_TAG "default"

struct template_reference {
	char name[STORE_NAME + 1]; /* lower case; or an id */
	char tag[STORE_TAG + 1];
	int tagged; /* the reference had a tag */
};
/* `[team/]name[:tag]`. ERR_INVALID: not a reference. A name is [a-z0-9][a-z0-9_-]*, a tag
 * [a-z0-9_.-]+; upper case is converted. team: the only one that may be named; NULL: any text. */
must_check int template_reference_parse(const char *text, const char *team,
					struct template_reference *out, struct err *e);

/* What a reference names. One of `builtin`, `shipped` and `row` is set. */
struct template_found {
	const struct builtin_template *builtin; /* NULL: one of the others */
	const struct shipped_template *shipped; /* it has not been built yet */
	struct store_template row;
	struct store_build build; /* its id is "" if no build was wanted, or for a built-in one */
	char name[STORE_TEMPLATE + 1]; /* as a box shows it: name, with the tag if it was given */
};
void template_found_fini(struct template_found *f); /* fine on a zeroed one */

/* The template alone; its builds may be unfinished or missing. ERR_NOT_FOUND names the templates
 * that exist. */
must_check int template_find(struct store *s, const char *team, const char *reference,
			     struct template_found *out, struct err *e);
/* The same, and its build that boxes start from. ERR_NOT_FOUND: no such tag; ERR_CONFLICT: it has
 * no ready build, and the message names the state of the newest one. */
must_check int template_resolve(struct store *s, const char *team, const char *reference,
				struct template_found *out, struct err *e);

/* For a new template: valid, and not the name of `base`. */
must_check int template_id_new(char out_id[STORE_TEMPLATE_ID + 1], struct err *e);
int template_is_uuid(const char *text); /* the form of the id of a build; no tag has it */
must_check int template_uuid_new(char out_id[STORE_BUILD_ID + 1], struct err *e);

/* As GET /v1/templates shows them. now_ns is used for built-in ones. */
json_t *template_json(struct store *s, const struct template_found *f, int64_t started_ns);
json_t *template_build_json(const struct store_build *b);
/* All that the team may use, as template_json(). */
must_check int template_list_json(struct store *s, const char *team, int64_t started_ns,
				  json_t **out, struct err *e);
