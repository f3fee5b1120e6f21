/* cells.h - one cell: told as it happens (NDJSON, SSE), or whole at its end. */
#pragma once
#include "api/api.h"

extern const struct field cells_fields[], cells_standing_fields[], cells_events_query[];

void cells_run(struct call *c);
void cells_run_standing(struct call *c); /* in the context of its language, made at its first */
void cells_events(struct call *c);       /* of one that runs or is over, from a place on */
