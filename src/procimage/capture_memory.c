/* capture_memory.c - areas of the program, and the pages in them that have content. */
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/capture.h"
#include "procimage/keep.h"
#include "procimage/restorer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* ---- lines of maps ---- */

struct map_line {
	uint64_t start, end, offset, inode;
	unsigned major, minor;
	int prot, shared;
	const char *path; /* "" without one */
};

static int capture_parse_map(char *line, struct map_line *m)
{
	unsigned long start, end, offset, inode;
	char prot[5];
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, prot, &offset, &m->major,
		   &m->minor, &inode, &at) < 7 ||
	    !at)
		return -1;
	m->start = start;
	m->end = end;
	m->offset = offset;
	m->inode = inode;
	m->prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
		  (prot[2] == 'x' ? PROT_EXEC : 0);
	m->shared = prot[3] == 's';
	m->path = line + at;
	return 0;
}

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* ---- files ---- */

/* Index of the file in the image. Neighbouring areas of one library follow each other. */
static int capture_add_file(struct capture *c, const struct map_line *m, uint32_t *out,
			    struct err *e)
{
	struct image *im = &c->image;
	uint64_t n = im->header.count[TABLE_FILES];
	struct image_file *f;
	char path[4200];
	struct stat st;
	uint32_t name;

	for (uint64_t i = n; i-- > 0 && i + 4 > n;)
		if (image_files(im)[i].ino == m->inode &&
		    !strcmp(image_string(im, image_files(im)[i].path), m->path)) {
			*out = (uint32_t)i;
			return 0;
		}
	snprintf(path, sizeof(path), "/proc/%d/root%s", c->tracee.pid, m->path);
	if (stat(path, &st) < 0)
		return err_sys(e, "process %d has mapped %s, which cannot be found", c->tracee.pid,
			       m->path);
	name = procimage_add_string(im, m->path);
	f = procimage_add(im, TABLE_FILES, 1);
	*f = (struct image_file){ .path = name,
				  .size = (uint64_t)st.st_size,
				  .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 +
					      (uint64_t)st.st_mtim.tv_nsec,
				  .dev = makedev(m->major, m->minor),
				  .ino = m->inode };
	*out = (uint32_t)n;
	return 0;
}

/* ---- areas ---- */

static int capture_kernel_area(const char *path)
{
	return !strcmp(path, "[vdso]") || !strncmp(path, "[vvar", 5);
}

static int capture_is_restorer(struct capture *c, const struct map_line *m)
{
	uint64_t word = 0;

	return !m->inode && pread(c->tracee.memory, &word, 8, (off_t)m->start) == 8 &&
	       word == RESTORER_MAGIC;
}

/* 0: leave it out; else a kind; -1: refused. */
static int capture_classify(struct capture *c, const struct map_line *m, struct err *e)
{
	const char *p = m->path;
	pid_t pid = c->tracee.pid;

	if (!strcmp(p, "[vsyscall]"))
		return 0;
	if (capture_kernel_area(p))
		return AREA_KERNEL;
	if (!strncmp(p, "/SYSV", 5))
		return keep_refuse(e, KEEP_SYSV, pid, -1, p);
	if (strstr(p, "io_uring"))
		return keep_refuse(e, KEEP_IO_URING, pid, -1, p);
	if (!strncmp(p, "anon_inode:", 11))
		return keep_refuse(e, strstr(p, "perf") ? KEEP_PERF : KEEP_OTHER, pid, -1, p);
	if (!strcmp(p, "/dev/zero (deleted)") || !strncmp(p, "/memfd:", 7))
		return m->shared ? AREA_SHARED : AREA_ANON;
	if (p[0] != '/')
		return m->shared ? keep_refuse(e, KEEP_DEVICE, pid, -1, *p ? p : "shared area")
				 : AREA_ANON;
	if (!strncmp(p, "/dev/", 5) && strncmp(p, "/dev/shm/", 9))
		return keep_refuse(e, KEEP_DEVICE, pid, -1, p);
	if (ends_with(p, " (deleted)"))
		return m->shared ? AREA_SHARED : AREA_ANON;
	if (m->shared)
		return AREA_FILE_SHARED;
	return capture_is_shared_file(c, p, makedev(m->major, m->minor)) ? AREA_FILE : AREA_ANON;
}

