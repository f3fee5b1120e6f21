/* idempotency.h - Idempotency-Key: a request that is sent again gets the answer of the first one.
 * Owns: the keys of requests in progress in this server. A key remains when its client disconnects,
 * so that a repeated request finds what was created. */
#pragma once
#include "api/api.h"

struct idem;

enum idempotency_result {
	IDEM_ANSWERED, /* answered: with the stored answer, or with a conflict */
	IDEM_GO,       /* the handler executes the request */
	IDEM_MADE,     /* a server that has ended had created `made`, and had not stored
		        * its answer */
};
/* *out: the caller passes it to one of the functions below; NULL without a key, which
 * they accept. */
enum idempotency_result idempotency_begin(struct call *c, struct idem **out, char made[ID_MAX + 1]);
/* Stores the id of the object that is being created, in the same transaction as its row, so that
 * a crash leaves both or none. */
must_check int idempotency_subject(struct idem *i, const char *id, struct err *e);
/* Stores the answer; call it before the answer is sent. */
void idempotency_answer(struct idem *take_i, int status, const json_t *doc);
void idempotency_drop(struct idem *take_i);  /* the request failed: the next attempt starts from the
					      * beginning */
void idempotency_leave(struct idem *take_i); /* changes nothing: the next attempt finds the same
					      * state */
