/* cells_oneshot.h - a cell of a language without state: compiled and run as a program, with the
 * events of a cell. The program gets a run record as any other. */
#pragma once
#include "api/api.h"

struct box;
void oneshot_run(struct call *c, struct box *b); /* c->body: the same fields as a cell, with its
						  * language */
