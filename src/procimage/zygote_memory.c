/* zygote_memory.c - see zygote_memory.h.
 *
 * The block (code, state, lists, frames, stacks) goes into a hole that neither the image nor this
 * process uses. From there the build list runs: the pages of the kernel move aside, everything else is
 * unmapped, the areas of the image are mapped and filled, the pages of the kernel move to their places. */
#include "procimage/zygote_memory.h"
#include "base/cleanup.h"
#include "procimage/arch.h"
#include "procimage/confine_list.h"
#include "procimage/plan.h"
#include "procimage/zygote_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
	LARGE_PAGE = 2 << 20,
	HOLE_MARGIN = 1 << 30, /* to the next area, so that heaps and stacks can grow */
	CONTROL = 3,           /* descriptors of the zygote */
	LAST_PID = 4,
};

/* ---- the hole ---- */

static int zygote_read_own(struct builder *b, struct err *e)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4300];

	if (!maps)
		return err_sys(e, "read /proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) != 2 || strstr(line, "[vsyscall]"))
			continue;
		if (b->nown == ARRAY_LEN(b->own)) {
			fclose(maps);
			return err_set(e, ERR_LIMIT, "this process has too many areas");
		}
		b->own[b->nown++] = (struct span){ start, end };
		if ((strstr(line, "[vvar") || strstr(line, "[vdso]")) &&
		    b->nkernel < ARRAY_LEN(b->kernel))
			b->kernel[b->nkernel++] = (struct span){ start, end };
	}
	fclose(maps);
	return 0;
}

/* The middle of the largest gap that both address spaces have. */
static uint64_t zygote_find_hole(const struct builder *b, uint64_t bytes)
{
	const struct image_area *a = image_areas(b->im);
	uint64_t n = b->im->header.count[TABLE_AREAS], i = 0, before = 1 << 20, best = 0, at = 0;
	unsigned k = 0;

	for (;;) {
		struct span next = { ARCH_USER_END, ARCH_USER_END };

		if (i < n && a[i].start < next.start)
			next = (struct span){ a[i].start, a[i].end };
		if (k < b->nown && b->own[k].start < next.start)
			next = b->own[k];
		if (next.start > before && next.start - before > best) {
			best = next.start - before;
			at = before + best / 2;
		}
		if (next.start == ARCH_USER_END)
			break;
		if (next.end > before)
			before = next.end;
		while (i < n && a[i].end <= before)
			i++;
		while (k < b->nown && b->own[k].end <= before)
			k++;
		if (i < n && a[i].start < before)
			before = a[i++].end;
	}
	at &= ~(uint64_t)(LARGE_PAGE - 1);
	return best > bytes + 2 * (uint64_t)HOLE_MARGIN ? at : 0;
}

/* Every name and every piece of data is copied once for each record that has it. */
static uint64_t zygote_bound_strings(const struct image *im)
{
	uint64_t bytes = strlen(image_string(im, image_program(im)->folder));

	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++)
		if (image_areas(im)[i].kind == AREA_FILE_SHARED)
			bytes += strlen(
				image_string(im, image_files(im)[image_areas(im)[i].file].path));
	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++)
		bytes += strlen(image_string(im, image_descriptors(im)[i].path)) +
			 2 * (uint64_t)image_descriptors(im)[i].data_bytes;
	return bytes;
}

uint64_t zygote_memory_bound(const struct image *im)
{
	const uint64_t *n = im->header.count;
	uint64_t call = sizeof(struct restorer_call);

	return (1 << 20) + zygote_bound_strings(im) + n[TABLE_AREAS] * 8 * (call + 64) +
	       n[TABLE_RUNS] * 64 + n[TABLE_DESCRIPTORS] * 24 * (call + 64) +
	       n[TABLE_WATCHES] * 2 * (call + 64) +
	       n[TABLE_THREADS] * (ARCH_FRAME_MOST + 3 * (uint64_t)RESTORER_STACK + 256 * call);
}

/* ---- files ---- */

static int zygote_open_file(const struct image *im, uint64_t i, int exact, struct err *e)
{
	const struct image_file *f = &image_files(im)[i];
	const char *path = image_string(im, f->path);
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open the mapped file %s", path);
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != f->size ||
	    (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec !=
		    f->mtime_ns ||
	    (exact && (st.st_dev != f->dev || st.st_ino != f->ino))) {
		close(fd);
		return err_set(e, ERR_CONFLICT, "the mapped file %s has changed since the capture",
			       path);
	}
	return fd;
}

