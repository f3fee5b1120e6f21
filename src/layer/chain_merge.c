/* chain_merge.c - see chain_merge.h. */
#include "layer/chain_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct merge_part { /* one of the folders that are merged into one */
	unsigned layer;
	struct erofs_inode folder;
	struct erofs_cursor at;
	struct erofs_found now;
	int has; /* now is valid */
};

/* ---- attributes ---- */

/* Copies the attributes except the opaque one; returns whether there was one. */
int merge_xattrs(const struct erofs_image *m, uint64_t nid, char *out, size_t *out_bytes)
{
	size_t n, used = 0;
	const uint8_t *at = erofs_read_xattrs(m, nid, &n), *end = at + n;
	int opaque = 0;

	while (at < end) {
		struct erofs_xattr x;
		size_t len;

		memcpy(&x, at, sizeof(x));
		len = (sizeof(x) + x.name_len + x.value_size + 3) & ~(size_t)3;
		if (x.name_len == strlen(MERGE_OPAQUE) &&
		    memcmp(at + sizeof(x), MERGE_OPAQUE, x.name_len) == 0) {
			opaque = 1;
		} else {
			memcpy(out + used, at, len);
			used += len;
		}
		at += len;
	}
	*out_bytes = used;
	return opaque;
}

void merge_add_opaque(struct merge *g, struct erofs_node *n)
{
	n->xattr_bytes +=
		erofs_write_xattr(g->xattrs + n->xattr_bytes, EROFS_XATTRS - 12 - n->xattr_bytes,
				  MERGE_OPAQUE, strlen(MERGE_OPAQUE), "y", 1);
}

int merge_is_opaque(struct merge *g, unsigned layer, uint64_t nid)
{
	size_t ignored;

	return merge_xattrs(&g->from[layer], nid, g->xattrs, &ignored);
}

/* ---- files with several names ---- */

static struct merge_known *merge_slot(struct merge *g, uint64_t key)
{
	size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (g->slots - 1);

	while (g->known[at].node && g->known[at].key != key)
		at = (at + 1) & (g->slots - 1);
	return &g->known[at];
}

static struct merge_known *merge_find(struct merge *g, unsigned layer, uint64_t nid)
{
	if (2 * (g->nknown + 1) > g->slots) {
		struct merge_known *old = g->known;
		size_t n = g->slots;

		g->slots = n ? 2 * n : 1024;
		g->known = calloc(g->slots, sizeof(*g->known));
		if (!g->known)
			abort();
		for (size_t i = 0; i < n; i++)
			if (old[i].node)
				*merge_slot(g, old[i].key) = old[i];
		free(old);
	}
	return merge_slot(g, (uint64_t)layer << 60 | nid);
}

/* ---- content ---- */

static int merge_copy(struct merge *g, const struct erofs_image *m, uint64_t from, uint64_t to,
		      uint64_t size)
{
	off_t at = (off_t)from, end = (off_t)(from + size);

	while (at < end) {
		off_t data = lseek(m->fd, at, SEEK_DATA), hole, put;

		if (data < 0 || data >= end) /* ENXIO: only a hole is left */
			break;
		hole = lseek(m->fd, data, SEEK_HOLE);
		hole = hole <= data || hole > end ? end : hole;
		put = (off_t)to + (data - (off_t)from);
		g->sum->stored_bytes += (uint64_t)(hole - data);
		if (g->sum->stored_bytes > g->bytes_most)
			return err_set(g->e, ERR_LIMIT, "the merged layer has more than %llu bytes",
				       (unsigned long long)g->bytes_most);
		while (data < hole) {
			ssize_t n = copy_file_range(m->fd, &data, g->out, &put,
						    (size_t)(hole - data), 0);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? err_sys(g->e, "copy a file of a layer")
					     : err_set(g->e, ERR_INVALID, "a layer became shorter");
		}
		at = hole;
	}
	return 0;
}

/* ---- entries ---- */

