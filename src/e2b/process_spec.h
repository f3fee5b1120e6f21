/* process_spec.h - what a Start asks for, checked: the program, its surroundings, its terminal.
 * Owns: the list of words. The words and the variables are the question's. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <limits.h>
#include <stdint.h>

struct box;
struct process_spec {
	const char **argv;
	json_t *env; /* NULL: none */
	char cwd[PATH_MAX];
	const char *tag; /* NULL: none */
	int pty, stdin_open;
	uint16_t rows, cols;
	int root;         /* the caller's: who asks; before it is read */
	uint64_t wall_ms; /* the caller's, too */
};
/* process_spec_fini() in any case. */
must_check int process_spec_read(struct process_spec *p, const json_t *ask, struct err *e);
void process_spec_fini(struct process_spec *p);

/* Its own variables: an array of pointers into pool, NULL behind them; the caller frees it. */
const char **process_spec_env(const struct process_spec *p, struct buf *pool);
const char *const *process_spec_default_env(const struct process_spec *p); /* for exec_spec.usual */
/* In the words of POST /v1/boxes/ID/execs, what would repeat it; the caller's. NULL: nothing would. */
json_t *process_spec_request(const struct process_spec *p, const struct box *b);
