/* image_export.c - see image_export.h. */
#include "keeper/image_export.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "keeper/image_tree.h"
#include "keeper/layer_image.h"
#include "keeper/layer_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { BLOCK = 512, NAME = 100, BUFFER = 1 << 16, XATTRS_MOST = 512 };
#define OCTAL_11 (INT64_C(1) << 33) /* what eleven octal digits do not hold */

/* Offsets in a header. */
enum {
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124,
	AT_MTIME = 136,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_LINK = 157,
	AT_MAGIC = 257
};

struct export
{
	int out;
	struct layer_tree_sum *sum;
	struct layer_inodes inodes;
	size_t used;
	char path[TREE_PATH];
	char names[IMAGE_XATTRS], value[IMAGE_XATTRS];
	char buffer[BUFFER];
	struct err *e;
};

struct export_header {
	char type;
	const char *path, *target;
	struct stat st;
	int64_t size;
};

/* ---- bytes ---- */

static int export_flush(struct export *x)
{
	for (size_t at = 0; at < x->used;) {
		ssize_t n = write(x->out, x->buffer + at, x->used - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(x->e, "write the archive");
		at += (size_t)n;
	}
	x->used = 0;
	return 0;
}

static int export_add(struct export *x, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n > 0) {
		size_t room = sizeof(x->buffer) - x->used, some = n < room ? n : room;

		memcpy(x->buffer + x->used, p, some);
		x->used += some;
		p += some;
		n -= some;
		if (x->used == sizeof(x->buffer) && export_flush(x) < 0)
			return -1;
	}
	return 0;
}

static int export_pad(struct export *x, uint64_t written)
{
	static const char zeros[BLOCK];

	return export_add(x, zeros, (BLOCK - written % BLOCK) % BLOCK);
}

/* ---- headers ---- */

static void export_octal(char *at, int digits, int64_t value)
{
	char text[24];

	/* A value that does not fit has an extended record, which replaces it. */
	snprintf(text, sizeof(text), "%0*llo", digits,
		 value < 0 || value >= OCTAL_11 ? 0ULL : (unsigned long long)value);
	memcpy(at, text, (size_t)digits);
}

static int export_block(struct export *x, const struct export_header *h)
{
	char b[BLOCK] = { 0 };
	unsigned sum = 0;
	size_t n = strlen(h->path), m = h->target ? strlen(h->target) : 0;

	memcpy(b, h->path, n < NAME ? n : NAME);
	export_octal(b + AT_MODE, 7, h->st.st_mode & 07777);
	export_octal(b + AT_UID, 7, h->st.st_uid);
	export_octal(b + AT_GID, 7, h->st.st_gid);
	export_octal(b + AT_SIZE, 11, h->size);
	export_octal(b + AT_MTIME, 11, h->st.st_mtim.tv_sec);
	memset(b + AT_SUM, ' ', 8);
	b[AT_TYPE] = h->type;
	if (m)
		memcpy(b + AT_LINK, h->target, m < NAME ? m : NAME);
	memcpy(b + AT_MAGIC, "ustar\00000", 8);
	for (unsigned i = 0; i < BLOCK; i++)
		sum += (unsigned char)b[i];
	export_octal(b + AT_SUM, 6, sum);
	b[AT_SUM + 6] = 0;
	return export_add(x, b, BLOCK);
}

/* "LENGTH KEY=VALUE\n", where LENGTH includes its own digits. */
static void export_record(struct buf *out, const char *key, const void *value, size_t n)
{
	size_t rest = strlen(key) + n + 3, len = rest + 1;
	char digits[24];

	while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest != len)
		len = (size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest;
	buf_printf(out, "%zu %s=", len, key);
	buf_add(out, value, n);
	buf_putc(out, '\n');
}

