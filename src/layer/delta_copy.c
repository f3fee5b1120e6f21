/* delta_copy.c - content of files, into the layer; see delta.h. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "layer/delta_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { COPY_BUFFER = 1 << 20 };

void delta_hash(const void *bytes, size_t n, uint8_t out[32])
{
	SHA256(bytes, n, out);
}

static int copy_failed(const struct delta_run *r, const char *what)
{
	return err_sys(r->e, "%s '%.120s'", what, r->path);
}

/* ---- what was copied, by inode ---- */

/* EDQUOT: the limit is that of the caller. */
static int copy_is_full(const struct delta_run *r)
{
	err_set(r->e, ERR_LIMIT, "more than %llu bytes have changed",
		(unsigned long long)r->d->bytes_most);
	r->e->sys = EDQUOT;
	return -1;
}

static size_t copied_slot(const struct delta_run *r, uint64_t ino)
{
	size_t at = (size_t)(ino * 0x9e3779b97f4a7c15u >> 20) & (r->copied_slots - 1);

	while (r->copied_at[at] && r->copied[r->copied_at[at] - 1].ino != ino)
		at = (at + 1) & (r->copied_slots - 1);
	return at;
}

static void copied_resize(struct delta_run *r)
{
	free(r->copied_at);
	r->copied_slots = r->copied_slots ? 2 * r->copied_slots : 1024;
	r->copied_at = calloc(r->copied_slots, sizeof(*r->copied_at));
	if (!r->copied_at)
		abort();
	for (size_t i = 0; i < r->ncopied; i++)
		r->copied_at[copied_slot(r, r->copied[i].ino)] = (uint32_t)i + 1;
}

static struct delta_copied *copied_find(struct delta_run *r, uint64_t ino)
{
	uint32_t at = r->copied_slots ? r->copied_at[copied_slot(r, ino)] : 0;

	return at ? &r->copied[at - 1] : NULL;
}

static struct delta_copied *copied_add(struct delta_run *r, uint64_t ino)
{
	if (2 * (r->ncopied + 1) > r->copied_slots)
		copied_resize(r);
	r->copied = delta_grow(r->copied, &r->copied_room, r->ncopied + 1, sizeof(*r->copied));
	r->copied[r->ncopied] = (struct delta_copied){ .ino = ino };
	r->copied_at[copied_slot(r, ino)] = (uint32_t)r->ncopied + 1;
	return &r->copied[r->ncopied++];
}

/* ---- small files: collected, and written together ---- */

