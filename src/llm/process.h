/* process.h - the LLM process, which has the keys: servers send it requests, it calls models.
 * Owns: the models configuration, the connections to models and to servers.
 *
 *   server ── {ask: n, request} ──►            {cancel: n}
 *         ◄── {book} at first, {said: n, event}, {done: n, answer, kind?}
 *
 * A server is not trusted with a key, and answers of models are not trusted at all: after it has
 * confined itself, the process cannot open files or start programs, and connects only by name. */
#pragma once
#include "base/err.h"

/* Runs the process until `supervisor` is closed and the last answer is sent: a MODEL frame with a
 * descriptor on it is a connection of a server. walls() is called when no more files must be
 * opened. Returns the exit status. */
int llm_main(const char *book_path, int supervisor, int (*walls)(void *ctx, struct err *e),
	     void *ctx);
