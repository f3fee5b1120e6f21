/* usage.h - what the teams of a cluster have used, from the rows that nodes have sent to its database: the figures are
 * about a tenth of a second old. Owns: the question in progress. */
#pragma once
#include "api/usage_source.h"

/* api->usage_of_cluster of a gateway. 503: the database does not answer. */
void gateway_usage_ask(struct call *c, const struct store_usage_filter *f, int with_days,
		       usage_done *done);
