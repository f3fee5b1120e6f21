/* template_builds.h - E2B's builds of templates: requested, started, followed.
 * Owns: nothing; the engine (template/build.h) has the builds.
 *
 *   POST /v3/templates -> 202 {templateID, buildID}: state `waiting`
 *   POST /v2/templates/ID/builds/BUILD {steps ...} -> 202: `building`
 *   GET .../status until `ready` or `error` */
#pragma once
#include "e2b/e2b.h"

extern const struct field template_builds_fields[], template_builds_v1_fields[],
	template_builds_status_query[], template_builds_logs_query[];
void template_builds_request(struct call *c);    /* v3 */
void template_builds_request_v2(struct call *c); /* the same, with an older answer */
void template_builds_request_v1(struct call *c); /* of a Dockerfile without a context */
void template_builds_again_v1(struct call *c);
void template_builds_start_v1(struct call *c);
void template_builds_start(struct call *c);
void template_builds_status(struct call *c);
void template_builds_logs(struct call *c);
