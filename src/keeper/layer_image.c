/* layer_image.c - see layer_image.h. */
#include "keeper/layer_image.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "jail/launch.h"
#include "keeper/layer_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OVERLAY_PREFIX "user.overlay."

int layer_image_owner_ok(uint32_t id)
{
	return id < JAIL_RANGE && id != JAIL_INIT_ID;
}

int layer_image_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* Of overlayfs only "opaque": the others redirect a lookup or refer to inodes of one host. */
int layer_image_xattr_ok(const char *name, const char *value, size_t len, int is_dir)
{
	if (strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) == 0)
		return is_dir && strcmp(name, OVERLAY_PREFIX "opaque") == 0 && len == 1 &&
		       value[0] == 'y';
	return strncmp(name, "user.", 5) == 0;
}

struct image_walk {
	struct sha256 sum;
	struct layer_tree_sum *out;
	struct layer_inodes inodes;
	int change; /* remove attributes that are not allowed */
	dev_t dev;
	unsigned depth;
	char path[TREE_PATH];
	char names[IMAGE_XATTRS], value[IMAGE_XATTRS];
	struct err *e;
};

static void image_note(struct image_walk *w, char kind)
{
	sha256_add(&w->sum, &kind, 1);
	sha256_add(&w->sum, w->path, strlen(w->path) + 1);
	w->out->files++;
}

static int image_facts(struct image_walk *w, const struct stat *st)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "%o %u %u %lld.%09ld", st->st_mode & 07777, st->st_uid,
			 st->st_gid, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);

	if (!layer_image_owner_ok(st->st_uid) || !layer_image_owner_ok(st->st_gid))
		return err_set(w->e, ERR_INVALID, "'%.120s' belongs to %u:%u: not ids of a box",
			       w->path, st->st_uid, st->st_gid);
	sha256_add(&w->sum, text, (size_t)n + 1);
	return 0;
}

/* ---- attributes ---- */

static int image_xattr_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A security module may add its label to every file: it is neither read nor removed. */
static int image_xattr_is_label(const char *name)
{
	return strcmp(name, "security.selinux") == 0 || strcmp(name, "security.SMACK64") == 0;
}

static int image_xattr(struct image_walk *w, int fd, const char *name, int is_dir)
{
	ssize_t n = fgetxattr(fd, name, w->value, sizeof(w->value));
	char len[24];

	if (image_xattr_is_label(name))
		return 0;
	if (n < 0)
		return err_sys(w->e, "attribute %.60s of '%.100s'", name, w->path);
	if (!layer_image_xattr_ok(name, w->value, (size_t)n, is_dir)) {
		if (!w->change)
			return err_set(w->e, ERR_CONFLICT, "'%.120s' has an attribute %.60s",
				       w->path, name);
		return fremovexattr(fd, name) < 0
			       ? err_sys(w->e, "remove %.60s of '%.100s'", name, w->path)
			       : 0;
	}
	sha256_add(&w->sum, name, strlen(name) + 1);
	snprintf(len, sizeof(len), "%zd", n);
	sha256_add(&w->sum, len, strlen(len) + 1);
	sha256_add(&w->sum, w->value, (size_t)n);
	return 0;
}

/* fd: a file or folder, open for reading. Links and fifos cannot have attributes of this kind. */
static int image_xattrs(struct image_walk *w, int fd, int is_dir)
{
	enum { MOST = 512 };
	const char *v[MOST];
	ssize_t n = flistxattr(fd, w->names, sizeof(w->names));
	unsigned count = 0;

	if (n < 0 && errno != ENOTSUP)
		return err_sys(w->e, "attributes of '%.120s'", w->path);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(w->names + at) + 1) {
		if (count == MOST)
			return err_set(w->e, ERR_LIMIT, "'%.120s' has more than %d attributes",
				       w->path, MOST);
		v[count++] = w->names + at;
	}
	if (count)
		qsort(v, count, sizeof(v[0]), image_xattr_order);
	for (unsigned i = 0; i < count; i++)
		if (image_xattr(w, fd, v[i], is_dir) < 0)
			return -1;
	sha256_add(&w->sum, "", 1);
	return 0;
}

/* ---- entries ---- */

/* Only the first link of a file has its facts and its content. */
static int image_is_further_link(struct image_walk *w, const struct stat *st)
{
	const char *first =
		st->st_nlink > 1 ? layer_inodes_add(&w->inodes, st->st_ino, w->path) : NULL;

	if (!first)
		return 0;
	image_note(w, 'h');
	sha256_add(&w->sum, first, strlen(first) + 1);
	return 1;
}

