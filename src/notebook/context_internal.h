/* context_internal.h - what the files of a context have in common; no other file includes this.
 *   context.c        states, waiting requests, time      context_driver.c   it starts and ends
 *   context_cell.c   cells, one after the other          context_restore.c  begun by another server
 *   context_events.c events of its driver */
#pragma once
#include "notebook/context.h"

/* For a deadline: it has passed, and the cell was interrupted. In the row, so that the next
 * server knows why it ended; without an end it is not known whether the interrupt was sent, and
 * it is sent again. */
#define CONTEXT_TOLD (-1)

/* Bytes sent, in a row: nothing of the last line was sent yet. */
#define CONTEXT_UNSAID UINT64_MAX

/* context.c */
void context_become(struct context *c, enum context_state next); /* one of those that may follow */
struct exec *context_run_of(const struct context *c); /* of its driver; NULL: it has ended */
void context_write_row(struct context *c);
void context_tell_waiters(struct context *c); /* all of them, which then no longer wait */
void context_set_clock(struct context *c);
struct context *context_add(struct box *b); /* an empty cell, after the others */
void context_free(struct context *c);

/* context_cell.c */
void context_next_cell(struct context *c); /* runs the next cell, if one waits and none runs */
void context_end_cell(struct context *c, json_t *take_end);
void context_end_queue(struct context *c, const char *cause, const char *message);

/* context_restore.c */
void context_told(struct exec *r); /* init has reported how many bytes its driver's channel has
				    * taken */
/* Applies what another, concurrent server wrote about its last cell: a running cell keeps the
 * context busy here, too. */
void context_sync(struct context *c);

/* context_events.c */
extern const struct exec_reader_events context_reader_on;

/* context_driver.c */
void context_hang_up(struct context *c); /* closes the exec reader: no more events arrive */
void context_kill_driver(struct context *c);
void context_die(struct context *c, const char *cause, const char *why, const char *hint);
void context_start_again(struct context *c); /* or dies of it */

/* The functions of notebook_hooks. */
void contexts_restore(struct box *b);  /* contexts in the store that this process does not know */
void contexts_catch_up(struct box *b); /* the cells that the other server process had started */
