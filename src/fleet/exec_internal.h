/* exec_internal.h - what the files of a run have in common; nobody else includes this.
 *   run.c        who waits, the line, the list    run_end.c  why, the record, who is told
 *   run_start.c  its beginning                    run_row.c  what the store has of it
 *   run_input.c  what it is sent */
#pragma once
#include "fleet/exec.h"

struct exit_info;

/* run.c */
void run_begin(struct run *r); /* init has heard of it, or never will */
extern const struct init_call_ops run_ear_events;

/* run_input.c */
void run_push_input(struct run *r); /* what there is room for */
void run_push_words(struct run *r);
void run_input_low(struct run *r, int closed); /* tells who waits for that */

/* run_end.c */
void run_ask_base(struct run *r); /* before it is started: what has its box computed so far? */
void run_exited(struct init_call *x, const struct wire_exit *end);
void run_never_ran(struct run *r, int sys, const char *why);

/* run_row.c */
must_check int run_write_beginning(struct run *r, const struct run_want *want, struct err *e);
void run_write_end(struct run *r, const struct exit_info *end, int64_t ended_ns);
void run_restore_request(struct run *r, const struct store_run *row);
