/* outbound_child.h - how the supervisor manages the outbound process: the rules of the settings, the
 * process, the servers connected to it.
 * Owns: the process and the link to it. It is started when a server asks for a connection, and
 * replaced when its settings have changed; the old process finishes its requests. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"
#include "egress/net_rule.h"

enum { OUTBOUND_CHILD_RULES = 128 };

struct outbound_child_list {
	struct net_rule v[OUTBOUND_CHILD_RULES];
	unsigned n;
};

struct outbound_child_rules { /* compared as bytes */
	struct outbound_child_list allow, named, deny;
};

struct outbound_child {
	struct child child;
	struct outbound_child_rules rules;
	const struct config *config; /* borrowed */
	char ca[1024];               /* egress.ca */
	int root;                    /* it changes its uid */
};

/* Can the settings be used? */
must_check int outbound_child_check(const struct config *c, struct err *e);

void outbound_child_init(struct outbound_child *o, int root);
void outbound_child_apply(struct outbound_child *o, const struct config *c); /* before each start */
int outbound_child_ended(struct outbound_child *o, pid_t pid); /* 1: it was that one */
/* Connects a server (by its link), and starts the process if necessary. -1: it does not run now. */
int outbound_child_hand(struct outbound_child *o, int server_link);
