/* procimage_load.c - reads the images of a worker from a file (procimage_saved.h) and builds their zygotes.
 *
 * The file is authentic: only a keeper with the same key has written it. What it describes is nevertheless a hostile program, so its
 * tables are checked as those of a capture. */
#include "base/cleanup.h"
#include "jail/feature.h"
#include "keeper/procimage_cipher.h"
#include "keeper/procimage_mapped.h"
#include "keeper/procimage_saved.h"
#include "keeper/procimage_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TABLES_MOST = 256 << 20, CONTENT_MOST = 1 << 30 };

struct load_about {
	struct machine was, now;
	unsigned descendants, files;
};

static int load_exact(struct cipher *c, uint32_t kind, void *to, size_t n, struct err *e)
{
	uint64_t bytes;

	if (cipher_expect(c, kind, n, &bytes, e) < 0)
		return -1;
	if (bytes != n)
		return err_set(e, ERR_CONFLICT,
			       "the process image was written by another version of Atoll: section "
			       "%u has %llu bytes, not %zu",
			       kind, (unsigned long long)bytes, n);
	return cipher_get(c, to, n, e);
}

/* A file in memory, or -1. */
static int load_file(struct cipher *c, uint32_t kind, uint64_t most, uint64_t *out_bytes,
		     struct err *e)
{
	static char piece[1 << 18];
	auto_fd int fd = memfd_create("pages", MFD_CLOEXEC);
	uint64_t bytes;

	if (fd < 0)
		return err_sys(e, "memory for a process image");
	if (cipher_expect(c, kind, most, &bytes, e) < 0)
		return -1;
	for (uint64_t at = 0; at < bytes;) {
		size_t n = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);

		if (cipher_get(c, piece, n, e) < 0)
			return -1;
		if (pwrite(fd, piece, n, (off_t)at) != (ssize_t)n)
			return err_sys(e, "memory for a process image");
		at += n;
	}
	*out_bytes = bytes;
	return steal_fd(&fd);
}

static int load_tables(struct cipher *c, uint32_t kind, struct image *im, char **out,
		       uint64_t *out_len, struct err *e)
{
	if (cipher_expect(c, kind, TABLES_MOST, out_len, e) < 0)
		return -1;
	*out = malloc(*out_len + 1);
	if (!*out)
		abort();
	return cipher_get(c, *out, *out_len, e) < 0 ? -1
						    : worker_decode_image(im, *out, *out_len, e);
}

static int load_pages(struct cipher *c, uint32_t kind, const struct image *im, struct err *e)
{
	uint64_t bytes, want = procimage_memory_bytes(im);
	auto_fd int fd = load_file(c, kind, want, &bytes, e);

	if (fd < 0)
		return -1;
	return bytes == want ? steal_fd(&fd)
			     : err_set(e, ERR_CONFLICT,
				       "the process image has %llu bytes of memory, not %llu",
				       (unsigned long long)bytes, (unsigned long long)want);
}

static int load_program(struct worker *w, struct cipher *c, unsigned i, const struct load_about *m,
			int *out_pages, struct err *e)
{
	struct worker_program *p = &w->program[i];
	struct saved_program about; /* what the first part says is made again from the image */
	uint64_t bytes;

	if (load_exact(c, SAVED_EXEC, &w->source[i].state, sizeof(w->source[i].state), e) < 0)
		return -1;
	p->content = load_file(c, SAVED_CONTENT, CONTENT_MOST, &bytes, e);
	if (p->content < 0 || load_exact(c, SAVED_PROGRAM, &about, sizeof(about), e) < 0 ||
	    load_tables(c, SAVED_TABLES, &p->image, &p->bytes, &p->bytes_len, e) < 0)
		return -1;
	p->clock = about.clock;
	machine_continue_clock(&m->was, &m->now, &p->clock);
	*out_pages = load_pages(c, SAVED_PAGES, &p->image, e);
	return *out_pages < 0 ? -1 : 0;
}

static int load_descendant(struct worker *w, struct cipher *c, struct err *e)
{
	struct worker_descendant *d = &w->below[w->nbelow];
	struct sealed_image_section x;

	if (cipher_get(c, &x, sizeof(x), e) < 0)
		return -1;
	if (x.kind != SAVED_CHILD_TABLES || x.index >= w->n || x.bytes > TABLES_MOST)
		return err_set(e, ERR_CONFLICT, "the process image lacks a child process");
	d->pages = -1;
	d->exec = x.index;
	d->bytes_len = x.bytes;
	d->bytes = malloc(x.bytes + 1);
	if (!d->bytes)
		abort();
	w->nbelow++;
	if (cipher_get(c, d->bytes, x.bytes, e) < 0 ||
	    worker_decode_image(&d->image, d->bytes, x.bytes, e) < 0)
		return -1;
	d->pages = load_pages(c, SAVED_CHILD_PAGES, &d->image, e);
	return d->pages < 0 ? -1 : 0;
}

static int load_about(struct worker *w, struct cipher *c, const struct procimage_order *o,
		      struct load_about *m, struct err *e)
{
	struct saved_about a;

	if (load_exact(c, SAVED_ABOUT, &a, sizeof(a), e) < 0 ||
	    machine_read(&m->now, o->boot, e) < 0)
		return -1;
	a.machine.release[sizeof(a.machine.release) - 1] = 0;
	a.machine.boot[sizeof(a.machine.boot) - 1] = 0;
	if (a.programs > PROCIMAGE_PROGRAMS || a.descendants >= PROCIMAGE_PROGRAMS)
		return err_set(e, ERR_CONFLICT, "the process image has %u programs", a.programs);
	if (machine_check(&a.machine, &m->now, e) < 0)
		return -1;
	m->was = a.machine;
	w->about = a.about;
	w->about.bytes = 0; /* counted again */
	w->features = a.features;
	w->n = a.programs;
	m->descendants = a.descendants;
	m->files = a.files;
	return mapped_load_kernel(w, c, o->portable || machine_is_other_kernel(&m->was, &m->now),
				  e);
}

static int load_all(struct worker *w, struct cipher *c, const struct procimage_order *o, int *pages,
		    struct err *e)
{
	struct load_about m = { .files = 0 };
	uint64_t none;

	if (load_about(w, c, o, &m, e) < 0)
		return -1;
	for (unsigned i = 0; i < w->n; i++)
		if (load_program(w, c, i, &m, &pages[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < m.descendants; i++)
		if (load_descendant(w, c, e) < 0)
			return -1;
	if (mapped_load(w, c, m.files, e) < 0)
		return -1;
	/* Before a zygote is built: only now it is known that the file is complete. */
	return cipher_expect(c, 0, 0, &none, e) < 0 ? -1 : cipher_end(c, NULL, e);
}

int worker_load(struct worker *w, const struct procimage_order *o, int file, struct err *e)
{
	int pages[PROCIMAGE_PROGRAMS], rc;
	struct cipher c;

	memset(pages, -1, sizeof(pages));
	rc = cipher_start(&c, o, file, 0, e);
	if (rc == 0)
		rc = load_all(w, &c, o, pages, e);
	cipher_fini(&c);
	for (unsigned i = 0; rc == 0 && i < w->n; i++) {
		rc = worker_build(w, i, &(struct image_pages){ .file = pages[i] }, e);
		own_close_fd(&pages[i]); /* the zygote has them */
	}
	for (unsigned i = 0; i < PROCIMAGE_PROGRAMS; i++)
		own_close_fd(&pages[i]);
	w->about.programs = w->n;
	return rc;
}
