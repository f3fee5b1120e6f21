/* bake.c - see bake.h.
 *
 * Only memory of which we know what it is: the C library's heap, the interpreter's own (bake_room()),
 * the data of loaded objects, and the code that all children run. Not what malloc() has mapped by
 * itself: realloc() may ask the kernel to let such a piece grow, and beyond the end of a file there is
 * nothing.
 *
 * The file is written whole, so that no page of it is ever made on behalf of a box, and sealed, so
 * that nothing can change it. Between the copy and the last mapping nothing here writes to memory
 * other than the stack, which stays as it is. */
#include "seed/bake.h"
#include "base/own.h"

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
#define ROOM ((size_t)1 << 29) /* of addresses */
#define LARGE ((uintptr_t)1 << 21) /* a large page */

struct piece {
	uintptr_t from, to;
	int prot;
	off_t at; /* in the file */
};
struct pieces {
	unsigned n;
	struct piece v[PIECES];
};

static struct {
	uintptr_t from, next, to;
} room;
static struct pieces data, plan; /* of loaded objects; all that is to be baked */
static struct pieces gaps;	 /* addresses that nothing is at, and that are kept from others */
static struct pieces hot;	 /* what children write to */
static size_t page;
static int may_execute; /* what is in the file */

void *bake_room(size_t size)
{
	void *at;

	if (!room.from) {
		at = mmap(NULL, ROOM + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

/* ---- what there is ---- */

static uintptr_t page_down(uintptr_t at)
{
	return at & ~(uintptr_t)(page - 1);
}

static int note_data(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct pieces *all = ctx;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum && all->n < PIECES; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_LOAD && h->p_flags & PF_W)
			all->v[all->n++] = (struct piece){ page_down(from),
							  page_down(from + h->p_memsz + page - 1), 0, 0 };
	}
	return 0;
}

static int is_data(const struct piece *p)
{
	for (unsigned i = 0; i < data.n; i++)
		if (p->from >= data.v[i].from && p->to <= data.v[i].to)
			return 1;
	return 0;
}

/* The program's own code and the C library's. That of others is seldom run, and where it lies already
 * it costs no memory. */
static int is_code(const struct piece *p)
{
	const uintptr_t in[] = { (uintptr_t)getauxval(AT_ENTRY), (uintptr_t)&waitpid };

	for (unsigned i = 0; i < ARRAY_LEN(in); i++)
		if (in[i] >= p->from && in[i] < p->to)
			return 1;
	return 0;
}

static int is_ours(const struct piece *p, const char *name)
{
	if (p->prot & PROT_EXEC)
		return may_execute && is_code(p);
	return strcmp(name, "[heap]") == 0 || (p->from >= room.from && p->to <= room.next) || is_data(p);
}

/* A line of /proc/self/maps. */
static void note_line(const char *line)
{
	unsigned long from, to;
	char prot[5] = "", name[16] = "";
	struct piece p;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %15s", &from, &to, prot, name) < 3)
		return;
	p = (struct piece){ from, to, PROT_READ, 0 };
	if (strcmp(prot, "---p") == 0 && gaps.n < PIECES)
		gaps.v[gaps.n++] = p;
	if (prot[0] != 'r' || prot[3] != 'p' || plan.n == PIECES)
		return;
	p.prot |= (prot[1] == 'w' ? PROT_WRITE : 0) | (prot[2] == 'x' ? PROT_EXEC : 0);
	if (is_ours(&p, name))
		plan.v[plan.n++] = p;
}

/* Seen by this process alone and for the moment: nothing of the host is mounted here. */
static int open_proc(const char *name, struct err *e)
{
	auto_fd int fs = fsopen("proc", FSOPEN_CLOEXEC), proc = -1;
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "proc");
	proc = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	fd = proc < 0 ? -1 : openat(proc, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", name) : fd;
}

static int look(struct err *e)
{
	auto_fd int fd = open_proc("self/maps", e);
	char text[4096 + LINE];
	size_t have = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	data.n = plan.n = gaps.n = 0;
	dl_iterate_phdr(note_data, &data);
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
			return err_set(e, ERR_SYS, "a line too long in maps");
		memmove(text, line, have);
	}
	return n < 0 ? err_sys(e, "read maps") : 0;
}

/* ---- into the file, and back ---- */

/* Where each piece is in the file. A large page of it can be mapped as one where address and place are
 * the same below its size. */
