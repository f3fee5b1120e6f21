/* zygote_build_list.c - the calls that replace the memory of a process by that of an image. They run from
 * the block, which is the only thing that stays mapped. */
#include "procimage/arch.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"
#include "procimage/zygote_builder.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { IOV_MOST = 1024, LARGE_PAGE = 2 << 20, READ_MOST = 1 << 30 };

static void zygote_move(struct builder *b, uint64_t from, uint64_t to, uint64_t bytes)
{
	CALL(&b->build, SYS_mremap, RESTORER_EQUAL, from, bytes, bytes,
	     MREMAP_MAYMOVE | MREMAP_FIXED, to)
		->expect = to;
}

static void zygote_move_aside(struct builder *b)
{
	uint64_t to = b->aside;

	b->build.step = STEP_KERNEL_PAGES;
	for (unsigned i = 0; i < b->nkernel; i++) {
		zygote_move(b, b->kernel[i].start, to, b->kernel[i].end - b->kernel[i].start);
		to += b->kernel[i].end - b->kernel[i].start;
	}
}

static int zygote_move_back(struct builder *b, struct err *e)
{
	uint64_t from = b->aside;
	unsigned k = 0;

	b->build.step = STEP_KERNEL_PAGES;
	for (uint64_t i = 0; i < b->im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(b->im)[i];
		uint64_t bytes = a->end - a->start;

		if (a->kind != AREA_KERNEL)
			continue;
		if (k == b->nkernel || b->kernel[k].end - b->kernel[k].start != bytes)
			return err_set(e, ERR_CONFLICT, "the image was made with another kernel");
		zygote_move(b, from, a->start, bytes);
		from += bytes;
		k++;
	}
	for (; k < b->nkernel; k++) {
		CALL(&b->build, SYS_munmap, RESTORER_SUCCEED, from,
		     b->kernel[k].end - b->kernel[k].start);
		from += b->kernel[k].end - b->kernel[k].start;
	}
	return 0;
}

/* The old code at its addresses, and empty pages where it reads the time: see vdso.c. Its own pages are dropped. */
static int zygote_map_other_kernel(struct builder *b, struct err *e)
{
	b->build.step = STEP_KERNEL_PAGES;
	for (uint64_t i = 0; i < b->im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(b->im)[i];
		int code = a->kind == AREA_KERNEL && a->prot & PROT_EXEC;
		uint64_t bytes = a->end - a->start;

		if (a->kind != AREA_KERNEL)
			continue;
		if (code && bytes != b->instead->vdso_bytes)
			return err_set(e, ERR_CONFLICT,
				       "the code of the kernel in the image has another size");
		CALL(&b->build, SYS_mmap, RESTORER_EQUAL, a->start, bytes,
		     code ? PROT_READ | PROT_EXEC : PROT_READ,
		     MAP_PRIVATE | MAP_FIXED_NOREPLACE | (code ? 0 : MAP_ANONYMOUS),
		     code ? (uint64_t)b->vdso : (uint64_t)-1, 0)
			->expect = a->start;
	}
	CALL(&b->build, SYS_munmap, RESTORER_SUCCEED, b->aside, zygote_kernel_bytes(b));
	return 0;
}

static int zygote_area_has_runs(const struct image *im, const struct image_area *a, uint64_t *run)
{
	const struct image_run *r = image_runs(im);
	uint64_t n = im->header.count[TABLE_RUNS], page = im->header.page_bytes;

	while (*run < n && r[*run].start + r[*run].pages * page <= a->start)
		++*run;
	return *run < n && r[*run].start < a->end;
}

