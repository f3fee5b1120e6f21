/* delta_walk.c - reads the folder in the order of the index and compares it with the base; see delta.h. */
#include "base/cleanup.h"
#include "layer/delta_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OVERLAY "user.overlay."
#define OPAQUE OVERLAY "opaque"

enum { WALK_DIRENTS = 64 * 1024, WALK_XATTRS = 1 << 17 };

static int walk_failed(const struct delta_run *r, const char *what)
{
	return err_sys(r->e, "%s '%.120s'", what, r->path);
}

/* 1: while programs run, files may vanish and change their type. */
static int walk_may_miss(const struct delta_run *r)
{
	return !r->stopped && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR ||
			       errno == ENXIO || errno == ESTALE);
}

/* ---- names of a folder ---- */

struct walk_names {
	char *text;
	size_t ntext, text_room;
	char **v;
	size_t n;
};

static void walk_names_fini(struct walk_names *l)
{
	free(l->text);
	free(l->v);
}
#define auto_names __attribute__((cleanup(walk_names_fini))) struct walk_names

static int walk_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int walk_read_names(struct delta_run *r, int dir, struct walk_names *l)
{
	static _Alignas(8) char buf[WALK_DIRENTS];
	size_t at = 0;
	long n;

	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
		for (long i = 0; i < n;) {
			const struct dirent64 *d = (const void *)(buf + i);
			size_t len = strlen(d->d_name) + 1;

			i += d->d_reclen;
			if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
				continue;
			l->text = delta_grow(l->text, &l->text_room, l->ntext + len, 1);
			memcpy(l->text + l->ntext, d->d_name, len);
			l->ntext += len;
			l->n++;
		}
	if (n < 0)
		return walk_may_miss(r) ? 0 : walk_failed(r, "list");
	l->v = calloc(l->n + 1, sizeof(*l->v));
	if (!l->v)
		abort();
	for (size_t i = 0; i < l->n; i++) {
		l->v[i] = l->text + at;
		at += strlen(l->v[i]) + 1;
	}
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), walk_order);
	return 0;
}

/* ---- attributes ---- */

/* Attributes user.*, in bytewise order, except those of overlayfs itself. What a program of the box has called
 * user.overlay.X has the prefix twice, and is kept. */
static int walk_xattr_kept(const char *name)
{
	size_t n = strlen(OVERLAY);

	if (strncmp(name, "user.", 5) != 0 || !name[5])
		return 0;
	return strncmp(name, OVERLAY, n) != 0 ||
	       (strncmp(name + n, &OVERLAY[5], n - 5) == 0 && name[n + n - 5]);
}

static int walk_add_xattr(struct delta_run *r, int fd, const char *name, size_t *used)
{
	ssize_t n = fgetxattr(fd, name, r->xattr_value, WALK_XATTRS);
	size_t added;

	if (n < 0 && (errno == ENODATA || !r->stopped))
		return 0;
	if (n < 0)
		return walk_failed(r, "attributes of");
	added = erofs_write_xattr(r->xattr_list + *used, EROFS_XATTRS - 12 - *used, name + 5,
				  strlen(name) - 5, r->xattr_value, (size_t)n);
	if (!added)
		return err_set(r->e, ERR_LIMIT,
			       "attribute %.60s of '%.100s': %zd bytes are too many", name, r->path,
			       n);
	*used += added;
	return 0;
}

static int walk_xattrs(struct delta_run *r, int fd, struct delta_item *x)
{
	enum { MOST = 1024 };
	char *v[MOST];
	ssize_t n = flistxattr(fd, r->xattr_names, WALK_XATTRS);
	uint8_t sum[32];
	size_t count = 0, used = 0;

	if (n < 0 && errno != ENOTSUP)
		return walk_may_miss(r) ? 0 : walk_failed(r, "attributes of");
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(r->xattr_names + at) + 1) {
		char *name = r->xattr_names + at;
		char y;

		if (strcmp(name, OPAQUE) == 0 && S_ISDIR(x->f.mode) &&
		    fgetxattr(fd, OPAQUE, &y, 1) == 1 && y == 'y')
			x->f.flags |= LAYER_INDEX_OPAQUE;
		if (strcmp(name, OVERLAY "origin") == 0)
			x->f.flags |= LAYER_INDEX_LOWER;
		if (!walk_xattr_kept(name))
			continue;
		if (count == MOST)
			return err_set(r->e, ERR_LIMIT, "'%.120s' has more than %d attributes",
				       r->path, MOST);
		v[count++] = name;
	}
	if (count > 1)
		qsort(v, count, sizeof(*v), walk_order);
	for (size_t i = 0; i < count; i++)
		if (walk_add_xattr(r, fd, v[i], &used) < 0)
			return -1;
	x->xattrs = delta_keep(r, r->xattr_list, used);
	x->xattr_bytes = (uint32_t)used;
	x->f.xattrs = 0;
	if (used) {
		delta_hash(r->xattr_list, used, sum);
		memcpy(&x->f.xattrs, sum, sizeof(x->f.xattrs));
	}
	return 0;
}

