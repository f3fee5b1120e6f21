/* image_tree.c - see image_tree.h. */
#include "keeper/image_tree.h"
#include "base/cleanup.h"
#include "keeper/layer_image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NAME_MOST = 255, LINKS_MOST = 40 };

/* ---- names ---- */

static size_t image_tree_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static const char *image_tree_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static unsigned image_tree_depth(const char *path)
{
	unsigned n = *path != 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static int image_tree_append(char out[IMAGE_TREE_PATH], const char *part, size_t n)
{
	size_t len = strlen(out);

	if (len + 1 + n >= IMAGE_TREE_PATH)
		return -1;
	if (len)
		out[len++] = '/';
	memcpy(out + len, part, n);
	out[len + n] = 0;
	return 0;
}

int image_tree_clean(const char *name, char out[IMAGE_TREE_PATH], struct err *e)
{
	if (strnlen(name, IMAGE_TREE_PATH) == IMAGE_TREE_PATH)
		return err_set(e, ERR_INVALID, "'%.80s...': a name of more than %d bytes", name,
			       IMAGE_TREE_PATH - 1);
	out[0] = 0;
	for (const char *at = name; *at;) {
		size_t n = strcspn(at, "/");

		if (n > NAME_MOST)
			return err_set(e, ERR_INVALID, "'%.80s...': a part of more than %d bytes",
				       name, NAME_MOST);
		if (n == 2 && at[0] == '.' && at[1] == '.') {
			if (!*out)
				return err_set(e, ERR_INVALID, "'%.120s' leaves the image's root",
					       name);
			out[image_tree_parent(out)] = 0;
		} else if (n && !(n == 1 && *at == '.')) {
			(void)!image_tree_append(out, at, n); /* never longer than the name */
		}
		at += n;
		at += strspn(at, "/");
	}
	if (image_tree_depth(out) > IMAGE_TREE_DEPTH)
		return err_set(e, ERR_INVALID, "'%.80s...': more than %d folders deep", name,
			       IMAGE_TREE_DEPTH);
	return 0;
}

/* ---- folders ---- */

static int image_tree_open(int root, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
					   RESOLVE_NO_XDEV | resolve };

	return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
}

/* A folder that is about to change, and its times before. */
struct image_dir {
	int fd;
	struct stat was;
};

static void image_dir_restore(struct image_dir *d)
{
	const struct timespec times[2] = { d->was.st_atim, d->was.st_mtim };

	if (d->fd < 0)
		return;
	/* It may have been removed by its own entry; nothing depends on the time then. */
	(void)!futimens(d->fd, times);
	own_close_fd(&d->fd);
}
#define auto_dir __attribute__((cleanup(image_dir_restore)))

static int image_dir_take(struct image_dir *d, int take_fd, struct err *e)
{
	d->fd = take_fd;
	if (fstat(d->fd, &d->was) == 0)
		return 0;
	err_sys(e, "stat a folder");
	own_close_fd(&d->fd);
	return -1;
}

static int image_tree_set_opaque(int fd, struct err *e)
{
	return fsetxattr(fd, IMAGE_TREE_OPAQUE, "y", 1, 0) < 0 ? err_sys(e, "mark a folder opaque")
							       : 0;
}

/* A new folder; opaque: it must hide what layers below have with this name. */
static int image_tree_mkdir(int parent, const char *name, int opaque, struct err *e)
{
	const struct timespec times[2] = { { 0 }, { 0 } };
	auto_fd int fd = -1;

	if (mkdirat(parent, name, 0755) < 0)
		return err_sys(e, "make folder '%.80s'", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0755) < 0 || futimens(fd, times) < 0)
		return err_sys(e, "open folder '%.80s'", name);
	if (opaque && image_tree_set_opaque(fd, e) < 0)
		return -1;
	return steal_fd(&fd);
}

/* Opens a folder of `parent`, or makes it; replaces a deletion. */
static int image_tree_enter(int parent, const char *name, struct err *e)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir struct image_dir d = { .fd = -1 };
	struct stat st;
	int copy;

	if (fd >= 0)
		return fd;
	copy = fcntl(parent, F_DUPFD_CLOEXEC, 3);
	if (copy < 0 || image_dir_take(&d, copy, e) < 0)
		return err_sys(e, "the folder of '%.80s'", name);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? image_tree_mkdir(parent, name, 0, e)
				       : err_sys(e, "stat '%.80s'", name);
	if (!layer_image_is_whiteout(&st))
		return err_set(e, ERR_INVALID, "it lies below '%.80s', which is not a folder",
			       name);
	if (unlinkat(parent, name, 0) < 0)
		return err_sys(e, "replace '%.80s'", name);
	return image_tree_mkdir(parent, name, 1, e);
}

/* Reads a part that may be a link. 1: a link, whose target is in `target`; 0: none, or nothing. */
static int image_tree_read_link(int root, const char *path, char target[IMAGE_TREE_PATH],
				struct err *e)
{
	char parent[IMAGE_TREE_PATH];
	auto_fd int dir = -1;
	ssize_t n;

