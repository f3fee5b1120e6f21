/* root_pool.h - boxes of roots that are created in advance.
 * Owns: the pools of the keeper that have a root, and the depth of each.
 * Such a pool is filled after the second request for a box of its root within two minutes, or after
 * POOL_ROOT. All its boxes have the disk of the request, because a disk is mounted when a box is
 * created. It is emptied when no client has requested it for a while, when memory is short, and when
 * its root is deleted. */
#pragma once
#include "base/err.h"
#include "keeper/keeper_box.h"
#include "keeper/layer_tree.h"
#include "wire/wire.h"
#include <stdint.h>

struct keeper;
struct client;

enum { ROOT_POOLS = 16, ROOT_POOL_DEPTH = 2, ROOT_POOL_MOST = 64 };

struct pool_class {
	struct keeper_box *first, *last; /* pooled boxes, all alike; oldest first */
	unsigned pooled, depth, making;
};

struct root_pool {
	char root[TREE_ID + 1]; /* empty: unused */
	char template[WIRE_ID * 2];
	struct wire_limits limits;
	struct pool_class boxes;
	unsigned pinned; /* depth that POOL_ROOT has set; 0: as requests come */
	int closing;     /* its root is deleted: it is free when no box of it is being created */
	uint64_t asked_ns;
	uint64_t retry_ns;    /* no box before this time: the last one failed */
	struct waiter filler; /* the client that waits for the answer to POOL_ROOT */
};

/* A pooled box for this request, or NULL. Called for each request for a box of a root that a pooled
 * box could serve: from the second one on boxes are created in advance. */
struct keeper_box *root_pool_take(struct keeper *k, const struct wire_create *w,
				  const struct wire_limits *limits);
/* The pool of a box that was created for one. */
struct root_pool *root_pool_of(struct keeper *k, const struct keeper_box *b);
/* A box was created. Returns 0 if it must be ended: its root was deleted meanwhile. */
int root_pool_created(struct keeper *k, struct keeper_box *b);
void root_pool_failed(struct keeper *k, struct keeper_box *b, const struct err *e);
/* Creates missing boxes. */
must_check int root_pool_refill(struct keeper *k, uint64_t now, struct err *e);
void root_pool_maintain(struct keeper *k); /* called periodically */
void root_pool_end_all(struct keeper *k);
void root_pool_close(struct keeper *k, const char *root); /* the root is deleted */
void root_pool_request(struct keeper *k, struct client *c, const struct frame *f);
