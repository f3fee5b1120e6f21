/* cpio.c - see cpio.h. */
#include "tier/cpio.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CPIO_NAME = 255, CPIO_DEPTH = 32, CPIO_LARGEST = 64 << 20 };

static void cpio_pad(struct cpio *c)
{
	while (c->out.len % 4)
		buf_putc(&c->out, 0);
}

static void cpio_entry(struct cpio *c, const char *name, uint32_t mode, uint32_t uid,
		       const void *bytes, size_t n)
{
	/* magic, inode, mode, uid, gid, links, time, size, two device numbers, length of the name,
	 * checksum (none) */
	buf_printf(&c->out, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x",
		   c->files++, mode, uid, uid, 1, 0, n, 0, 0, 0, 0, strlen(name) + 1, 0);
	buf_add(&c->out, name, strlen(name) + 1);
	cpio_pad(c);
	if (n)
		buf_add(&c->out, bytes, n);
	cpio_pad(c);
}

int cpio_add(struct cpio *c, const char *name, uint32_t mode, uint32_t uid, const void *bytes,
	     size_t n, struct err *e)
{
	if (!name[0] || name[0] == '/' || strlen(name) > CPIO_NAME)
		return err_set(e, ERR_INVALID,
			       "'%.60s' cannot be the name of a file of the first root", name);
	if (n > CPIO_LARGEST)
		return err_set(e, ERR_LIMIT, "%.100s has %zu bytes, the first root takes %d", name,
			       n, CPIO_LARGEST);
	cpio_entry(c, name, mode, uid, bytes, n);
	return 0;
}

static int cpio_read_file(int fd, size_t size, struct buf *out)
{
	while (out->len < size) {
		ssize_t n = read(fd, buf_space(out, size - out->len), size - out->len);

		if (n <= 0) {
			errno = n == 0 ? EIO : errno; /* it has become shorter */
			return -1;
		}
		buf_grew(out, (size_t)n);
	}
	return 0;
}

static int cpio_add_below(struct cpio *c, const char *name, int dir, unsigned depth, struct err *e);

static int cpio_add_at(struct cpio *c, const char *name, int dir, const char *entry, unsigned depth,
		       struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	char target[PATH_MAX];
	struct stat st;

	if (fstatat(dir, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "look at %.100s", name);
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(dir, entry, target, sizeof(target));

		return n < 0 ? err_sys(e, "read the link %.100s", name)
			     : cpio_add(c, name, st.st_mode, st.st_uid, target, (size_t)n, e);
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s is no file, folder or link", name);

	auto_fd int fd = openat(dir, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open %.100s", name);
	if (S_ISDIR(st.st_mode))
		return cpio_add(c, name, st.st_mode, st.st_uid, NULL, 0, e) < 0
			       ? -1
			       : cpio_add_below(c, name, fd, depth + 1, e);
	if (st.st_size > CPIO_LARGEST)
		return err_set(e, ERR_LIMIT, "%.100s has %lld bytes, the first root takes %d", name,
			       (long long)st.st_size, CPIO_LARGEST);
	if (cpio_read_file(fd, (size_t)st.st_size, &bytes) < 0)
		return err_sys(e, "read %.100s", name);
	return cpio_add(c, name, st.st_mode, st.st_uid, bytes.p, bytes.len, e);
}

static int cpio_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int cpio_add_below(struct cpio *c, const char *name, int dir, unsigned depth, struct err *e)
{
	struct dirent **entries = NULL;
	char path[CPIO_NAME + 2];
	int n, failed = 0;

	if (depth > CPIO_DEPTH)
		return err_set(e, ERR_LIMIT, "%.100s is more than %d folders deep", name,
			       CPIO_DEPTH);
	n = scandirat(dir, ".", &entries, NULL, cpio_by_name);
	if (n < 0)
		return err_sys(e, "list %.100s", name);
	for (int i = 0; i < n; i++) {
		const char *entry = entries[i]->d_name;

		if (!failed && strcmp(entry, ".") != 0 && strcmp(entry, "..") != 0) {
			int len = snprintf(path, sizeof(path), "%s/%s", name, entry);

			failed = len > CPIO_NAME ? err_set(e, ERR_LIMIT,
							   "the name %.100s is too long", path)
						 : cpio_add_at(c, path, dir, entry, depth, e);
		}
		free(entries[i]);
	}
	free(entries);
	return failed;
}

int cpio_add_tree(struct cpio *c, const char *name, int dir, struct err *e)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return err_sys(e, "look at %.100s", name);
	if (cpio_add(c, name, st.st_mode, st.st_uid, NULL, 0, e) < 0)
		return -1;
	return cpio_add_below(c, name, dir, 0, e);
}

void cpio_end(struct cpio *c)
{
	c->files = 0;
	cpio_entry(c, "TRAILER!!!", 0, 0, NULL, 0);
}

void cpio_fini(struct cpio *c)
{
	buf_fini(&c->out);
}
