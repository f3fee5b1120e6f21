/* copies.h - copies of snapshots of other nodes that this node keeps: of boxes with on_loss restart, and those that a gateway
 * sent for a new box; and what other nodes should keep of the boxes of this one. The files themselves are in fleet/snapshot.h. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"

struct store_copy {
	char id[ID_MAX + 1];  /* of the snapshot */
	char box[ID_MAX + 1]; /* with on_loss restart; "": it was sent for a new box */
	char team[STORE_NAME + 1];
	char *definition; /* JSON object: v1box/copy_file.h */
	char sha256[2 * SHA256_BYTES + 1];
	uint64_t bytes;
	int64_t created_ns; /* of the snapshot */
};
void store_copy_fini(struct store_copy *c);

/* Replaces one of this id. */
must_check int store_copy_insert(struct store *s, const struct store_copy *c, struct err *e);
must_check int store_copy_get(struct store *s, const char *id, struct store_copy *out,
			      struct err *e);
must_check int store_copy_remove(struct store *s, const char *id, struct err *e);

struct store_copy_item {
	char id[ID_MAX + 1], box[ID_MAX + 1], team[STORE_NAME + 1];
	int64_t created_ns;
	char name[STORE_NAME + 1], session[STORE_SESSION + 1], template[STORE_TEMPLATE + 1];
	int is_spent; /* held: the box ran on this node afterwards and has ended there */
};
struct store_copy_items {
	struct store_copy_item *v;
	unsigned n;
};
void store_copy_items_fini(struct store_copy_items *l);
/* 1: there is a copy of this box that is not spent, see below. */
must_check int store_copy_of_box(struct store *s, const char *team, const char *box, struct err *e);
/* Copies for new boxes. */
must_check int store_copies_sent(struct store *s, struct store_copy_items *out, struct err *e);
/* Copies of boxes that this node keeps. */
must_check int store_copies_held(struct store *s, struct store_copy_items *out, struct err *e);
/* The newest snapshot of each box of this node with on_loss restart; id "": it has none. */
must_check int store_copies_wanted(struct store *s, struct store_copy_items *out, struct err *e);
