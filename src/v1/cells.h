/* cells.h - one cell: told as it happens (NDJSON, SSE), or whole at its end. */
#pragma once
#include "api/api.h"

struct cell;
struct cell_want;
struct context;
extern const struct field cells_fields[], cells_standing_fields[], cells_events_query[];

void cells_run(struct call *c);
void cells_run_standing(struct call *c); /* in the context of its language, made at its first */
void cells_events(struct call *c);       /* of one that runs or is over, from a place on */

/* Gives a cell to a context: its variables, the quota, the audit. NULL: no, and that was answered. The
 * caller's: cell_unref(). */
struct cell *cells_give(struct call *c, struct context *ctx, const struct cell_want *want);
