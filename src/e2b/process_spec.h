/* process_spec.h - the parameters of a Start, checked: the program, its environment, its
 * terminal.
 * Owns: the list of arguments. The arguments and the variables belong to the request. */
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
	int root;         /* set by the caller before it is read: the user of the request */
	uint64_t wall_ms; /* the caller's, too */
};
/* process_spec_fini() in any case. */
must_check int process_spec_read(struct process_spec *p, const struct box *b, const json_t *ask,
				 struct err *e);
void process_spec_fini(struct process_spec *p);

/* Its own variables: an array of pointers into pool, ended with NULL; the caller frees it. */
const char **process_spec_env(const struct process_spec *p, struct buf *pool);
const char *const *process_spec_default_env(const struct process_spec *p); /* for exec_spec.usual */
/* The body of POST /v1/boxes/ID/execs that would repeat it; the caller frees it. NULL: not
 * repeatable. */
json_t *process_spec_request(const struct process_spec *p, const struct box *b);
