/* swerex_idempotency.h - X-Request-ID: a repeated request is not executed again.
 * Owns: a few recent answers, for some minutes, in the memory of this server. A client repeats a
 * request at once after a lost connection; for longer guarantees /v1 has Idempotency-Key. */
#pragma once
#include "api/api.h"

struct again; /* a request that is being served */

enum swerex_retry {
	AGAIN_FIRST,    /* do it */
	AGAIN_ANSWERED, /* *status, *text, *n have the answer; valid until the next call */
	AGAIN_BUSY,     /* the first one is being served */
	AGAIN_LOST,     /* it was started, and its client disconnected before the answer */
};
/* id: of the header. *out: AGAIN_FIRST: for one of the functions below; NULL: not stored. */
enum swerex_retry swerex_idempotency_begin(struct call *c, const char *id, struct again **out,
					   int *status, const char **text, size_t *n);
/* All accept NULL. */
void swerex_idempotency_answer(struct api *a, struct again *take_x, int status, const json_t *doc);
void swerex_idempotency_forget(struct again *take_x); /* nothing was done */
void swerex_idempotency_leave(struct again *take_x);  /* the answer is not stored */