/* ---- the base ---- */

static const char *walk_base_path(const struct delta_run *r, size_t i)
{
	return r->base_text + r->base[i].path;
}

int delta_base_is_below(const struct delta_run *r, size_t i, const char *path, size_t len)
{
	return r->base[i].f.path_len > len && memcmp(walk_base_path(r, i), path, len) == 0 &&
	       (len == 0 || walk_base_path(r, i)[len] == '/');
}

static void walk_skip_below(struct delta_run *r, const char *path, size_t len)
{
	while (r->next_base < r->nbase && delta_base_is_below(r, r->next_base, path, len))
		r->next_base++;
}

static struct delta_item *walk_new_item(struct delta_run *r, uint32_t parent)
{
	struct delta_item *x;

	r->items = delta_grow(r->items, &r->items_room, r->nitems + 1, sizeof(*r->items));
	x = &r->items[r->nitems++];
	*x = (struct delta_item){ .parent = parent };
	return x;
}

static void walk_lead(struct delta_run *r, uint32_t folder)
{
	while (r->items[folder].state == DELTA_SAME) {
		r->items[folder].state = DELTA_LEAD;
		folder = r->items[folder].parent;
	}
}

/* Names of the base that come before `path` no longer exist. All of them are in the folder `parent`. */
static void walk_delete_until(struct delta_run *r, uint32_t parent, const char *path, size_t len)
{
	while (r->next_base < r->nbase) {
		const struct delta_base *b = &r->base[r->next_base];
		const char *gone = walk_base_path(r, r->next_base);
		struct delta_item *x;

		if (path ? layer_index_compare(gone, b->f.path_len, path, len) >= 0
			 : !delta_base_is_below(r, r->next_base, r->path, r->path_len))
			return;
		r->next_base++;
		walk_skip_below(r, gone, b->f.path_len);
		/* A name that was deleted before stays so. */
		if (b->f.flags & LAYER_INDEX_WHITEOUT || !(r->d->rules & DELTA_FOLDER))
			continue;
		x = walk_new_item(r, parent);
		x->f = (struct layer_index_fixed){ .mode = S_IFCHR, .path_len = b->f.path_len };
		x->path = delta_keep(r, gone, (size_t)b->f.path_len + 1);
		x->name =
			x->path +
			(r->items[parent].f.path_len ? (size_t)r->items[parent].f.path_len + 1 : 0);
		x->state = DELTA_DELETED;
		r->deleted++;
		walk_lead(r, parent);
	}
}

/* The entry of the base with this path, or NULL; moves on. */
static const struct delta_base *walk_match(struct delta_run *r, const struct delta_item *x)
{
	const struct delta_base *b = r->next_base < r->nbase ? &r->base[r->next_base] : NULL;

	if (!b || layer_index_compare(walk_base_path(r, r->next_base), b->f.path_len, r->path,
				      x->f.path_len) != 0)
		return NULL;
	r->next_base++;
	return b;
}

/* Of a file, ctime is compared in addition; it changes with mtime. */
static int walk_facts_equal(const struct layer_index_fixed *a, const struct layer_index_fixed *b)
{
	if ((a->flags ^ b->flags) & LAYER_INDEX_WHITEOUT)
		return 0;
	if (a->flags & LAYER_INDEX_WHITEOUT)
		return 1;
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->ino == b->ino &&
	       a->size == b->size && (S_ISREG(a->mode) || a->mtime_ns == b->mtime_ns) &&
	       (S_ISDIR(a->mode) || a->nlink == b->nlink);
}

/* Whether equal times do not prove that the content is equal. */
static int walk_is_doubtful(const struct delta_run *r, const struct layer_index_fixed *b,
			    const struct layer_index_fixed *now)
{
	if (r->d->rules & DELTA_YOUNG &&
	    b->ctime_ns + DELTA_YOUNG_NS > (int64_t)r->base_head.stop_ns)
		return 1;
	return r->d->rules & DELTA_MAPPED && (b->flags | now->flags) & LAYER_INDEX_MAPPED;
}

