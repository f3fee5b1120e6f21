/* zygote_memory.c - see zygote_memory.h.
 *
 * The block (code, state, lists, frames, stacks) goes into a hole that neither the image nor this
 * process uses. From there the build list runs: the pages of the kernel move aside, everything else is
 * unmapped, the areas of the image are mapped and filled, the pages of the kernel move to their places. */
#include "procimage/zygote_memory.h"
#include "base/cleanup.h"
#include "procimage/arch.h"
#include "procimage/confine_list.h"
#include "procimage/image_zygote.h"
#include "procimage/keep.h"
#include "procimage/plan.h"
#include "procimage/zygote_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LARGE_PAGE = 2 << 20,
	HOLE_MARGIN = 1 << 30, /* to the next area, so that heaps and stacks can grow */
	CONTROL = 3,           /* descriptors of the zygote */
	LAST_PID = 4,
};

/* ---- the hole ---- */

struct spans {
	struct span at[ZYGOTE_SPANS];
	unsigned n;
};

static int spans_add(struct spans *x, uint64_t start, uint64_t end, struct err *e)
{
	if (x->n == ZYGOTE_SPANS)
		return err_set(e, ERR_CONFLICT,
			       "not_capturable: %s (more than %d in the processes of one exec): %s",
			       keep_rows[KEEP_TOO_MANY].thing, ZYGOTE_SPANS,
			       keep_rows[KEEP_TOO_MANY].text);
	x->at[x->n++] = (struct span){ start, end };
	return 0;
}

static int zygote_read_own(struct builder *b, struct spans *x, struct err *e)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4300];
	int rc = 0;

	if (!maps)
		return err_sys(e, "read /proc/self/maps");
	while (rc == 0 && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) != 2 || strstr(line, "[vsyscall]"))
			continue;
		rc = spans_add(x, start, end, e);
		if ((strstr(line, "[vvar") || strstr(line, "[vdso]")) &&
		    b->nkernel < ARRAY_LEN(b->kernel))
			b->kernel[b->nkernel++] = (struct span){ start, end };
	}
	fclose(maps);
	return rc;
}

static int spans_compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The middle of the largest gap that all address spaces have. */
static uint64_t zygote_find_hole(struct spans *x, uint64_t bytes)
{
	uint64_t before = 1 << 20, best = 0, at = 0;

	qsort(x->at, x->n, sizeof(x->at[0]), spans_compare);
	for (unsigned i = 0; i <= x->n; i++) {
		uint64_t start = i < x->n ? x->at[i].start : ARCH_USER_END;

		if (start > before && start - before > best) {
			best = start - before;
			at = before + best / 2;
		}
		if (i < x->n && x->at[i].end > before)
			before = x->at[i].end;
	}
	at &= ~(uint64_t)(LARGE_PAGE - 1);
	return best > bytes + 2 * (uint64_t)HOLE_MARGIN ? at : 0;
}

/* Every name and every piece of data is copied once for each record that has it. */
static uint64_t zygote_bound_strings(const struct image *im)
{
	uint64_t bytes = strlen(image_string(im, image_program(im)->folder)) + 4096;

	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++)
		if (image_areas(im)[i].kind == AREA_FILE_SHARED)
			bytes += strlen(
				image_string(im, image_files(im)[image_areas(im)[i].file].path));
	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++)
		bytes += strlen(image_string(im, image_descriptors(im)[i].path)) +
			 2 * (uint64_t)image_descriptors(im)[i].data_bytes;
	for (uint64_t i = 0; i < im->header.count[TABLE_NOTIFY]; i++)
		bytes += strlen(image_string(im, image_notify(im)[i].path)) + 1;
	return bytes;
}

