/* exec_internal.h - shared by the files of an exec only.
 *   exec.c        waiters, frames, the list    exec_end.c  cause, record, notification
 *   exec_start.c  start                        exec_row.c  its rows in the store
 *   exec_input.c  stdin and channel */
#pragma once
#include "fleet/exec.h"

struct exit_info;
struct store_charge;

/* exec.c */
void exec_begin(struct exec *r); /* init knows it, or never will */
extern const struct init_call_ops exec_call_ops;

/* exec_input.c */
void exec_push_input(struct exec *r); /* sends as much as the window allows */
void exec_push_channel(struct exec *r);
void exec_input_low(struct exec *r, int closed); /* notifies waiters for space */

/* exec_end.c */
void exec_ask_base(struct exec *r); /* before the start: requests the CPU time of the box so far */
void exec_exited(struct init_call *x, const struct wire_exit *end);
void exec_never_started(struct exec *r, int sys, const char *why);

/* exec_row.c */
must_check int exec_write_start(struct exec *r, const struct exec_spec *want, struct err *e);
void exec_write_end(struct exec *r, const struct exit_info *end, int64_t ended_ns,
		    const struct store_charge *charge); /* NULL: none */
void exec_restore_request(struct exec *r, const struct store_run *row);