/* ---- entries ---- */

static int64_t walk_ns(const struct delta_run *r, struct timespec t, int is_ctime)
{
	int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	int64_t grain = is_ctime ? (int64_t)r->d->ctime_grain_ns : 0;

	return grain ? ns - ns % grain : ns;
}

static int walk_fill(struct delta_run *r, struct delta_item *x, const struct stat *st)
{
	struct layer_index_fixed *f = &x->f;

	x->path = delta_keep(r, r->path, r->path_len + 1);
	f->path_len = (uint16_t)r->path_len;
	f->ino = st->st_ino;
	f->nlink = st->st_nlink < UINT32_MAX ? (uint32_t)st->st_nlink : UINT32_MAX;
	f->ctime_ns = walk_ns(r, st->st_ctim, 1);
	f->mtime_ns = walk_ns(r, st->st_mtim, 0);
	memcpy(f->origin, r->d->id, sizeof(f->origin));
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0)) {
		/* Overlayfs makes many names for one such inode: only its kind matters. */
		*f = (struct layer_index_fixed){ .path_len = f->path_len,
						 .flags = LAYER_INDEX_WHITEOUT,
						 .mode = S_IFCHR,
						 .nlink = 1 };
		memcpy(f->origin, r->d->id, sizeof(f->origin));
		return 0;
	}
	f->mode = st->st_mode;
	f->uid = st->st_uid;
	f->gid = st->st_gid;
	f->size = S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0;
	if (f->uid > LAYER_INDEX_OWNER_MAX || f->gid > LAYER_INDEX_OWNER_MAX)
		return err_set(r->e, ERR_INVALID, "'%.120s' belongs to %u:%u: not ids of the box",
			       r->path, f->uid, f->gid);
	if (S_ISREG(f->mode) && delta_is_mapped(r, f->ino, r->path))
		f->flags |= LAYER_INDEX_MAPPED;
	return 0;
}

/* The entry is part of the layer. */
static int walk_change(struct delta_run *r, struct delta_item *x)
{
	x->state = DELTA_CHANGED;
	if (r->files++ >= r->d->files_most)
		return err_set(r->e, ERR_LIMIT, "more than %llu files have changed",
			       (unsigned long long)r->d->files_most);
	return 0;
}

static void walk_inherit(struct delta_item *x, const struct layer_index_fixed *b)
{
	uint16_t keep = x->f.flags & (LAYER_INDEX_MAPPED | LAYER_INDEX_OPAQUE | LAYER_INDEX_LOWER);

	x->f.xattrs = b->xattrs;
	memcpy(x->f.origin, b->origin, sizeof(b->origin));
	memcpy(x->f.sha256, b->sha256, sizeof(b->sha256));
	x->f.flags =
		keep | (b->flags & (LAYER_INDEX_HASHED | LAYER_INDEX_WHITEOUT | LAYER_INDEX_LOWER));
}

static int walk_same_content(const struct delta_item *x, const struct layer_index_fixed *b)
{
	return x->f.flags & b->flags & LAYER_INDEX_HASHED && x->f.xattrs == b->xattrs &&
	       memcmp(x->f.sha256, b->sha256, sizeof(b->sha256)) == 0;
}

static int walk_file(struct delta_run *r, int dir, const char *name, uint32_t number,
		     const struct delta_base *b)
{
	struct delta_item *x = &r->items[number];
	int equal = b && walk_facts_equal(&x->f, &b->f) && x->f.ctime_ns == b->f.ctime_ns;
	auto_fd int fd = -1;
	struct stat st;

	if (equal && !walk_is_doubtful(r, &b->f, &x->f)) {
		walk_inherit(x, &b->f);
		return 0;
	}
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return walk_may_miss(r) ? 0 : walk_failed(r, "open");
	if (!S_ISREG(st.st_mode) || st.st_dev != r->dev || st.st_ino != x->f.ino) {
		if (!r->stopped)
			return 0;
		return err_set(r->e, ERR_CONFLICT, "'%.120s' changes although the box is stopped",
			       r->path);
	}
	x->f.size = (uint64_t)st.st_size;
	x->f.ctime_ns = walk_ns(r, st.st_ctim, 1);
	if (walk_xattrs(r, fd, x) < 0)
		return -1;
	if (equal && b->f.flags & LAYER_INDEX_HASHED) {
		int hashed = delta_hash_file(r, &x->f, fd);

		if (hashed < 0)
			return -1;
		if (walk_same_content(x, &b->f) && x->f.mtime_ns == b->f.mtime_ns) {
			walk_inherit(x, &b->f);
			return 0;
		}
	}
	if (walk_change(r, x) < 0)
		return -1;
	r->content += x->f.size;
	return delta_copy_file(r, x, fd);
}

