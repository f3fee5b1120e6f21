/* network.h - network rules of teams, and what boxes have used of their network budget.
 * Rules are lines of text (egress/net_policy.h) in a JSON array; the store does not read them. */
#pragma once
#include "store/store.h"

/* *out: the JSON array, to free(); NULL: the team has no rules of its own. */
must_check int store_network_rules_get(struct store *s, const char *team, char **out,
				       struct err *e);
/* NULL removes them. ERR_NOT_FOUND: no such team. */
must_check int store_network_rules_put(struct store *s, const char *team, const char *rules,
				       struct err *e);

struct store_network_usage {
	uint64_t bytes_in, bytes_out, dns_queries;
};
/* Zeros for a box without a row. */
must_check int store_network_usage_get(struct store *s, const char *box,
				       struct store_network_usage *out, struct err *e);
/* A value that is smaller than the stored one is ignored. */
must_check int store_network_usage_put(struct store *s, const char *box,
				       const struct store_network_usage *u, struct err *e);
