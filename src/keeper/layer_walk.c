/* layer_walk.c - see layer_walk.h. */
#include "keeper/layer_walk.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

void layer_names_fini(struct layer_names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

static int layer_names_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void layer_names_add(struct layer_names *l, const char *name)
{
	if (l->n == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->v = realloc(l->v, l->room * sizeof(*l->v));
		if (!l->v)
			abort();
	}
	l->v[l->n] = strdup(name);
	if (!l->v[l->n++])
		abort();
}

int layer_names_read(struct layer_names *l, int dir, struct err *e)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!d) {
		own_close_fd(&fd);
		return err_sys(e, "read a folder");
	}
	while ((de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			layer_names_add(l, de->d_name);
	closedir(d);
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), layer_names_order);
	return 0;
}

/* ---- content ---- */

int layer_walk_digest(int fd, const char *path, uint8_t out[SHA256_BYTES], uint64_t *bytes,
		      struct err *e)
{
	static char block[1 << 16];
	struct sha256 s;
	ssize_t n;

	sha256_init(&s);
	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read '%.120s'", path);
		sha256_add(&s, block, (size_t)n);
		*bytes += (uint64_t)n;
	}
	sha256_end(&s, out);
	return 0;
}

/* ---- inodes ---- */

struct layer_inode {
	struct layer_inode *next;
	uint64_t ino;
	char path[];
};

static size_t layer_inodes_bucket(const struct layer_inodes *t, uint64_t ino)
{
	return (size_t)(ino * 0x9e3779b97f4a7c15u >> 20) & (t->room - 1);
}

static void layer_inodes_grow(struct layer_inodes *t)
{
	struct layer_inodes more = { .n = t->n, .room = t->room ? t->room * 4 : 256 };

	more.bucket = calloc(more.room, sizeof(struct layer_inode *));
	if (!more.bucket)
		abort();
	for (size_t i = 0; i < t->room; i++)
		while (t->bucket[i]) {
			struct layer_inode *x = t->bucket[i];
			size_t to = layer_inodes_bucket(&more, x->ino);

			t->bucket[i] = x->next;
			x->next = more.bucket[to];
			more.bucket[to] = x;
		}
	free(t->bucket);
	*t = more;
}

const char *layer_inodes_add(struct layer_inodes *t, uint64_t ino, const char *path)
{
	struct layer_inode *x;
	size_t at;

	if (t->n >= t->room)
		layer_inodes_grow(t);
	at = layer_inodes_bucket(t, ino);
	for (x = t->bucket[at]; x; x = x->next)
		if (x->ino == ino)
			return x->path;
	x = malloc(sizeof(*x) + strlen(path) + 1);
	if (!x)
		abort();
	x->ino = ino;
	memcpy(x->path, path, strlen(path) + 1);
	x->next = t->bucket[at];
	t->bucket[at] = x;
	t->n++;
	return NULL;
}

void layer_inodes_fini(struct layer_inodes *t)
{
	for (size_t i = 0; i < t->room; i++)
		while (t->bucket[i]) {
			struct layer_inode *x = t->bucket[i];

			t->bucket[i] = x->next;
			free(x);
		}
	free(t->bucket);
	*t = (struct layer_inodes){ 0 };
}

/* ---- figures ---- */

struct layer_count {
	uint64_t *bytes, *files;
	struct layer_inodes inodes;
};

static int layer_count_dir(struct layer_count *x, int dir, struct err *e)
{
	auto_layer_names l = { 0 };
	struct stat st;

	if (layer_names_read(&l, dir, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n; i++) {
		auto_fd int sub = -1;

		if (fstatat(dir, l.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, "stat '%.120s'", l.v[i]);
		++*x->files;
		if (S_ISREG(st.st_mode) &&
		    (st.st_nlink == 1 || !layer_inodes_add(&x->inodes, st.st_ino, "")))
			*x->bytes += (uint64_t)st.st_size;
		if (!S_ISDIR(st.st_mode))
			continue;
		sub = openat(dir, l.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			return err_sys(e, "open '%.120s'", l.v[i]);
		if (layer_count_dir(x, sub, e) < 0)
			return -1;
	}
	return 0;
}

int layer_walk_count(int dir, uint64_t *bytes, uint64_t *files, struct err *e)
{
	struct layer_count x = { .bytes = bytes, .files = files };
	int done = layer_count_dir(&x, dir, e);

	layer_inodes_fini(&x.inodes);
	return done;
}
