/* chain_internal.h - shared by the files of this folder that write a layer out of the layers of a chain: chain_merge.c, all
 * entries; chain_pick.c, chosen ones. */
#pragma once
#include "layer/chain_merge.h"
#include "layer/erofs_write.h"

#define MERGE_OPAQUE "overlay.opaque"

enum { MERGE_LAYERS = 16, MERGE_DEPTH = 8192 };

struct merge_known { /* a file with several names, by layer and inode */
	uint64_t key;
	uint32_t node; /* 0: free */
};

struct merge {
	const struct erofs_image *from;
	unsigned n;
	int lowest;
	int out;
	int index; /* chain_pick.c */
	uint64_t bytes_most, files_most;
	struct chain_sum *sum;
	struct err *e;
	struct erofs_writer w;
	unsigned depth;
	struct merge_known *known;
	size_t nknown, slots;
	char *xattrs;
};

/* Begins the image, adds the entries, ends it. */
int merge_write(struct merge *g, int (*entries)(struct merge *g));
/* Copies the attributes except the opaque one; returns whether there was one. */
int merge_xattrs(const struct erofs_image *m, uint64_t nid, char *out, size_t *out_bytes);
int merge_is_opaque(struct merge *g, unsigned layer, uint64_t nid);
void merge_add_opaque(struct merge *g, struct erofs_node *n); /* to the attributes in g->xattrs */
struct erofs_node merge_node(const struct erofs_inode *i);
int merge_count(struct merge *g, const struct erofs_inode *i);
/* Anything but a folder, with its content. */
int merge_file(struct merge *g, unsigned layer, const struct erofs_found *from, uint32_t parent);
int merge_order(const struct erofs_found *a, const struct erofs_found *b);
