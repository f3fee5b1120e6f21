/* layer_upper.c - see layer_upper.h. */
#include "keeper/layer_upper.h"
#include "base/cleanup.h"
#include "keeper/image_tree.h"
#include "keeper/layer_image.h"
#include "keeper/layer_walk.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { UPPER_QUIET_S = 60 };

/* ---- the folder ---- */

static int upper_ask(int conn, uint8_t type, uint16_t flags, uint8_t want, int *out_fd,
		     struct err *e)
{
	static _Alignas(8) char bytes[WIRE_MAX];
	const struct frame *got = (const void *)bytes;
	const struct wire_error *told = (const void *)bytes;
	struct frame ask = sock_head(type, 1);
	auto_fd int fd = -1;
	unsigned nfds = 1;
	int n;

	ask.flags = flags;
	if (sock_send(conn, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		return -1;
	n = sock_recv(conn, bytes, &fd, &nfds, e);
	if (n < 0)
		return err_in(e, "init of the box");
	if (n > 0 && got->type == WIRE_ERROR)
		return err_set(e, ERR_SYS, "init of the box: %.180s", told->msg);
	if (n == 0 || got->type != want || (out_fd && fd < 0))
		return err_set(e, ERR_SYS, "init of the box did not give its writable layer");
	if (out_fd)
		*out_fd = steal_fd(&fd);
	return 0;
}

static int upper_in_range(const struct layer_upper *u, const struct stat *st)
{
	return st->st_uid >= u->uid_base && layer_image_owner_ok(st->st_uid - u->uid_base) &&
	       st->st_gid >= u->uid_base && layer_image_owner_ok(st->st_gid - u->uid_base);
}

/* A folder of the box, on a disk as boxes have them: not its root, not /proc, not the host's /usr. */
static int upper_check(int fd, const struct layer_upper *u, struct err *e)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return err_sys(e, "stat the writable layer");
	if (!S_ISDIR(st.st_mode) || (fs.f_type != TMPFS_MAGIC && fs.f_type != EXT4_SUPER_MAGIC) ||
	    !upper_in_range(u, &st))
		return err_set(e, ERR_INVALID,
			       "init of the box gave something else than its "
			       "writable layer");
	return 0;
}

int layer_upper_check(int fd, uint32_t uid_base, struct err *e)
{
	const struct layer_upper u = { .uid_base = uid_base };

	return upper_check(fd, &u, e);
}

int layer_upper_open(int conn, const struct layer_upper *u, struct err *e)
{
	const struct timeval quiet = { .tv_sec = UPPER_QUIET_S };
	auto_fd int fd = -1;

	setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
	setsockopt(conn, SOL_SOCKET, SO_SNDTIMEO, &quiet, sizeof(quiet));
	if (upper_ask(conn, WIRE_STOP, 0, WIRE_DONE, NULL, e) < 0 ||
	    upper_ask(conn, WIRE_FILES, WIRE_FILES_UPPER, WIRE_FD, &fd, e) < 0 ||
	    upper_check(fd, u, e) < 0)
		return -1;
	return steal_fd(&fd);
}

/* ---- the copy ---- */

struct upper_copy {
	const struct layer_upper *u;
	int to_root;
	dev_t dev;
	uint64_t bytes, files;
	unsigned depth;
	struct layer_inodes inodes;
	char path[TREE_PATH];
	char names[IMAGE_XATTRS], value[IMAGE_XATTRS];
	struct err *e;
};

static int upper_failed(const struct upper_copy *c, const char *what)
{
	return err_sys(c->e, "%s '%.120s'", what, c->path);
}

static int upper_count(struct upper_copy *c, uint64_t bytes)
{
	if (c->files++ == c->u->files_most)
		return err_set(c->e, ERR_LIMIT, "more than %llu files",
			       (unsigned long long)c->u->files_most);
	if (bytes > c->u->bytes_most - c->bytes)
		return err_set(c->e, ERR_LIMIT, "more than %llu bytes",
			       (unsigned long long)c->u->bytes_most);
	c->bytes += bytes;
	return 0;
}

static int upper_owner_ok(const struct upper_copy *c, const struct stat *st)
{
	if (upper_in_range(c->u, st))
		return 0;
	return err_set(c->e, ERR_INVALID, "'%.120s' belongs to %u:%u: not ids of the box", c->path,
		       st->st_uid, st->st_gid);
}

/* What mounts of Atoll cover in the box. */
static int upper_is_mount_point(const struct upper_copy *c)
{
	static const char *const points[] = { "dev", "proc", "sys", "run/secrets", "opt/atoll" };

	for (unsigned i = 0; i < ARRAY_LEN(points); i++)
		if (strcmp(c->path, points[i]) == 0)
			return 1;
	return 0;
}

static int upper_xattrs(struct upper_copy *c, int from, int to, int is_dir)
{
	ssize_t n = flistxattr(from, c->names, sizeof(c->names));

	if (n < 0 && errno != ENOTSUP)
		return upper_failed(c, "attributes of");
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(c->names + at) + 1) {
		const char *name = c->names + at;
		ssize_t len = fgetxattr(from, name, c->value, sizeof(c->value));

		/* Removed since then, or of a kind that is not copied. */
		if (len < 0 || !layer_image_xattr_ok(name, c->value, (size_t)len, is_dir))
			continue;
		if (fsetxattr(to, name, c->value, (size_t)len, 0) < 0)
			return upper_failed(c, "set attributes of");
	}
	return 0;
}

