/* pipelines_follow.h - a client that reads along with a pipeline, or waits for its report.
 * Owns: the stream. What is told comes from the store, so it does not matter which front drives it. */
#pragma once
#include "api/api.h"

/* Its events behind number after; until_asked: a question ends them, too; once: those there are. */
void follow_stream(struct call *c, const char *id, uint32_t after, int until_asked, int once);
void follow_wait(struct call *c, const char *id); /* its report, or its question */