/* Numbers that no timer and no watch has are taken for a moment, too. */
static uint64_t zygote_bound_numbers(const struct image *im)
{
	uint64_t timers = im->header.count[TABLE_TIMERS], numbers = 0, before = 0;

	for (uint64_t i = 0; i < im->header.count[TABLE_NOTIFY]; i++) {
		const struct image_notify *n = &image_notify(im)[i];

		if (i && n->descriptor != n[-1].descriptor)
			before = 0;
		numbers += (uint64_t)n->number - before;
		before = (uint64_t)n->number;
	}
	return 4 * numbers + (timers ? 4 * (uint64_t)image_timers(im)[timers - 1].number + 8 : 0);
}

uint64_t zygote_memory_bound(const struct image *im)
{
	const uint64_t *n = im->header.count;
	uint64_t call = sizeof(struct restorer_call);

	return (1 << 20) + 2 * zygote_bound_strings(im) + n[TABLE_AREAS] * 8 * (call + 64) +
	       n[TABLE_RUNS] * (2 * call + 64) + n[TABLE_DESCRIPTORS] * 24 * (call + 64) +
	       n[TABLE_WATCHES] * 2 * (call + 64) + zygote_bound_numbers(im) * (call + 64) +
	       n[TABLE_THREADS] * (ARCH_FRAME_MOST + 3 * (uint64_t)RESTORER_STACK + 256 * call);
}

/* ---- files ---- */

/* All descriptors of the caller were closed. */
static int zygote_open_of_parent(int number, struct err *e)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open a part of a process image") : fd;
}

static const struct image_stored_file *zygote_find_stored(const struct builder *b,
							  const struct image_file *f)
{
	const char *path = image_string(b->im, f->path);

	for (unsigned i = 0; b->instead && i < b->instead->nfiles; i++) {
		const struct image_stored_file *x = &b->instead->files[i];

		if (!strcmp(x->path, path) && x->size == f->size && x->mtime_ns == f->mtime_ns)
			return x;
	}
	return NULL;
}

static int zygote_open_file(const struct builder *b, uint64_t i, int exact, struct err *e)
{
	const struct image_file *f = &image_files(b->im)[i];
	const struct image_stored_file *stored = zygote_find_stored(b, f);
	const char *path = image_string(b->im, f->path);
	struct stat st;
	int fd;

	if (stored)
		return zygote_open_of_parent(stored->fd, e);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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

/* Its name is only shown, if its pages are stored: the file that the machine has now under this name, if there is one. */
static int zygote_open_exe(const struct builder *b, int exact, struct err *e)
{
	uint64_t i = image_program(b->im)->exe;
	const char *path = image_string(b->im, image_files(b->im)[i].path);
	int fd;

	if (!zygote_find_stored(b, &image_files(b->im)[i]))
		return zygote_open_file(b, i, exact, e);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? zygote_open_file(b, i, exact, e) : fd;
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
		    (b->files[a->file] = zygote_open_file(b, a->file, exact, e)) < 0)
			return -1;
	}
	if (b->instead && b->instead->vdso >= 0 &&
	    (b->vdso = zygote_open_of_parent(b->instead->vdso, e)) < 0)
		return -1;
	if (image_files(im)[image_program(im)->exe].place == IMAGE_FILE_BOX)
		return 0;
	b->exe = zygote_open_exe(b, exact, e);
	return b->exe < 0 ? -1 : 0;
}

/* ---- the block ---- */

static void zygote_add_threads(const struct image *im, struct call_data *data,
			       struct restorer_process *p)
{
	uint64_t n = im->header.count[TABLE_THREADS];
	struct restorer_thread *threads = calloc(n, sizeof(*threads));
	const struct arch_code none = { 0 };
	static char frame[ARCH_FRAME_MOST];

	if (!threads)
		abort();
	for (uint64_t i = 0; i < n; i++) {
		const struct image_thread *t = &image_threads(im)[i];
		struct call_list l = { 0 };
		uint64_t at = call_data_add(data, NULL, ARCH_FRAME_MOST, 64);

		arch_build_frame(frame, at, &none, t,
				 (const char *)im->table[TABLE_VECTORS].at + t->vector_at);
		memcpy(call_data_pointer(data, at), frame, ARCH_FRAME_MOST);
		plan_add_thread(im, t, &l, data);
		threads[i] = (struct restorer_thread){
			.tid = t->tid,
			.frame = arch_frame_stack(at),
			.tls = t->tls,
			.stack = call_data_add(data, NULL, RESTORER_STACK, 64) + RESTORER_STACK,
			.calls = call_data_add_list(data, &l),
		};
		call_list_fini(&l);
	}
	p->nthreads = (uint32_t)n;
	p->threads = call_data_add(data, threads, n * sizeof(*threads), 16);
	free(threads);
}