static int capture_image_has_shared(const struct image *im, const struct image_area *a)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *b = &image_areas(im)[i];

		if (b->kind == AREA_SHARED && !(b->flags & AREA_ELSEWHERE) &&
		    b->offset == a->offset && b->at_page == a->at_page &&
		    b->end - b->start == a->end - a->start && b->prot & PROT_READ)
			return 1;
	}
	return 0;
}

/* Another process of the tree, or another area, has the content already. */
static int capture_has_shared(const struct capture *c, const struct image_area *a)
{
	for (unsigned i = 0; i < c->options.nbefore; i++)
		if (capture_image_has_shared(&c->options.before[i]->image, a))
			return 1;
	return capture_image_has_shared(&c->image, a);
}

static int capture_add_area(struct capture *c, struct map_line *m, struct err *e)
{
	struct image_area a = { .start = m->start, .end = m->end, .prot = (uint16_t)m->prot };
	char path[4200];
	int kind;

	m->path = capture_find_shared_path(c, m->path, makedev(m->major, m->minor), m->inode, path,
					   sizeof(path));
	kind = capture_classify(c, m, e);

	if (kind <= 0)
		return kind;
	if (kind == AREA_ANON && (m->prot & PROT_EXEC) && capture_is_restorer(c, m))
		return 0;
	a.kind = (uint16_t)kind;
	if (kind == AREA_FILE || kind == AREA_FILE_SHARED) {
		a.offset = m->offset;
		if (capture_add_file(c, m, &a.file, e) < 0)
			return -1;
	}
	if (kind == AREA_SHARED) {
		a.offset = m->inode;
		a.at_page = (uint32_t)(m->offset / c->image.header.page_bytes);
		if (capture_has_shared(c, &a))
			a.flags |= AREA_ELSEWHERE;
	}
	if (kind == AREA_ANON && m->inode)
		a.flags |= AREA_COPIED;
	if (!strcmp(m->path, "[stack]"))
		a.flags |= AREA_GROWS_DOWN;
	*(struct image_area *)procimage_add(&c->image, TABLE_AREAS, 1) = a;
	return 0;
}

int capture_read_areas(struct capture *c, struct err *e)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", c->tracee.pid);
	maps = fopen(path, "re");
	if (!maps)
		return err_sys(e, "read %s", path);
	while (rc == 0 && getline(&line, &room, maps) > 0) {
		struct map_line m;

		if (capture_parse_map(line, &m) < 0)
			rc = err_set(e, ERR_SYS, "cannot read a line of %s: %s", path, line);
		else
			rc = capture_add_area(c, &m, e);
	}
	free(line);
	fclose(maps);
	return rc;
}

/* ---- memory that the child does not have ---- */

static int capture_save(struct capture *c, const struct image_area *a, struct err *e)
{
	struct capture_saved *s;
	uint64_t bytes = a->end - a->start;
	ssize_t n;

	if (bytes > UINT64_C(1) << 30)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, -1,
				   "an area over 1 GiB that fork() leaves out");
	c->saved = reallocarray(c->saved, c->nsaved + 1, sizeof(*c->saved));
	if (!c->saved)
		abort();
	s = &c->saved[c->nsaved++];
	*s = (struct capture_saved){ a->start, bytes, a->prot & PROT_EXEC, malloc(bytes) };
	if (!s->content)
		abort();
	n = pread(c->tracee.memory, s->content, bytes, (off_t)a->start);
	/* A mapping may be longer than its file. */
	if (n >= 0 && a->flags & AREA_COPIED)
		memset(s->content + n, 0, bytes - (size_t)n);
	else if (n != (ssize_t)bytes)
		return err_sys(e, "read %llu bytes at %#llx of process %d",
			       (unsigned long long)bytes, (unsigned long long)a->start,
			       c->tracee.pid);
	return 0;
}