static int zygote_open_files(struct builder *b, struct err *e)
{
	const struct image *im = b->im;
	uint64_t n = im->header.count[TABLE_FILES];
	int exact = b->confine && b->confine->exact_files;

	b->files = malloc(n * sizeof(int));
	if (!b->files)
		abort();
	memset(b->files, -1, n * sizeof(int));
	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(im)[i];

		if (a->kind == AREA_FILE && b->files[a->file] < 0 &&
		    (b->files[a->file] = zygote_open_file(im, a->file, exact, e)) < 0)
			return -1;
	}
	b->exe = zygote_open_file(im, image_program(im)->exe, exact, e);
	return b->exe < 0 ? -1 : 0;
}

/* ---- the block ---- */

static void zygote_add_threads(struct builder *b, struct restorer_state *s)
{
	const struct image *im = b->im;
	uint64_t n = im->header.count[TABLE_THREADS];
	struct restorer_thread *threads = calloc(n, sizeof(*threads));
	const struct arch_code none = { 0 };
	static char frame[ARCH_FRAME_MOST];

	if (!threads)
		abort();
	for (uint64_t i = 0; i < n; i++) {
		const struct image_thread *t = &image_threads(im)[i];
		struct call_list l = { 0 };
		uint64_t at = call_data_add(&b->data, NULL, ARCH_FRAME_MOST, 64);

		arch_build_frame(frame, at, &none, t,
				 (const char *)im->table[TABLE_VECTORS].at + t->vector_at);
		memcpy(call_data_pointer(&b->data, at), frame, ARCH_FRAME_MOST);
		plan_add_thread(im, t, &l, &b->data);
		threads[i] = (struct restorer_thread){
			.tid = t->tid,
			.frame = arch_frame_stack(at),
			.tls = t->tls,
			.stack = call_data_add(&b->data, NULL, RESTORER_STACK, 64) + RESTORER_STACK,
			.calls = call_data_add_list(&b->data, &l),
		};
		call_list_fini(&l);
	}
	s->nthreads = (uint32_t)n;
	s->threads = call_data_add(&b->data, threads, n * sizeof(*threads), 16);
	free(threads);
}

static int zygote_fill_block(struct builder *b, uint64_t block, uint64_t block_bytes, pid_t memory,
			     struct err *e)
{
	struct restorer_state s = { .magic = RESTORER_MAGIC,
				    .block = block,
				    .block_bytes = block_bytes,
				    .control = CONTROL,
				    .last_pid = LAST_PID,
				    .first_high = plan_first_high(b->im),
				    .pid = image_program(b->im)->pid };
	struct call_list plan = { 0 }, confine = { 0 };
	uint64_t at = call_data_add(&b->data, NULL, sizeof(s), 64);

	if (zygote_make_build_list(b, block, block_bytes, memory, e) < 0)
		return -1;
	if (b->confine)
		confine_list_add(b->confine, &confine, &b->data);
	plan_add_program(b->im, &plan, &b->data);
	s.confine = call_data_add_list(&b->data, &confine);
	call_list_fini(&confine);
	s.build = call_data_add_list(&b->data, &b->build);
	s.plan = call_data_add_list(&b->data, &plan);
	call_list_fini(&plan);
	zygote_add_threads(b, &s);
	s.main_stack = call_data_add(&b->data, NULL, 2 * RESTORER_STACK, 64) + 2 * RESTORER_STACK;
	s.helper_stack = call_data_add(&b->data, NULL, RESTORER_STACK, 64) + RESTORER_STACK;
	s.inner_stack = call_data_add(&b->data, NULL, RESTORER_STACK, 64) + RESTORER_STACK;
	memcpy(call_data_pointer(&b->data, at), &s, sizeof(s));
	return 0;
}

