/* models.h - lists the language models, and sends one request to one of them.
 * Owns: nothing but its calls. The API keys are in another process (llm/). */
#pragma once
#include "api/api.h"

struct metrics;

extern const struct field models_ask_fields[];

void models_list(struct call *c);
void models_ask(struct call *c);
void models_figures(const struct api *a, struct metrics *m); /* calls metrics_put() */
