/* task_examples.h - what a task's text shows besides words: code in a fence, and examples of what is wanted.
 *
 *	assert add(2, 3) == 5		>>> add(2, 3)		add(2, 3) -> 5
 *	input: 3 1 2  output: 1 2 3
 *
 * Owns: what it found, until task_examples_fini(). */
#pragma once
#include <jansson.h>
#include <stddef.h>

enum { TASK_EXAMPLES_MOST = 64 }; /* examples; what is behind them is not read */

struct task_examples {
	char *rest; /* the text with all of that blanked, as long as before */
	size_t len;
	json_t *examples; /* as in a task */
	char *code;       /* of the first fence that has any, or NULL */
	char tag[24];     /* what the fence calls it: "python" */
};

void task_examples_read(struct task_examples *out, const char *text, size_t len);
void task_examples_fini(struct task_examples *s);
/* The name of what an example calls: "add" of "add(2, 3)"; 0: it calls nothing. */
size_t task_examples_callee(const char *call);
/* Are these its arguments, by number and kind? types: "numbers integer text", of slots; also "any". */
int task_examples_takes(const char *call, const char *types);
