/* agents.h - /v1/agents: an agent in a box of its own, with its events as they happen. */
#pragma once
#include "api/api.h"

extern const struct field agents_fields[], agents_list_query[];

void agents_run(struct call *c);
void agents_list(struct call *c);
void agents_show(struct call *c);
/* Called when this is the only server. Agents of other servers have ended with them, and so have
 * their boxes: their outcome becomes "lost". */
void agents_set_sole_server(struct api *a);
