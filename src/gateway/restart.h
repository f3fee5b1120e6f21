/* restart.h - one box of a lost node, or of one that drains, on its way to another node.
 * Owns: its requests. For copies.c.
 *
 *   has it ended? (directory) -> MOVE_BOX, with its name -> MOVE_BOX with its session -> table `moved` -> POST to the node
 *
 * Every step can be repeated, by this gateway or another one: MOVE_BOX decides once, and the node starts a box once. */
#pragma once
#include "base/id.h"
#include "gateway/copies.h"
#include "gateway/node_request.h"

struct restart {
	struct restart *next, **link;
	const struct gateway_copies_conf *conf;
	/* Called once, from the loop; frees nothing. why NULL: the box was started. */
	void (*done)(struct restart *r, const char *why);
	char box[ID_MAX + 1], snapshot[ID_MAX + 1];
	json_t *keys; /* {"team", "name", "session", "template"} */
	unsigned from, node;
	int64_t from_epoch, epoch; /* from_epoch 0: the box was moved before */
	int is_leaving;            /* `from` is up, and has stopped the box for good */
	/* Of restart.c. */
	struct cluster_request query;
	struct node_request request;
	struct timer end;
	int step;
	char why[160];
};
/* All but the fields of restart.c are set. */
void restart_begin(struct restart *r);
/* After done(), or after coordinator_free(): frees the struct. */
void restart_free(struct restart *r);
/* The gateway as a caller; team: the one whose box it is. */
void restart_identity(const char *team, char out[128]);
