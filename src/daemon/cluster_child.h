/* cluster_child.h - how the supervisor of a gateway manages the cluster process (coordinator/process.h), which is
 * replaced when its settings have changed.
 * Owns: the process and the link to it. */
#pragma once
#include "daemon/child.h"
#include "daemon/config.h"

struct cluster_child {
	struct child child;
	const struct config *config; /* borrowed */
	char *settings;              /* those that it was started with; NULL: none */
	int root;                    /* it changes its uid */
};

enum { CLUSTER_ETCD_TEXT = 2048 };
/* cluster.etcd as one text. */
const char *cluster_child_etcd(const struct config *c, char out[CLUSTER_ETCD_TEXT]);

/* Can other users read the secrets? */
must_check int cluster_child_check(const struct config *c, struct err *e);

void cluster_child_init(struct cluster_child *o, int root);
void cluster_child_apply(struct cluster_child *o, const struct config *c); /* before each start */
/* Starts it if it must run and does not. 1: later. */
int cluster_child_maintain(struct cluster_child *o);
int cluster_child_ended(struct cluster_child *o, pid_t pid); /* 1: it was that one */
/* Connects a server (by its link). -1: it does not run now. */
int cluster_child_hand(struct cluster_child *o, int server_link);