static int walk_link(struct delta_run *r, int dir, const char *name, uint32_t number,
		     const struct delta_base *b)
{
	struct delta_item *x = &r->items[number];
	ssize_t n = readlinkat(dir, name, r->small, EROFS_LINK + 1);

	if (n < 0 && walk_may_miss(r))
		return 0;
	if (n <= 0 || n > (ssize_t)EROFS_LINK || memchr(r->small, 0, (size_t)n))
		return err_set(r->e, ERR_INVALID, "'%.120s' has an invalid target", r->path);
	x->f.size = (uint64_t)n;
	delta_hash(r->small, (size_t)n, x->f.sha256);
	x->f.flags |= LAYER_INDEX_HASHED;
	if (b && walk_facts_equal(&x->f, &b->f) && walk_same_content(x, &b->f)) {
		walk_inherit(x, &b->f);
		return 0;
	}
	/* A link has no attributes: its target is there. */
	x->xattrs = delta_keep(r, r->small, (size_t)n);
	return walk_change(r, x);
}

/* b: the same folder in the base; NULL: it is new, or there is no base. */
static int walk_folder(struct delta_run *r, int fd, uint32_t number, const struct delta_base *b);

static int walk_subfolder(struct delta_run *r, int dir, const char *name, uint32_t number,
			  const struct delta_base *b)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct delta_item *x = &r->items[number];
	int is_new = !b || !S_ISDIR(b->f.mode) || b->f.ino != x->f.ino;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return walk_may_miss(r) ? 0 : walk_failed(r, "open");
	if (st.st_dev != r->dev)
		return err_set(r->e, ERR_INVALID, "'%.120s' is another file system", r->path);
	if (walk_xattrs(r, fd, x) < 0)
		return -1;
	if (is_new && !(r->d->rules & DELTA_FOLDER) && b && S_ISDIR(b->f.mode))
		is_new = 0; /* a test without this rule */
	if (is_new) {
		x->opaque = b || x->f.flags & LAYER_INDEX_OPAQUE;
		walk_skip_below(r, r->path, r->path_len);
	}
	if (is_new || !walk_facts_equal(&x->f, &b->f) || x->f.xattrs != b->f.xattrs) {
		if (walk_change(r, x) < 0)
			return -1;
	} else {
		walk_inherit(x, &b->f);
	}
	if (r->depth == DELTA_DEPTH)
		return err_set(r->e, ERR_LIMIT, "folders more than %d deep", DELTA_DEPTH);
	r->depth++;
	if (walk_folder(r, fd, number, is_new ? NULL : b) < 0)
		return -1;
	r->depth--;
	return 0;
}

static int walk_other(struct delta_run *r, uint32_t number, const struct delta_base *b)
{
	struct delta_item *x = &r->items[number];

	if (b && walk_facts_equal(&x->f, &b->f)) {
		walk_inherit(x, &b->f);
		return 0;
	}
	if (!(x->f.flags & LAYER_INDEX_WHITEOUT))
		return walk_change(r, x);
	x->state = DELTA_CHANGED;
	r->deleted++;
	return 0;
}

static int walk_entry(struct delta_run *r, int dir, const char *name, uint32_t parent)
{
	const struct delta_base *b;
	struct delta_item *x;
	uint32_t number;
	struct stat st;
	int done;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return walk_may_miss(r) ? 0 : walk_failed(r, "stat");
	if (S_ISSOCK(st.st_mode))
		return 0; /* it would be of no use: no program listens */
	walk_delete_until(r, parent, r->path, r->path_len);
	number = (uint32_t)r->nitems;
	x = walk_new_item(r, parent);
	if (walk_fill(r, x, &st) < 0)
		return -1;
	x->name = x->path + r->path_len - strlen(name);
	b = walk_match(r, x);
	if (b && !S_ISDIR(st.st_mode))
		walk_skip_below(r, r->path, r->path_len);
	if (S_ISREG(st.st_mode))
		done = walk_file(r, dir, name, number, b);
	else if (S_ISLNK(st.st_mode))
		done = walk_link(r, dir, name, number, b);
	else if (S_ISDIR(st.st_mode))
		done = walk_subfolder(r, dir, name, number, b);
	else if (S_ISFIFO(st.st_mode) || x->f.flags & LAYER_INDEX_WHITEOUT)
		done = walk_other(r, number, b);
	else
		return err_set(r->e, ERR_INVALID, "'%.120s' is a device", r->path);
	if (done == 0 && r->items[number].state != DELTA_SAME)
		walk_lead(r, parent);
	return done;
}

