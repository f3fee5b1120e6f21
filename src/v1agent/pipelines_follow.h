/* pipelines_follow.h - a client that follows a pipeline, or waits for its report.
 * Owns: the stream. Events come from the store, so it does not matter which server drives the
 *  pipeline. */
#pragma once
#include "api/api.h"

/* Sends the events after number `after`; until_asked: a question ends the stream, too; once: only
 * events that exist now. */
void follow_stream(struct call *c, const char *id, uint32_t after, int until_asked, int once);
void follow_wait(struct call *c, const char *id); /* answers with its report, or its question */
