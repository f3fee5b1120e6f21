/* cells.h - executes one cell: events as they happen (NDJSON, SSE), or one answer at the end. */
#pragma once
#include "api/api.h"

struct cell;
struct cell_want;
struct context;
extern const struct field cells_fields[], cells_standing_fields[], cells_events_query[];

void cells_run(struct call *c);
void cells_run_standing(struct call *c); /* in the default context of its language, which the first
					  * cell creates */
void cells_events(struct call *c);       /* events of a running or finished cell, from a position */

/* Passes a cell to a context, after variables, quota and audit. NULL: rejected, and the error was sent. The
 * caller releases the cell with cell_unref(). */
struct cell *cells_give(struct call *c, struct context *ctx, const struct cell_want *want);
