/* layer_tree.c - see layer_tree.h. */
#include "keeper/layer_tree.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "keeper/layer_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TREE_TIME = 315532800 }; /* 1980: zip, and so every wheel, has no earlier time */

/* ---- names ---- */

/* Folders that may be at the top of a layer. Not /etc, /home, /dev, /proc, /tmp and similar ones:
 * those are created for each box, and their mounts need a plain folder. */
static const char *const tops[] = { "usr", "opt", "var", "srv", "node_modules", ".cargo" };

static int top_ok(const char *path, size_t n)
{
	for (unsigned i = 0; i < ARRAY_LEN(tops); i++)
		if (strlen(tops[i]) == n && memcmp(path, tops[i], n) == 0)
			return 1;
	return 0;
}

int layer_tree_path_ok(const char *path)
{
	size_t len = strnlen(path, TREE_PATH);
	unsigned depth = 0;

	if (len == 0 || len == TREE_PATH || !top_ok(path, strcspn(path, "/")))
		return 0;
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || n > 255 || (at[0] == '.' && (n == 1 || (n == 2 && at[1] == '.'))) ||
		    ++depth > TREE_DEPTH)
			return 0;
		at += n;
		if (!*at)
			return 1;
	}
}

int layer_tree_id_ok(const char *id)
{
	return strnlen(id, TREE_ID + 1) == TREE_ID && strspn(id, "0123456789abcdef") == TREE_ID;
}

/* ---- the writer ---- */

static int tree_count(struct layer_tree *t, uint64_t bytes, uint64_t files, struct err *e)
{
	if (files > t->files_most - t->files)
		return err_set(e, ERR_LIMIT, "more than %llu files",
			       (unsigned long long)t->files_most);
	if (bytes > t->bytes_most - t->bytes)
		return err_set(e, ERR_LIMIT, "more than %llu bytes",
			       (unsigned long long)t->bytes_most);
	t->files += files;
	t->bytes += bytes;
	return 0;
}

/* Opens the folder of a new name without following links, and returns the name. */
static int open_parent(struct layer_tree *t, const char *path, const char **out_name, struct err *e)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	const char *slash;
	char above[TREE_PATH];
	int fd;

	if (!layer_tree_path_ok(path))
		return err_set(e, ERR_INVALID, "'%.80s' is not allowed in a layer", path);
	if (tree_count(t, 0, 1, e) < 0)
		return -1;
	slash = strrchr(path, '/');
	*out_name = slash ? slash + 1 : path;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	fd = (int)syscall(SYS_openat2, t->root, above, &how, sizeof(how));
	return fd < 0 ? err_sys(e, "the folder of '%.80s'", path) : fd;
}

int layer_tree_dir(struct layer_tree *t, const char *path, struct err *e)
{
	const char *name;
	auto_fd int parent = open_parent(t, path, &name, e);

	if (parent < 0)
		return -1;
	return mkdirat(parent, name, 0755) < 0 ? err_sys(e, "folder '%.80s'", path) : 0;
}

int layer_tree_link(struct layer_tree *t, const char *path, const char *target, struct err *e)
{
	const char *name;
	auto_fd int parent = -1;
	size_t n = strnlen(target, TREE_PATH);

	if (n == 0 || n == TREE_PATH)
		return err_set(e, ERR_INVALID, "link '%.80s' has an empty target", path);
	parent = open_parent(t, path, &name, e);
	if (parent < 0)
		return -1;
	return symlinkat(target, parent, name) < 0 ? err_sys(e, "link '%.80s'", path) : 0;
}

/* Modes of the box are not used: a file is executable or not. */
int layer_tree_file(struct layer_tree *t, const char *path, int executable, int *out_fd,
		    struct err *e)
{
	const char *name;
	auto_fd int parent = open_parent(t, path, &name, e);
	int fd;

	if (parent < 0)
		return -1;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    executable ? 0700 : 0600);
	if (fd < 0)
		return err_sys(e, "file '%.80s'", path);
	*out_fd = fd;
	return 0;
}

