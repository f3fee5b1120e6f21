/* procimage_mapped.c - see procimage_mapped.h. */
#include "keeper/procimage_mapped.h"
#include "base/cleanup.h"
#include "keeper/procimage_saved.h"
#include "procimage/vdso.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPED_BYTES_MOST (UINT64_C(4) << 30)
enum { MAPPED_PIECE = 256 << 10 };

/* ---- collect ---- */

static struct mapped_file *mapped_find(struct mapped_list *l, const char *path,
				       const struct image_file *f)
{
	struct mapped_file *x;

	for (unsigned i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].path, path) && l->v[i].size == f->size &&
		    l->v[i].mtime_ns == f->mtime_ns)
			return &l->v[i];
	l->v = reallocarray(l->v, l->n + 1, sizeof(*l->v));
	if (!l->v)
		abort();
	x = &l->v[l->n++];
	*x = (struct mapped_file){ .size = f->size, .mtime_ns = f->mtime_ns, .start = f->size };
	snprintf(x->path, sizeof(x->path), "%s", path);
	return x;
}

static void mapped_collect_image(const struct image *im, struct mapped_list *l)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(im)[i];
		const struct image_file *f = &image_files(im)[a->file];
		struct mapped_file *x;
		uint64_t end;

		if (a->kind != AREA_FILE || l->n == MAPPED_FILES)
			continue;
		x = mapped_find(l, image_string(im, f->path), f);
		end = a->offset + (a->end - a->start);
		if (a->offset < x->start)
			x->start = a->offset;
		if (end > x->end)
			x->end = end < f->size ? end : f->size;
	}
}

void mapped_collect(const struct worker *w, struct mapped_list *out)
{
	for (unsigned i = 0; i < w->n; i++)
		mapped_collect_image(&w->program[i].image, out);
	for (unsigned i = 0; i < w->nbelow; i++)
		mapped_collect_image(&w->below[i].image, out);
}

void mapped_free(struct mapped_list *l)
{
	free(l->v);
	*l = (struct mapped_list){ NULL, 0 };
}

/* ---- save ---- */

int mapped_save_kernel(struct cipher *c, struct err *e)
{
	size_t n;
	const void *code = vdso_own(&n);

	return cipher_begin(c, SAVED_KERNEL, 0, n, e) < 0 ? -1 : cipher_put(c, code, n, e);
}

static int mapped_is_same(int fd, const struct mapped_file *f)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->size &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec ==
		       f->mtime_ns;
}

static int mapped_save_one(const struct mapped_file *f, uint32_t i, struct cipher *c, struct err *e)
{
	auto_fd int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = f->end > f->start ? f->end - f->start : 0;
	static char piece[MAPPED_PIECE];

	if (fd < 0 || !mapped_is_same(fd, f))
		return err_set(e, ERR_CONFLICT, "the mapped file %.160s has changed meanwhile",
			       f->path);
	if (cipher_begin(c, SAVED_FILE, i, sizeof(*f), e) < 0 ||
	    cipher_put(c, f, sizeof(*f), e) < 0 ||
	    cipher_begin(c, SAVED_FILE_PAGES, i, bytes, e) < 0)
		return -1;
	for (uint64_t at = 0; at < bytes;) {
		size_t want = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);
		ssize_t n = pread(fd, piece, want, (off_t)(f->start + at));

		if (n <= 0)
			return err_sys(e, "read %.160s", f->path);
		if (cipher_put(c, piece, (size_t)n, e) < 0)
			return -1;
		at += (uint64_t)n;
	}
	return 0;
}

int mapped_save(const struct mapped_list *l, struct cipher *c, struct err *e)
{
	for (unsigned i = 0; i < l->n; i++)
		if (mapped_save_one(&l->v[i], i, c, e) < 0)
			return -1;
	return 0;
}

/* ---- load ---- */

static int mapped_write(int fd, const void *bytes, size_t n, uint64_t at, struct err *e)
{
	return pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n
		       ? 0
		       : err_sys(e, "memory for what a process image has mapped");
}

int mapped_load_kernel(struct worker *w, struct cipher *c, int other, struct err *e)
{
	static _Alignas(16) char code[VDSO_MOST];
	auto_fd int fd = -1;
	uint64_t n;

	if (cipher_expect(c, SAVED_KERNEL, sizeof(code), &n, e) < 0 ||
	    cipher_get(c, code, n, e) < 0)
		return -1;
	w->instead.vdso = -1;
	if (!other)
		return 0;
	if (vdso_replace(code, n, e) < 0)
		return -1;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || mapped_write(fd, code, n, 0, e) < 0)
		return err_in(e, "the code of the other kernel");
	w->instead.vdso = steal_fd(&fd);
	w->instead.vdso_bytes = n;
	return 0;
}

/* A descriptor of a file in memory, or -1 where the machine has the same file: then the pages are read and dropped. */
static int mapped_place(const struct mapped_file *f, int *out, struct err *e)
{
	auto_fd int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*out = -1;
	if (fd >= 0 && mapped_is_same(fd, f))
		return 0;
	*out = memfd_create(strrchr(f->path, '/') + 1, MFD_CLOEXEC);
	return *out < 0 || ftruncate(*out, (off_t)f->size) < 0
		       ? err_sys(e, "memory for %.160s", f->path)
		       : 0;
}

static int mapped_check(struct mapped_file *f, struct err *e)
{
	f->path[sizeof(f->path) - 1] = 0;
	return f->path[0] != '/' || !f->size || f->size > MAPPED_BYTES_MOST || f->end > f->size ||
			       f->start > f->size
		       ? err_set(e, ERR_CONFLICT, "a mapped file of the process image is not valid")
		       : 0;
}

static int mapped_load_one(struct worker *w, struct cipher *c, struct mapped_file *f, struct err *e)
{
	struct image_stored_file *to = &w->stored[w->instead.nfiles];
	static char piece[MAPPED_PIECE];
	uint64_t bytes;
	int fd = -1;

	if (cipher_expect(c, SAVED_FILE, sizeof(*f), &bytes, e) < 0)
		return -1;
	if (bytes != sizeof(*f))
		return err_set(e, ERR_CONFLICT, "a mapped file of the process image is not valid");
	if (cipher_get(c, f, sizeof(*f), e) < 0 || mapped_check(f, e) < 0 ||
	    cipher_expect(c, SAVED_FILE_PAGES, f->size - f->start, &bytes, e) < 0 ||
	    mapped_place(f, &fd, e) < 0)
		return -1;
	if (fd >= 0) {
		*to = (struct image_stored_file){ strdup(f->path), f->size, f->mtime_ns, fd };
		if (!to->path)
			abort();
		w->instead.nfiles++; /* the worker ends with them */
	}
	for (uint64_t at = 0; at < bytes;) {
		size_t n = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);

		if (cipher_get(c, piece, n, e) < 0 ||
		    (fd >= 0 && mapped_write(fd, piece, n, f->start + at, e) < 0))
			return -1;
		at += n;
	}
	return 0;
}

int mapped_load(struct worker *w, struct cipher *c, unsigned n, struct err *e)
{
	static struct mapped_file f;

	if (n > MAPPED_FILES)
		return err_set(e, ERR_CONFLICT, "the process image has %u mapped files", n);
	w->stored = calloc(n + 1, sizeof(*w->stored));
	if (!w->stored)
		abort();
	w->instead.files = w->stored;
	for (unsigned i = 0; i < n; i++)
		if (mapped_load_one(w, c, &f, e) < 0)
			return -1;
	return 0;
}
