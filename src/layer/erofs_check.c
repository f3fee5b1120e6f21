/* erofs_check.c - see erofs_check.h. */
#include "layer/erofs_check.h"
#include "base/cleanup.h"
#include "layer/erofs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OVERLAY "overlay."

struct check_inode { /* one that a name leads to */
	struct erofs_inode i;
	uint32_t slot;   /* its nid */
	uint32_t names;  /* that lead to it, so far; of a folder: folders in it */
	uint32_t parent; /* of a folder: position in `inodes` */
};

struct check_extent {
	uint64_t block, n;
};

struct check {
	const uint8_t *image;
	uint64_t blocks, meta, slots; /* meta: first block of the inodes; slots: after it */
	uint64_t most;
	struct check_inode *inodes;
	size_t n, room;
	uint32_t *at; /* per slot: 0 free, UINT32_MAX part of an inode, else 1 + its position */
	struct check_extent *extents;
	size_t nextents, extents_room;
	struct erofs_sum *sum;
	struct err *e;
};

static int check_bad(const struct check *c, const char *what, uint64_t value)
{
	return err_set(c->e, ERR_INVALID, "the layer is not valid: %s (%llu)", what,
		       (unsigned long long)value);
}

static int check_is_zero(const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i])
			return 0;
	return 1;
}

