/* erofs_write.c - see erofs_write.h. */
#include "layer/erofs_write.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_BUFFER = 1 << 20 };
#define NO_NAME UINT32_MAX

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are written as they are");

struct erofs_entry {
	struct erofs_node node; /* its pointers are not used; see `xattrs` and `target` */
	size_t xattrs, target;  /* offsets in `text` */
	uint64_t nid;
	uint32_t nlink;
	uint32_t parent;      /* of a folder */
	uint32_t first, last; /* of a folder: its names */
};

struct erofs_name {
	size_t text;
	uint32_t inode, next;
	uint8_t len;
};

static void *write_grow(void *p, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return p;
	*room = need > 2 * *room ? need + 64 : 2 * *room;
	p = realloc(p, *room * size);
	if (!p)
		abort();
	return p;
}

static size_t write_keep(struct erofs_writer *w, const void *bytes, size_t n)
{
	size_t at = w->ntext;

	w->text = write_grow(w->text, &w->text_room, at + n, 1);
	if (n)
		memcpy(w->text + at, bytes, n);
	w->ntext += n;
	return at;
}

/* ---- entries ---- */

static uint32_t write_new_inode(struct erofs_writer *w, const struct erofs_node *n, uint32_t parent)
{
	struct erofs_entry *x;

	w->inodes = write_grow(w->inodes, &w->inodes_room, w->ninodes + 1, sizeof(*w->inodes));
	x = &w->inodes[w->ninodes];
	*x = (struct erofs_entry){ .node = *n,
				   .nlink = S_ISDIR(n->mode) ? 2 : 1,
				   .parent = parent,
				   .first = NO_NAME,
				   .last = NO_NAME };
	x->xattrs = write_keep(w, n->xattrs, n->xattr_bytes);
	if (S_ISLNK(n->mode))
		x->target = write_keep(w, n->target, n->size);
	return (uint32_t)w->ninodes++;
}

static void write_new_name(struct erofs_writer *w, uint32_t parent, const char *name, size_t len,
			   uint32_t inode)
{
	struct erofs_entry *dir = &w->inodes[parent];
	uint32_t n = (uint32_t)w->nnames++;

	w->names = write_grow(w->names, &w->names_room, w->nnames, sizeof(*w->names));
	w->names[n] = (struct erofs_name){ write_keep(w, name, len), inode, NO_NAME, (uint8_t)len };
	if (dir->last == NO_NAME)
		dir->first = n;
	else
		w->names[dir->last].next = n;
	dir->last = n;
}

void erofs_write_begin(struct erofs_writer *w, int fd)
{
	*w = (struct erofs_writer){ .fd = fd, .next_block = 1 };
	w->out = malloc(WRITE_BUFFER);
	if (!w->out)
		abort();
}

void erofs_write_root(struct erofs_writer *w, const struct erofs_node *root)
{
	write_new_inode(w, root, 0);
}

uint32_t erofs_write_reserve(struct erofs_writer *w, uint64_t size)
{
	uint64_t block = w->next_block, n = size / EROFS_BLOCK + !!(size % EROFS_BLOCK);

	/* Folders and inodes come after it. */
	if (!n || n > INT32_MAX || block + n > INT32_MAX)
		return 0;
	w->next_block += n;
	return (uint32_t)block;
}

uint32_t erofs_write_add(struct erofs_writer *w, uint32_t parent, const char *name, size_t name_len,
			 const struct erofs_node *n)
{
	uint32_t inode = write_new_inode(w, n, parent);

	write_new_name(w, parent, name, name_len, inode);
	if (S_ISDIR(n->mode))
		w->inodes[parent].nlink++;
	return inode;
}

void erofs_write_link(struct erofs_writer *w, uint32_t parent, const char *name, size_t name_len,
		      uint32_t of)
{
	write_new_name(w, parent, name, name_len, of);
	w->inodes[of].nlink++;
}

size_t erofs_write_xattr(char *buf, size_t room, const char *name, size_t name_len,
			 const void *value, size_t value_len)
{
	struct erofs_xattr x = { (uint8_t)name_len, EROFS_XATTR_USER, (uint16_t)value_len };
	size_t n = sizeof(x) + name_len + value_len, padded = (n + 3) & ~(size_t)3;

	if (!name_len || name_len > EROFS_NAME || value_len > EROFS_XATTR_VALUE || padded > room)
		return 0;
	memcpy(buf, &x, sizeof(x));
	memcpy(buf + sizeof(x), name, name_len);
	if (value_len)
		memcpy(buf + sizeof(x) + name_len, value, value_len);
	memset(buf + n, 0, padded - n);
	return padded;
}

/* ---- the end of the image ---- */

