/* fragment_cell.h - code of a fragment for an interpreter template: a cell in the default context
 * of its language, so that state is kept between requests of a session, and results and plots are
 * returned.
 * Owns: the reader of the cell, in the call's memory. */
#pragma once
#include "api/api.h"

struct box;
/* c->body has cell_code and cell_language (fragment.c), perhaps timeout_ms. Answers c, now or later. */
void fragment_cell_run(struct call *c, struct box *b);