int delta_copy_flush(struct delta_run *r)
{
	for (size_t done = 0; done < r->out_used;) {
		ssize_t n = pwrite(r->d->layer, r->out + done, r->out_used - done,
				   (off_t)(r->out_at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(r->e, "write the layer");
		done += (size_t)n;
	}
	r->out_used = 0;
	return 0;
}

static int copy_put_small(struct delta_run *r, uint32_t block, size_t n)
{
	uint64_t at = (uint64_t)block * EROFS_BLOCK;
	size_t padded = (n + EROFS_BLOCK - 1) & ~(size_t)(EROFS_BLOCK - 1);

	if (!r->out) {
		r->out = malloc(COPY_BUFFER);
		if (!r->out)
			abort();
	}
	if ((r->out_used && r->out_at + r->out_used != at) || r->out_used + padded > COPY_BUFFER)
		if (delta_copy_flush(r) < 0)
			return -1;
	if (!r->out_used)
		r->out_at = at;
	memcpy(r->out + r->out_used, r->small, n);
	memset(r->out + r->out_used + n, 0, padded - n);
	r->out_used += padded;
	return 0;
}

/* Reads a small file; returns its bytes, -1: error, DELTA_SMALL + 1: it is larger. */
static ssize_t copy_read_small(struct delta_run *r, int fd, uint64_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, r->small + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return copy_failed(r, "read");
		if (n == 0)
			break; /* it has become shorter */
		done += (size_t)n;
	}
	if (done < size && r->stopped) {
		err_set(r->e, ERR_CONFLICT, "'%.120s' changes although the box is stopped",
			r->path);
		return -1;
	}
	memset(r->small + done, 0, size - done);
	return (ssize_t)size;
}

int delta_hash_file(struct delta_run *r, struct layer_index_fixed *f, int fd)
{
	if (f->size > DELTA_SMALL)
		return 0;
	if (copy_read_small(r, fd, f->size) < 0)
		return -1;
	delta_hash(r->small, f->size, f->sha256);
	f->flags |= LAYER_INDEX_HASHED;
	return 1;
}

/* ---- larger files: without their holes ---- */

/* Bytes of an earlier copy become a hole. */
static int copy_clear(const struct delta_run *r, const struct delta_copied *c, off_t at, off_t end)
{
	return at >= end || fallocate(r->d->layer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				      (off_t)c->block * EROFS_BLOCK + at, end - at) == 0;
}

static int copy_part(struct delta_run *r, int fd, uint64_t to, off_t at, off_t end)
{
	if (lseek(r->d->layer, (off_t)to + at, SEEK_SET) < 0)
		return err_sys(r->e, "write the layer");
	while (at < end) {
		ssize_t n = sendfile(r->d->layer, fd, &at, (size_t)(end - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return copy_failed(r, "copy");
		if (n == 0)
			break;
	}
	if (at < end && r->stopped)
		return err_set(r->e, ERR_CONFLICT, "'%.120s' changes although the box is stopped",
			       r->path);
	return 0;
}

static int copy_large(struct delta_run *r, int fd, struct delta_copied *c)
{
	uint64_t to = (uint64_t)c->block * EROFS_BLOCK;
	off_t at = 0, size = (off_t)c->size;

	while (at < size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 || data > size) /* ENXIO: only a hole is left */
			data = size;
		if (c->again && !copy_clear(r, c, at, data))
			return copy_failed(r, "clear the copy of");
		if (data == size)
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			hole = size;
		c->stored += (uint64_t)(hole - data);
		if (c->stored > r->d->bytes_most - r->stored)
			return copy_is_full(r);
		if (copy_part(r, fd, to, data, hole) < 0)
			return -1;
		at = hole;
	}
	return 0;
}

/* ---- a file ---- */

/* Blocks of the layer for the file. A large file is written over its earlier copy, which is faster than into a hole. */
static int copy_reserve(struct delta_run *r, struct delta_copied *c, uint64_t size)
{
	uint32_t blocks = (uint32_t)(size / EROFS_BLOCK + !!(size % EROFS_BLOCK));

	c->again = size > DELTA_SMALL && blocks <= c->blocks;
	if (!copy_clear(r, c, c->again ? (off_t)size : 0, (off_t)c->blocks * EROFS_BLOCK))
		c->blocks = c->again =
			0; /* not on this file system: other blocks, which are still holes */
	if (blocks > c->blocks) {
		c->block = erofs_write_reserve(&r->w, size);
		c->blocks = blocks;
		if (!c->block)
			return err_set(r->e, ERR_LIMIT, "'%.120s' has %llu bytes: too many",
				       r->path, (unsigned long long)size);
	}
	return 0;
}

static int copy_again(struct delta_run *r, const struct delta_item *x, int fd,
		      struct delta_copied *c)
{
	if (r->is_attempt && x->f.size > r->ahead - r->changed_bytes) {
		r->too_much = 1;
		return -1;
	}
	r->stored -= c->stored;
	c->stored = 0;
	c->hashed = 0;
	c->size = x->f.size;
	c->ctime_ns = x->f.ctime_ns;
	c->mtime_ns = x->f.mtime_ns;
	c->trusted_ns = r->began_ns;
	c->pass = r->pass;
	if (c->blocks && delta_copy_flush(r) < 0)
		return -1;
	if (copy_reserve(r, c, c->size) < 0)
		return -1;
	if (c->size > DELTA_SMALL) {
		if (copy_large(r, fd, c) < 0)
			return -1;
	} else {
		if (copy_read_small(r, fd, c->size) < 0)
			return -1;
		delta_hash(r->small, c->size, c->sha256);
		c->hashed = 1;
		c->stored = c->size;
		if (c->size > r->d->bytes_most - r->stored)
			return copy_is_full(r);
		if (c->size && copy_put_small(r, c->block, c->size) < 0)
			return -1;
	}
	r->stored += c->stored;
	r->changed_bytes += c->stored;
	return 0;
}

/* The copy that an earlier pass, or an earlier name of the file, has made. */
static int copy_is_valid(const struct delta_run *r, const struct delta_copied *c,
			 const struct delta_item *x)
{
	if (c->size != x->f.size || c->ctime_ns != x->f.ctime_ns || c->mtime_ns != x->f.mtime_ns)
		return 0;
	if (c->pass == r->pass)
		return 1;
	return !c->mapped && !(x->f.flags & LAYER_INDEX_MAPPED) &&
	       c->ctime_ns + DELTA_YOUNG_NS < (int64_t)c->trusted_ns;
}

/* No later pass could use a copy of the file: it is still being written. */
static int copy_is_too_soon(struct delta_run *r, const struct delta_item *x)
{
	if (r->stopped || x->f.size <= DELTA_SMALL ||
	    x->f.ctime_ns + DELTA_YOUNG_NS < (int64_t)r->began_ns)
		return 0;
	r->changed_bytes += x->f.size;
	r->left_young = 1;
	return 1;
}

int delta_copy_file(struct delta_run *r, struct delta_item *x, int fd)
{
	struct delta_copied *c = copied_find(r, x->f.ino);

	if (!c || !copy_is_valid(r, c, x)) {
		if (copy_is_too_soon(r, x))
			return 0;
		if (!c)
			c = copied_add(r, x->f.ino);
		if (copy_again(r, x, fd, c) < 0)
			return -1;
	}
	c->mapped = !!(x->f.flags & LAYER_INDEX_MAPPED);
	c->used = r->pass;
	x->block = c->block;
	x->f.flags &= (uint16_t)~LAYER_INDEX_HASHED;
	memset(x->f.sha256, 0, sizeof(x->f.sha256));
	if (c->hashed) {
		memcpy(x->f.sha256, c->sha256, sizeof(c->sha256));
		x->f.flags |= LAYER_INDEX_HASHED;
	}
	return 0;
}

int delta_copy_drop_unused(struct delta_run *r)
{
	if (delta_copy_flush(r) < 0)
		return -1;
	for (size_t i = 0; i < r->ncopied; i++) {
		struct delta_copied *c = &r->copied[i];

		if (c->used == r->pass || !c->blocks)
			continue;
		/* If it fails, the bytes stay in the file and belong to no entry. */
		(void)!fallocate(r->d->layer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)c->block * EROFS_BLOCK, (off_t)c->blocks * EROFS_BLOCK);
		r->stored -= c->stored;
	}
	return 0;
}