static int write_flush(struct erofs_writer *w, struct err *e)
{
	for (size_t done = 0; done < w->out_used;) {
		ssize_t n =
			pwrite(w->fd, w->out + done, w->out_used - done, (off_t)(w->out_at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "write the layer");
		done += (size_t)n;
	}
	w->out_at += w->out_used;
	w->out_used = 0;
	return 0;
}

/* bytes NULL: zeros. */
static int write_put(struct erofs_writer *w, const void *bytes, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		size_t part = WRITE_BUFFER - w->out_used;

		part = part < n - done ? part : n - done;
		if (bytes)
			memcpy(w->out + w->out_used, (const char *)bytes + done, part);
		else
			memset(w->out + w->out_used, 0, part);
		w->out_used += part;
		done += part;
		if (w->out_used == WRITE_BUFFER && write_flush(w, e) < 0)
			return -1;
	}
	return 0;
}

static uint64_t write_position(const struct erofs_writer *w)
{
	return w->out_at + w->out_used;
}

static int write_pad(struct erofs_writer *w, size_t unit, struct err *e)
{
	size_t over = (size_t)(write_position(w) % unit);

	return over ? write_put(w, NULL, unit - over, e) : 0;
}

static uint8_t write_type(uint32_t mode)
{
	return S_ISDIR(mode)   ? EROFS_DIR
	       : S_ISLNK(mode) ? EROFS_SYMLINK
	       : S_ISREG(mode) ? EROFS_REG
	       : S_ISCHR(mode) ? EROFS_CHR
			       : EROFS_FIFO;
}

static size_t write_inode_bytes(const struct erofs_entry *x)
{
	size_t n = sizeof(struct erofs_inode);

	if (x->node.xattr_bytes)
		n += sizeof(struct erofs_xattr_head) + x->node.xattr_bytes;
	return (n + EROFS_SLOT - 1) & ~(size_t)(EROFS_SLOT - 1);
}

/* Numbers of all inodes: their place after meta_blkaddr. */
static void write_number(struct erofs_writer *w)
{
	uint64_t at = 0;

	for (size_t i = 0; i < w->ninodes; i++) {
		if (at % EROFS_BLOCK + sizeof(struct erofs_inode) > EROFS_BLOCK)
			at += EROFS_SLOT;
		w->inodes[i].nid = at / EROFS_SLOT;
		at += write_inode_bytes(&w->inodes[i]);
	}
}

/* One name of a folder, "." and ".." included. */
struct write_item {
	const char *name;
	size_t len;
	uint64_t nid;
	uint8_t type;
};

struct write_cursor {
	uint32_t next; /* in names */
	unsigned dots; /* how many of "." and ".." were returned */
};

static int write_next_item(const struct erofs_writer *w, uint32_t dir, struct write_cursor *c,
			   struct write_item *out)
{
	static const char dots[] = "..";
	const struct erofs_name *n = c->next == NO_NAME ? NULL : &w->names[c->next];
	size_t dot_len = c->dots + 1;

	if (c->dots < 2) {
		size_t common = n && n->len < dot_len ? n->len : dot_len;
		int order = n ? memcmp(w->text + n->text, dots, common) : 1;

		if (order == 0)
			order = n->len < dot_len ? -1 : 1;
		if (order > 0) {
			uint32_t of = c->dots ? w->inodes[dir].parent : dir;

			*out = (struct write_item){ dots, dot_len, w->inodes[of].nid, EROFS_DIR };
			c->dots++;
			return 1;
		}
	}
	if (!n)
		return 0;
	*out = (struct write_item){ w->text + n->text, n->len, w->inodes[n->inode].nid,
				    write_type(w->inodes[n->inode].node.mode) };
	c->next = n->next;
	return 1;
}

/* One block: the entries from c on that fit. Returns their bytes. */
static size_t write_fill_block(const struct erofs_writer *w, uint32_t dir, struct write_cursor *c,
			       char block[EROFS_BLOCK])
{
	struct write_cursor at = *c;
	struct write_item item;
	size_t n = 0, used = 0, name;

	while (write_next_item(w, dir, &at, &item) &&
	       used + sizeof(struct erofs_dirent) + item.len <= EROFS_BLOCK) {
		used += sizeof(struct erofs_dirent) + item.len;
		n++;
	}
	name = n * sizeof(struct erofs_dirent);
	for (size_t i = 0; i < n; i++) {
		struct erofs_dirent d;

		write_next_item(w, dir, c, &item);
		d = (struct erofs_dirent){ item.nid, (uint16_t)name, item.type, 0 };
		memcpy(block + i * sizeof(d), &d, sizeof(d));
		memcpy(block + name, item.name, item.len);
		name += item.len;
	}
	return used;
}

