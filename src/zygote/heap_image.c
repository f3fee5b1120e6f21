/* heap_image.c - see heap_image.h.
 *
 * Only memory of which we know what it is: the C library's heap, the interpreter's own (heap_image_room()),
 * the data of loaded objects, and the code that all children run. Not what malloc() has mapped by
 * itself: realloc() may ask the kernel to let such a piece grow, and beyond the end of a file there is
 * nothing.
 *
 * The file is written whole, so that no page of it is ever made on behalf of a box, and sealed, so
 * that nothing can change it. Between the copy and the last mapping nothing here writes to memory
 * other than the stack, which stays as it is. */
#include "zygote/heap_image.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PIECES = 4096, LINE = 512 };
#define ROOM ((size_t)1 << 29)     /* of addresses */
#define LARGE ((uintptr_t)1 << 21) /* a large page */
#define SMALL ((uintptr_t)1 << 18)

struct image_piece {
	uintptr_t from, to;
	int prot;
	off_t at; /* in the file */
};
struct pieces {
	unsigned n;
	struct image_piece v[PIECES];
};

static struct {
	uintptr_t from, next, to;
} room;
static struct pieces data, code; /* of loaded objects: writable data; code, and data read with it */
static struct pieces plan;       /* all mappings for the image */
static struct pieces gaps;       /* reserved addresses */
static struct pieces spare;      /* free memory */
static struct pieces hot;        /* what children write to */
static size_t page;
static int may_execute; /* what is in the file */

static uintptr_t page_down(uintptr_t at)
{
	return at & ~(uintptr_t)(page - 1);
}

void *heap_image_room(size_t size)
{
	void *at;

	if (!room.from) {
		at = mmap(NULL, ROOM + LARGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return NULL;
		room.from = room.next = ((uintptr_t)at + LARGE - 1) & ~(LARGE - 1);
		room.to = room.from + ROOM;
	}
	size = (size + 4095) & ~(size_t)4095;
	at = (void *)room.next;
	if (size > room.to - room.next || mprotect(at, size, PROT_READ | PROT_WRITE) < 0)
		return NULL;
	room.next += size;
	return at;
}

void heap_image_spare(void *from, void *to)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	if (spare.n < PIECES)
		spare.v[spare.n++] = (struct image_piece){ page_down((uintptr_t)from + page - 1),
							   page_down((uintptr_t)to), 0, 0 };
}

/* ---- the mappings of the process ---- */

/* The program's own code and the C library's. */
static int is_busy(const struct pieces *of)
{
	const uintptr_t in[] = { (uintptr_t)getauxval(AT_ENTRY), (uintptr_t)&waitpid };

	for (unsigned i = 0; i < of->n; i++)
		for (unsigned k = 0; k < ARRAY_LEN(in); k++)
			if (in[k] >= of->v[i].from && in[k] < of->v[i].to)
				return 1;
	return 0;
}

static uintptr_t image_span(const struct pieces *of)
{
	return of->n ? of->v[of->n - 1].to - of->v[0].from : 0;
}

/* Code of other libraries is seldom executed, and it costs no memory where it is mapped. But a
 * small library takes three mappings there, and one in the image. */
static int note_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	static struct pieces fixed; /* too large for a stack */

	(void)size;
	(void)ctx;
	fixed.n = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + h->p_vaddr;
		struct pieces *to = h->p_flags & PF_W ? &data : &fixed;

		if (h->p_type == PT_LOAD && to->n < PIECES)
			to->v[to->n++] = (struct image_piece){
				page_down(from), page_down(from + h->p_memsz + page - 1), 0, 0
			};
	}
	if (may_execute && (is_busy(&fixed) || image_span(&fixed) <= SMALL))
		for (unsigned i = 0; i < fixed.n && code.n < PIECES; i++)
			code.v[code.n++] = fixed.v[i];
	return 0;
}

static int is_in(const struct pieces *all, const struct image_piece *p)
{
	for (unsigned i = 0; i < all->n; i++)
		if (p->from >= all->v[i].from && p->to <= all->v[i].to)
			return 1;
	return 0;
}

static int is_ours(const struct image_piece *p, const char *name)
{
	if (name[0] == '[')
		return strcmp(name, "[heap]") == 0; /* and not the kernel's own mappings */
	if (p->prot & PROT_EXEC)
		return is_in(&code, p);
	return (p->from >= room.from && p->to <= room.next) || is_in(&data, p);
}

/* Adjacent ranges are one mapping. */
static void plan_piece(struct image_piece p)
{
	struct image_piece *last = plan.n ? &plan.v[plan.n - 1] : NULL;

	if (p.from >= p.to)
		return;
	if (last && last->to == p.from && last->prot == p.prot)
		last->to = p.to;
	else if (plan.n < PIECES)
		plan.v[plan.n++] = p;
}