static void export_records(struct buf *out, const struct export_header *h)
{
	int64_t s = h->st.st_mtim.tv_sec;
	long ns = h->st.st_mtim.tv_nsec;
	char text[48];

	if (strlen(h->path) > NAME)
		export_record(out, "path", h->path, strlen(h->path));
	if (h->target && strlen(h->target) > NAME)
		export_record(out, "linkpath", h->target, strlen(h->target));
	if (h->size >= OCTAL_11) {
		snprintf(text, sizeof(text), "%lld", (long long)h->size);
		export_record(out, "size", text, strlen(text));
	}
	if (ns || s < 0 || s >= OCTAL_11) {
		/* Before 1970 whole seconds: libarchive reads a fraction there with the wrong sign. */
		if (s < 0)
			snprintf(text, sizeof(text), "%lld", (long long)s);
		else
			snprintf(text, sizeof(text), "%lld.%09ld", (long long)s, ns);
		export_record(out, "mtime", text, strlen(text));
	}
}

static int export_xattr_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* *out_opaque: the folder hides what layers below have. */
static int export_xattrs(struct export *x, int fd, struct buf *out, int *out_opaque)
{
	const char *v[XATTRS_MOST];
	char key[300];
	unsigned count = 0;
	ssize_t n = flistxattr(fd, x->names, sizeof(x->names));

	if (n < 0 && errno != ENOTSUP)
		return err_sys(x->e, "attributes of '%.120s'", x->path);
	for (ssize_t at = 0; at < n && count < XATTRS_MOST;
	     at += (ssize_t)strlen(x->names + at) + 1)
		v[count++] = x->names + at;
	if (count)
		qsort(v, count, sizeof(v[0]), export_xattr_order);
	for (unsigned i = 0; i < count; i++) {
		ssize_t len = fgetxattr(fd, v[i], x->value, sizeof(x->value));

		if (len < 0)
			return err_sys(x->e, "attribute %.60s of '%.120s'", v[i], x->path);
		if (!strcmp(v[i], IMAGE_TREE_OPAQUE))
			*out_opaque = 1;
		else if (!strncmp(v[i], "user.", 5)) {
			snprintf(key, sizeof(key), "SCHILY.xattr.%s", v[i]);
			export_record(out, key, x->value, (size_t)len);
		}
	}
	return 0;
}

/* records: extended ones that only the caller knows. */
static int export_header(struct export *x, const struct export_header *h, struct buf *records)
{
	struct export_header extended = { .type = 'x', .path = "PaxHeaders/x" };

	export_records(records, h);
	if (records->len) {
		extended.size = (int64_t)records->len;
		extended.st.st_mode = 0644;
		if (export_block(x, &extended) < 0 || export_add(x, records->p, records->len) < 0 ||
		    export_pad(x, records->len) < 0)
			return -1;
	}
	x->sum->files++;
	return export_block(x, h);
}

static int export_plain(struct export *x, char type, const struct stat *st, const char *target)
{
	struct export_header h = { .type = type, .path = x->path, .target = target, .st = *st };
	auto_buf struct buf records = { 0 };

	return export_header(x, &h, &records);
}

/* An empty file whose name means a deletion. */
static int export_deletion(struct export *x, const char *name)
{
	char path[TREE_PATH + 300];
	const char *slash = strrchr(x->path, '/');
	struct export_header h = { .type = '0', .path = path };
	auto_buf struct buf records = { 0 };

	if (name)
		snprintf(path, sizeof(path), "%.*s.wh.%s", slash ? (int)(slash - x->path) + 1 : 0,
			 x->path, name);
	else
		snprintf(path, sizeof(path), "%s%s.wh..wh..opq", x->path, *x->path ? "/" : "");
	return export_header(x, &h, &records);
}

/* ---- entries ---- */

