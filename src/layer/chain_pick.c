/* chain_pick.c - see chain_pick.h. */
#include "layer/chain_pick.h"
#include "base/cleanup.h"
#include "layer/chain_internal.h"
#include "layer/index.h"

#include <string.h>
#include <sys/stat.h>

struct pick_part { /* a folder of one layer, read once, because entries are sorted */
	unsigned layer;
	struct erofs_inode folder;
	struct erofs_cursor at;
	struct erofs_found now;
	int has, is_read;
};

struct pick_level { /* a folder of the path of the last entry */
	size_t path_len;
	uint32_t node;
	unsigned n; /* the layers that show something of it, the first on top */
	struct pick_part part[MERGE_LAYERS];
};

struct pick {
	struct merge *g;
	struct pick_level *v;
	size_t n, room;
};

static struct pick_level *pick_push(struct pick *p, size_t path_len, uint32_t node)
{
	if (p->n == p->room) {
		p->room = 2 * p->room + 16;
		p->v = realloc(p->v, p->room * sizeof(*p->v));
		if (!p->v)
			abort();
	}
	p->v[p->n] = (struct pick_level){ .path_len = path_len, .node = node };
	return &p->v[p->n++];
}

static void pick_add_part(struct pick_level *l, unsigned layer, const struct erofs_inode *folder)
{
	l->part[l->n++] = (struct pick_part){ .layer = layer, .folder = *folder };
}

/* 1: now is the entry of this name. */
static int pick_seek(const struct merge *g, struct pick_part *p, const struct erofs_found *want)
{
	for (;;) {
		int order;

		if (!p->is_read)
			p->has = erofs_read_next(&g->from[p->layer], &p->folder, &p->at, &p->now);
		p->is_read = 1;
		if (!p->has)
			return 0;
		order = merge_order(&p->now, want);
		if (order >= 0)
			return order == 0;
		p->is_read = 0;
	}
}

static int pick_missing(const struct pick *p, const struct layer_index_entry *x)
{
	return err_set(p->g->e, ERR_INVALID, "the layers have no such entry: %.100s", x->path);
}

static int pick_file(struct pick *p, const struct layer_index_entry *x, struct pick_level *up,
		     const struct erofs_found *want)
{
	const struct merge *g = p->g;

	for (unsigned i = 0; i < up->n; i++) {
		struct erofs_inode found;

		if (!pick_seek(g, &up->part[i], want))
			continue;
		found = erofs_read_inode(&g->from[up->part[i].layer], up->part[i].now.nid);
		if ((found.mode & S_IFMT) != (x->f.mode & S_IFMT) ||
		    (S_ISREG(found.mode) && found.size != x->f.size))
			break;
		return merge_file(p->g, up->part[i].layer, &up->part[i].now, up->node);
	}
	return pick_missing(p, x);
}

static struct erofs_node pick_node(const struct layer_index_fixed *f)
{
	int64_t s = f->mtime_ns / 1000000000, ns = f->mtime_ns % 1000000000;

	return (struct erofs_node){ .mode = f->mode,
				    .uid = f->uid,
				    .gid = f->gid,
				    .mtime = { s - (ns < 0), ns < 0 ? ns + 1000000000 : ns } };
}

/* Its attributes are those of the uppermost layer that has it. */
static int pick_folder(struct pick *p, const struct layer_index_entry *x, size_t up_at,
		       const struct erofs_found *want)
{
	struct erofs_node node = pick_node(&x->f);
	struct erofs_inode i = { .mode = (uint16_t)x->f.mode };
	struct pick_level *l = pick_push(p, x->f.path_len, 0), *up = &p->v[up_at];
	struct merge *g = p->g;
	uint64_t top = 0;
	int opaque = 0;

	for (unsigned k = 0; k < up->n && !opaque; k++) {
		struct pick_part *from = &up->part[k];

		if (!pick_seek(g, from, want))
			continue;
		i = erofs_read_inode(&g->from[from->layer], from->now.nid);
		if (!S_ISDIR(i.mode))
			break;
		opaque = merge_is_opaque(g, from->layer, from->now.nid);
		pick_add_part(l, from->layer, &i);
		if (l->n == 1)
			top = from->now.nid;
	}
	if (!l->n)
		return pick_missing(p, x);
	merge_xattrs(&g->from[l->part[0].layer], top, g->xattrs, &node.xattr_bytes);
	if (x->f.flags & LAYER_INDEX_OPAQUE)
		merge_add_opaque(g, &node);
	node.xattrs = g->xattrs;
	l->node = erofs_write_add(&g->w, up->node, (const char *)want->name, want->len, &node);
	i.mode = S_IFDIR;
	return p->n > MERGE_DEPTH
		       ? err_set(g->e, ERR_LIMIT, "folders more than %d deep", MERGE_DEPTH)
		       : merge_count(g, &i);
}

static int pick_entry(struct pick *p, const struct layer_index_entry *x)
{
	const char *slash = memrchr(x->path, '/', x->f.path_len);
	size_t up_len = slash ? (size_t)(slash - x->path) : 0, from = slash ? up_len + 1 : 0;
	const struct erofs_found want = { .name = (const uint8_t *)x->path + from,
					  .len = x->f.path_len - from };
	struct erofs_inode gone = { .mode = S_IFCHR };
	struct erofs_node none = { .mode = S_IFCHR };
	struct pick_level *up;

	/* The index reader has checked that the folder of every entry is there. */
	while (p->v[p->n - 1].path_len > up_len)
		p->n--;
	up = &p->v[p->n - 1];
	if (x->f.flags & LAYER_INDEX_WHITEOUT) {
		erofs_write_add(&p->g->w, up->node, (const char *)want.name, want.len, &none);
		return merge_count(p->g, &gone);
	}
	return S_ISDIR(x->f.mode) ? pick_folder(p, x, p->n - 1, &want) : pick_file(p, x, up, &want);
}

static void pick_root(struct pick *p, const struct layer_index_entry *x)
{
	struct merge *g = p->g;
	struct erofs_node root = pick_node(&x->f);
	struct pick_level *l = pick_push(p, 0, 0);

	merge_xattrs(&g->from[0], 0, g->xattrs, &root.xattr_bytes);
	root.xattrs = g->xattrs;
	erofs_write_root(&g->w, &root);
	for (unsigned i = 0; i < g->n; i++) {
		struct erofs_inode top = erofs_read_inode(&g->from[i], 0);

		pick_add_part(l, i, &top);
	}
}

static int pick_all(struct merge *g)
{
	struct pick p = { .g = g };
	struct layer_index_reader in;
	struct layer_index_entry x;
	int got = layer_index_open(&in, g->index, g->e);

	while (got >= 0 && (got = layer_index_next(&in, &x, g->e)) > 0) {
		if (!p.n)
			pick_root(&p, &x);
		else if (pick_entry(&p, &x) < 0)
			got = -1;
	}
	if (got == 0 && !p.n)
		got = err_set(g->e, ERR_INVALID, "the index is empty");
	layer_index_close(&in);
	free(p.v);
	return got;
}

int chain_pick_write(const struct erofs_image *from, unsigned n, int index, int out,
		     uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum, struct err *e)
{
	struct merge g = { .from = from,
			   .n = n,
			   .out = out,
			   .index = index,
			   .bytes_most = bytes_most,
			   .files_most = files_most,
			   .sum = sum,
			   .e = e };

	return merge_write(&g, pick_all);
}
