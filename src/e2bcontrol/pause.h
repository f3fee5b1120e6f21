/* pause.h - E2B's pause. Boxes are resumed by box_resume(), for connect and resume, and by
 * dispatch.c, for traffic. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

/* In the metadata of a sandbox: "disk": its pauses write the programs to the disk; "memory" (default). */
#define PAUSING_KEY "atoll.pause"
must_check int pausing_check(const char *to, struct err *e); /* to: NULL: not given */
extern const struct field pausing_fields[];
void pausing_pause(struct call *c); /* POST /sandboxes/{box}/pause */

/* Paused as E2B defines it: with its memory, or with its files alone. */
int pausing_is_paused(const struct box *b);
/* For create: the action when the timeout has expired. */
void pausing_want(struct store_box *row, const struct e2b_box *x);