static size_t arrange(void)
{
	uintptr_t next = 0;

	for (unsigned i = 0; i < plan.n; i++) {
		struct piece *p = &plan.v[i];

		if (p->to - p->from >= LARGE)
			next += (p->from - next) & (LARGE - 1);
		p->at = (off_t)next;
		next += p->to - p->from;
	}
	return (next + LARGE - 1) & ~(LARGE - 1);
}

static int copy_piece(int file, const struct piece *p, struct err *e)
{
	for (uintptr_t at = p->from; at < p->to;) {
		ssize_t n = pwrite(file, (const void *)at, p->to - at, p->at + (off_t)(at - p->from));

		if (n <= 0)
			return err_sys(e, "copy %zu bytes", (size_t)(p->to - at));
		at += (uintptr_t)n;
	}
	return 0;
}

/* What is only read is mapped, and let go of, by the large page then, and what is beside a written page
 * sixteen at one look. A kernel that has no large pages for files leaves small ones. */
static void make_large(int file, size_t size)
{
	void *space = mmap(NULL, size + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *at = (void *)(((uintptr_t)space + LARGE - 1) & ~(LARGE - 1));

	if (space == MAP_FAILED)
		return;
	if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED)
		madvise(at, size, MADV_COLLAPSE);
	munmap(space, size + LARGE);
}

static int copy_out(int file, struct err *e)
{
	size_t size = arrange();

	if (ftruncate(file, (off_t)size) < 0)
		return err_sys(e, "room for %zu bytes", size);
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
		const struct piece *p = &plan.v[i];

		/* Half of a heap is none: whoever waits sees us die. */
		if (mmap((void *)p->from, p->to - p->from, p->prot, MAP_PRIVATE | MAP_FIXED, file, p->at) ==
		    MAP_FAILED)
			_exit(74);
	}
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

int bake(struct err *e)
{
	auto_fd int file = memfd_create("seed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	page = (size_t)sysconf(_SC_PAGESIZE);
	if (file < 0)
		return err_sys(e, "bake: a file in memory");
	may_execute = can_execute(file);
	if (look(e) < 0 || copy_out(file, e) < 0)
		return err_in(e, "bake");
	lay_back(file);
	drop_gaps();
	return 0;
}

/* ---- what children write to ---- */

#define PAGEMAP_FILE (UINT64_C(1) << 61)
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)

static void add(struct pieces *to, uintptr_t at)
{
	struct piece *last = to->n ? &to->v[to->n - 1] : NULL;

	/* Nothing between two: a page too many is dearer than one more call. */
	if (last && at == last->to)
		last->to = at + page;
	else if (to->n < PIECES)
		to->v[to->n++] = (struct piece){ at, at + page, 0, 0 };
}

/* In the fork. */
static int note_written(struct pieces *to, struct err *e)
{
	auto_fd int fd = open_proc("self/pagemap", e);
	uint64_t entry[512];

	if (fd < 0)
		return -1;
	for (unsigned i = 0; i < plan.n; i++)
		for (uintptr_t at = plan.v[i].from; at < plan.v[i].to;) {
			size_t left = (plan.v[i].to - at) / page, most = left < 512 ? left : 512;
			ssize_t n = pread(fd, entry, most * 8, (off_t)(at / page * 8));

			if (n < 8)
				return err_sys(e, "pagemap");
			for (ssize_t k = 0; k < n / 8; k++, at += page)
				if (entry[k] & PAGEMAP_PRESENT && !(entry[k] & PAGEMAP_FILE))
					add(to, at);
		}
	return 0;
}

int bake_learn(void (*live)(void), struct err *e)
{
	/* No box may share a page with another, so this one is gone before there is any. */
	struct pieces *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t pid;

	if (told == MAP_FAILED)
		return err_sys(e, "room for a list");
	pid = fork();
	if (pid == 0) {
		live();
		_exit(note_written(told, e) < 0);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		memcpy(&hot, told, offsetof(struct pieces, v) + told->n * sizeof(told->v[0]));
	munmap(told, sizeof(*told));
	return hot.n ? 0 : err_set(e, ERR_SYS, "nothing was learnt (%d)", status);
}

void bake_warm(void)
{
	for (unsigned i = 0; i < hot.n; i++)
		/* Where it fails, they are copied one by one. */
		madvise((void *)hot.v[i].from, hot.v[i].to - hot.v[i].from, MADV_POPULATE_WRITE);
}
