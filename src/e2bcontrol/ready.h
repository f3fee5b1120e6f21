/* ready.h - waits until a new sandbox is ready: the ready command of its template succeeds.
 * Owns: the wait. A template has no running programs: its start command begins with the sandbox. */
#pragma once
#include "e2b/e2b.h"

/* Calls done once: at once if there is nothing to wait for. e: not ready in time, or the box has ended.
 * If the client disconnects before, the box is ended, because no client knows its id. */
void ready_await(struct call *c, struct box *b,
		 void (*done)(struct call *c, struct box *b, const struct err *e));