static int image_file(struct image_walk *w, int dir, const char *name)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t digest[SHA256_BYTES];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(w->e, "open '%.120s'", w->path);
	if (!S_ISREG(st.st_mode))
		return err_set(w->e, ERR_CONFLICT, "'%.120s' is no longer a file", w->path);
	if (image_is_further_link(w, &st))
		return 0;
	image_note(w, 'f');
	if (image_facts(w, &st) < 0 || image_xattrs(w, fd, 0) < 0 ||
	    layer_walk_digest(fd, w->path, digest, &w->out->bytes, w->e) < 0)
		return -1;
	sha256_add(&w->sum, digest, sizeof(digest));
	return 0;
}

static int image_link(struct image_walk *w, int dir, const char *name, const struct stat *st)
{
	char target[TREE_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n <= 0)
		return err_sys(w->e, "link '%.120s'", w->path);
	target[n] = 0;
	image_note(w, 'l');
	if (image_facts(w, st) < 0)
		return -1;
	sha256_add(&w->sum, "", 1);
	sha256_add(&w->sum, target, (size_t)n + 1);
	return 0;
}

static int image_fifo(struct image_walk *w, const struct stat *st)
{
	image_note(w, 'p');
	if (image_facts(w, st) < 0)
		return -1;
	sha256_add(&w->sum, "", 1);
	return 0;
}

static int image_entries(struct image_walk *w, int dir);

static int image_folder(struct image_walk *w, int dir, const char *name)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int done;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(w->e, "open '%.120s'", w->path);
	if (st.st_dev != w->dev)
		return err_set(w->e, ERR_CONFLICT, "'%.120s' is another file system", w->path);
	if (w->depth == IMAGE_DEPTH)
		return err_set(w->e, ERR_LIMIT, "folders more than %d deep", IMAGE_DEPTH);
	image_note(w, 'd');
	if (image_facts(w, &st) < 0 || image_xattrs(w, fd, 1) < 0)
		return -1;
	w->depth++;
	done = image_entries(w, fd);
	w->depth--;
	return done;
}

static int image_entry(struct image_walk *w, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(w->e, "stat '%.120s'", w->path);
	if (S_ISDIR(st.st_mode))
		return image_folder(w, dir, name);
	if (S_ISREG(st.st_mode))
		return image_file(w, dir, name);
	if (S_ISLNK(st.st_mode))
		return image_link(w, dir, name, &st);
	if (S_ISFIFO(st.st_mode))
		return image_fifo(w, &st);
	if (layer_image_is_whiteout(&st)) {
		image_note(w, 'w');
		return 0;
	}
	return err_set(w->e, ERR_INVALID, "'%.120s' is a device or a socket", w->path);
}

static int image_entries(struct image_walk *w, int dir)
{
	size_t above = strlen(w->path);
	auto_layer_names l = { 0 };
	int done = layer_names_read(&l, dir, w->e);

	for (size_t i = 0; done == 0 && i < l.n; i++) {
		int len = snprintf(w->path + above, sizeof(w->path) - above, "%s%s",
				   above ? "/" : "", l.v[i]);

		if (len < 0 || (size_t)len >= sizeof(w->path) - above)
			done = err_set(w->e, ERR_LIMIT, "'%.120s...': the path is too long",
				       w->path);
		else
			done = image_entry(w, dir, l.v[i]);
	}
	w->path[above] = 0;
	return done;
}

static int image_sum(int root, int change, struct layer_tree_sum *out, struct err *e)
{
	static const char head[] = "atoll layer 2\n";
	uint8_t digest[SHA256_BYTES];
	struct image_walk *w = calloc(1, sizeof(*w));
	struct stat st;
	int done;

	if (!w)
		abort();
	*out = (struct layer_tree_sum){ 0 };
	w->out = out;
	w->change = change;
	w->e = e;
	sha256_init(&w->sum);
	sha256_add(&w->sum, head, sizeof(head) - 1);
	done = fstat(root, &st) < 0 ? err_sys(e, "stat a layer") : 0;
	w->dev = st.st_dev;
	if (done == 0)
		done = image_folder(w, root, ".");
	sha256_end(&w->sum, digest);
	hex_encode(out->id, digest, sizeof(digest));
	layer_inodes_fini(&w->inodes);
	free(w);
	return done;
}

int layer_image_finalize(int root, struct layer_tree_sum *out, struct err *e)
{
	return image_sum(root, 1, out, e);
}

int layer_image_check(int root, struct layer_tree_sum *out, struct err *e)
{
	return image_sum(root, 0, out, e);
}
