/* answer.h - for drivers: an answer that is being built, and the copy of its request.
 * Owns: all vectors and texts of both. */
#pragma once
#include "coordinator/coordinator.h"

struct answer {
	struct coordinator_answer answer;
	struct coordinator_request q; /* a deep copy */
	coordinator_done *done;
	void *user;
	char **texts;
	unsigned ntexts;
	struct view_gateway *dead;
};

void answer_init(struct answer *a, const struct coordinator_request *q, coordinator_done *done,
		 void *user);
void answer_fini(struct answer *a);
/* Calls done(). e: NULL or the reason why there is no answer. */
void answer_give(struct answer *a, const struct err *e);

const char *answer_text(struct answer *a, const char *text); /* a copy; NULL stays NULL */
void answer_add_gateway(struct answer *a, int number, int64_t renewals, int64_t incarnation);
void answer_add_tunnel(struct answer *a, int node, int gateway, int64_t serial);
void answer_add_node(struct answer *a, int number, int64_t epoch, int64_t forgotten, int lost,
		     const char *name);
void answer_add_name(struct answer *a, const struct coordinator_name *n);
void answer_add_superseded(struct answer *a, const char *box, int64_t epoch);
int answer_has_claim(const struct answer *a); /* names[0] is what the request claims */
