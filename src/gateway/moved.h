/* moved.h - boxes whose id names another node than the one that has them: they were restarted there.
 * Owns: the list in memory, which every gateway reads from the table atoll.moved once a second, and more often
 *       after the loss of a node. */
#pragma once
#include "coordinator/cluster_client.h"
#include "loop/loop.h"
#include <stddef.h>

struct gateway_moved;
struct gateway_moved *gateway_moved_new(struct loop *l, struct cluster_client *engines);
void gateway_moved_free(struct gateway_moved *m); /* allowed on NULL */

/* The node that has a box: the one it was moved to, else the one of its id; -1: the text is not an id with a node. An
 * id may be followed by other text from `n` on. m: NULL is allowed. */
int gateway_moved_node(const struct gateway_moved *m, const char *id, size_t n);
/* 0: not in the list. epoch: of that node, for which it was moved. */
int gateway_moved_find(const struct gateway_moved *m, const char *id, int *out_node,
		       int64_t *out_epoch);
/* This gateway has moved a box: it is stored and found at once. */
void gateway_moved_add(struct gateway_moved *m, const char *id, int from, int node, int64_t epoch);
/* A node is lost: another gateway may move its boxes soon. Allowed on NULL. */
void gateway_moved_hurry(struct gateway_moved *m);
/* 1: the table was read within the last seconds. */
int gateway_moved_is_current(const struct gateway_moved *m);
unsigned gateway_moved_count(const struct gateway_moved *m);