/* Owner, mode and time, in this order: a change of the owner clears bits of the mode. */
static int upper_facts(struct upper_copy *c, int to, const struct stat *st)
{
	const struct timespec times[2] = { st->st_mtim, st->st_mtim };
	uint32_t base = c->u->uid_base;

	if (fchown(to, st->st_uid - base, st->st_gid - base) < 0 ||
	    fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0)
		return upper_failed(c, "owner, mode and time of");
	return 0;
}

/* The same for a link or a fifo that was just made in a folder of the new tree. */
static int upper_facts_at(struct upper_copy *c, int dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_mtim, st->st_mtim };
	uint32_t base = c->u->uid_base;

	if (fchownat(dir, name, st->st_uid - base, st->st_gid - base, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (S_ISFIFO(st->st_mode) && fchmodat(dir, name, st->st_mode & 07777, 0) < 0) ||
	    utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return upper_failed(c, "owner, mode and time of");
	return 0;
}

/* One part without holes. The file may have become shorter. */
static int upper_part(struct upper_copy *c, int from, int to, off_t at, off_t end)
{
	if (lseek(to, at, SEEK_SET) < 0)
		return upper_failed(c, "write");
	while (at < end) {
		ssize_t n = sendfile(to, from, &at, (size_t)(end - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return upper_failed(c, "copy");
		if (n == 0)
			break;
	}
	return 0;
}

static int upper_content(struct upper_copy *c, int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 || data >= size) /* ENXIO: only a hole is left */
			break;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			hole = size;
		if (upper_part(c, from, to, data, hole) < 0)
			return -1;
		at = hole;
	}
	return ftruncate(to, size) < 0 ? upper_failed(c, "size of") : 0;
}

static int upper_file(struct upper_copy *c, int from_dir, int to_dir, const char *name)
{
	auto_fd int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_fd int to = -1;
	const char *first;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return upper_failed(c, "open");
	if (!S_ISREG(st.st_mode) || st.st_dev != c->dev)
		return err_set(c->e, ERR_CONFLICT, "'%.120s' has changed meanwhile", c->path);
	first = st.st_nlink > 1 ? layer_inodes_add(&c->inodes, st.st_ino, c->path) : NULL;
	if (upper_owner_ok(c, &st) < 0 || upper_count(c, first ? 0 : (uint64_t)st.st_size) < 0)
		return -1;
	/* Every folder of that path is one that was made here: no link is part of it. */
	if (first)
		return linkat(c->to_root, first, to_dir, name, 0) < 0 ? upper_failed(c, "link") : 0;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return upper_failed(c, "create");
	if (upper_content(c, from, to, st.st_size) < 0 || upper_xattrs(c, from, to, 0) < 0)
		return -1;
	return upper_facts(c, to, &st);
}

static int upper_link(struct upper_copy *c, int from_dir, int to_dir, const char *name,
		      const struct stat *st)
{
	char target[TREE_PATH];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target));

	if (n <= 0 || n == sizeof(target))
		return err_set(c->e, ERR_INVALID, "'%.120s' has an invalid target", c->path);
	target[n] = 0;
	if (symlinkat(target, to_dir, name) < 0)
		return upper_failed(c, "link");
	return upper_facts_at(c, to_dir, name, st);
}

