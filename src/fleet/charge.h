/* charge.h - what a run or a box is charged for. The cost comes from accounts.price; the run writer writes the
 * charge in the transaction of the end of the run.
 * Owns: nothing. What a box was charged for is in the store (store/usage.h) and, as a copy, in struct box. */
#pragma once
#include "fleet/exec.h"
#include "store/usage.h"

struct exit_info;

/* The charge of an exec that has ended; adds usage and cost to its record. */
struct store_charge charge_exec(struct exec *r, const struct exit_info *end);
/* Charges a box for what it used outside of its runs: CPU time and memory since the last call, if no program
 * runs, and bytes sent. now: counters of the kernel, NULL: not known. */
void charge_box(struct box *b, const struct wire_counters *now);
/* Charges the disk of a box that was stopped or paused until now, without what was charged for it each hour. Called
 * when its row says that it runs, or before the row of its end is written: so that nothing is charged twice. */
void charge_stored(struct box *b);
/* Sets day and cost; adds usage and cost to the record (NULL: none). */
void charge_price(struct fleet *f, struct store_charge *c, json_t *record);
/* Writes it to the store, in the open transaction if there is one. */
must_check int charge_write(struct fleet *f, const struct store_charge *c, struct err *e);
/* Counts a charge that was written by other functions. */
void charge_written(struct fleet *f, const struct store_charge *c);
/* Charges for work that is neither: an item of a batch, a call of a language
 * model. */
void charge_other(struct fleet *f, struct store_charge *c);
/* The tokens of a call of a language model: {"in": ..., "out": ...}, NULL: none. subject: the box or pipeline that
 * made it; "": none. */
void charge_tokens(struct fleet *f, const char *team, const char *key, const char *subject,
		   const json_t *usage);