static int write_folder(struct erofs_writer *w, uint32_t dir, struct err *e)
{
	struct write_cursor c = { .next = w->inodes[dir].first };
	char block[EROFS_BLOCK];

	w->inodes[dir].node.block = (uint32_t)(write_position(w) / EROFS_BLOCK);
	while (c.next != NO_NAME || c.dots < 2) {
		size_t n = write_fill_block(w, dir, &c, block);

		if (write_put(w, block, n, e) < 0)
			return -1;
		w->inodes[dir].node.size =
			write_position(w) - (uint64_t)w->inodes[dir].node.block * EROFS_BLOCK;
		if (write_pad(w, EROFS_BLOCK, e) < 0)
			return -1;
	}
	return 0;
}

static int write_target(struct erofs_writer *w, struct erofs_entry *x, struct err *e)
{
	x->node.block = (uint32_t)(write_position(w) / EROFS_BLOCK);
	if (write_put(w, w->text + x->target, x->node.size, e) < 0)
		return -1;
	return write_pad(w, EROFS_BLOCK, e);
}

static int write_inode(struct erofs_writer *w, size_t number, uint64_t meta, struct err *e)
{
	const struct erofs_entry *x = &w->inodes[number];
	const struct erofs_node *n = &x->node;
	int has_content = n->size && !S_ISCHR(n->mode) && !S_ISFIFO(n->mode);
	struct erofs_inode out = { .format = EROFS_EXTENDED,
				   .mode = (uint16_t)n->mode,
				   .size = has_content ? n->size : 0,
				   .block = has_content        ? n->block
					    : S_ISCHR(n->mode) ? 0
							       : UINT32_MAX,
				   .ino = (uint32_t)number + 1,
				   .uid = n->uid,
				   .gid = n->gid,
				   .mtime = (uint64_t)n->mtime.tv_sec,
				   .mtime_nsec = (uint32_t)n->mtime.tv_nsec,
				   .nlink = x->nlink };
	struct erofs_xattr_head head = { 0 };
	uint64_t at = meta + x->nid * EROFS_SLOT;

	if (write_put(w, NULL, (size_t)(at - write_position(w)), e) < 0)
		return -1;
	if (n->xattr_bytes)
		out.xattr_icount = (uint16_t)(1 + n->xattr_bytes / 4);
	if (write_put(w, &out, sizeof(out), e) < 0)
		return -1;
	if (!n->xattr_bytes)
		return 0;
	if (write_put(w, &head, sizeof(head), e) < 0)
		return -1;
	return write_put(w, w->text + x->xattrs, n->xattr_bytes, e);
}

static int write_super(struct erofs_writer *w, uint64_t meta, uint64_t blocks, struct err *e)
{
	struct erofs_super s = { .magic = EROFS_MAGIC,
				 .blkszbits = 12,
				 .inos = w->ninodes,
				 .blocks = (uint32_t)blocks,
				 .meta_blkaddr = (uint32_t)(meta / EROFS_BLOCK) };

	w->out_at = 0;
	if (write_put(w, NULL, EROFS_SUPER, e) < 0 || write_put(w, &s, sizeof(s), e) < 0 ||
	    write_pad(w, EROFS_BLOCK, e) < 0)
		return -1;
	return write_flush(w, e);
}

int erofs_write_end(struct erofs_writer *w, uint64_t *out_bytes, struct err *e)
{
	uint64_t meta, end;

	write_number(w);
	w->out_at = w->next_block * EROFS_BLOCK;
	for (uint32_t i = 0; i < w->ninodes; i++) {
		uint32_t mode = w->inodes[i].node.mode;

		if ((S_ISDIR(mode) && write_folder(w, i, e) < 0) ||
		    (S_ISLNK(mode) && write_target(w, &w->inodes[i], e) < 0))
			return -1;
	}
	meta = write_position(w);
	for (size_t i = 0; i < w->ninodes; i++)
		if (write_inode(w, i, meta, e) < 0)
			return -1;
	if (write_pad(w, EROFS_BLOCK, e) < 0 || write_flush(w, e) < 0)
		return -1;
	end = w->out_at;
	if (end / EROFS_BLOCK > UINT32_MAX)
		return err_set(e, ERR_LIMIT, "the layer would have more than 16 TiB");
	*out_bytes = end;
	return write_super(w, meta, end / EROFS_BLOCK, e);
}

void erofs_write_fini(struct erofs_writer *w)
{
	free(w->inodes);
	free(w->names);
	free(w->text);
	free(w->out);
	*w = (struct erofs_writer){ .fd = -1 };
}
