/* objects_internal.h - for objects.c and objects_sweep.c. */
#pragma once
#include "gateway/objects.h"

enum { OBJECTS_KEY = 64, OBJECTS_BODY = 8192 };

struct objects_sweep { /* objects_sweep.c: one collection at a time */
	struct gateway_objects *all;
	struct timer clock;
	struct cluster_request query;
	struct node_request node;
	json_t *ended, *checked; /* rows of objects_due that have not been handled */
	int is_deleting;
};

struct gateway_objects {
	struct gateway_objects_conf conf;
	struct objects_copy *copies;
	struct objects_sweep sweep;
	uint64_t avoid_ms; /* until then the store is not used for a request that waits */
};

/* {"object": {method, key}} to the cluster process; done() as of cluster_client.h. */
void objects_sign_request(struct gateway_objects *g, struct cluster_request *r, const char *method,
			  const char *key);
/* 1: the id of the snapshot has the number of the node: a node cannot store files under the ids of other nodes. */
int objects_may_keep(const struct objects_what *w);
void objects_sweep_init(struct gateway_objects *g);
void objects_sweep_fini(struct gateway_objects *g);