	snprintf(parent, sizeof(parent), "%.*s", (int)image_tree_parent(path), path);
	dir = image_tree_open(root, parent, RESOLVE_NO_SYMLINKS);
	if (dir < 0) /* does not exist yet, or is no folder: found again when it is entered */
		return 0;
	n = readlinkat(dir, image_tree_name(path), target, IMAGE_TREE_PATH - 1);
	if (n < 0)
		return errno == EINVAL || errno == ENOENT ? 0 : err_sys(e, "read a link");
	target[n] = 0;
	return 1;
}

/* The path of a folder without links; its parts need not exist. */
static int image_tree_resolve(int root, const char *path, char out[IMAGE_TREE_PATH], struct err *e)
{
	char rest[2 * IMAGE_TREE_PATH], more[2 * IMAGE_TREE_PATH], target[IMAGE_TREE_PATH];
	unsigned links = 0;

	snprintf(rest, sizeof(rest), "%s", path);
	out[0] = 0;
	while (*rest) {
		size_t n = strcspn(rest, "/"), next = n + strspn(rest + n, "/");
		size_t len = strlen(out);
		int is_link;

		if (n == 2 && !memcmp(rest, "..", 2)) {
			out[image_tree_parent(out)] = 0;
		} else if (n && !(n == 1 && *rest == '.')) {
			if (n > NAME_MOST || image_tree_append(out, rest, n) < 0)
				return err_set(e, ERR_INVALID,
					       "a link leads to a name that is too long");
			is_link = image_tree_read_link(root, out, target, e);
			if (is_link < 0)
				return -1;
			if (is_link) {
				if (++links > LINKS_MOST)
					return err_set(e, ERR_INVALID,
						       "links that lead in a circle");
				out[*target == '/' ? 0 : len] = 0;
				if (snprintf(more, sizeof(more), "%s/%s", target, rest + next) >=
				    IMAGE_TREE_PATH)
					return err_set(e, ERR_INVALID,
						       "a link leads to a name that is too long");
				memcpy(rest, more, strlen(more) + 1);
				continue;
			}
		}
		memmove(rest, rest + next, strlen(rest + next) + 1);
	}
	return image_tree_depth(out) > IMAGE_TREE_DEPTH
		       ? err_set(e, ERR_INVALID, "links that lead more than %d folders deep",
				 IMAGE_TREE_DEPTH)
		       : 0;
}

static int image_tree_make_dirs(int root, const char *path, struct err *e)
{
	char real[IMAGE_TREE_PATH], *rest = NULL;
	auto_fd int dir = -1;

	if (image_tree_resolve(root, path, real, e) < 0)
		return -1;
	dir = image_tree_open(root, "", 0);
	for (char *part = strtok_r(real, "/", &rest); part && dir >= 0;
	     part = strtok_r(NULL, "/", &rest)) {
		int next = image_tree_enter(dir, part, e);

		if (next < 0)
			return -1;
		close(dir);
		dir = next;
	}
	return dir < 0 ? err_sys(e, "open the root of the layer") : steal_fd(&dir);
}

/* A folder with all folders above it. */
static int image_tree_folder(int root, const char *path, struct image_dir *out, struct err *e)
{
	int fd = image_tree_open(root, path, 0);

	if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return err_sys(e, "open folder '%.120s'", path);
	if (fd < 0)
		fd = image_tree_make_dirs(root, path, e);
	return fd < 0 ? -1 : image_dir_take(out, fd, e);
}

static int image_tree_folder_of(int root, const char *path, struct image_dir *out, struct err *e)
{
	char parent[IMAGE_TREE_PATH];

	if (!*path)
		return err_set(e, ERR_INVALID, "the image's root must be a folder");
	snprintf(parent, sizeof(parent), "%.*s", (int)image_tree_parent(path), path);
	return image_tree_folder(root, parent, out, e);
}

/* Removes what has this name. 1: something was removed. */
static int image_tree_replace(int dir, const char *name, struct err *e)
{
	if (unlinkat(dir, name, 0) == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, "replace '%.80s'", name);
	return layer_tree_remove(dir, name, e) < 0 ? -1 : 1;
}

/* ---- entries ---- */

int image_tree_finish(int fd, const struct image_entry *in, struct err *e)
{
	const struct timespec times[2] = { in->mtime, in->mtime };

	/* The owner first, because changing it clears bits of the mode. */
	if (fchown(fd, in->uid, in->gid) < 0 || fchmod(fd, in->mode & 07777) < 0 ||
	    futimens(fd, times) < 0)
		return err_sys(e, "set owner, mode and time");
	return 0;
}

static int image_tree_finish_name(int dir, const char *name, const struct image_entry *in,
				  struct err *e)
{
	const struct timespec times[2] = { in->mtime, in->mtime };

	if (fchownat(dir, name, in->uid, in->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "set owner and time");
	return 0;
}

int image_tree_dir(int root, const struct image_entry *in, int *out_fd, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };
	const char *name = image_tree_name(in->path);
	int fd, removed;