struct erofs_node merge_node(const struct erofs_inode *i)
{
	return (struct erofs_node){ .mode = i->mode,
				    .uid = i->uid,
				    .gid = i->gid,
				    .mtime = { (time_t)i->mtime, i->mtime_nsec },
				    .size = S_ISREG(i->mode) || S_ISLNK(i->mode) ? i->size : 0 };
}

int merge_count(struct merge *g, const struct erofs_inode *i)
{
	if (S_ISCHR(i->mode))
		g->sum->deleted++;
	else
		g->sum->files++;
	return g->sum->files + g->sum->deleted <= g->files_most
		       ? 0
		       : err_set(g->e, ERR_LIMIT, "the merged layer has more than %llu files",
				 (unsigned long long)g->files_most);
}

int merge_file(struct merge *g, unsigned layer, const struct erofs_found *from, uint32_t parent)
{
	const struct erofs_image *m = &g->from[layer];
	struct erofs_inode i = erofs_read_inode(m, from->nid);
	struct erofs_node n = merge_node(&i);
	struct merge_known *k = i.nlink > 1 ? merge_find(g, layer, from->nid) : NULL;
	uint32_t node;

	if (g->lowest && S_ISCHR(i.mode) && i.mtime_nsec == EROFS_LOCAL)
		return 0;
	if (merge_count(g, &i) < 0)
		return -1;
	if (k && k->node) {
		erofs_write_link(&g->w, parent, (const char *)from->name, from->len, k->node);
		return 0;
	}
	if (S_ISLNK(i.mode))
		n.target = (const char *)m->bytes + (uint64_t)i.block * EROFS_BLOCK;
	if (S_ISREG(i.mode) && i.size) {
		n.block = erofs_write_reserve(&g->w, i.size);
		if (!n.block)
			return err_set(g->e, ERR_LIMIT,
				       "the merged layer would have more than 8 TiB");
		g->sum->content_bytes += i.size;
		if (merge_copy(g, m, (uint64_t)i.block * EROFS_BLOCK,
			       (uint64_t)n.block * EROFS_BLOCK, i.size) < 0)
			return -1;
	}
	merge_xattrs(m, from->nid, g->xattrs, &n.xattr_bytes);
	n.xattrs = g->xattrs;
	node = erofs_write_add(&g->w, parent, (const char *)from->name, from->len, &n);
	if (k) {
		*k = (struct merge_known){ (uint64_t)layer << 60 | from->nid, node };
		g->nknown++;
	}
	return 0;
}

static int merge_names(struct merge *g, struct merge_part *parts, unsigned n, uint32_t number);

static int merge_same_name(const struct merge_part *a, const struct merge_part *b)
{
	return b->has && a->now.len == b->now.len &&
	       memcmp(a->now.name, b->now.name, a->now.len) == 0;
}

/* parts[top] has the folder; those after it may have one of the same name. */
static int merge_folder(struct merge *g, const struct merge_part *parts, unsigned top, unsigned n,
			uint32_t parent)
{
	const struct merge_part *p = &parts[top];
	struct merge_part *within = calloc(n - top, sizeof(*within));
	struct erofs_inode i = erofs_read_inode(&g->from[p->layer], p->now.nid);
	struct erofs_node node = merge_node(&i);
	int opaque = 0, done;
	unsigned count = 0;
	uint32_t number;

	if (!within)
		abort();
	for (unsigned x = top; x < n && !opaque; x++) {
		struct erofs_inode f;

		if (!merge_same_name(p, &parts[x]))
			continue;
		f = erofs_read_inode(&g->from[parts[x].layer], parts[x].now.nid);
		opaque = !S_ISDIR(f.mode) || merge_is_opaque(g, parts[x].layer, parts[x].now.nid);
		if (S_ISDIR(f.mode))
			within[count++] =
				(struct merge_part){ .layer = parts[x].layer, .folder = f };
	}
	merge_xattrs(&g->from[p->layer], p->now.nid, g->xattrs, &node.xattr_bytes);
	if (opaque)
		merge_add_opaque(g, &node);
	node.xattrs = g->xattrs;
	number = erofs_write_add(&g->w, parent, (const char *)p->now.name, p->now.len, &node);
	done = merge_count(g, &i);
	if (done == 0 && g->depth++ == MERGE_DEPTH)
		done = err_set(g->e, ERR_LIMIT, "folders more than %d deep", MERGE_DEPTH);
	if (done == 0)
		done = merge_names(g, within, count, number);
	g->depth--;
	free(within);
	return done;
}