static int export_content(struct export *x, int fd, int64_t size)
{
	static char block[1 << 16];
	int64_t left = size;

	while (left > 0) {
		ssize_t n = read(fd, block,
				 left < (int64_t)sizeof(block) ? (size_t)left : sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? err_sys(x->e, "read '%.120s'", x->path)
				     : err_set(x->e, ERR_CONFLICT, "'%.120s' has become shorter",
					       x->path);
		if (export_add(x, block, (size_t)n) < 0)
			return -1;
		left -= n;
	}
	x->sum->bytes += (uint64_t)size;
	return export_pad(x, (uint64_t)size);
}

static int export_file(struct export *x, int dir, const char *name)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct export_header h = { .type = '0', .path = x->path };
	auto_buf struct buf records = { 0 };
	const char *first;
	int opaque = 0;

	if (fd < 0 || fstat(fd, &h.st) < 0)
		return err_sys(x->e, "open '%.120s'", x->path);
	first = h.st.st_nlink > 1 ? layer_inodes_add(&x->inodes, h.st.st_ino, x->path) : NULL;
	if (first)
		return export_plain(x, '1', &h.st, first);
	h.size = h.st.st_size;
	if (export_xattrs(x, fd, &records, &opaque) < 0 || export_header(x, &h, &records) < 0)
		return -1;
	return export_content(x, fd, h.size);
}

static int export_link(struct export *x, int dir, const char *name, const struct stat *st)
{
	char target[TREE_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n <= 0)
		return err_sys(x->e, "link '%.120s'", x->path);
	target[n] = 0;
	return export_plain(x, '2', st, target);
}

static int export_entries(struct export *x, int dir);

static int export_folder(struct export *x, int dir, const char *name)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct export_header h = { .type = '5', .path = *x->path ? x->path : "./" };
	auto_buf struct buf records = { 0 };
	int opaque = 0;

	if (fd < 0 || fstat(fd, &h.st) < 0)
		return err_sys(x->e, "open '%.120s'", x->path);
	if (export_xattrs(x, fd, &records, &opaque) < 0 || export_header(x, &h, &records) < 0 ||
	    (opaque && export_deletion(x, NULL) < 0))
		return -1;
	return export_entries(x, fd);
}

static int export_entry(struct export *x, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(x->e, "stat '%.120s'", x->path);
	if (S_ISDIR(st.st_mode))
		return export_folder(x, dir, name);
	if (S_ISREG(st.st_mode))
		return export_file(x, dir, name);
	if (S_ISLNK(st.st_mode))
		return export_link(x, dir, name, &st);
	if (S_ISFIFO(st.st_mode))
		return export_plain(x, '6', &st, NULL);
	if (layer_image_is_whiteout(&st))
		return export_deletion(x, name);
	return err_set(x->e, ERR_CONFLICT, "'%.120s' is a device or a socket", x->path);
}

static int export_entries(struct export *x, int dir)
{
	size_t above = strlen(x->path);
	auto_layer_names l = { 0 };
	int done = layer_names_read(&l, dir, x->e);

	for (size_t i = 0; done == 0 && i < l.n; i++) {
		int n = snprintf(x->path + above, sizeof(x->path) - above, "%s%s", above ? "/" : "",
				 l.v[i]);

		done = n < 0 || (size_t)n >= sizeof(x->path) - above
			       ? err_set(x->e, ERR_LIMIT, "'%.120s...': the path is too long",
					 x->path)
			       : export_entry(x, dir, l.v[i]);
	}
	x->path[above] = 0;
	return done;
}

int image_export(int layer, int out, struct layer_tree_sum *out_sum, struct err *e)
{
	static const char end[2 * BLOCK];
	struct export *x = calloc(1, sizeof(*x));
	int done;

	if (!x)
		abort();
	*out_sum = (struct layer_tree_sum){ 0 };
	x->out = out;
	x->sum = out_sum;
	x->e = e;
	done = export_folder(x, layer, ".");
	if (done == 0)
		done = export_add(x, end, sizeof(end));
	if (done == 0)
		done = export_flush(x);
	layer_inodes_fini(&x->inodes);
	free(x);
	return done;
}
