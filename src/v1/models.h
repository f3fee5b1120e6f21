/* models.h - which language models may be asked, and one question to one of them.
 * Owns: nothing beyond its calls. The keys are in another process (model/). */
#pragma once
#include "api/api.h"

struct buf;

extern const struct field models_ask_fields[];

void models_list(struct call *c);
void models_ask(struct call *c);
void models_metrics(const struct api *a, struct buf *out); /* for Prometheus */