int capture_save_unforked(struct capture *c, struct err *e)
{
	struct image *im = &c->image;
	char path[64], *line = NULL;
	size_t room = 0;
	uint64_t n = im->header.count[TABLE_AREAS], i = 0;
	FILE *maps;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", c->tracee.child_pid);
	maps = fopen(path, "re");
	if (!maps)
		return err_sys(e, "read %s", path);
	/* Both lists are in address order. */
	while (rc == 0 && i < n && getline(&line, &room, maps) > 0) {
		struct map_line m;

		if (capture_parse_map(line, &m) < 0)
			continue;
		for (; i < n && rc == 0 && image_areas(im)[i].end <= m.start; i++) {
			image_areas(im)[i].flags |= AREA_DONT_FORK;
			if (image_areas(im)[i].prot & PROT_READ)
				rc = capture_save(c, &image_areas(im)[i], e);
		}
		/* Neighbours may be merged in one list and not in the other. */
		while (i < n && image_areas(im)[i].end <= m.end)
			i++;
	}
	free(line);
	fclose(maps);
	/* Shared memory continues to change in the source. */
	for (i = 0; rc == 0 && i < n; i++)
		if (!(image_areas(im)[i].flags & AREA_ELSEWHERE) &&
		    (image_areas(im)[i].kind == AREA_SHARED ||
		     (image_areas(im)[i].flags & AREA_COPIED)))
			rc = capture_save(c, &image_areas(im)[i], e);
	return rc;
}

/* The child gets the missing areas by calls of its own, so that it alone has the whole memory. Shared
 * areas become private there: their content is that of the stop. The code of these calls may be in one of them. */
int capture_restore_unforked(struct capture *c, struct err *e)
{
	char path[64];
	auto_fd int memory = -1;

	if (!c->nsaved)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", c->tracee.child_pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return err_sys(e, "open the memory of the snapshot child");
	for (unsigned i = 0; i < c->nsaved; i++) {
		struct capture_saved *s = &c->saved[i];
		const uint64_t args[6] = { s->start,
					   s->bytes,
					   PROT_READ | PROT_WRITE | (uint64_t)s->exec,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
					   (uint64_t)-1,
					   0 };
		long at;

		if (tracee_call(&c->tracee, &c->tracee.child, SYS_mmap, args, &at, e) < 0)
			return -1;
		if ((uint64_t)at != s->start)
			return err_set(e, ERR_SYS, "the snapshot child could not map %#llx: %ld",
				       (unsigned long long)s->start, at);
		if (pwrite(memory, s->content, s->bytes, (off_t)s->start) != (ssize_t)s->bytes)
			return err_sys(e, "write to the snapshot child");
		free(s->content);
		s->content = NULL;
	}
	return 0;
}

/* ---- flags ---- */

static uint32_t capture_parse_flags(const char *line)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} names[] = { { " gd", AREA_GROWS_DOWN },  { " wf", AREA_WIPE_ON_FORK },
		      { " hg", AREA_LARGE_PAGES }, { " nh", AREA_SMALL_PAGES },
		      { " dd", AREA_DONT_DUMP },   { " nr", AREA_NO_RESERVE },
		      { " dc", AREA_DONT_FORK } };
	uint32_t flags = 0;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (strstr(line, names[i].name))
			flags |= names[i].flag;
	return flags;
}

/* smaps walks all pages, so it is read of the child, when the source continues. */
int capture_read_flags(struct capture *c, struct err *e)
{
	struct image *im = &c->image;
	uint64_t n = im->header.count[TABLE_AREAS], i = 0;
	struct map_line m = { 0 };
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *smaps;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps", capture_memory_pid(c));
	smaps = fopen(path, "re");
	if (!smaps)
		return err_sys(e, "read %s", path);
	while (rc == 0 && getline(&line, &room, smaps) > 0) {
		if (line[0] >= 'A' && line[0] <= 'Z') {
			if (strncmp(line, "VmFlags:", 8))
				continue;
			if (strstr(line, " um") || strstr(line, " uw"))
				rc = keep_refuse(e, KEEP_USERFAULTFD, c->tracee.pid, -1,
						 "registered memory");
			while (i < n && image_areas(im)[i].end <= m.start)
				i++;
			for (uint64_t k = i; k < n && image_areas(im)[k].start < m.end; k++)
				if (image_areas(im)[k].kind != AREA_KERNEL &&
				    !(image_areas(im)[k].flags & AREA_DONT_FORK))
					image_areas(im)[k].flags |= capture_parse_flags(line + 8);
			continue;
		}
		if (capture_parse_map(line, &m) < 0)
			rc = err_set(e, ERR_SYS, "cannot read a line of %s: %s", path, line);
	}
	free(line);
	fclose(smaps);
	return rc;
}

