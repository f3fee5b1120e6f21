/* execs.h - /v1/boxes/{box}/execs and /v1/runs: execs, while they run and afterwards. */
#pragma once
#include "api/api.h"

extern const struct field execs_list_query[], execs_output_query[], execs_wait_query[],
	execs_stdin_query[], execs_signal_fields[], execs_resize_fields[], runs_list_query[];

void execs_start(struct call *c);
void execs_list(struct call *c);
void execs_show(struct call *c);
void execs_wait(struct call *c);
void execs_output(struct call *c); /* from a byte offset to the end */
void execs_stdin(struct call *c);
void execs_signal(struct call *c);
void execs_resize(struct call *c);
void execs_kill(struct call *c);

struct box;
struct exec;
struct exec *execs_living(struct box *b, const char *name); /* by id or tag; NULL: none */
/* The running exec that the path names; if it does not run, answers with the reason. */
struct exec *execs_running(struct call *c);
/* The exec of b that parameter 1 names: its id and its number in the box; 0: none. */
int execs_ref(struct call *c, struct box *b, char id[ID_MAX + 1], uint32_t *ref);

void runs_list(struct call *c);
void runs_show(struct call *c);
/* A run as in a list. */
json_t *execs_row_json(struct api *a, const struct store_run *row);
