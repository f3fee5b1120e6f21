/* cells_oneshot.h - a cell of a language that keeps no state: compiled and run by itself, in the words of
 * cells. Its program is recorded like any other. */
#pragma once
#include "api/api.h"

struct box;
void oneshot_run(struct call *c, struct box *b); /* c->body: as for a cell with its language */