/* ---- pages ---- */

struct scan_region {
	uint64_t start, end, categories;
};
struct scan_arg { /* struct pm_scan_arg, Linux 6.7 */
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_arg)
enum { SCAN_FILE = 4, SCAN_PRESENT = 8, SCAN_SWAPPED = 16, SCAN_ZERO = 32 };

static void capture_add_run(struct image *im, uint64_t start, uint64_t end)
{
	uint64_t page = im->header.page_bytes, n = im->header.count[TABLE_RUNS];
	struct image_run *last = n ? &image_runs(im)[n - 1] : NULL;

	if (last && last->start + last->pages * page == start)
		last->pages += (end - start) / page;
	else
		*(struct image_run *)procimage_add(im, TABLE_RUNS, 1) =
			(struct image_run){ start, (end - start) / page };
}

static int capture_scan(struct image *im, int pagemap, const struct image_area *a)
{
	struct scan_region regions[1024];
	struct scan_arg arg = { .size = sizeof(arg),
				.start = a->start,
				.end = a->end,
				.vec = (uintptr_t)regions,
				.vec_len = ARRAY_LEN(regions),
				.category_inverted = SCAN_FILE | SCAN_ZERO,
				.category_mask = SCAN_FILE | SCAN_ZERO,
				.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
				.return_mask = SCAN_PRESENT };

	while (arg.start < a->end) {
		int n = ioctl(pagemap, SCAN_IOCTL, &arg);

		if (n < 0)
			return -1;
		for (int i = 0; i < n; i++)
			capture_add_run(im, regions[i].start, regions[i].end);
		/* With many regions Linux 6.18 reports an end before the last one that it has found. */
		if (n > 0 && arg.walk_end < regions[n - 1].end)
			arg.walk_end = regions[n - 1].end;
		if (arg.walk_end <= arg.start)
			return -1;
		arg.start = arg.walk_end;
	}
	return 0;
}

/* Before 6.7: one word per page. Pages that were only read are the zero page, which looks like any
 * other here, so they are copied. */
static int capture_scan_words(struct image *im, int pagemap, const struct image_area *a)
{
	uint64_t page = im->header.page_bytes, words[512];

	for (uint64_t at = a->start; at < a->end;) {
		uint64_t want = (a->end - at) / page;
		ssize_t n = pread(pagemap, words, (want < 512 ? want : 512) * 8,
				  (off_t)(at / page * 8));

		if (n < 8)
			return -1;
		for (ssize_t i = 0; i < n / 8; i++, at += page)
			if (words[i] >> 62 && !(words[i] >> 61 & 1))
				capture_add_run(im, at, at + page);
	}
	return 0;
}

static uint64_t capture_runs_end(const struct image *im)
{
	uint64_t n = im->header.count[TABLE_RUNS];

	return n ? image_runs(im)[n - 1].start + image_runs(im)[n - 1].pages * im->header.page_bytes
		 : 0;
}

/* Memory that the program itself cannot read now is copied, too. */
static int capture_make_readable(struct capture *c, const struct image_area *a, struct err *e)
{
	const uint64_t args[6] = { a->start, a->end - a->start, PROT_READ };
	long rc;

	if (tracee_call(&c->tracee, &c->tracee.child, SYS_mprotect, args, &rc, e) < 0)
		return -1;
	return rc < 0 ? err_set(e, ERR_SYS, "the snapshot child could not read %#llx: %ld",
				(unsigned long long)a->start, rc)
		      : 0;
}

