/* logs.h - the log of a sandbox, and the lifecycle events of all. Both are read from the events
 * that /v1 has; the newest STORE_EVENTS of the daemon are kept. The output of programs is not in
 * them: only the client that started a program gets it. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field logs_v1_query[], logs_v2_query[], logs_events_query[];
void logs_v1(struct call *c);
void logs_v2(struct call *c);
void logs_events(struct call *c);     /* of the team */
void logs_events_box(struct call *c); /* of one */
/* An event in E2B's format; NULL: E2B has no such event. */
json_t *logs_lifecycle_json(struct api *a, const struct store_event *ev);
int logs_is_lifecycle(const char *type); /* 1: E2B has events of this type */