static uint64_t zygote_add_stack(struct call_data *d, uint64_t bytes)
{
	return call_data_add(d, NULL, bytes, 64) + bytes;
}

/* Where the pages of the kernel are when the parent of this process forks it. */
static void zygote_kernel_of(struct builder *b, const struct image *parent)
{
	b->nkernel = 0;
	for (uint64_t i = 0; i < parent->header.count[TABLE_AREAS]; i++) {
		const struct image_area *a = &image_areas(parent)[i];

		if (a->kind == AREA_KERNEL && b->nkernel < ARRAY_LEN(b->kernel))
			b->kernel[b->nkernel++] = (struct span){ a->start, a->end };
	}
}

static const struct image *zygote_parent_of(const struct image *const *v, unsigned k)
{
	for (unsigned i = 0; i < k; i++)
		if (image_program(v[i])->pid == image_program(v[k])->parent)
			return v[i];
	return v[0];
}

struct zygote {
	const struct image *const *v;
	unsigned n;
	struct builder b[IMAGE_PROCESSES_MOST];
	struct restorer_process processes[RESTORER_PROCESSES];
	struct call_data data;
	struct spans spans;
	uint64_t code_bytes, block, block_bytes;
};

static int zygote_add_process(struct zygote *z, const struct plan_tree *t, unsigned k,
			      struct restorer_process *p, struct restorer_list *first,
			      struct err *e)
{
	struct builder *b = &z->b[k];
	struct call_list plan = { 0 }, own = { 0 };

	if (k)
		zygote_kernel_of(b, zygote_parent_of(z->v, k));
	if (zygote_make_build_list(b, z->block, z->block_bytes, e) < 0)
		return -1;
	/* The memory of the first one is that of the zygote. */
	if (k) {
		p->build = call_data_add_list(&z->data, &b->build);
	} else {
		if (z->n == 1)
			CALL(&b->build, SYS_close_range, RESTORER_SUCCEED, ZYGOTE_FIRST_FILE, ~0U,
			     0);
		*first = call_data_add_list(&z->data, &b->build);
		zygote_add_own_program(b, &own);
		p->build = call_data_add_list(&z->data, &own);
	}
	plan_add_program(t, z->v[k], &plan, &z->data);
	p->plan = call_data_add_list(&z->data, &plan);
	zygote_add_threads(z->v[k], &z->data, p);
	call_list_fini(&plan);
	call_list_fini(&own);
	return 0;
}

/* Their slaves follow the descriptors from outside. */
static void zygote_add_terminals(struct zygote *z, const unsigned index[])
{
	unsigned at = plan_count_outside(z->v, z->n);

	for (unsigned k = 0; k < z->n; k++)
		if (plan_leads_terminal(z->v[k])) {
			z->processes[index[k]].terminal = ++at;
			z->processes[index[k]].foreground = image_program(z->v[k])->foreground;
		}
}