static void zygote_map_area(struct builder *b, const struct image_area *a, int has_content)
{
	int prot = has_content ? a->prot | PROT_WRITE : a->prot;
	int flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE |
		    (a->flags & AREA_NO_RESERVE ? MAP_NORESERVE : 0) |
		    (a->flags & AREA_GROWS_DOWN ? MAP_GROWSDOWN : 0);
	int fd = -1;
	uint64_t bytes = a->end - a->start;

	if (a->kind == AREA_FILE)
		fd = b->files[a->file];
	else
		flags |= MAP_ANONYMOUS;
	if (a->kind == AREA_SHARED)
		prot |= PROT_READ;
	CALL(&b->build, SYS_mmap, RESTORER_EQUAL, a->start, bytes, (uint64_t)prot, (uint64_t)flags,
	     (uint64_t)(int64_t)fd, a->kind == AREA_FILE ? a->offset : 0)
		->expect = a->start;
	if (fd < 0 && a->flags & AREA_SMALL_PAGES)
		CALL(&b->build, SYS_madvise, RESTORER_IGNORE, a->start, bytes, MADV_NOHUGEPAGE);
	else if (fd < 0 && has_content && bytes >= LARGE_PAGE)
		CALL(&b->build, SYS_madvise, RESTORER_IGNORE, a->start, bytes, MADV_HUGEPAGE);
	if (a->flags & AREA_DONT_DUMP)
		CALL(&b->build, SYS_madvise, RESTORER_IGNORE, a->start, bytes, MADV_DONTDUMP);
}

/* Read by its file in /proc: process_vm_readv() pins the pages, for which the kernel first copies each one that the source
 * and its snapshot child share. The copies would be charged to the box, twice the memory of its program, and the
 * OOM killer would end one of both. */
static void zygote_fill_from_process(struct builder *b)
{
	const struct image *im = b->im;
	uint64_t page = im->header.page_bytes;

	for (uint64_t i = 0; i < im->header.count[TABLE_RUNS]; i++) {
		uint64_t at = image_runs(im)[i].start, end = at + image_runs(im)[i].pages * page;

		while (at < end) {
			uint64_t bytes = end - at < READ_MOST ? end - at : READ_MOST;

			/* Here and there the addresses are the same. */
			CALL(&b->build, SYS_pread64, RESTORER_EQUAL, (uint64_t)b->pages, at, bytes,
			     at)
				->expect = bytes;
			at += bytes;
		}
	}
	CALL(&b->build, SYS_close, RESTORER_SUCCEED, (uint64_t)b->pages);
}

static void zygote_fill_from_file(struct builder *b)
{
	uint64_t offset = 0;
	const struct image *im = b->im;
	uint64_t n = im->header.count[TABLE_RUNS], page = im->header.page_bytes;

	for (uint64_t i = 0; i < n;) {
		struct iovec iov[IOV_MOST];
		uint64_t bytes = 0, at;
		unsigned k = 0;

		for (; i < n && k < IOV_MOST && bytes < READ_MOST; i++, k++) {
			const struct image_run *r = &image_runs(im)[i];

			iov[k] = (struct iovec){ (void *)(uintptr_t)r->start, r->pages * page };
			bytes += r->pages * page;
		}
		at = call_data_add(b->data, iov, k * sizeof(*iov), 16);
		CALL(&b->build, SYS_preadv, RESTORER_EQUAL, (uint64_t)b->pages, at, k, offset, 0)
			->expect = bytes;
		offset += bytes;
	}
}

static void zygote_fill(struct builder *b)
{
	b->build.step = STEP_FILL;
	if (b->in_process)
		zygote_fill_from_process(b);
	else
		zygote_fill_from_file(b);
}

static void zygote_protect(struct builder *b)
{
	uint64_t run = 0;

	b->build.step = STEP_MEMORY;
	for (uint64_t i = 0; i < b->im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(b->im)[i];

		if (a->kind == AREA_KERNEL || a->kind == AREA_FILE_SHARED || a->kind == AREA_SHARED)
			continue;
		if (zygote_area_has_runs(b->im, a, &run) && !(a->prot & PROT_WRITE))
			CALL(&b->build, SYS_mprotect, RESTORER_SUCCEED, a->start, a->end - a->start,
			     a->prot);
	}
}

