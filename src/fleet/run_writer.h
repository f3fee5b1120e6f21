/* run_writer.h - ends of programs on their way into the store: those of a few milliseconds at once.
 * Owns: what is not written yet, for RUN_WRITER_MS at most.
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
/* row: with team and box, and no texts: the record is made one when it is written. news: the data of
 * the event. */
void run_writer_add(struct run_writer *l, const struct store_run *row, json_t *take_record,
		    enum cause cause, uint64_t run_us, json_t *take_news);
void run_writer_flush(
	struct run_writer *l); /* in one transaction, then tells of each; fine on an empty one */
void run_writer_fini(struct run_writer *l); /* settles */
