/* templates.h - E2B's view of the registry of templates: lists, names, tags, visibility, deletion.
 * Owns: nothing; the rows are in store/templates.h. template_builds.h has the builds. */
#pragma once
#include "e2b/e2b.h"
#include "template/templates.h"

const char *templates_of(const struct e2b_box *x); /* id of the template of a box: never NULL */
/* The name of that template. */
json_t *templates_alias_of(const struct box *b, const struct e2b_box *x);
void templates_spawned(const char *id); /* a sandbox was created from a built-in template */

/* {templateID, buildID, cpuCount, ...}: one item of the list. */
json_t *templates_json(const struct call *c, const struct template_found *f);
/* cpuCount, memoryMB, diskSizeMB, envdVersion of boxes of a build; NULL: of a built-in template. */
void templates_set_size(const struct call *c, json_t *doc, const struct store_build *b);
const char *templates_status(const struct store_build *b); /* waiting, building, ready, error */

extern const struct field templates_patch_fields[], templates_tag_fields[],
	templates_untag_fields[];
void templates_list(struct call *c);
void templates_show(struct call *c);
void templates_alias(struct call *c);
void templates_patch(struct call *c);
void templates_delete(struct call *c);
void templates_tags(struct call *c);
void templates_tag(struct call *c);
void templates_untag(struct call *c);
