/* egress_child.h - how the supervisor manages egress: the rules of the settings, the process,
 * the servers connected to it.
 * Owns: the process and the link to it. When either ends, another one is started; connections of
 * boxes are cut then, and their programs can connect again. */
#pragma once
#include "egress/egress.h"
#include "daemon/child.h"
#include "daemon/config.h"

enum { EGRESS_CHILD_RULES = 256, EGRESS_CHILD_DENY = 256 };

/* The rules of the operator: egress.allow, egress.allow_internal and the package sources;
 * egress.deny. */
struct egress_child_rules {
	struct net_rule v[EGRESS_CHILD_RULES];
	unsigned n;
	struct net_rule deny[EGRESS_CHILD_DENY];
	unsigned ndeny;
};
must_check int egress_child_rules(const struct config *c, struct egress_child_rules *out,
				  struct err *e);

/* 1: boxes may reach some host, or each other. */
int egress_child_wanted(const struct config *c, const struct egress_child_rules *rules);

struct egress_child {
	struct child child;
	struct egress_child_rules rules;
	struct egress_limits limits;
	const struct config *config; /* borrowed */
	char ca[1024];               /* egress.ca */
	int root;                    /* it changes its uid */
	int links;                   /* boxes may be linked */
	struct egress_used *used;    /* memory that all its processes share, one after the other */
};

void egress_child_init(struct egress_child *o, int root);
/* Applies the settings: starts it, ends it, or ends and starts it again. */
void egress_child_apply(struct egress_child *o, const struct config *c);
/* Starts it again if it should run and does not, with a delay between tries. 1: call again in a
 * while. */
int egress_child_maintain(struct egress_child *o);
int egress_child_ended(struct egress_child *o, pid_t pid); /* 1: it was that one */
/* Connects a server (by its link) with egress. -1: it does not run now. */
int egress_child_hand(struct egress_child *o, int server_link);