static uint64_t zygote_program_map(struct builder *b)
{
	const struct image_program *p = image_program(b->im);
	struct prctl_mm_map map = {
		.start_code = p->code[0],
		.end_code = p->code[1],
		.start_data = p->data[0],
		.end_data = p->data[1],
		.start_brk = p->brk[0],
		.brk = p->brk[1],
		.start_stack = p->stack,
		.arg_start = p->args[0],
		.arg_end = p->args[1],
		.env_start = p->env[0],
		.env_end = p->env[1],
		.auxv_size = (uint32_t)(p->nauxv * 8),
		.exe_fd = (uint32_t)b->exe,
	};

	map.auxv = (void *)(uintptr_t)call_data_add(b->data, p->auxv, p->nauxv * 8, 8);
	return call_data_add(b->data, &map, sizeof(map), 8);
}

void zygote_add_own_program(struct builder *b, struct call_list *l)
{
	const struct image_file *f = &image_files(b->im)[image_program(b->im)->exe];
	const char *path = image_string(b->im, f->path);
	uint64_t at;

	if (f->place != IMAGE_FILE_BOX)
		return;
	b->exe = -1;
	at = zygote_program_map(b);
	l->step = STEP_PROGRAM;
	if (b->confine) {
		CALL(l, SYS_setfsgid, RESTORER_IGNORE, b->confine->gid);
		CALL(l, SYS_setfsuid, RESTORER_IGNORE, b->confine->uid);
	}
	CALL(l, SYS_openat, RESTORER_SUCCEED, (uint64_t)AT_FDCWD,
	     call_data_add(b->data, path, strlen(path) + 1, 1), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
		->save = RESTORER_OUTSIDE + 1;
	CALL(l, RESTORER_STORE, RESTORER_SUCCEED, at + offsetof(struct prctl_mm_map, exe_fd),
	     RESTORER_OUTSIDE)
		->from_slot = 1 << 1;
	CALL(l, SYS_prctl, RESTORER_SUCCEED, PR_SET_MM, PR_SET_MM_MAP, at,
	     sizeof(struct prctl_mm_map), 0);
	CALL(l, SYS_close, RESTORER_SUCCEED, RESTORER_OUTSIDE)->from_slot = 1;
}

static void zygote_set_program(struct builder *b)
{
	uint64_t at;

	/* Of a descendant here, of the first process in the copy. */
	if (b->below && image_files(b->im)[image_program(b->im)->exe].place == IMAGE_FILE_BOX) {
		zygote_add_own_program(b, &b->build);
		return;
	}
	at = zygote_program_map(b);
	b->build.step = STEP_PROGRAM;
	CALL(&b->build, SYS_prctl, RESTORER_SUCCEED, PR_SET_MM, PR_SET_MM_MAP, at,
	     sizeof(struct prctl_mm_map), 0);
}

int zygote_make_build_list(struct builder *b, uint64_t block, uint64_t block_bytes, struct err *e)
{
	uint64_t run = 0;

	zygote_move_aside(b);
	b->build.step = STEP_MEMORY;
	CALL(&b->build, SYS_munmap, RESTORER_SUCCEED, 0, block);
	CALL(&b->build, SYS_munmap, RESTORER_SUCCEED, block + block_bytes,
	     ARCH_USER_END - block - block_bytes);
	/* Before the areas: no file of the present program may be mapped. */
	zygote_set_program(b);
	b->build.step = STEP_MEMORY;
	for (uint64_t i = 0; i < b->im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(b->im)[i];

		if (a->kind != AREA_KERNEL && a->kind != AREA_FILE_SHARED)
			zygote_map_area(b, a, zygote_area_has_runs(b->im, a, &run));
	}
	if ((b->vdso < 0 ? zygote_move_back(b, e) : zygote_map_other_kernel(b, e)) < 0)
		return -1;
	zygote_fill(b);
	zygote_protect(b);
	return 0;
}
