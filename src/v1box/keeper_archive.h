/* keeper_archive.h - an archive that the keeper writes is the body of an answer.
 *
 * The keeper writes into a pipe; what the client does not read stays in the pipe. If the keeper fails after the answer has
 * begun, the connection is cut, so that half an archive does not look like a whole one.
 * Owns: the pipe, and the request to the keeper, until the answer ends or its client leaves. */
#pragma once
#include "api/api.h"

/* ask: a frame that takes the descriptor; want: the type of its answer. first: bytes before the archive. -1: no answer was
 * begun. */
must_check int keeper_archive_send(struct call *c, const void *ask, size_t n, uint8_t want,
				   const char *type, const char *first, struct err *e);