static void *check_grow(void *p, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return p;
	*room = need + need / 2 + 64;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

/* ---- superblock ---- */

static int check_super(const uint8_t *block, size_t n, struct erofs_super *out,
		       const char **out_why)
{
	struct erofs_super expected;

	*out_why = "it is shorter than a block";
	if (n < EROFS_BLOCK)
		return -1;
	memcpy(out, block + EROFS_SUPER, sizeof(*out));
	*out_why = "its superblock";
	expected = (struct erofs_super){ .magic = EROFS_MAGIC,
					 .blkszbits = 12,
					 .inos = out->inos,
					 .blocks = out->blocks,
					 .meta_blkaddr = out->meta_blkaddr };
	if (memcmp(out, &expected, sizeof(expected)) != 0 || !check_is_zero(block, EROFS_SUPER) ||
	    !check_is_zero(block + EROFS_SUPER + sizeof(*out),
			   EROFS_BLOCK - EROFS_SUPER - sizeof(*out)))
		return -1;
	*out_why = "the place of its inodes";
	return out->blocks >= 3 && out->meta_blkaddr >= 2 && out->meta_blkaddr < out->blocks ? 0
											     : -1;
}

int erofs_check_size(const uint8_t *first_block, size_t n, uint64_t file_bytes, struct err *e)
{
	struct erofs_super s;
	const char *why;

	if (check_super(first_block, n, &s, &why) < 0)
		return err_set(e, ERR_INVALID, "the layer is not valid: %s", why);
	if ((uint64_t)s.blocks * EROFS_BLOCK != file_bytes)
		return err_set(e, ERR_INVALID,
			       "the layer is not valid: the file has %llu bytes, not %llu",
			       (unsigned long long)file_bytes,
			       (unsigned long long)s.blocks * EROFS_BLOCK);
	return 0;
}

/* ---- content ---- */

static int check_content(struct check *c, uint32_t block, uint64_t bytes)
{
	uint64_t n = bytes / EROFS_BLOCK + !!(bytes % EROFS_BLOCK);

	if (!block || n > c->meta || block > c->meta - n)
		return check_bad(c, "content lies outside of its area", block);
	c->extents = check_grow(c->extents, &c->extents_room, c->nextents + 1, sizeof(*c->extents));
	c->extents[c->nextents++] = (struct check_extent){ block, n };
	return 0;
}

static int check_order(const void *a, const void *b)
{
	const struct check_extent *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static int check_overlaps(struct check *c)
{
	if (c->nextents > 1)
		qsort(c->extents, c->nextents, sizeof(*c->extents), check_order);
	for (size_t i = 1; i < c->nextents; i++)
		if (c->extents[i].block < c->extents[i - 1].block + c->extents[i - 1].n)
			return check_bad(c, "two entries share a block", c->extents[i].block);
	return 0;
}

static int check_target(struct check *c, const struct erofs_inode *i)
{
	if (!i->size || i->size > EROFS_LINK)
		return check_bad(c, "length of a link", i->size);
	if (check_content(c, i->block, i->size) < 0)
		return -1;
	return memchr(c->image + (uint64_t)i->block * EROFS_BLOCK, 0, (size_t)i->size)
		       ? check_bad(c, "a link contains a NUL", i->ino)
		       : 0;
}

/* ---- attributes ---- */

static int check_xattr_name(const uint8_t *name, size_t len, const uint8_t *value, size_t n,
			    int is_folder)
{
	const size_t o = strlen(OVERLAY);

	if (memchr(name, 0, len))
		return 0;
	if (len < o || memcmp(name, OVERLAY, o) != 0)
		return 1;
	/* What a program of the box has called user.overlay.X has this prefix twice. */
	if (len > 2 * o && memcmp(name + o, OVERLAY, o) == 0)
		return 1;
	return is_folder && len == o + 6 && memcmp(name + o, "opaque", 6) == 0 && n == 1 &&
	       value[0] == 'y';
}

static int check_xattrs(struct check *c, const uint8_t *at, size_t len, int is_folder)
{
	const uint8_t *end = at + len;
	struct erofs_xattr_head head;
	struct erofs_xattr x;

	memcpy(&head, at, sizeof(head));
	if (!check_is_zero(at, sizeof(head)))
		return check_bad(c, "head of attributes", head.shared_count);
	at += sizeof(head);
	while (at < end) {
		size_t n, padded;

		if ((size_t)(end - at) < sizeof(x))
			return check_bad(c, "an attribute is cut off", (uint64_t)(end - at));
		memcpy(&x, at, sizeof(x));
		n = sizeof(x) + x.name_len + x.value_size;
		padded = (n + 3) & ~(size_t)3;
		if (x.name_index != EROFS_XATTR_USER || !x.name_len ||
		    padded > (size_t)(end - at) || !check_is_zero(at + n, padded - n))
			return check_bad(c, "size or kind of an attribute", n);
		if (!check_xattr_name(at + sizeof(x), x.name_len, at + sizeof(x) + x.name_len,
				      x.value_size, is_folder))
			return check_bad(c, "an attribute has a reserved name", x.name_len);
		at += padded;
	}
	return 0;
}

/* ---- inodes ---- */

static int check_fields(struct check *c, const struct erofs_inode *i)
{
	uint32_t type = i->mode & S_IFMT;

	if (i->format != EROFS_EXTENDED || i->nb || !check_is_zero(i->zeros, sizeof(i->zeros)))
		return check_bad(c, "format of an inode", i->format);
	if (i->uid > EROFS_OWNER_MAX || i->gid > EROFS_OWNER_MAX)
		return check_bad(c, "owner of an inode", i->uid);
	if (i->mtime_nsec >= 1000000000 || !i->nlink || i->size > INT64_MAX)
		return check_bad(c, "a field of an inode", i->ino);
	if (type == S_IFREG && !i->size)
		return i->block == UINT32_MAX ? 0
					      : check_bad(c, "block of an empty file", i->block);
	if (type == S_IFREG) {
		c->sum->content_bytes += i->size;
		return check_content(c, i->block, i->size);
	}
	if (type == S_IFLNK)
		return check_target(c, i);
	if (type == S_IFDIR)
		return i->size ? check_content(c, i->block, i->size)
			       : check_bad(c, "a folder without entries", i->ino);
	if (type == S_IFIFO)
		return !i->size && i->block == UINT32_MAX ? 0 : check_bad(c, "a fifo", i->block);
	if (type == S_IFCHR) /* a deleted name */
		return !i->size && !i->block && i->mode == S_IFCHR && !i->xattr_icount && !i->uid &&
				       !i->gid
			       ? 0
			       : check_bad(c, "a device", i->block);
	return check_bad(c, "type of an inode", i->mode);
}

/* Marks the slots of the inode; they must be free. */
static int check_occupy(struct check *c, uint64_t slot, uint64_t bytes, uint32_t mark)
{
	uint64_t n = (bytes + EROFS_SLOT - 1) / EROFS_SLOT;

	if (slot >= c->slots || n > c->slots - slot)
		return check_bad(c, "an inode lies outside of its area", slot);
	for (uint64_t i = 0; i < n; i++) {
		if (c->at[slot + i])
			return check_bad(c, "two inodes overlap", slot);
		c->at[slot + i] = i ? UINT32_MAX : mark;
	}
	return 0;
}

/* An inode that no earlier name leads to. */
static int check_new_inode(struct check *c, uint64_t slot, uint32_t parent)
{
	const uint8_t *at = c->image + c->meta * EROFS_BLOCK + slot * EROFS_SLOT;
	struct check_inode *x;
	uint64_t bytes = sizeof(x->i);

	c->inodes = check_grow(c->inodes, &c->room, c->n + 1, sizeof(*c->inodes));
	x = &c->inodes[c->n];
	*x = (struct check_inode){ .slot = (uint32_t)slot, .parent = parent };
	if (slot + 2 > c->slots ||
	    slot % (EROFS_BLOCK / EROFS_SLOT) == EROFS_BLOCK / EROFS_SLOT - 1)
		return check_bad(c, "an inode crosses the end of a block", slot);
	memcpy(&x->i, at, sizeof(x->i));
	if (x->i.xattr_icount)
		bytes += sizeof(struct erofs_xattr_head) + 4 * ((uint64_t)x->i.xattr_icount - 1);
	if (check_occupy(c, slot, bytes, (uint32_t)c->n + 1) < 0 || check_fields(c, &x->i) < 0)
		return -1;
	if (x->i.xattr_icount == 1)
		return check_bad(c, "an empty list of attributes", slot);
	if (x->i.xattr_icount && check_xattrs(c, at + sizeof(x->i), (size_t)(bytes - sizeof(x->i)),
					      S_ISDIR(x->i.mode)) < 0)
		return -1;
	c->sum->folders += S_ISDIR(x->i.mode);
	c->sum->deleted += S_ISCHR(x->i.mode);
	c->n++;
	return 0;
}

static uint8_t check_type(uint16_t mode)
{
	return S_ISDIR(mode)   ? EROFS_DIR
	       : S_ISLNK(mode) ? EROFS_SYMLINK
	       : S_ISREG(mode) ? EROFS_REG
	       : S_ISCHR(mode) ? EROFS_CHR
			       : EROFS_FIFO;
}

/* ---- folders ---- */

struct check_folder {
	size_t number; /* position in `inodes` */
	uint8_t last[EROFS_NAME];
	size_t last_len;
	unsigned dots;   /* bits: "." and ".." were seen */
	uint32_t within; /* folders in it */
};

static int check_name_order(const struct check_folder *f, const uint8_t *name, size_t len)
{
	size_t common = len < f->last_len ? len : f->last_len;
	int order = memcmp(f->last, name, common);

	return order < 0 || (order == 0 && f->last_len < len);
}

static int check_entry(struct check *c, struct check_folder *f, const struct erofs_dirent *d,
		       const uint8_t *name, size_t len)
{
	struct check_inode *x;
	uint32_t mark;

	if (!len || len > EROFS_NAME || memchr(name, 0, len) || memchr(name, '/', len))
		return check_bad(c, "a name", len);
	if (f->last_len && !check_name_order(f, name, len))
		return check_bad(c, "names are not in order", f->number);
	memcpy(f->last, name, len);
	f->last_len = len;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
		size_t want = len == 1 ? f->number : c->inodes[f->number].parent;

		f->dots |= (unsigned)len;
		return d->type == EROFS_DIR && d->nid == c->inodes[want].slot
			       ? 0
			       : check_bad(c, "\".\" or \"..\"", d->nid);
	}
	if (c->sum->names++ >= c->most)
		return err_set(c->e, ERR_LIMIT, "the layer has more than %llu names",
			       (unsigned long long)c->most);
	if (d->nid >= c->slots)
		return check_bad(c, "an inode lies outside of its area", d->nid);
	mark = c->at[d->nid];
	if (!mark && check_new_inode(c, d->nid, (uint32_t)f->number) < 0)
		return -1;
	mark = c->at[d->nid];
	if (mark == UINT32_MAX)
		return check_bad(c, "two inodes overlap", d->nid);
	x = &c->inodes[mark - 1];
	if (d->type != check_type(x->i.mode))
		return check_bad(c, "type of a name", d->type);
	if (S_ISDIR(x->i.mode)) {
		if (x->names++)
			return check_bad(c, "a folder has two names", d->nid);
		f->within++;
		return 0;
	}
	return x->names++ < x->i.nlink ? 0 : check_bad(c, "number of names of an inode", d->nid);
}

static int check_block(struct check *c, struct check_folder *f, const uint8_t *at, size_t len)
{
	struct erofs_dirent d, next;
	size_t n;

	if (len < sizeof(d))
		return check_bad(c, "a folder is cut off", len);
	memcpy(&d, at, sizeof(d));
	n = d.nameoff / sizeof(d);
	if (!n || d.nameoff % sizeof(d) || d.nameoff > len)
		return check_bad(c, "number of names in a block", d.nameoff);
	for (size_t i = 0; i < n; i++) {
		size_t end = len;

		memcpy(&d, at + i * sizeof(d), sizeof(d));
		if (i + 1 < n) {
			memcpy(&next, at + (i + 1) * sizeof(d), sizeof(d));
			end = next.nameoff;
		} else { /* the rest of the block is zeros */
			const uint8_t *zero =
				d.nameoff < len ? memchr(at + d.nameoff, 0, len - d.nameoff) : NULL;

			if (zero && !check_is_zero(zero, (size_t)(at + len - zero)))
				return check_bad(c, "bytes after the names of a block", i);
			end = zero ? (size_t)(zero - at) : len;
		}
		if (d.zero || end > len || d.nameoff >= end)
			return check_bad(c, "place of a name", d.nameoff);
		if (check_entry(c, f, &d, at + d.nameoff, end - d.nameoff) < 0)
			return -1;
	}
	return 0;
}

static int check_folder(struct check *c, size_t number)
{
	struct check_folder f = { .number = number };
	const struct erofs_inode i = c->inodes[number].i;

	for (uint64_t at = 0; at < i.size; at += EROFS_BLOCK) {
		uint64_t len = i.size - at < EROFS_BLOCK ? i.size - at : EROFS_BLOCK;

		if (check_block(c, &f, c->image + (uint64_t)i.block * EROFS_BLOCK + at,
				(size_t)len) < 0)
			return -1;
	}
	if (f.dots != 3)
		return check_bad(c, "a folder has no \".\" or \"..\"", number);
	return i.nlink == f.within + 2 ? 0 : check_bad(c, "number of links of a folder", i.nlink);
}

/* ---- the image ---- */

static int check_tree(struct check *c, uint64_t inos)
{
	if (check_new_inode(c, 0, 0) < 0)
		return -1;
	if (!S_ISDIR(c->inodes[0].i.mode))
		return check_bad(c, "the root is no folder", c->inodes[0].i.mode);
	c->inodes[0].names = 1;
	/* Folders add inodes at the end: the loop ends when all were read. */
	for (size_t i = 0; i < c->n; i++)
		if (S_ISDIR(c->inodes[i].i.mode) && check_folder(c, i) < 0)
			return -1;
	for (size_t i = 0; i < c->n; i++)
		if (!S_ISDIR(c->inodes[i].i.mode) && c->inodes[i].names != c->inodes[i].i.nlink)
			return check_bad(c, "number of names of an inode", c->inodes[i].slot);
	if (c->n != inos)
		return check_bad(c, "number of inodes", inos);
	c->sum->inodes = c->n;
	return check_overlaps(c);
}

int erofs_check(const uint8_t *image, size_t len, uint64_t most, struct erofs_sum *out,
		struct err *e)
{
	struct check c = { .image = image, .most = most, .sum = out, .e = e };
	struct erofs_super s;
	int done;

	*out = (struct erofs_sum){ 0 };
	if (erofs_check_size(image, len, len, e) < 0)
		return -1;
	memcpy(&s, image + EROFS_SUPER, sizeof(s));
	c.blocks = s.blocks;
	c.meta = s.meta_blkaddr;
	c.slots = (c.blocks - c.meta) * (EROFS_BLOCK / EROFS_SLOT);
	c.at = calloc(c.slots, sizeof(*c.at));
	if (!c.at)
		return err_set(e, ERR_LIMIT, "the layer has too many inodes to check them");
	done = check_tree(&c, s.inos);
	free(c.at);
	free(c.inodes);
	free(c.extents);
	return done;
}