/* Everything except spare memory. */
static void plan_rest(struct image_piece p)
{
	for (unsigned i = 0; i < spare.n; i++) {
		const struct image_piece *s = &spare.v[i];

		if (s->from >= p.to || s->to <= p.from)
			continue;
		plan_rest((struct image_piece){ p.from, s->from, p.prot, 0 });
		p.from = s->to;
	}
	plan_piece(p);
}

/* A line of /proc/self/maps. */
static void note_line(const char *line)
{
	unsigned long from, to;
	char prot[5] = "", name[16] = "";
	struct image_piece p;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %15s", &from, &to, prot, name) < 3)
		return;
	p = (struct image_piece){ from, to, PROT_READ, 0 };
	if (strcmp(prot, "---p") == 0 && gaps.n < PIECES)
		gaps.v[gaps.n++] = p;
	if (prot[0] != 'r' || prot[3] != 'p')
		return;
	p.prot |= (prot[1] == 'w' ? PROT_WRITE : 0) | (prot[2] == 'x' ? PROT_EXEC : 0);
	/* Read-only data around code can be in the large pages of the image. */
	if (is_in(&code, &p))
		p.prot |= PROT_EXEC;
	if (is_ours(&p, name))
		plan_rest(p);
}

/* Visible to this process only, and unmounted again: the zygote's box has no mounts of the host. */
static int open_proc(const char *name, struct err *e)
{
	auto_fd int fs = fsopen("proc", FSOPEN_CLOEXEC), proc = -1;
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "proc");
	proc = fsmount(fs, FSMOUNT_CLOEXEC,
		       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	fd = proc < 0 ? -1 : openat(proc, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", name) : fd;
}

static int image_look(struct err *e)
{
	auto_fd int fd = open_proc("self/maps", e);
	char text[4096 + LINE];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	data.n = code.n = plan.n = gaps.n = 0;
	dl_iterate_phdr(note_object, NULL);
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *nl;

		have += (size_t)n;
		text[have] = 0;
		for (; (nl = strchr(line, '\n')); line = nl + 1) {
			*nl = 0;
			note_line(line);
		}
		have -= (size_t)(line - text);
		if (have >= LINE)
			return err_set(e, ERR_SYS, "a line of maps is too long");
		memmove(text, line, have);
	}
	return n < 0 ? err_sys(e, "read maps") : 0;
}

/* ---- into the file, and back ---- */

/* The position of each piece in the file. A large page can be mapped as one if address and
 * position are equal modulo its size. */
static size_t image_arrange(void)
{
	uintptr_t next = 0;

	for (unsigned i = 0; i < plan.n; i++) {
		struct image_piece *p = &plan.v[i];

		if (p->to - p->from >= LARGE)
			next += (p->from - next) & (LARGE - 1);
		p->at = (off_t)next;
		next += p->to - p->from;
	}
	return (next + LARGE - 1) & ~(LARGE - 1);
}

static int copy_piece(int file, const struct image_piece *p, struct err *e)
{
	for (uintptr_t at = p->from; at < p->to;) {
		ssize_t n =
			pwrite(file, (const void *)at, p->to - at, p->at + (off_t)(at - p->from));

		if (n <= 0)
			return err_sys(e, "copy %zu bytes", (size_t)(p->to - at));
		at += (uintptr_t)n;
	}
	return 0;
}

/* Collapses the image into large pages. Then a child maps and unmaps pages that it only reads one
 * large page at a time, and faults in sixteen pages next to a written one. A kernel without large
 * pages for files keeps small ones. */
static void make_large(int file, size_t size)
{
	void *space = mmap(NULL, size + LARGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *at = (void *)(((uintptr_t)space + LARGE - 1) & ~(LARGE - 1));

	if (space == MAP_FAILED)
		return;
	if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED)
		madvise(at, size, MADV_COLLAPSE);
	munmap(space, size + LARGE);
}

