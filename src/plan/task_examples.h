/* task_examples.h - finds fenced code and examples in the text of a task.
 *
 *	assert add(2, 3) == 5		>>> add(2, 3)		add(2, 3) -> 5
 *	input: 3 1 2  output: 1 2 3
 *
 * Owns: what it found, until task_examples_fini(). */
#pragma once
#include <jansson.h>
#include <stddef.h>

enum { TASK_EXAMPLES_MOST = 64 }; /* maximum of examples; the rest is ignored */

struct task_examples {
	char *rest; /* the text with code and examples replaced by blanks */
	size_t len;
	json_t *examples; /* as in a task */
	char *code;       /* code of the first fence, or NULL */
	char tag[24];     /* the language of the fence: "python" */
};

void task_examples_read(struct task_examples *out, const char *text, size_t len);
void task_examples_fini(struct task_examples *s);
/* The name of the called function: "add" of "add(2, 3)"; 0: no call. */
size_t task_examples_callee(const char *call);
/* Do the arguments match by number and type? types: "numbers integer text", of slots; also
 * "any". */
int task_examples_takes(const char *call, const char *types);
