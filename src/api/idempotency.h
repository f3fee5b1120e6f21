/* idempotency.h - Idempotency-Key: a request that is sent again gets the first one's answer.
 * Owns: the keys of requests that are under way here. Each outlives its client: whoever asks again
 * must find what was made. */
#pragma once
#include "api/api.h"

struct idem;

enum idempotency_result {
	IDEM_ANSWERED, /* from memory, or with a conflict */
	IDEM_GO,       /* do it */
	IDEM_MADE,     /* a front that is no more had made this, and could not say so */
};
/* *out: to be given to one of the functions below; NULL without a key, which is fine with them. */
enum idempotency_result idempotency_begin(struct call *c, struct idem **out, char made[ID_LEN + 1]);
/* What is being made; in the same group as its row, so that a crash leaves both or none. */
must_check int idempotency_subject(struct idem *i, const char *id, struct err *e);
void idempotency_answer(struct idem *take_i, int status, const json_t *doc); /* before it is sent */
void idempotency_drop(struct idem *take_i);  /* it failed: the next try is a first one */
void idempotency_leave(struct idem *take_i); /* as it is: the next try finds the same */
