/* context_internal.h - what the files of a context have in common; nobody else includes this.
 *   context.c        states, who waits, time, the list    context_driver.c   it starts and ends
 *   context_cell.c   cells, one after the other           context_restore.c  begun by another front
 *   context_heard.c  what its driver says */
#pragma once
#include "notebook/context.h"

/* For a deadline: it has passed, and the cell was told so. In the row, so that the next front knows why it
 * ended; if it has not, nobody knows whether the word went out, and it is told again. */
#define CONTEXT_TOLD (-1)

/* Bytes said, in a row: nothing of the last line was sent yet. */
#define CONTEXT_UNSAID UINT64_MAX

/* context.c */
void context_become(struct context *c, enum context_state next); /* one of those that may follow */
struct exec *context_run_of(const struct context *c); /* of its driver; NULL: it is over */
void context_write_row(struct context *c);
void context_tell_waiters(struct context *c); /* all, who then wait no more */
void context_set_clock(struct context *c);
struct context *context_add(struct box *b); /* an empty one, behind the others */
void context_free(struct context *c);

/* context_cell.c */
void context_next_cell(struct context *c); /* runs it, if one waits and nothing runs */
void context_end_cell(struct context *c, json_t *take_end);
void context_end_queue(struct context *c, const char *cause, const char *message);

/* context_restore.c */
void context_told(struct exec *r); /* init has said how many bytes its driver's channel has taken */
/* Takes over what another server, beside this one, wrote about its last cell: one that runs keeps the
 * context busy here, too. */
void context_sync(struct context *c);

/* context_heard.c */
extern const struct exec_reader_events context_reader_on;

/* context_driver.c */
void context_hang_up(struct context *c); /* nothing is heard of it any more */
void context_kill_driver(struct context *c);
void context_die(struct context *c, const char *cause, const char *why, const char *hint);
void context_start_again(struct context *c); /* or dies of it */

/* Functions behind notebook_hooks. */
void contexts_restore(struct box *b);  /* contexts in the store that this process does not know */
void contexts_catch_up(struct box *b); /* the cells that the other server process had begun */
