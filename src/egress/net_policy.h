/* net_policy.h - the network rules of one box and of its team.
 * Owns: the lists of rules.
 *
 * As text, one line each; the server stores the lines of a box and of a team and sends both to
 * egress, those of the team with "team " in front:
 *
 *   RULE            the box may reach it (net_rule.h)
 *   until N RULE    the same, until this second since 1970
 *   deny RULE       it may not, whatever is allowed
 *   ask             a destination without a rule waits for an approval
 *   bandwidth N     bytes per second in each direction
 *   link NAME ID    the box reaches another box under this name; not read here
 *   budget IN OUT CONNECTIONS RULE
 *                   bytes received and sent, connections in total, of what the rule fits; 0: no limit
 *   only            of a team: boxes may reach nothing but what the RULE lines name */
#pragma once
#include "egress/net_rule.h"

struct net_list {
	struct net_rule *v;
	int64_t *until_s; /* of each rule; 0: no end. NULL: none has one */
	unsigned n;
};

enum { NET_BUDGETS = 8 };

struct net_budget {
	struct net_rule rule; /* without a port: every port */
	uint64_t bytes_in, bytes_out, connections;
};

struct net_policy {
	struct net_list allow, deny;           /* of the box */
	struct net_list team_allow, team_deny; /* of its team */
	int team_only;                         /* team_allow restricts the box */
	int ask;
	uint64_t bandwidth; /* 0: no limit */
	struct net_budget *budgets;
	unsigned nbudgets;
};

enum {
	NET_POLICY_RULES = 2 * RULES_MAX, /* in a list: the box's own, and those for registries */
	NET_POLICY_TEXT = 24 << 10,       /* of the rules of a box, and of a team */
	NET_BANDWIDTH_LEAST = 1024,
};

/* ERR_LIMIT: more than NET_POLICY_RULES rules in a list. *out is written only on success. */
must_check int net_policy_parse(struct net_policy *out, const char *text, size_t n, struct err *e);
void net_policy_fini(struct net_policy *p); /* fine on a zeroed one */

/* The first rule of the list that allows the target now. NULL: none; *out_hidden: a rule names the
 * host, but is about HTTP that cannot be read. */
const struct net_rule *net_list_allows(const struct net_list *l, const struct net_target *t,
				       int64_t now_s, const struct net_rule **out_hidden);
/* Does a rule other than open allow it? */
int net_list_names(const struct net_list *l, const struct net_target *t, int64_t now_s);
const struct net_rule *net_list_denies(const struct net_list *l, const struct net_target *t);
const struct net_rule *net_list_denies_address(const struct net_list *l, const struct net_target *t,
					       const struct sockaddr *to);
