/* layer_merge.c - see layer_merge.h. */
#include "keeper/layer_merge.h"
#include "base/cleanup.h"
#include "keeper/layer_image.h"
#include "keeper/layer_walk.h"
#include "keeper/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MERGE_OPAQUE "user.overlay.opaque"

enum { MERGE_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct merge {
	int base, check;
	unsigned depth;
	char path[TREE_PATH];
	char names[IMAGE_XATTRS], value[IMAGE_XATTRS];
	struct err *e;
};

/* The folders of some layers that have the same path; the first on top. */
struct merge_dirs {
	int fd[WIRE_ROOT_LAYERS];
	unsigned n;
	int hides; /* what lies below the last one is hidden: it is opaque, or replaces a file */
};

static void merge_dirs_fini(struct merge_dirs *d)
{
	while (d->n > 0)
		close(d->fd[--d->n]);
}

struct merge_name { /* a name, and which of the folders has it */
	char *name;
	unsigned dir;
};

static int merge_failed(const struct merge *m, const char *what)
{
	return err_sys(m->e, "%s '%.120s'", what, m->path);
}

static int merge_differs(const struct merge *m)
{
	return err_set(m->e, ERR_CONFLICT, "merged tree: '%.120s' has changed", m->path);
}

/* ---- folders ---- */

static int merge_is_opaque(int dir)
{
	char value[8];

	return fgetxattr(dir, MERGE_OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

static int merge_xattrs(struct merge *m, int from, int to, int is_dir)
{
	ssize_t n = flistxattr(from, m->names, sizeof(m->names));

	if (n < 0 && errno != ENOTSUP)
		return merge_failed(m, "attributes of");
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(m->names + at) + 1) {
		const char *name = m->names + at;
		ssize_t len = fgetxattr(from, name, m->value, sizeof(m->value));

		if (len < 0 || strcmp(name, MERGE_OPAQUE) == 0 ||
		    !layer_image_xattr_ok(name, m->value, (size_t)len, is_dir))
			continue;
		if (fsetxattr(to, name, m->value, (size_t)len, 0) < 0)
			return merge_failed(m, "set attributes of");
	}
	return 0;
}

static int merge_facts(struct merge *m, int from, int to)
{
	struct timespec times[2];
	struct stat st;

	if (fstat(from, &st) < 0)
		return merge_failed(m, "stat");
	times[0] = times[1] = st.st_mtim;
	if (fchown(to, st.st_uid, st.st_gid) < 0 || fchmod(to, st.st_mode & 07777) < 0 ||
	    futimens(to, times) < 0)
		return merge_failed(m, "owner, mode and time of");
	return 0;
}

static int merge_same_facts(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The folder of the topmost layer decides about owner, mode, time and attributes. */
static int merge_finish_dir(struct merge *m, const struct merge_dirs *d, int to)
{
	int opaque = m->base && d->hides;
	struct stat a, b;

	if (m->check) {
		if (fstat(d->fd[0], &a) < 0 || fstat(to, &b) < 0)
			return merge_failed(m, "stat");
		return merge_same_facts(&a, &b) && merge_is_opaque(to) == opaque ? 0
										 : merge_differs(m);
	}
	if (merge_xattrs(m, d->fd[0], to, 1) < 0)
		return -1;
	if (opaque && fsetxattr(to, MERGE_OPAQUE, "y", 1, 0) < 0)
		return merge_failed(m, "mark as opaque");
	return merge_facts(m, d->fd[0], to);
}

/* ---- entries that are no folders ---- */

static int merge_copy_file(struct merge *m, int from_dir, int to_dir, const char *name)
{
	auto_fd int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_fd int to = -1;
	ssize_t n = 1;

	if (from < 0)
		return merge_failed(m, "open");
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return merge_failed(m, "create");
	while (n > 0 || (n < 0 && errno == EINTR))
		n = sendfile(to, from, NULL, 1 << 30);
	if (n < 0)
		return merge_failed(m, "copy");
	return merge_xattrs(m, from, to, 0) < 0 ? -1 : merge_facts(m, from, to);
}

static int merge_link(struct merge *m, int from, int to, const char *name, const struct stat *st)
{
	if (linkat(from, name, to, name, 0) == 0)
		return 0;
	if ((errno == EMLINK || errno == EXDEV) && S_ISREG(st->st_mode))
		return merge_copy_file(m, from, to, name);
	return merge_failed(m, "link");
}

static int merge_digest(struct merge *m, int dir, const char *name, uint8_t out[SHA256_BYTES])
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint64_t bytes = 0;

	if (fd < 0)
		return merge_failed(m, "open");
	return layer_walk_digest(fd, m->path, out, &bytes, m->e);
}

static int merge_compare(struct merge *m, int from, int to, const char *name, const struct stat *st)
{
	uint8_t a[SHA256_BYTES], b[SHA256_BYTES];
	struct stat have;

	if (fstatat(to, name, &have, AT_SYMLINK_NOFOLLOW) < 0)
		return merge_differs(m);
	if (have.st_ino == st->st_ino && have.st_dev == st->st_dev)
		return 0;
	if (!S_ISREG(st->st_mode) || !merge_same_facts(&have, st))
		return merge_differs(m);
	if (merge_digest(m, from, name, a) < 0 || merge_digest(m, to, name, b) < 0)
		return -1;
	return memcmp(a, b, sizeof(a)) == 0 ? 0 : merge_differs(m);
}

/* ---- the walk ---- */

static int merge_entries(struct merge *m, const struct merge_dirs *d, int to);

/* The folders of one name, down to the first that hides the others. v: the layers that have the
 * name, the topmost first; there it is a folder. */
static int merge_open_dirs(struct merge *m, const struct merge_dirs *d, const struct merge_name *v,
			   unsigned n, struct merge_dirs *out)
{
	struct stat st;

	out->hides = 0;
	for (unsigned i = 0; i < n && !out->hides; i++) {
		int dir = d->fd[v[i].dir];

		if (fstatat(dir, v[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return merge_failed(m, "stat");
		if (!S_ISDIR(st.st_mode)) {
			out->hides = 1;
			break;
		}
		out->fd[out->n] = openat(dir, v[i].name, MERGE_DIR);
		if (out->fd[out->n] < 0)
			return merge_failed(m, "open");
		out->hides = merge_is_opaque(out->fd[out->n++]);
	}
	return 0;
}

static int merge_dir(struct merge *m, const struct merge_dirs *d, const struct merge_name *v,
		     unsigned n, int to)
{
	__attribute__((cleanup(merge_dirs_fini))) struct merge_dirs below = { .n = 0 };
	auto_fd int fd = -1;

	if (m->depth == IMAGE_DEPTH)
		return err_set(m->e, ERR_LIMIT, "folders more than %d deep", IMAGE_DEPTH);
	if (merge_open_dirs(m, d, v, n, &below) < 0)
		return -1;
	if (!m->check && mkdirat(to, v->name, 0700) < 0)
		return merge_failed(m, "make");
	fd = openat(to, v->name, MERGE_DIR);
	if (fd < 0)
		return m->check ? merge_differs(m) : merge_failed(m, "open");
	m->depth++;
	if (merge_entries(m, &below, fd) < 0)
		return -1;
	m->depth--;
	return merge_finish_dir(m, &below, fd);
}

/* 1: base may have what this entry deletes. In a folder that only the tree has, the overlay would show
 * a deletion as a device. */
static int merge_has_base(struct merge *m)
{
	char *slash = strrchr(m->path, '/');
	int has;

	if (!m->base || !slash)
		return m->base;
	*slash = 0;
	has = template_has_folder(m->path);
	*slash = '/';
	return has;
}

/* Returns 1 if the tree has the entry, 0 if it must not have it. */
static int merge_entry(struct merge *m, const struct merge_dirs *d, const struct merge_name *v,
		       unsigned n, int to)
{
	int from = d->fd[v->dir], done;
	struct stat st;

	if (fstatat(from, v->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return merge_failed(m, "stat");
	if (layer_image_is_whiteout(&st) && !merge_has_base(m))
		return 0;
	if (S_ISDIR(st.st_mode))
		done = merge_dir(m, d, v, n, to);
	else
		done = m->check ? merge_compare(m, from, to, v->name, &st)
				: merge_link(m, from, to, v->name, &st);
	return done < 0 ? -1 : 1;
}

static int merge_name_order(const void *a, const void *b)
{
	const struct merge_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (int)x->dir - (int)y->dir;
}

/* All names of all folders, sorted; names: their owner. */
static struct merge_name *merge_collect(struct merge *m, const struct merge_dirs *d,
					struct layer_names names[], size_t *out_n)
{
	struct merge_name *v;
	size_t n = 0, all = 0;

	for (unsigned i = 0; i < d->n; i++) {
		if (layer_names_read(&names[i], d->fd[i], m->e) < 0)
			return NULL;
		all += names[i].n;
	}
	v = calloc(all + 1, sizeof(*v));
	if (!v)
		abort();
	for (unsigned i = 0; i < d->n; i++)
		for (size_t j = 0; j < names[i].n; j++)
			v[n++] = (struct merge_name){ names[i].v[j], i };
	qsort(v, n, sizeof(*v), merge_name_order);
	*out_n = n;
	return v;
}

static int merge_sorted(struct merge *m, const struct merge_dirs *d, const struct merge_name *v,
			size_t n, int to)
{
	size_t above = strlen(m->path), same, has = 0;
	auto_layer_names have = { 0 };
	int one = 0;

	for (size_t i = 0; i < n; i += same) {
		int len = snprintf(m->path + above, sizeof(m->path) - above, "%s%s",
				   above ? "/" : "", v[i].name);

		if (len < 0 || (size_t)len >= sizeof(m->path) - above)
			return err_set(m->e, ERR_LIMIT, "'%.120s...': the path is too long",
				       m->path);
		for (same = 1; i + same < n && strcmp(v[i].name, v[i + same].name) == 0; same++)
			;
		one = merge_entry(m, d, &v[i], (unsigned)same, to);
		if (one < 0)
			return -1;
		has += (size_t)one;
	}
	m->path[above] = 0;
	if (!m->check)
		return 0;
	if (layer_names_read(&have, to, m->e) < 0)
		return -1;
	return have.n == has ? 0 : merge_differs(m);
}

static int merge_entries(struct merge *m, const struct merge_dirs *d, int to)
{
	struct layer_names *names = calloc(WIRE_ROOT_LAYERS, sizeof(*names));
	struct merge_name *v;
	size_t n;
	int done;

	if (!names)
		abort();
	v = merge_collect(m, d, names, &n);
	done = v ? merge_sorted(m, d, v, n, to) : -1;
	free(v);
	for (unsigned i = 0; i < d->n; i++)
		layer_names_fini(&names[i]);
	free(names);
	return done;
}

static int merge_run(const struct layer_merge *l, int to, int check, struct err *e)
{
	struct merge *m = calloc(1, sizeof(*m));
	struct merge_dirs d = { .n = 0, .hides = 0 };
	int done;

	if (!m)
		abort();
	m->base = l->base;
	m->check = check;
	m->e = e;
	/* An opaque top folder hides the layers below it, but never base. */
	while (d.n < l->n && !d.hides) {
		d.fd[d.n] = l->layer[d.n];
		d.hides = merge_is_opaque(d.fd[d.n++]) && !l->base;
	}
	done = merge_entries(m, &d, to);
	if (done == 0 && d.n)
		done = merge_finish_dir(m, &d, to);
	free(m);
	return done;
}

int layer_merge_make(const struct layer_merge *m, int to, struct err *e)
{
	return merge_run(m, to, 0, e);
}

int layer_merge_check(const struct layer_merge *m, int tree, struct err *e)
{
	return merge_run(m, tree, 1, e);
}