static int zygote_fill_block(struct zygote *z, int least_high, struct err *e)
{
	struct plan_tree t = plan_tree_of(z->v, z->n, least_high);
	struct restorer_state s = { .magic = RESTORER_MAGIC,
				    .block = z->block,
				    .block_bytes = z->block_bytes,
				    .control = CONTROL,
				    .last_pid = LAST_PID,
				    .first_high = t.high,
				    .pid = image_program(z->v[0])->pid,
				    .programs = z->n,
				    .sync = z->block + z->block_bytes - 4096 };
	struct call_list objects = { 0 }, confine = { 0 }, domain = { 0 };
	uint64_t at = call_data_add(&z->data, NULL, sizeof(s), 64);
	unsigned index[IMAGE_PROCESSES_MOST];
	int count = zygote_make_processes(z->v, z->n, z->processes, index, e);

	if (count < 0)
		return -1;
	s.nprocesses = (uint32_t)count;
	zygote_add_terminals(z, index);
	for (unsigned k = 0; k < z->n; k++)
		if (zygote_add_process(z, &t, k, &z->processes[index[k]], &s.build, e) < 0)
			return -1;
	if (z->b[0].confine) {
		confine_list_add_domain(z->b[0].confine, &domain, &z->data);
		confine_list_add(z->b[0].confine, &confine, &z->data);
	}
	s.domain = call_data_add_list(&z->data, &domain);
	call_list_fini(&domain);
	s.confine = call_data_add_list(&z->data, &confine);
	call_list_fini(&confine);
	plan_add_objects(&t, &objects, &z->data);
	s.objects = call_data_add_list(&z->data, &objects);
	call_list_fini(&objects);
	s.processes =
		call_data_add(&z->data, z->processes, s.nprocesses * sizeof(z->processes[0]), 16);
	s.main_stack = zygote_add_stack(&z->data, 2 * RESTORER_STACK);
	s.helper_stack = zygote_add_stack(&z->data, RESTORER_STACK);
	s.inner_stack = zygote_add_stack(&z->data, RESTORER_TREE_STACK);
	memcpy(call_data_pointer(&z->data, at), &s, sizeof(s));
	return 0;
}

/* Its file belongs to the user of the process, and the caller has no capability to pass over modes. */
static int zygote_open_memory(pid_t process, struct err *e)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
	if (stat(path, &st) < 0)
		return err_sys(e, "open the memory of the snapshot child");
	setfsuid(st.st_uid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(e, "open the memory of the snapshot child");
	setfsuid(geteuid());
	return fd;
}

/* Above all numbers that are used. */
static int zygote_place_pages(const struct image_pages *pages, struct err *e)
{
	auto_fd int memory = -1;
	int fd;

	if (pages->process && (memory = zygote_open_memory(pages->process, e)) < 0)
		return -1;
	fd = fcntl(pages->process ? memory : pages->file, F_DUPFD_CLOEXEC, 128);
	return fd < 0 ? err_sys(e, "place the pages of the checkpoint zygote") : fd;
}

/* Descriptors: the socket, ns_last_pid, files of pages, and above them the mapped files. Returns the number after
 * the pages. */
static int zygote_place_descriptors(int *control, const struct image_pages *pages, unsigned n,
				    struct err *e)
{
	int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int high = fcntl(*control, F_DUPFD_CLOEXEC, 128),
	    last_high = fcntl(last, F_DUPFD_CLOEXEC, 128), file[IMAGE_PROCESSES_MOST];
	struct rlimit l;

	if (last < 0 || high < 0 || last_high < 0)
		return err_sys(e, "open ns_last_pid (CONFIG_CHECKPOINT_RESTORE)");
	*control = high;
	for (unsigned i = 0; i < n; i++)
		if ((file[i] = zygote_place_pages(&pages[i], e)) < 0)
			return -1;
	if (dup2(high, CONTROL) < 0 || dup2(last_high, LAST_PID) < 0)
		return err_sys(e, "place the descriptors of the checkpoint zygote");
	*control = CONTROL;
	for (unsigned i = 0; i < n; i++)
		if (dup2(file[i], ZYGOTE_PAGES + (int)i) < 0)
			return err_sys(e, "place the pages of the checkpoint zygote");
	close(0);
	close(1);
	close(2);
	syscall(SYS_close_range, ZYGOTE_PAGES + n, ~0U, 0);
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

static int zygote_map_block(const struct zygote *z, uint64_t block, uint64_t bytes, struct err *e)
{
	void *at = mmap((void *)(uintptr_t)block, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)(uintptr_t)block)
		return err_sys(e, "map %llu bytes for the code of the checkpoint zygote",
			       (unsigned long long)bytes);
	memcpy(at, restorer_image, (size_t)(restorer_image_end - restorer_image));
	memcpy((char *)at + z->code_bytes, z->data.bytes, z->data.len);
	if (mprotect(at, z->code_bytes, PROT_READ | PROT_EXEC) < 0)
		return err_sys(e, "make the code of the checkpoint zygote executable");
	return 0;
}

