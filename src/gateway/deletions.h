/* deletions.h - DELETE of a box whose node cannot be reached: stored in the database, answered with 202, and sent to the
 * node by a gateway when it is connected again. A box with on_loss restart that has such a row is not restarted.
 * Owns: the requests in progress. */
#pragma once
struct cluster_client;
struct gateway_call;
struct gateway_moved;
struct loop;
struct tunnels;

struct deletions;
struct deletions_conf { /* all borrowed */
	struct loop *loop;
	struct tunnels *tunnels;
	struct cluster_client *engines;
	struct gateway_moved *moved;
};
struct deletions *deletions_new(const struct deletions_conf *conf);
void deletions_free(struct deletions *d); /* allowed on NULL */

/* 1: the request deletes a box, and is answered later: 202, or as x->deletion.failed() answers it. */
int deletions_take(struct gateway_call *x, void (*failed)(struct gateway_call *x));
void deletions_end(struct gateway_call *x);