	if (!*in->path) {
		*out_fd = image_tree_open(root, "", 0);
		return *out_fd < 0 ? err_sys(e, "open the root of the layer") : 0;
	}
	if (image_tree_folder_of(root, in->path, &d, e) < 0)
		return -1;
	fd = openat(d.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		removed = image_tree_replace(d.fd, name, e);
		/* It replaces a file or a deletion: those hide what the layers below have. */
		fd = removed < 0 ? -1 : image_tree_mkdir(d.fd, name, removed, e);
	}
	if (fd < 0)
		return -1;
	*out_fd = fd;
	return 0;
}

int image_tree_file(int root, const struct image_entry *in, int *out_fd, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };
	const char *name = image_tree_name(in->path);
	int fd;

	if (image_tree_folder_of(root, in->path, &d, e) < 0 ||
	    image_tree_replace(d.fd, name, e) < 0)
		return -1;
	fd = openat(d.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "create");
	*out_fd = fd;
	return 0;
}

int image_tree_fifo(int root, const struct image_entry *in, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };
	const char *name = image_tree_name(in->path);

	if (image_tree_folder_of(root, in->path, &d, e) < 0 ||
	    image_tree_replace(d.fd, name, e) < 0)
		return -1;
	if (mknodat(d.fd, name, S_IFIFO | 0600, 0) < 0)
		return err_sys(e, "create a named pipe");
	if (image_tree_finish_name(d.fd, name, in, e) < 0)
		return -1;
	/* It was created here, so the name is not a link. */
	return fchmodat(d.fd, name, in->mode & 07777, 0) < 0 ? err_sys(e, "set the mode") : 0;
}

int image_tree_symlink(int root, const struct image_entry *in, const char *target, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };
	const char *name = image_tree_name(in->path);
	size_t n = strnlen(target, IMAGE_TREE_PATH);

	if (n == 0 || n == IMAGE_TREE_PATH)
		return err_set(e, ERR_INVALID,
			       "a link without a target, or with one of more than %d "
			       "bytes",
			       IMAGE_TREE_PATH - 1);
	if (image_tree_folder_of(root, in->path, &d, e) < 0 ||
	    image_tree_replace(d.fd, name, e) < 0)
		return -1;
	if (symlinkat(target, d.fd, name) < 0)
		return err_sys(e, "create a link");
	return image_tree_finish_name(d.fd, name, in, e);
}

/* Opens the folder of a hard link's target; nothing is created. */
static int image_tree_target(int root, const char *target, struct stat *out, struct err *e)
{
	char parent[IMAGE_TREE_PATH];
	auto_fd int dir = -1;

	snprintf(parent, sizeof(parent), "%.*s", (int)image_tree_parent(target), target);
	dir = *target ? image_tree_open(root, parent, 0) : -1;
	if (dir < 0 || fstatat(dir, image_tree_name(target), out, AT_SYMLINK_NOFOLLOW) < 0 ||
	    layer_image_is_whiteout(out))
		return err_set(e, ERR_INVALID,
			       "a hard link to '%.100s', which is not in this layer before it",
			       target);
	if (S_ISDIR(out->st_mode))
		return err_set(e, ERR_INVALID, "a hard link to the folder '%.100s'", target);
	return steal_fd(&dir);
}

int image_tree_hardlink(int root, const char *path, const char *target, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };
	struct stat st, now;
	const char *name = image_tree_name(path);
	auto_fd int dir = image_tree_target(root, target, &st, e);

	if (dir < 0 || image_tree_folder_of(root, path, &d, e) < 0)
		return -1;
	if (fstatat(d.fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st.st_dev &&
	    now.st_ino == st.st_ino)
		return 0; /* the same file already */
	if (image_tree_replace(d.fd, name, e) < 0)
		return -1;
	return linkat(dir, image_tree_name(target), d.fd, name, 0) < 0
		       ? err_sys(e, "a hard link to '%.100s'", target)
		       : 0;
}

int image_tree_whiteout(int root, const char *path, struct err *e)
{
	const struct timespec times[2] = { { 0 }, { 0 } };
	auto_dir struct image_dir d = { .fd = -1 };
	const char *name = image_tree_name(path);
	auto_fd int fd = -1;
	struct stat st;

	if (image_tree_folder_of(root, path, &d, e) < 0)
		return -1;
	if (fstatat(d.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT || mknodat(d.fd, name, S_IFCHR, makedev(0, 0)) < 0 ||
		    utimensat(d.fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, "create a deletion");
		return 0;
	}
	/* A deletion is for the layers below. What this layer has instead stays, and hides them. */
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = openat(d.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open the folder") : image_tree_set_opaque(fd, e);
}

int image_tree_opaque(int root, const char *dir, struct err *e)
{
	auto_dir struct image_dir d = { .fd = -1 };

	if (image_tree_folder(root, dir, &d, e) < 0)
		return -1;
	return image_tree_set_opaque(d.fd, e);
}