uint64_t zygote_kernel_bytes(const struct builder *b)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < b->nkernel; i++)
		bytes += b->kernel[i].end - b->kernel[i].start;
	return bytes;
}

/* A number above all descriptors of this process. */
static int zygote_next_number(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), most = fd;

	/* Files were opened one after the other: the lowest free number is above all of them. */
	close(fd);
	return most + 64 + 2 + RESTORER_TASKS + RESTORER_OUTSIDE;
}

static int zygote_find_block(struct zygote *z, const struct confine_spec *confine,
			     uint64_t *out_bytes, struct err *e)
{
	uint64_t page = z->v[0]->header.page_bytes, kernel, bound = sizeof(z->processes);

	if (confine)
		bound += confine_list_bound(confine);
	for (unsigned k = 0; k < z->n; k++) {
		bound += zygote_memory_bound(z->v[k]);
		for (uint64_t i = 0; i < z->v[k]->header.count[TABLE_AREAS]; i++)
			if (spans_add(&z->spans, image_areas(z->v[k])[i].start,
				      image_areas(z->v[k])[i].end, e) < 0)
				return -1;
	}
	kernel = zygote_kernel_bytes(&z->b[0]);
	z->block = zygote_find_hole(&z->spans, bound + kernel);
	if (!z->block)
		return err_set(e, ERR_CONFLICT, "not_capturable: process %d: %s: %s",
			       image_program(z->v[0])->pid, keep_rows[KEEP_NO_HOLE].thing,
			       keep_rows[KEEP_NO_HOLE].text);
	*out_bytes = (z->code_bytes + bound + page - 1) & ~(page - 1);
	z->block_bytes = *out_bytes + kernel + page; /* the last one is struct restorer_sync */
	z->data.at = z->block + z->code_bytes;
	z->data.most = bound;
	for (unsigned k = 0; k < z->n; k++)
		z->b[k].aside = z->block + *out_bytes;
	return 0;
}

void zygote_memory_become(const struct image_tree *tree, const struct confine_spec *confine,
			  int *control, struct err *e)
{
	static struct zygote z;
	uint64_t page = tree->image[0]->header.page_bytes, bytes = 0;
	struct restorer_state *s;

	z = (struct zygote){ .v = tree->image, .n = tree->n };
	for (unsigned k = 0; k < z.n; k++)
		z.b[k] = (struct builder){ .im = z.v[k],
					   .confine = confine,
					   .in_process = tree->pages[k].process > 0,
					   .pages = ZYGOTE_PAGES + (int)k,
					   .data = &z.data,
					   .exe = -1,
					   .vdso = -1,
					   .instead = tree->instead,
					   .below = k > 0 };
	z.code_bytes = ((uint64_t)(restorer_image_end - restorer_image) + page - 1) & ~(page - 1);
	if (zygote_read_own(&z.b[0], &z.spans, e) < 0 ||
	    zygote_find_block(&z, confine, &bytes, e) < 0 ||
	    zygote_place_descriptors(control, tree->pages, z.n, e) < 0)
		return;
	for (unsigned k = 0; k < z.n; k++)
		if (zygote_open_files(&z.b[k], e) < 0)
			return;
	if (zygote_fill_block(&z, zygote_next_number(), e) < 0 ||
	    zygote_map_block(&z, z.block, bytes, e) < 0 || zygote_leave_library(e) < 0)
		return;
	s = (struct restorer_state *)(uintptr_t)z.data.at;
	zygote_enter(z.block + RESTORER_ENTRY, (uintptr_t)s, s->main_stack);
}
