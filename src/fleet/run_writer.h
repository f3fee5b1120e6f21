/* run_writer.h - writes ends of execs and charges to the store: those of a few milliseconds in one transaction,
 * so that an end and its charge are both written or neither.
 * Owns: ends that are not written yet, for RUN_WRITER_MS at most.
 *
 * Waiters have been notified already, and nothing is lost by writing later: until then the row is
 * "running", init has the end, too, and the next server would request it there. But code that reads
 * rows of runs must flush first; and so must code that ends a box, because the other copy ends with
 * it. */
#pragma once
#include "record/cause.h"
#include "loop/loop.h"
#include "fleet/run_end.h"
#include "store/runs.h"
#include "store/usage.h"
#include <jansson.h>

enum { RUN_WRITER_MS = 5, RUN_WRITER_MAX = 64 };

struct fleet;
struct run_writer_line;

struct run_writer {
	struct fleet *fleet;
	struct timer timer;
	struct run_writer_line *first, **last;
	unsigned n;
};

void run_writer_init(struct run_writer *l, struct fleet *f);
/* row: as for run_end_write(), without texts: the record becomes a text when it is written. news:
 * the data of the event. charge: NULL: none. */
void run_writer_add(struct run_writer *l, const struct store_run *row, json_t *take_record,
		    struct run_facts *take_facts, enum cause cause, uint64_t run_us,
		    json_t *take_news, const struct store_charge *charge);
/* A charge without an end. */
void run_writer_charge(struct run_writer *l, const struct store_charge *charge);
/* Writes all in one transaction, then publishes each; fine if empty. */
void run_writer_flush(struct run_writer *l);
void run_writer_fini(struct run_writer *l); /* flushes */
