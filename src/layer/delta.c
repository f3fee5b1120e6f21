/* delta.c - see delta.h. */
#include "layer/delta.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "layer/delta_internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	DELTA_PASSES = 8, /* while programs run */
	DELTA_STUCK = 3, /* of them did not find less than half of what the one before them found */
	DELTA_AHEAD = 8 * 1024 * 1024,
	DELTA_XATTR_BUFFER = 1 << 17,
};

void *delta_grow(void *p, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return p;
	*room = need > 2 * *room ? need + 256 : 2 * *room;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

size_t delta_keep(struct delta_run *r, const void *bytes, size_t n)
{
	size_t at = r->ntext;

	r->text = delta_grow(r->text, &r->text_room, at + n, 1);
	if (n)
		memcpy(r->text + at, bytes, n);
	r->ntext += n;
	return at;
}

/* ---- mapped files ---- */

void delta_mapped_fini(struct delta_mapped *m)
{
	free(m->inodes);
	free(m->paths);
	free(m->touched);
	*m = (struct delta_mapped){ 0 };
}

/* In the list a line break is \012, and a backslash is itself. */
static int delta_path_is(const char *listed, const char *path)
{
	for (; *path; path++) {
		if (*path == '\n') {
			if (strncmp(listed, "\\012", 4) != 0)
				return 0;
			listed += 4;
		} else if (*listed++ != *path) {
			return 0;
		}
	}
	return !*listed;
}

int delta_is_mapped(const struct delta_run *r, uint64_t ino, const char *path)
{
	const struct delta_mapped *m = &r->mapped;

	for (size_t i = 0; i < m->ninodes; i++)
		if (m->inodes[i] == ino)
			return 1;
	for (size_t at = 0; at < m->paths_bytes; at += strlen(m->paths + at) + 1)
		if (delta_path_is(m->paths + at, path))
			return 1;
	return 0;
}

/* ---- the index of the base ---- */

/* Of the last entry; the index has folders before what is in them. */
static void delta_find_parent(struct delta_run *r)
{
	size_t last = r->nbase - 1, i = last ? last - 1 : 0;

	while (i &&
	       !delta_base_is_below(r, last, r->base_text + r->base[i].path, r->base[i].f.path_len))
		i = r->base[i].parent;
	r->base[last].parent = (uint32_t)i;
}

static int delta_load_base(struct delta_run *r)
{
	struct layer_index_reader in;
	struct layer_index_entry x;
	size_t room = 0, text_room = 0, ntext = 0;
	int got;

	if (r->d->base < 0)
		return 0;
	got = layer_index_open(&in, r->d->base, r->e);
	if (got == 0 &&
	    (strcmp(in.head.box, r->d->box) != 0 || strcmp(in.head.id, r->d->base_id) != 0))
		got = err_set(r->e, ERR_INVALID,
			      "checkpoint %s is of box %s: it cannot be the base of one of box %s",
			      in.head.id, in.head.box, r->d->box);
	if (got == 0)
		r->base_head = in.head;
	while (got >= 0 && (got = layer_index_next(&in, &x, r->e)) > 0) {
		r->base = delta_grow(r->base, &room, r->nbase + 1, sizeof(*r->base));
		r->base_text = delta_grow(r->base_text, &text_room, ntext + x.f.path_len + 1, 1);
		r->base[r->nbase] = (struct delta_base){ .f = x.f, .path = ntext };
		memcpy(r->base_text + ntext, x.path, (size_t)x.f.path_len + 1);
		ntext += (size_t)x.f.path_len + 1;
		r->nbase++;
		delta_find_parent(r);
	}
	layer_index_close(&in);
	return got;
}

/* ---- touched inodes ---- */

int delta_is_tracked(const struct delta_run *r)
{
	return r->mapped.is_tracked && r->nbase;
}

static int delta_touched_order(const void *a, const void *b)
{
	const struct delta_touched *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

void delta_mark_touched(struct delta_run *r)
{
	for (size_t i = 0; i < r->nbase; i++)
		r->base[i].marks = 0;
	for (size_t i = 0; i < r->nbase; i++) {
		const struct delta_touched key = { .ino = r->base[i].f.ino }, *t = NULL;

		if (r->mapped.ntouched)
			t = bsearch(&key, r->mapped.touched, r->mapped.ntouched, sizeof(key),
				    delta_touched_order);
		if (!t && !(r->base[i].f.flags & LAYER_INDEX_MAPPED))
			continue;
		r->base[i].marks |= DELTA_EXAMINE | (t && t->names ? DELTA_LIST : 0);
		for (size_t up = i; up && !(r->base[r->base[up].parent].marks & DELTA_BELOW);) {
			up = r->base[up].parent;
			r->base[up].marks |= DELTA_BELOW;
		}
	}
}

/* ---- passes ---- */

static int delta_pass(struct delta_run *r, int stopped)
{
	const struct delta *d = r->d;

	delta_mapped_fini(&r->mapped);
	if ((stopped ? d->stop : d->list)(d->ctx, &r->mapped, r->e) < 0)
		return -1;
	r->stopped = stopped;
	r->began_ns = clock_ns(CLOCK_REALTIME_COARSE);
	r->pass++;
	if (delta_is_tracked(r))
		delta_mark_touched(r);
	return delta_walk(r);
}

/* Content is copied ahead until little changes between two passes. */
static int delta_pass_ahead(struct delta_run *r, struct delta_sum *out)
{
	const struct timespec until_old = { .tv_nsec = DELTA_YOUNG_NS };
	uint64_t last = UINT64_MAX;
	unsigned stuck = 0;

	for (unsigned i = 0; i < DELTA_PASSES; i++) {
		if (delta_pass(r, 0) < 0)
			return -1;
		out->passes++;
		stuck += r->changed_bytes > last / 2;
		if (r->changed_bytes < r->ahead || stuck == DELTA_STUCK)
			break;
		last = r->changed_bytes;
		if (r->left_young)
			nanosleep(&until_old, NULL);
	}
	return 0;
}

static int delta_passes(struct delta_run *r, struct delta_sum *out)
{
	int may_be_much = r->d->used_bytes > r->ahead, done = -1;

	out->passes = 1;
	if (may_be_much && r->nbase) {
		r->is_attempt = 1;
		done = delta_pass(r, 1);
		r->is_attempt = 0;
		if (done < 0 && !r->too_much)
			return -1;
		if (done < 0)
			r->d->release(r->d->ctx);
	}
	if (done < 0) {
		if (may_be_much && delta_pass_ahead(r, out) < 0)
			return -1;
		if (delta_pass(r, 1) < 0)
			return -1;
	}
	out->stop_ns = r->began_ns;
	out->tracked = delta_is_tracked(r);
	r->d->release(r->d->ctx);
	return 0;
}

/* ---- further names of one file ---- */

struct delta_link {
	uint64_t ino;
	uint32_t item;
	uint32_t node; /* in the image; 0: none yet */
};

struct delta_links {
	struct delta_link *v;
	size_t n, room;
};

static int delta_link_order(const void *a, const void *b)
{
	const struct delta_link *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int delta_has_links(const struct delta_item *x)
{
	return !S_ISDIR(x->f.mode) && !S_ISCHR(x->f.mode) && x->f.nlink > 1;
}

static struct delta_link *delta_link_find(const struct delta_links *l, uint64_t ino)
{
	struct delta_link key = { .ino = ino };

	return l->n ? bsearch(&key, l->v, l->n, sizeof(key), delta_link_order) : NULL;
}

/* If one name of a file is in the layer, all of them are: they must lead to one inode. */
static void delta_complete_links(struct delta_run *r, struct delta_links *l)
{
	for (uint32_t i = 0; i < r->nitems; i++) {
		if (r->items[i].state != DELTA_CHANGED || !delta_has_links(&r->items[i]))
			continue;
		l->v = delta_grow(l->v, &l->room, l->n + 1, sizeof(*l->v));
		l->v[l->n++] = (struct delta_link){ r->items[i].f.ino, i, 0 };
	}
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), delta_link_order);
	for (uint32_t i = 0; i < r->nitems; i++) {
		struct delta_item *x = &r->items[i];
		const struct delta_link *with = x->state == DELTA_SAME && delta_has_links(x)
							? delta_link_find(l, x->f.ino)
							: NULL;

		if (!with)
			continue;
		x->state = DELTA_CHANGED;
		r->files++;
		memcpy(x->f.origin, r->d->id, sizeof(x->f.origin));
		for (uint32_t up = x->parent; r->items[up].state == DELTA_SAME;
		     up = r->items[up].parent)
			r->items[up].state = DELTA_LEAD;
	}
}

/* ---- output ---- */

static struct timespec delta_time(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += 1000000000;
	}
	return t;
}