/* Descriptors: the socket, ns_last_pid, and above them the mapped files. */
static int zygote_place_descriptors(int *control, struct err *e)
{
	struct rlimit l;
	int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int high = fcntl(*control, F_DUPFD_CLOEXEC, 64),
	    last_high = fcntl(last, F_DUPFD_CLOEXEC, 64);

	if (last < 0 || high < 0 || last_high < 0)
		return err_sys(e, "open ns_last_pid (CONFIG_CHECKPOINT_RESTORE)");
	*control = high;
	if (dup2(high, CONTROL) < 0 || dup2(last_high, LAST_PID) < 0)
		return err_sys(e, "place the descriptors of the checkpoint zygote");
	*control = CONTROL;
	close(0);
	close(1);
	close(2);
	syscall(SYS_close_range, ZYGOTE_FIRST_FILE, ~0U, 0);
	/* Descriptors are moved above those of the image; the copy sets its own limit afterwards. */
	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
		return err_sys(e, "open /dev/null");
	return 0;
}

/* The kernel kills a process whose rseq area is unmapped while it is registered. */
static int zygote_leave_library(struct err *e)
{
	char *thread = __builtin_thread_pointer();
	uint64_t all = ~UINT64_C(0);

	if (__rseq_size && syscall(SYS_rseq, thread + __rseq_offset,
				   __rseq_size < 32 ? 32 : __rseq_size, 1, RSEQ_SIG) < 0)
		return err_sys(e, "unregister rseq");
	syscall(SYS_set_robust_list, NULL, 24);
	syscall(SYS_set_tid_address, NULL);
	/* Handlers of the program must not run before its registers are there. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	return 0;
}

static __attribute__((noreturn)) void zygote_enter(uint64_t code, uint64_t state, uint64_t stack)
{
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%rsp\n"
			 "xor %%ebp, %%ebp\n"
			 "call *%1\n"
			 "hlt\n"
			 :
			 : "r"(stack), "r"(code), "D"(state)
			 : "memory");
#else
	register uint64_t x0 __asm__("x0") = state;

	__asm__ volatile("mov sp, %0\n"
			 "mov x29, xzr\n"
			 "blr %1\n"
			 "brk 0\n"
			 :
			 : "r"(stack), "r"(code), "r"(x0)
			 : "memory");
#endif
	__builtin_unreachable();
}

static int zygote_map_block(struct builder *b, uint64_t block, uint64_t bytes, struct err *e)
{
	void *at = mmap((void *)(uintptr_t)block, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)(uintptr_t)block)
		return err_sys(e, "map %llu bytes for the code of the checkpoint zygote",
			       (unsigned long long)bytes);
	memcpy(at, restorer_image, (size_t)(restorer_image_end - restorer_image));
	memcpy((char *)at + b->code_bytes, b->data.bytes, b->data.len);
	if (mprotect(at, b->code_bytes, PROT_READ | PROT_EXEC) < 0)
		return err_sys(e, "make the code of the checkpoint zygote executable");
	return 0;
}

static uint64_t zygote_kernel_bytes(const struct builder *b)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < b->nkernel; i++)
		bytes += b->kernel[i].end - b->kernel[i].start;
	return bytes;
}

void zygote_memory_become(const struct image *im, pid_t memory, const struct confine_spec *confine,
			  int *control, struct err *e)
{
	static struct builder b;
	uint64_t page = im->header.page_bytes, bound = zygote_memory_bound(im), block, bytes;
	struct restorer_state *s;

	b = (struct builder){ .im = im, .confine = confine, .exe = -1 };
	if (confine)
		bound += confine_list_bound(confine);
	b.code_bytes = ((uint64_t)(restorer_image_end - restorer_image) + page - 1) & ~(page - 1);
	if (zygote_read_own(&b, e) < 0)
		return;
	block = zygote_find_hole(&b, bound + zygote_kernel_bytes(&b));
	if (!block) {
		err_set(e, ERR_CONFLICT, "the addresses of the program have no hole of %llu MiB",
			(unsigned long long)(bound >> 20));
		return;
	}
	bytes = (b.code_bytes + bound + page - 1) & ~(page - 1);
	b.aside = block + bytes;
	b.data.at = block + b.code_bytes;
	b.data.most = bound;
	if (zygote_place_descriptors(control, e) < 0 || zygote_open_files(&b, e) < 0 ||
	    zygote_fill_block(&b, block, bytes + zygote_kernel_bytes(&b), memory, e) < 0 ||
	    zygote_map_block(&b, block, bytes, e) < 0 || zygote_leave_library(e) < 0)
		return;
	s = (struct restorer_state *)(uintptr_t)b.data.at;
	zygote_enter(block + RESTORER_ENTRY, (uintptr_t)s, s->main_stack);
}
