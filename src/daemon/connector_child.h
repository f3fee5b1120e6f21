/* connector_child.h - how the supervisor of a node manages the process that connects to gateways
 * (coordinator/connector.h).
 * Owns: the process and the link to it. It is started when a server asks for it, and replaced when the
 * settings have changed. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"

struct connector_child {
	struct child child;
	const struct config *config; /* borrowed */
	char settings[2048];         /* of the running process; compared as text */
	int root;                    /* it changes its uid */
};

void connector_child_init(struct connector_child *o, int root);
void connector_child_apply(struct connector_child *o,
			   const struct config *c);              /* before each start */
int connector_child_ended(struct connector_child *o, pid_t pid); /* 1: it was that one */
/* Connects a server (by its link), and starts the process if necessary. -1: it does not run now. */
int connector_child_hand(struct connector_child *o, int server_link);
