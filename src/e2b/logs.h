/* logs.h - what happened to a sandbox: its log, and the lifecycle events of all. Both are read from the
 * events that /v1 has; the newest STORE_EVENTS of the daemon are kept. What programs print is not in
 * there: that is theirs who ran them. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field logs_v1_query[], logs_v2_query[], logs_events_query[];
void logs_v1(struct call *c);
void logs_v2(struct call *c);
void logs_events(struct call *c);     /* of the team */
void logs_events_box(struct call *c); /* of one */
