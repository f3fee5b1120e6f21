/* process.h - process.Process of envd: programs of a box, as E2B's clients start and follow
 * them.
 * Owns: the stream of events of one program for one client. The program belongs to fleet, and
 * keeps running when no client follows it.
 *
 *   Start   -> start, data..., end      process.c
 *   Connect -> start, data..., end
 *   List, SendSignal, Update            process_list.c
 *   SendInput, StreamInput, CloseStdin  process_stdin.c */
#pragma once
#include "record/changes.h"
#include "e2b/connect.h"
#include "fleet/exec.h"

void process_start(struct call *c);
void process_connect(struct call *c);
void process_list(struct call *c);
void process_signal(struct call *c);
void process_update(struct call *c);
void process_send_input(struct call *c);
void process_stream_input(struct call *c);
void process_close_stdin(struct call *c);

/* ---- which one: {"pid": n} or {"tag": "..."} ---- */
struct process_name {
	int pid;         /* 0: by its tag */
	const char *tag; /* "" or the question's */
};
/* From the field "process" of a request; -1: there is none, and the error was sent. */
int process_named(struct call *c, const json_t *ask, struct process_name *out);
/* Among those that run; NULL: none. */
struct exec *process_find(const struct box *b, const struct process_name *name);
void process_missing(struct call *c, const struct process_name *name); /* not_found */
/* 1: this server has just taken the box over and does not know the pids of its programs yet;
 * again() is called when it does. The call's state and drop are used meanwhile. */
int process_wait(struct call *c, void (*again)(struct call *c));
