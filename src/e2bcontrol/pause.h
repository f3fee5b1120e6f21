/* pause.h - E2B's pause. Boxes are resumed by box_resume(), for connect and resume, and by
 * dispatch.c, for traffic. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field pausing_fields[];
void pausing_pause(struct call *c); /* POST /sandboxes/{box}/pause */

/* Paused as E2B defines it: with its memory, or with its files alone. */
int pausing_is_paused(const struct box *b);
/* For create: the action when the timeout has expired. */
void pausing_want(struct store_box *row, const struct e2b_box *x);