/* room: EROFS_XATTRS bytes. */
static struct erofs_node delta_node(const struct delta_run *r, const struct delta_item *x,
				    char *room)
{
	struct erofs_node n = { .mode = x->f.mode };

	if (S_ISCHR(x->f.mode)) {
		/* Without a whiteout in the upper, nothing below the box has the name. */
		n.mtime.tv_nsec = x->state == DELTA_DELETED ? EROFS_LOCAL : 0;
		return n;
	}
	n.uid = x->f.uid;
	n.gid = x->f.gid;
	n.mtime = delta_time(x->f.mtime_ns);
	n.size = x->f.size;
	n.block = x->block;
	if (S_ISLNK(x->f.mode)) {
		n.target = r->text + x->xattrs;
		return n;
	}
	memcpy(room, r->text + x->xattrs, x->xattr_bytes);
	n.xattrs = room;
	n.xattr_bytes = x->xattr_bytes;
	if (x->opaque)
		n.xattr_bytes +=
			erofs_write_xattr(room + n.xattr_bytes, EROFS_XATTRS - 12 - n.xattr_bytes,
					  "overlay.opaque", 14, "y", 1);
	return n;
}

static int delta_write_layer(struct delta_run *r, struct delta_links *links, struct delta_sum *out)
{
	auto_free uint32_t *nodes = calloc(r->nitems, sizeof(*nodes));
	struct erofs_node n;

	if (!nodes)
		abort();
	n = delta_node(r, &r->items[0], r->xattr_list);
	erofs_write_root(&r->w, &n);
	for (size_t i = 1; i < r->nitems; i++) {
		const struct delta_item *x = &r->items[i];
		struct delta_link *link =
			delta_has_links(x) ? delta_link_find(links, x->f.ino) : NULL;
		const char *name = r->text + x->name;

		if (x->state == DELTA_SAME)
			continue;
		if (link && link->node) {
			erofs_write_link(&r->w, nodes[x->parent], name, strlen(name), link->node);
			continue;
		}
		if (link) /* content and attributes are those of the name that was copied */
			x = &r->items[link->item];
		n = delta_node(r, x, r->xattr_list);
		nodes[i] =
			erofs_write_add(&r->w, nodes[r->items[i].parent], name, strlen(name), &n);
		if (link)
			link->node = nodes[i];
	}
	out->stored_bytes = r->stored - r->w.next_block * EROFS_BLOCK;
	if (erofs_write_end(&r->w, &out->layer_bytes, r->e) < 0)
		return -1;
	out->stored_bytes += out->layer_bytes + EROFS_BLOCK;
	return 0;
}

