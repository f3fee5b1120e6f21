/* models.h - lists the language models, and sends one request to one of them.
 * Owns: nothing but its calls. The API keys are in another process (llm/). */
#pragma once
#include "api/api.h"

struct buf;

extern const struct field models_ask_fields[];

void models_list(struct call *c);
void models_ask(struct call *c);
void models_metrics(const struct api *a, struct buf *out); /* for Prometheus */
