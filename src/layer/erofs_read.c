/* erofs_read.c - see erofs_read.h. */
#include "layer/erofs_read.h"

#include <string.h>

static const uint8_t *read_at(const struct erofs_image *m, uint64_t nid)
{
	struct erofs_super s;

	memcpy(&s, m->bytes + EROFS_SUPER, sizeof(s));
	return m->bytes + (uint64_t)s.meta_blkaddr * EROFS_BLOCK + nid * EROFS_SLOT;
}

struct erofs_inode erofs_read_inode(const struct erofs_image *m, uint64_t nid)
{
	struct erofs_inode i;

	memcpy(&i, read_at(m, nid), sizeof(i));
	return i;
}

const uint8_t *erofs_read_xattrs(const struct erofs_image *m, uint64_t nid, size_t *out_bytes)
{
	struct erofs_inode i = erofs_read_inode(m, nid);

	*out_bytes = i.xattr_icount ? 4 * ((size_t)i.xattr_icount - 1) : 0;
	return read_at(m, nid) + sizeof(i) + sizeof(struct erofs_xattr_head);
}

int erofs_read_next(const struct erofs_image *m, const struct erofs_inode *folder,
		    struct erofs_cursor *c, struct erofs_found *out)
{
	while (c->at < folder->size) {
		const uint8_t *block = m->bytes + (uint64_t)folder->block * EROFS_BLOCK + c->at;
		uint64_t len = folder->size - c->at;
		struct erofs_dirent d, next;
		size_t end;

		len = len < EROFS_BLOCK ? len : EROFS_BLOCK;
		memcpy(&d, block, sizeof(d));
		if (c->n == d.nameoff / sizeof(d)) {
			c->at += EROFS_BLOCK;
			c->n = 0;
			continue;
		}
		end = d.nameoff / sizeof(d);
		memcpy(&d, block + c->n * sizeof(d), sizeof(d));
		if (c->n + 1 < end) {
			memcpy(&next, block + (c->n + 1) * sizeof(d), sizeof(d));
			end = next.nameoff;
		} else {
			end = d.nameoff +
			      strnlen((const char *)block + d.nameoff, (size_t)len - d.nameoff);
		}
		c->n++;
		*out = (struct erofs_found){ d.nid, block + d.nameoff, end - d.nameoff };
		if (out->name[0] == '.' &&
		    (out->len == 1 || (out->len == 2 && out->name[1] == '.')))
			continue;
		return 1;
	}
	return 0;
}