static int delta_write_index(struct delta_run *r, const struct delta_links *links,
			     struct delta_sum *out)
{
	struct layer_index_head head = { .stop_ns = out->stop_ns };
	struct layer_index_writer w;
	int done = 0;

	layer_index_begin(&w, r->d->index);
	for (size_t i = 0; done == 0 && i < r->nitems; i++) {
		struct delta_item *x = &r->items[i];
		const struct delta_link *link = x->state == DELTA_CHANGED && delta_has_links(x)
							? delta_link_find(links, x->f.ino)
							: NULL;

		if (x->state == DELTA_DELETED)
			continue;
		if (link) { /* all names have one content */
			const struct layer_index_fixed *of = &r->items[link->item].f;

			memcpy(x->f.sha256, of->sha256, sizeof(of->sha256));
			x->f.xattrs = of->xattrs;
			x->f.flags = (x->f.flags & (uint16_t)~LAYER_INDEX_HASHED) |
				     (of->flags & LAYER_INDEX_HASHED);
		}
		done = layer_index_add(&w, &x->f, r->text + x->path, r->e);
		out->entries++;
	}
	if (done == 0)
		done = layer_index_end(&w, &head, &out->index_bytes, r->e);
	layer_index_drop(&w);
	return done;
}

static int delta_write_files(struct delta_run *r, struct delta_sum *out)
{
	struct delta_links links = { 0 };
	int done = 0;

	delta_complete_links(r, &links);
	out->files = r->files;
	out->deleted = r->deleted;
	out->content_bytes = r->content;
	if (out->files || out->deleted)
		done = delta_copy_drop_unused(r) < 0 ? -1 : delta_write_layer(r, &links, out);
	if (done == 0)
		done = delta_write_index(r, &links, out);
	free(links.v);
	return done;
}

