/* pause.h - E2B's pause, and what resumes: connect, resume, traffic to a box that wakes by itself. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field pausing_fields[];
void pausing_pause(struct call *c); /* POST /sandboxes/{box}/pause */

/* Paused, as E2B means it: with its memory, or with its files alone. */
int pausing_is_paused(const struct berth *b);
/* connect and resume: b runs when done() is called without an error. One that runs already is left as
 * it is. 1: it was paused (their 201), by the return value's time; 0: it ran (their 200). reboot: its
 * programs must not go on, as after a pause without memory. */
int pausing_resume(struct call *c, struct berth *b, int reboot,
		   void (*done)(struct call *c, struct berth *b, const struct err *e));
/* For create: what happens when the time is over. */
void pausing_want(struct store_box *row, const struct e2b_box *x);
