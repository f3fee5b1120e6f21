/* exec_internal.h - what the files of a run have in common; nobody else includes this.
 *   run.c        who waits, the line, the list    run_end.c  why, the record, who is told
 *   exec_launch.c  its beginning                    run_row.c  what the store has of it
 *   exec_stdin.c  what it is sent */
#pragma once
#include "fleet/exec.h"

struct exit_info;

/* run.c */
void exec_begin(struct exec *r); /* init has heard of it, or never will */
extern const struct init_call_ops exec_ear_events;

/* exec_stdin.c */
void exec_push_input(struct exec *r); /* what there is room for */
void exec_push_channel(struct exec *r);
void exec_input_low(struct exec *r, int closed); /* tells who waits for that */

/* run_end.c */
void exec_ask_base(struct exec *r); /* before it is started: what has its box computed so far? */
void exec_exited(struct init_call *x, const struct wire_exit *end);
void exec_never_started(struct exec *r, int sys, const char *why);

/* run_row.c */
must_check int exec_write_start(struct exec *r, const struct exec_spec *want, struct err *e);
void exec_write_end(struct exec *r, const struct exit_info *end, int64_t ended_ns);
void exec_restore_request(struct exec *r, const struct store_run *row);