static int upper_entries(struct upper_copy *c, int from, int to);

/* The facts last: new entries change the time, and the mode may permit nothing. */
static int upper_into(struct upper_copy *c, int from, int to)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return upper_failed(c, "stat");
	if (st.st_dev != c->dev)
		return err_set(c->e, ERR_INVALID, "'%.120s' is another file system", c->path);
	if (c->depth == IMAGE_DEPTH)
		return err_set(c->e, ERR_LIMIT, "folders more than %d deep", IMAGE_DEPTH);
	if (upper_owner_ok(c, &st) < 0)
		return -1;
	c->depth++;
	if (upper_entries(c, from, to) < 0)
		return -1;
	c->depth--;
	return upper_xattrs(c, from, to, 1) < 0 ? -1 : upper_facts(c, to, &st);
}

/* Made on the disk when the box was created (mnt_host.c), and still as it was. */
static int upper_is_prepared(const struct upper_copy *c, int to)
{
	static const char *const paths[] = { "usr", "var/lib/dpkg", "var/lib", "var" };
	struct stat st;

	for (unsigned i = 0; i < ARRAY_LEN(paths); i++)
		if (strcmp(c->path, paths[i]) == 0)
			return fstat(to, &st) == 0 && st.st_uid == 0 && st.st_gid == 0 &&
			       (st.st_mode & 07777) == 0755 &&
			       fgetxattr(to, IMAGE_TREE_OPAQUE, NULL, 0) < 0;
	return 0;
}

static int upper_folder(struct upper_copy *c, int from_dir, int to_dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_fd int from = openat(from_dir, name, flags);
	auto_fd int to = -1;

	if (from < 0)
		return upper_failed(c, "open");
	if (mkdirat(to_dir, name, 0700) < 0)
		return upper_failed(c, "make");
	to = openat(to_dir, name, flags);
	if (to < 0)
		return upper_failed(c, "open");
	if (upper_into(c, from, to) < 0)
		return -1;
	if (upper_is_prepared(c, to))
		(void)!unlinkat(to_dir, name, AT_REMOVEDIR); /* if it is empty */
	return 0;
}

static int upper_entry(struct upper_copy *c, int from, int to, const char *name)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return upper_failed(c, "stat");
	if (S_ISSOCK(st.st_mode) || upper_is_mount_point(c))
		return 0;
	if (S_ISREG(st.st_mode))
		return upper_file(c, from, to, name);
	if (upper_count(c, 0) < 0)
		return -1;
	if (layer_image_is_whiteout(&st))
		return mknodat(to, name, S_IFCHR, 0) < 0 ? upper_failed(c, "make") : 0;
	if (upper_owner_ok(c, &st) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return upper_folder(c, from, to, name);
	if (S_ISLNK(st.st_mode))
		return upper_link(c, from, to, name, &st);
	if (!S_ISFIFO(st.st_mode))
		return err_set(c->e, ERR_INVALID, "'%.120s' is a device", c->path);
	if (mkfifoat(to, name, 0600) < 0)
		return upper_failed(c, "make");
	return upper_facts_at(c, to, name, &st);
}

static int upper_entries(struct upper_copy *c, int from, int to)
{
	size_t above = strlen(c->path);
	auto_layer_names l = { 0 };

	if (layer_names_read(&l, from, c->e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++) {
		int n = snprintf(c->path + above, sizeof(c->path) - above, "%s%s", above ? "/" : "",
				 l.v[i]);

		if (n < 0 || (size_t)n >= sizeof(c->path) - above)
			return err_set(c->e, ERR_LIMIT, "'%.120s...': the path is too long",
				       c->path);
		if (upper_entry(c, from, to, l.v[i]) < 0)
			return -1;
	}
	c->path[above] = 0;
	return 0;
}

int layer_upper_copy(int from, int to, const struct layer_upper *u, struct err *e)
{
	struct upper_copy *c = calloc(1, sizeof(*c));
	struct stat st;
	int done = -1;

	if (!c)
		abort();
	c->u = u;
	c->to_root = to;
	c->e = e;
	if (fstat(from, &st) < 0) {
		err_sys(e, "stat the writable layer");
	} else {
		c->dev = st.st_dev;
		done = upper_into(c, from, to);
	}
	layer_inodes_fini(&c->inodes);
	free(c);
	return done;
}
