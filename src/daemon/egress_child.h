/* egress_child.h - the warden's hold on egress: what the settings permit, the process, who is connected to it.
 * Owns: the process and the link to it. When either ends, another one is started; boxes' connections
 *       are cut then, their programs may ask again, and nothing else is harmed. */
#pragma once
#include "egress/egress.h"
#include "daemon/child.h"
#include "daemon/config.h"

enum { EGRESS_CHILD_RULES = 256 };

/* What the operator permits: egress.allow, egress.allow_internal, and where packages come from. */
struct egress_child_rules {
	struct allow_rule v[EGRESS_CHILD_RULES];
	unsigned n;
};
must_check int egress_child_rules(const struct config *c, struct egress_child_rules *out,
				  struct err *e);

struct egress_child {
	struct child child;
	struct egress_child_rules rules;
	struct egress_limits limits;
	const struct config *config; /* borrowed */
	int root;                    /* it becomes somebody else */
};

void egress_child_init(struct egress_child *o, int root);
/* Makes it what the settings say: started, ended, or ended and started anew. */
void egress_child_apply(struct egress_child *o, const struct config *c);
/* It should run and does not: tries again, not in a circle. 1: look again in a while. */
int egress_child_tend(struct egress_child *o);
int egress_child_ended(struct egress_child *o, pid_t pid); /* 1: it was that one */
/* Connects a front (by its link) with egress. -1: there is none now. */
int egress_child_hand(struct egress_child *o, int server_link);
