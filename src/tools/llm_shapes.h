/* llm_shapes.h - what the shapes of OpenAI and Anthropic share. */
#pragma once
#include "tools/tool.h"

/* One call of a model, in its provider's shape. */
struct llm_shape {
	struct tool_call call; /* first: it is c->door */
	json_t *asked;         /* the request; kept, for others take c->body */
	json_t *output;        /* what is collected, or NULL */
	size_t at;
	void (*over)(struct llm_shape *p, struct call *c, const struct tool_result *r);
};
struct llm_shape *llm_shape_new(struct call *c, void (*over)(struct llm_shape *p, struct call *c,
							     const struct tool_result *r));
/* Whatever is wrong with it is told to the model, in the shape of a result. */
void llm_shape_run(struct llm_shape *p, struct call *c, const struct tool *t, json_t *args);
void llm_shape_fail(struct llm_shape *p, struct call *c, const char *why);
json_t *llm_shape_text(const struct tool_result *r);
