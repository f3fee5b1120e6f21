/* egress_child.h - the warden's hold on egress: what the settings permit, the process, who is connected to it.
 * Owns: the process and the link to it. When either ends, another one is started; boxes' connections
 *       are cut then, their programs may ask again, and nothing else is harmed. */
#pragma once
#include "egress/egress.h"
#include "daemon/child.h"
#include "daemon/config.h"

enum { SLUICE_RULES = 256 };

/* What the operator permits: egress.allow, egress.allow_internal, and where packages come from. */
struct sluice_rules {
	struct rule v[SLUICE_RULES];
	unsigned n;
};
must_check int sluice_rules(const struct config *c, struct sluice_rules *out, struct err *e);

struct sluice {
	struct aide aide;
	struct sluice_rules rules;
	struct egress_limits limits;
	const struct config *config; /* borrowed */
	int root;                    /* it becomes somebody else */
};

void sluice_init(struct sluice *o, int root);
/* Makes it what the settings say: started, ended, or ended and started anew. */
void sluice_apply(struct sluice *o, const struct config *c);
/* It should run and does not: tries again, not in a circle. 1: look again in a while. */
int sluice_tend(struct sluice *o);
int sluice_ended(struct sluice *o, pid_t pid); /* 1: it was that one */
/* Connects a front (by its link) with egress. -1: there is none now. */
int sluice_hand(struct sluice *o, int front_link);
