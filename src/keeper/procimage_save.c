/* procimage_save.c - writes the images of a worker to a file: see procimage_saved.h. */
#include "base/cleanup.h"
#include "keeper/procimage_cipher.h"
#include "keeper/procimage_mapped.h"
#include "keeper/procimage_saved.h"
#include "keeper/procimage_worker.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int save_bytes(struct cipher *c, uint32_t kind, uint32_t index, const void *bytes,
		      uint64_t n, struct err *e)
{
	return cipher_begin(c, kind, index, n, e) < 0 ? -1 : cipher_put(c, bytes, n, e);
}

/* The first `bytes` of a file; what is missing at its end is zero. */
static int save_file(struct cipher *c, uint32_t kind, uint32_t index, int fd, uint64_t bytes,
		     struct err *e)
{
	static char piece[1 << 18];

	if (cipher_begin(c, kind, index, bytes, e) < 0)
		return -1;
	for (uint64_t at = 0; at < bytes;) {
		size_t want = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);
		ssize_t n = pread(fd, piece, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? err_sys(e, "read a part of the process image")
				 : err_set(e, ERR_SYS, "a part of the process image is missing");
		if (cipher_put(c, piece, (size_t)n, e) < 0)
			return -1;
		at += (uint64_t)n;
	}
	return 0;
}

static int save_content(struct cipher *c, uint32_t index, int fd, struct err *e)
{
	struct stat st = { 0 };

	if (fd >= 0 && fstat(fd, &st) < 0)
		return err_sys(e, "the output of an exec");
	return save_file(c, SAVED_CONTENT, index, fd, (uint64_t)st.st_size, e);
}

static int save_program(const struct worker *w, struct cipher *c, uint32_t i, struct err *e)
{
	const struct worker_program *p = &w->program[i];
	const struct saved_program about = { p->about, p->clock };

	if (save_bytes(c, SAVED_EXEC, i, &w->source[i].state, sizeof(w->source[i].state), e) < 0 ||
	    save_content(c, i, p->content, e) < 0 ||
	    save_bytes(c, SAVED_PROGRAM, i, &about, sizeof(about), e) < 0 ||
	    save_bytes(c, SAVED_TABLES, i, p->bytes, p->bytes_len, e) < 0 ||
	    cipher_begin(c, SAVED_PAGES, i, procimage_memory_bytes(&p->image), e) < 0)
		return -1;
	return image_zygote_write_pages(&p->zygote, &p->image, c->pipe, e);
}

static int save_all(const struct worker *w, struct cipher *c, const char *boot,
		    const struct mapped_list *files, struct err *e)
{
	struct saved_about a = { .programs = w->n,
				 .descendants = w->nbelow,
				 .files = files->n,
				 .features = w->features,
				 .about = w->about };

	if (machine_read(&a.machine, boot, e) < 0 ||
	    save_bytes(c, SAVED_ABOUT, 0, &a, sizeof(a), e) < 0 || mapped_save_kernel(c, e) < 0)
		return -1;
	for (uint32_t i = 0; i < w->n; i++)
		if (save_program(w, c, i, e) < 0)
			return -1;
	for (uint32_t i = 0; i < w->nbelow; i++) {
		const struct worker_descendant *d = &w->below[i];

		if (save_bytes(c, SAVED_CHILD_TABLES, d->exec, d->bytes, d->bytes_len, e) < 0 ||
		    save_file(c, SAVED_CHILD_PAGES, d->exec, d->pages,
			      procimage_memory_bytes(&d->image), e) < 0)
			return -1;
	}
	return mapped_save(files, c, e) < 0 ? -1 : cipher_begin(c, 0, 0, 0, e);
}

int worker_save(struct worker *w, const struct procimage_order *o, int file, uint64_t *out_bytes,
		struct err *e)
{
	struct mapped_list files = { NULL, 0 };
	struct cipher c;
	struct err why;
	int rc = cipher_start(&c, o, file, 1, e);

	if (o->portable)
		mapped_collect(w, &files);
	if (rc == 0)
		rc = save_all(w, &c, o->boot, &files, e);
	mapped_free(&files);
	/* What the other process says is the cause: a full disk, for example. */
	if (rc < 0 && c.pipe >= 0 && e->sys == EPIPE && cipher_end(&c, NULL, &why) < 0)
		*e = why;
	else if (rc == 0)
		rc = cipher_end(&c, out_bytes, e);
	cipher_fini(&c);
	return rc;
}
