/* templates.h - /v1/templates and /v1/builds: the registry of templates, their tags, builds and logs,
 * and the archives that builds copy from. */
#pragma once
#include "api/api.h"

extern const struct field v1_templates_patch_fields[], v1_templates_tag_fields[],
	v1_builds_list_query[], v1_builds_log_query[], v1_templates_create_fields[];

/* templates.c */
void v1_templates_list(struct call *c);
void v1_templates_show(struct call *c);
void v1_templates_patch(struct call *c);
void v1_templates_delete(struct call *c);
void v1_templates_tag(struct call *c);
void v1_templates_untag(struct call *c);
void v1_templates_check(struct call *c);
/* template_export.c */
void v1_templates_export(struct call *c);

/* builds.c */
void v1_templates_create(struct call *c);
void v1_templates_upload(struct call *c);
void v1_builds_list(struct call *c);
void v1_builds_show(struct call *c);
void v1_builds_cancel(struct call *c);
void v1_builds_log(struct call *c);