int delta_write(const struct delta *d, struct delta_sum *out, struct err *e)
{
	struct delta_run r = { .d = d,
			       .e = e,
			       .ahead = d->ahead_bytes ? d->ahead_bytes : DELTA_AHEAD };
	int done;

	*out = (struct delta_sum){ 0 };
	r.path = malloc(LAYER_INDEX_PATH + 1);
	r.small = malloc(DELTA_SMALL);
	r.xattr_names = malloc(DELTA_XATTR_BUFFER);
	r.xattr_value = malloc(DELTA_XATTR_BUFFER);
	r.xattr_list = malloc(EROFS_XATTRS);
	if (!r.path || !r.small || !r.xattr_names || !r.xattr_value || !r.xattr_list)
		abort();
	erofs_write_begin(&r.w, d->layer);
	done = delta_load_base(&r);
	if (done == 0)
		done = delta_passes(&r, out);
	if (done == 0)
		done = delta_write_files(&r, out);
	delta_mapped_fini(&r.mapped);
	erofs_write_fini(&r.w);
	free(r.base);
	free(r.base_text);
	free(r.items);
	free(r.text);
	free(r.path);
	free(r.copied);
	free(r.copied_at);
	free(r.small);
	free(r.out);
	free(r.xattr_names);
	free(r.xattr_value);
	free(r.xattr_list);
	return done;
}

int delta_write_head(const struct delta *d, const struct delta_sum *sum, uint32_t frozen_us,
		     uint32_t took_us, struct err *e)
{
	struct layer_index_head h = { .magic = LAYER_INDEX_MAGIC,
				      .version = LAYER_INDEX_VERSION,
				      .same = !sum->layer_bytes,
				      .stop_ns = sum->stop_ns,
				      .entries = sum->entries,
				      .layer_bytes = sum->layer_bytes ? sum->stored_bytes : 0,
				      .content_bytes = sum->content_bytes,
				      .files = sum->files,
				      .deleted = sum->deleted,
				      .frozen_us = frozen_us,
				      .took_us = took_us,
				      .passes = sum->passes,
				      .tracked = sum->tracked };

	memcpy(h.id, d->id, sizeof(h.id));
	memcpy(h.box, d->box, sizeof(h.box));
	memcpy(h.base, d->base_id, sizeof(h.base));
	if (pwrite(d->index, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
		return err_sys(e, "write the index of a checkpoint");
	return 0;
}

void delta_warm_up(uint8_t out[32])
{
	delta_hash("", 0, out);
}