static int walk_listed(struct delta_run *r, int fd, uint32_t number)
{
	size_t above = r->path_len;
	auto_names l = { 0 };

	if (walk_read_names(r, fd, &l) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++) {
		size_t n = strlen(l.v[i]), at = above ? above + 1 : 0;

		if (at + n > LAYER_INDEX_PATH)
			return err_set(r->e, ERR_LIMIT,
				       "'%.120s...': a path of %zu bytes, at most %u", r->path,
				       at + n, LAYER_INDEX_PATH);
		if (above)
			r->path[above] = '/';
		memcpy(r->path + at, l.v[i], n + 1);
		r->path_len = at + n;
		if (walk_entry(r, fd, l.v[i], number) < 0)
			return -1;
		r->path_len = above;
		r->path[above] = 0;
	}
	walk_delete_until(r, number, NULL, 0);
	return 0;
}

/* ---- entries that were not touched ---- */

/* The next entry of the base and all below it, as they are there. */
static void walk_keep_base(struct delta_run *r, uint32_t parent)
{
	uint32_t first = (uint32_t)r->nitems;
	size_t top = r->next_base, i = top;

	do {
		const struct delta_base *b = &r->base[i];
		uint32_t in = i == top ? parent : first + (uint32_t)(b->parent - top);
		struct delta_item *x = walk_new_item(r, in);
		size_t skip = r->items[in].f.path_len;

		x->f = b->f;
		x->f.flags &= (uint16_t)~LAYER_INDEX_MAPPED;
		x->path = delta_keep(r, walk_base_path(r, i), (size_t)b->f.path_len + 1);
		x->name = x->path + (skip ? skip + 1 : 0);
		i++;
	} while (i < r->nbase &&
		 delta_base_is_below(r, i, walk_base_path(r, top), r->base[top].f.path_len));
	r->next_base = i;
}

/* The names in this folder are those of the base. */
static int walk_known(struct delta_run *r, int fd, uint32_t number)
{
	size_t above = r->path_len, skip = above ? above + 1 : 0;

	while (r->next_base < r->nbase && delta_base_is_below(r, r->next_base, r->path, above)) {
		size_t i = r->next_base;
		const struct delta_base *b = &r->base[i];

		if (!b->marks) {
			walk_keep_base(r, number);
			continue;
		}
		memcpy(r->path, walk_base_path(r, i), (size_t)b->f.path_len + 1);
		r->path_len = b->f.path_len;
		if (walk_entry(r, fd, r->path + skip, number) < 0)
			return -1;
		if (r->next_base == i) { /* it has vanished while programs run */
			r->next_base++;
			walk_skip_below(r, r->path, r->path_len);
		}
		r->path_len = above;
		r->path[above] = 0;
	}
	return 0;
}

static int walk_folder(struct delta_run *r, int fd, uint32_t number, const struct delta_base *b)
{
	return delta_is_tracked(r) && b && !(b->marks & DELTA_LIST) ? walk_known(r, fd, number)
								    : walk_listed(r, fd, number);
}

int delta_walk(struct delta_run *r)
{
	struct delta_item *x;
	const struct delta_base *b;
	struct stat st;
	int fd = r->d->upper;

	r->nitems = r->ntext = r->next_base = 0;
	r->path_len = r->depth = 0;
	r->path[0] = 0;
	r->files = r->deleted = r->content = r->changed_bytes = 0;
	r->left_young = 0;
	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(r->e, "open the writable layer");
	r->dev = st.st_dev;
	x = walk_new_item(r, 0);
	x->state = DELTA_LEAD; /* ends walk_lead(); the root alone makes no layer */
	if (walk_fill(r, x, &st) < 0 || walk_xattrs(r, fd, x) < 0)
		return -1;
	b = walk_match(r, x);
	if (b && walk_facts_equal(&x->f, &b->f) && x->f.xattrs == b->f.xattrs)
		walk_inherit(x, &b->f);
	else if (walk_change(r, x) < 0)
		return -1;
	return walk_folder(r, fd, 0, b);
}