int capture_read_runs(struct capture *c, struct err *e)
{
	struct image *im = &c->image;
	char path[64];
	auto_fd int pagemap = -1;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", capture_memory_pid(c));
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return err_sys(e, "read %s", path);
	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++) {
		struct image_area a = image_areas(im)[i];

		if (a.kind == AREA_KERNEL || a.kind == AREA_FILE_SHARED ||
		    a.flags & (AREA_WIPE_ON_FORK | AREA_ELSEWHERE))
			continue;
		if (capture_scan(im, pagemap, &a) < 0 &&
		    (errno != ENOTTY || capture_scan_words(im, pagemap, &a) < 0))
			return err_sys(e, "find the pages of process %d", c->tracee.pid);
		if (!(a.prot & PROT_READ) && capture_runs_end(im) > a.start &&
		    capture_make_readable(c, &a, e) < 0)
			return -1;
	}
	if (procimage_memory_bytes(im) > IMAGE_MEMORY_MOST)
		return keep_refuse(e, KEEP_TOO_MANY, c->tracee.pid, -1,
				   "more than 8 GiB of memory");
	return 0;
}

/* ---- direct captures ---- */

static int capture_is_zero(const char *bytes, size_t len)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, len - 1);
}

/* The pages of [start, end) go to the file; those of zeros are left out. A mapping may be longer than its file. */
static int capture_copy_range(struct capture *c, uint64_t start, uint64_t end, struct err *e)
{
	static char bytes[1 << 18];
	uint64_t page = c->image.header.page_bytes;

	for (uint64_t at = start; at < end;) {
		size_t want = end - at < sizeof(bytes) ? end - at : sizeof(bytes);
		ssize_t n = pread(c->tracee.memory, bytes, want, (off_t)at);

		if (n < (ssize_t)page) {
			at += page;
			continue;
		}
		for (ssize_t k = 0; k + (ssize_t)page <= n; k += (ssize_t)page, at += page) {
			if (capture_is_zero(bytes + k, page))
				continue;
			if (write(c->pages, bytes + k, page) != (ssize_t)page)
				return err_sys(e, "copy the pages of process %d", c->tracee.pid);
			capture_add_run(&c->image, at, at + page);
		}
	}
	return 0;
}

static int capture_copy_area(struct capture *c, int pagemap, const struct image_area *a,
			     struct err *e)
{
	struct image found = { .header = c->image.header };
	int rc = 0;

	found.header.count[TABLE_RUNS] = 0;
	if (a->kind == AREA_SHARED || a->flags & AREA_COPIED)
		return capture_copy_range(c, a->start, a->end, e);
	if (capture_scan(&found, pagemap, a) < 0 &&
	    (errno != ENOTTY || capture_scan_words(&found, pagemap, a) < 0))
		rc = err_sys(e, "find the pages of process %d", c->tracee.pid);
	for (uint64_t i = 0; rc == 0 && i < found.header.count[TABLE_RUNS]; i++)
		rc = capture_copy_range(c, image_runs(&found)[i].start,
					image_runs(&found)[i].start +
						image_runs(&found)[i].pages *
							found.header.page_bytes,
					e);
	free(found.table[TABLE_RUNS].at);
	return rc;
}

int capture_copy_pages(struct capture *c, struct err *e)
{
	char path[64];
	auto_fd int pagemap = -1;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", c->tracee.pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	c->pages = memfd_create("pages", MFD_CLOEXEC);
	if (pagemap < 0 || c->pages < 0)
		return err_sys(e, "copy the pages of process %d", c->tracee.pid);
	for (uint64_t i = 0; i < c->image.header.count[TABLE_AREAS]; i++) {
		struct image_area a = image_areas(&c->image)[i];

		if (a.kind == AREA_KERNEL || a.kind == AREA_FILE_SHARED ||
		    a.flags & (AREA_WIPE_ON_FORK | AREA_ELSEWHERE))
			continue;
		if (capture_copy_area(c, pagemap, &a, e) < 0)
			return -1;
	}
	return 0;
}