static int copy_out(int file, struct err *e)
{
	size_t size = image_arrange();

	if (ftruncate(file, (off_t)size) < 0)
		return err_sys(e, "reserve %zu bytes of address space", size);
	for (unsigned i = 0; i < plan.n; i++)
		if (copy_piece(file, &plan.v[i], e) < 0)
			return -1;
	make_large(file, size);
	if (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_sys(e, "seal");
	return 0;
}

static void lay_back(int file)
{
	for (unsigned i = 0; i < plan.n; i++) {
		const struct image_piece *p = &plan.v[i];

		/* A partly mapped heap is unusable: the zygote exits. */
		if (mmap((void *)p->from, p->to - p->from, p->prot, MAP_PRIVATE | MAP_FIXED, file,
			 p->at) == MAP_FAILED)
			_exit(74);
	}
}

static void drop_spare(void)
{
	for (unsigned i = 0; i < spare.n; i++)
		madvise((void *)spare.v[i].from, spare.v[i].to - spare.v[i].from, MADV_DONTNEED);
}

static void drop_gaps(void)
{
	for (unsigned i = 0; i < gaps.n; i++)
		munmap((void *)gaps.v[i].from, gaps.v[i].to - gaps.v[i].from);
	room.to = room.next;
}

/* Some hosts forbid it for files in memory. */
static int can_execute(int file)
{
	void *at = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	return at != MAP_FAILED && munmap(at, page) == 0;
}

int heap_image_take(struct err *e)
{
	auto_fd int file = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	page = (size_t)sysconf(_SC_PAGESIZE);
	if (file < 0)
		return err_sys(e, "create a file in memory");
	may_execute = can_execute(file);
	if (image_look(e) < 0 || copy_out(file, e) < 0)
		return err_in(e, "bake");
	lay_back(file);
	drop_spare();
	drop_gaps();
	return 0;
}

/* ---- what children write to ---- */

#define PAGEMAP_FILE (UINT64_C(1) << 61)
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)

static void image_add(struct pieces *to, uintptr_t at)
{
	struct image_piece *last = to->n ? &to->v[to->n - 1] : NULL;

	/* Only adjacent pages are joined: copying one page too many costs more than one more
	 * call. */
	if (last && at == last->to)
		last->to = at + page;
	else if (to->n < PIECES)
		to->v[to->n++] = (struct image_piece){ at, at + page, 0, 0 };
}

static int note_piece(int pagemap, const struct image_piece *p, struct pieces *to, struct err *e)
{
	uint64_t entry[512];

	for (uintptr_t at = p->from; at < p->to;) {
		size_t left = (p->to - at) / page, most = left < 512 ? left : 512;
		ssize_t n = pread(pagemap, entry, most * 8, (off_t)(at / page * 8));

		if (n < 8)
			return err_sys(e, "pagemap");
		for (ssize_t k = 0; k < n / 8; k++, at += page)
			if (entry[k] & PAGEMAP_PRESENT && !(entry[k] & PAGEMAP_FILE))
				image_add(to, at);
	}
	return 0;
}

/* In the fork. */
static int note_written(struct pieces *to, struct err *e)
{
	auto_fd int fd = open_proc("self/pagemap", e);
	int rc = fd < 0 ? -1 : 0;

	for (unsigned i = 0; rc == 0 && i < plan.n; i++)
		rc = note_piece(fd, &plan.v[i], to, e);
	for (unsigned i = 0; rc == 0 && i < spare.n; i++)
		rc = note_piece(fd, &spare.v[i], to, e);
	return rc;
}

static int live_apart(void (*live)(unsigned which), unsigned which, struct pieces *told,
		      struct err *e)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		live(which);
		_exit(note_written(told, e) < 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(e, ERR_SYS, "a trial ended with %d", status);
	return 0;
}

static int image_holds(const struct pieces *in, uintptr_t at)
{
	for (unsigned i = 0; i < in->n; i++)
		if (at >= in->v[i].from && at < in->v[i].to)
			return 1;
	return 0;
}

/* The first page after that which is in any of them; 0: none. */
static uintptr_t next_page(const struct pieces *told, uintptr_t behind)
{
	uintptr_t next = 0;

	for (unsigned k = 0; k < BAKE_LIVES; k++)
		for (unsigned i = 0; i < told[k].n; i++) {
			const struct image_piece *p = &told[k].v[i];
			uintptr_t at = p->from > behind ? p->from : behind + page;

			if (at < p->to && (!next || at < next))
				next = at;
		}
	return next;
}

static void choose_hot(const struct pieces *told)
{
	for (uintptr_t at = next_page(told, 0); at; at = next_page(told, at)) {
		unsigned lives = 0;

		for (unsigned k = 0; k < BAKE_LIVES; k++)
			lives += (unsigned)image_holds(&told[k], at);
		if (lives * 2 >= BAKE_LIVES)
			image_add(&hot, at);
	}
}

int heap_image_learn(void (*live)(unsigned which), struct err *e)
{
	const size_t size = BAKE_LIVES * sizeof(struct pieces);
	/* Boxes must not share this page, so it is unmapped before the first box. */
	struct pieces *told =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc = 0;

	if (told == MAP_FAILED)
		return err_sys(e, "allocate a list");
	for (unsigned k = 0; rc == 0 && k < BAKE_LIVES; k++)
		rc = live_apart(live, k, &told[k], e);
	if (rc == 0)
		choose_hot(told);
	munmap(told, size);
	return rc;
}

void heap_image_warm(void)
{
	for (unsigned i = 0; i < hot.n; i++)
		/* If it fails, the pages are copied one by one. */
		madvise((void *)hot.v[i].from, hot.v[i].to - hot.v[i].from, MADV_POPULATE_WRITE);
}