int layer_tree_bytes(struct layer_tree *t, int fd, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	if (tree_count(t, n, 0, e) < 0)
		return -1;
	while (n > 0) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_sys(e, "write");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* ---- the sealer ---- */

struct tree_walk {
	struct sha256 sum;
	struct layer_tree_sum *out;
	int own; /* also change the owner */
	char path[TREE_PATH];
	struct err *e;
};

static void tree_note(struct tree_walk *w, char kind, const char *path)
{
	sha256_add(&w->sum, &kind, 1);
	sha256_add(&w->sum, path, strlen(path) + 1);
	w->out->files++;
}

static int is_ours(struct tree_walk *w, const struct stat *st, unsigned mode)
{
	if (st->st_uid == geteuid() && (st->st_mode & 07777) == mode)
		return 0;
	return err_set(w->e, ERR_CONFLICT, "'%.120s': its owner or mode has changed", w->path);
}

/* fd: a file or a folder, open for reading. */
static int tree_own(struct tree_walk *w, int fd, const struct stat *st, unsigned mode)
{
	const struct timespec times[2] = { { TREE_TIME, 0 }, { TREE_TIME, 0 } };

	if (!w->own)
		return is_ours(w, st, mode);
	/* The owner first, because changing it clears bits of the mode. */
	if (fchown(fd, geteuid(), getegid()) < 0 || fchmod(fd, mode) < 0 || futimens(fd, times) < 0)
		return err_sys(w->e, "seal '%.120s'", w->path);
	return 0;
}

static int tree_content(struct tree_walk *w, int fd)
{
	uint8_t digest[SHA256_BYTES];

	if (layer_walk_digest(fd, w->path, digest, &w->out->bytes, w->e) < 0)
		return -1;
	sha256_add(&w->sum, digest, sizeof(digest));
	return 0;
}

static int visit_file(struct tree_walk *w, int dir, const char *name)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int executable;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(w->e, "open '%.120s'", w->path);
	/* The writer must not have made links. Later, merged layers have further links of it. */
	if (!S_ISREG(st.st_mode) || (w->own && st.st_nlink != 1))
		return err_set(w->e, ERR_CONFLICT, "'%.120s' is not a regular file with one link",
			       w->path);
	executable = !!(st.st_mode & 0100);
	tree_note(w, executable ? 'x' : 'f', w->path);
	return tree_content(w, fd) < 0 ? -1 : tree_own(w, fd, &st, executable ? 0755 : 0644);
}

static int visit_link(struct tree_walk *w, int dir, const char *name)
{
	const struct timespec times[2] = { { TREE_TIME, 0 }, { TREE_TIME, 0 } };
	char target[TREE_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n <= 0)
		return err_sys(w->e, "link '%.120s'", w->path);
	target[n] = 0;
	tree_note(w, 'l', w->path);
	sha256_add(&w->sum, target, (size_t)n + 1);
	if (w->own && (fchownat(dir, name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0 ||
		       utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0))
		return err_sys(w->e, "seal '%.120s'", w->path);
	return 0;
}

static int visit_all(struct tree_walk *w, int dir, size_t above);

static int visit_dir(struct tree_walk *w, int dir, const char *name, size_t len)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(w->e, "open '%.120s'", w->path);
	tree_note(w, 'd', w->path);
	if (visit_all(w, fd, len) < 0)
		return -1;
	w->path[len] = 0;
	return tree_own(w, fd, &st, 0755);
}

static int tree_visit(struct tree_walk *w, int dir, const char *name, size_t above)
{
	int len =
		snprintf(w->path + above, sizeof(w->path) - above, "%s%s", above ? "/" : "", name);
	struct stat st;

	if (len < 0 || (size_t)len >= sizeof(w->path) - above || !layer_tree_path_ok(w->path))
		return err_set(w->e, ERR_INVALID, "'%.120s' is not allowed in a layer", w->path);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(w->e, "stat '%.120s'", w->path);
	if (S_ISDIR(st.st_mode))
		return visit_dir(w, dir, name, above + (size_t)len);
	if (!above) /* the root of a box has folders there, which a layer must not replace */
		return err_set(w->e, ERR_INVALID, "'%.40s' must be a folder", name);
	return S_ISLNK(st.st_mode) ? visit_link(w, dir, name) : visit_file(w, dir, name);
}

static int visit_all(struct tree_walk *w, int dir, size_t above)
{
	auto_layer_names l = { 0 };

	if (layer_names_read(&l, dir, w->e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++)
		if (tree_visit(w, dir, l.v[i], above) < 0)
			return -1;
	return 0;
}

static int walk_root(int root, int own_it, struct layer_tree_sum *out, struct err *e)
{
	static const char head[] = "atoll layer 1\n";
	uint8_t digest[SHA256_BYTES];
	struct tree_walk *w = calloc(1, sizeof(*w));
	struct stat st;
	int done;

	if (!w)
		abort();
	*out = (struct layer_tree_sum){ 0 };
	w->out = out;
	w->own = own_it;
	w->e = e;
	sha256_init(&w->sum);
	sha256_add(&w->sum, head, sizeof(head) - 1);
	done = visit_all(w, root, 0);
	w->path[0] = 0;
	if (done == 0)
		done = fstat(root, &st) < 0 ? err_sys(e, "stat a layer")
					    : tree_own(w, root, &st, 0755);
	sha256_end(&w->sum, digest);
	hex_encode(out->id, digest, sizeof(digest));
	free(w);
	return done;
}

int layer_tree_finalize(int root, struct layer_tree_sum *out, struct err *e)
{
	return walk_root(root, 1, out, e);
}

int layer_tree_check(int root, struct layer_tree_sum *out, struct err *e)
{
	return walk_root(root, 0, out, e);
}

/* ---- removal ---- */

static int tree_empty(int dir, struct err *e)
{
	auto_layer_names l = { 0 };

	if (layer_names_read(&l, dir, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++) {
		if (unlinkat(dir, l.v[i], 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return err_sys(e, "remove '%.80s'", l.v[i]);
		if (layer_tree_remove(dir, l.v[i], e) < 0)
			return -1;
	}
	return 0;
}

int layer_tree_remove(int dir, const char *name, struct err *e)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open '%.80s'", name);
	if (tree_empty(fd, e) < 0)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? err_sys(e, "remove '%.80s'", name) : 0;
}