static void merge_advance(struct merge *g, struct merge_part *p)
{
	p->has = erofs_read_next(&g->from[p->layer], &p->folder, &p->at, &p->now);
}

int merge_order(const struct erofs_found *a, const struct erofs_found *b)
{
	size_t n = a->len < b->len ? a->len : b->len;
	int order = memcmp(a->name, b->name, n);

	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

static int merge_names(struct merge *g, struct merge_part *parts, unsigned n, uint32_t number)
{
	for (unsigned x = 0; x < n; x++)
		merge_advance(g, &parts[x]);
	for (;;) {
		struct merge_part first;
		unsigned top = n;
		struct erofs_inode i;

		for (unsigned x = 0; x < n; x++)
			if (parts[x].has &&
			    (top == n || merge_order(&parts[x].now, &parts[top].now) < 0))
				top = x;
		if (top == n)
			return 0;
		first = parts[top];
		i = erofs_read_inode(&g->from[first.layer], first.now.nid);
		if ((S_ISDIR(i.mode) ? merge_folder(g, parts, top, n, number)
				     : merge_file(g, first.layer, &first.now, number)) < 0)
			return -1;
		for (unsigned x = top; x < n; x++)
			if (merge_same_name(&first, &parts[x]))
				merge_advance(g, &parts[x]);
	}
}

static int merge_all(struct merge *g)
{
	struct merge_part parts[MERGE_LAYERS] = { 0 };
	struct erofs_inode top = erofs_read_inode(&g->from[0], 0);
	struct erofs_node root = merge_node(&top);

	for (unsigned i = 0; i < g->n; i++)
		parts[i] = (struct merge_part){ .layer = i,
						.folder = erofs_read_inode(&g->from[i], 0) };
	merge_xattrs(&g->from[0], 0, g->xattrs, &root.xattr_bytes);
	root.xattrs = g->xattrs;
	erofs_write_root(&g->w, &root);
	return merge_names(g, parts, g->n, 0);
}

int merge_write(struct merge *g, int (*entries)(struct merge *g))
{
	int done;

	*g->sum = (struct chain_sum){ 0 };
	if (g->n < 1 || g->n > MERGE_LAYERS)
		return err_set(g->e, ERR_INVALID, "%u layers cannot be merged", g->n);
	g->xattrs = malloc(EROFS_XATTRS + 32);
	if (!g->xattrs)
		abort();
	erofs_write_begin(&g->w, g->out);
	done = entries(g);
	if (done == 0) {
		g->sum->stored_bytes -= g->w.next_block * EROFS_BLOCK;
		done = erofs_write_end(&g->w, &g->sum->layer_bytes, g->e);
		g->sum->stored_bytes += g->sum->layer_bytes + EROFS_BLOCK;
	}
	erofs_write_fini(&g->w);
	free(g->known);
	free(g->xattrs);
	return done;
}

int chain_merge_write(const struct erofs_image *from, unsigned n, int lowest, int out,
		      uint64_t bytes_most, uint64_t files_most, struct chain_sum *sum,
		      struct err *e)
{
	struct merge g = { .from = from,
			   .n = n,
			   .lowest = lowest,
			   .out = out,
			   .bytes_most = bytes_most,
			   .files_most = files_most,
			   .sum = sum,
			   .e = e };

	return merge_write(&g, merge_all);
}
