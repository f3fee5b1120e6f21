/* agents.h - /v1/agents: an agent with a box of its own, told as it happens. */
#pragma once
#include "api/api.h"

extern const struct field errands_fields[], errands_list_query[];

void agents_run(struct call *c);
void agents_list(struct call *c);
void agents_show(struct call *c);
/* No other server is there (any more): agents that another one ran ended with it, and their boxes, too.
 * Their outcome is "lost". */
void agents_set_sole_server(struct api *a);
