/* message.h - requests and answers of coordinator.h as JSON, between a gateway's server and its cluster process.
 * Pure functions. What is 0, NULL or empty is left out. */
#pragma once
#include "coordinator/answer.h"
#include <jansson.h>

json_t *message_of_request(const struct coordinator_request *q);
/* The texts are those of m. *out_dead is the caller's to free, also on -1 (NULL). ERR_INVALID: not a request. */
must_check int message_read_request(const json_t *m, struct coordinator_request *out,
				    struct view_gateway **out_dead, struct err *e);
json_t *message_of_answer(const struct coordinator_answer *a);
/* Fills an answer that was begun with answer_init(). */
must_check int message_read_answer(const json_t *m, struct answer *out, struct err *e);
