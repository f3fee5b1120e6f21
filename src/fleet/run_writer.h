/* run_writer.h - ends of programs on their way into the store: those of a few milliseconds at once.
 * Owns: what is not written yet, for LEDGER_MS at most.
 *
 * Whoever waited for the end has been told already, and nothing can be lost by writing later: until
 * then the row says "running", init has the end too, and the next front would ask for it there. But
 * who reads rows of runs settles first; and so does whoever is about to end a box, for with it goes
 * the other copy. */
#pragma once
#include "record/cause.h"
#include "loop/loop.h"
#include "store/runs.h"
#include <jansson.h>

enum { LEDGER_MS = 5, LEDGER_MAX = 64 };

struct fleet;
struct ledger_line;

struct ledger {
	struct fleet *fleet;
	struct timer timer;
	struct ledger_line *first, **last;
	unsigned n;
};

void ledger_init(struct ledger *l, struct fleet *f);
/* row: with team and box, and no texts: the record is made one when it is written. news: the data of
 * the event. */
void ledger_add(struct ledger *l, const struct store_run *row, json_t *take_record, enum cause cause,
		uint64_t run_us, json_t *take_news);
void ledger_settle(struct ledger *l); /* in one transaction, then tells of each; fine on an empty one */
void ledger_fini(struct ledger *l);   /* settles */
