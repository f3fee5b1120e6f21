/* process_spec.h - what a Start asks for, checked: the program, its surroundings, its terminal.
 * Owns: the list of words. The words and the variables are the question's. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <limits.h>
#include <stdint.h>

struct box;
struct order {
	const char **argv;
	json_t *env; /* NULL: none */
	char cwd[PATH_MAX];
	const char *tag; /* NULL: none */
	int pty, stdin_open;
	uint16_t rows, cols;
	int root;         /* the caller's: who asks; before it is read */
	uint64_t wall_ms; /* the caller's, too */
};
/* order_fini() in any case. */
must_check int order_read(struct order *p, const json_t *ask, struct err *e);
void order_fini(struct order *p);

/* Its own variables: an array of pointers into pool, NULL behind them; the caller frees it. */
const char **order_env(const struct order *p, struct buf *pool);
const char *const *order_usual_env(const struct order *p); /* for exec_spec.usual */
/* In the words of POST /v1/boxes/ID/execs, what would repeat it; the caller's. NULL: nothing would. */
json_t *order_request(const struct order *p, const struct box *b);
