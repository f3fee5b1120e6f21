/* procimage_check.c - the rules of every record of a process image. */
#include "base/err.h"
#include "procimage/arch.h"
#include "procimage/image.h"

#include <string.h>
#include <sys/mman.h>

#define BAD(...) err_set(e, ERR_INVALID, "process image: " __VA_ARGS__)

static int image_check_string(const struct image *im, uint32_t at)
{
	uint64_t len = im->header.count[TABLE_STRINGS];

	return at < len && memchr(image_string(im, at), 0, len - at) ? 0 : -1;
}

static int image_check_path(const struct image *im, uint32_t at, struct err *e)
{
	if (image_check_string(im, at) < 0)
		return BAD("a name lies beyond the strings");
	if (image_string(im, at)[0] != '/' || strlen(image_string(im, at)) > 4095)
		return BAD("a name is no absolute path");
	return 0;
}

static int image_check_data(const struct image *im, uint64_t at, uint64_t bytes)
{
	uint64_t len = im->header.count[TABLE_STRINGS];

	return at <= len && bytes <= len - at ? 0 : -1;
}

static int image_check_areas(const struct image *im, struct err *e)
{
	const struct image_area *a = image_areas(im);
	uint64_t page = im->header.page_bytes, before = page;

	for (uint64_t i = 0; i < im->header.count[TABLE_AREAS]; i++, a++) {
		if (a->start < before || a->end <= a->start || a->end > ARCH_USER_END ||
		    (a->start | a->end) % page)
			return BAD("area %llu has bounds %#llx to %#llx", (unsigned long long)i,
				   (unsigned long long)a->start, (unsigned long long)a->end);
		before = a->end;
		if (a->kind < AREA_ANON || a->kind >= AREA_KINDS ||
		    a->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC) ||
		    a->flags & ~(uint32_t)AREA_FLAGS ||
		    (a->kind != AREA_SHARED && (a->at_page || a->flags & AREA_ELSEWHERE)))
			return BAD("area %llu has an unknown kind", (unsigned long long)i);
		if ((a->kind == AREA_FILE || a->kind == AREA_FILE_SHARED) &&
		    (a->file >= im->header.count[TABLE_FILES] || a->offset % page ||
		     (a->kind == AREA_FILE &&
		      image_files(im)[a->file].place != IMAGE_FILE_SHARED) ||
		     a->offset > UINT64_MAX / 2))
			return BAD("area %llu has no file", (unsigned long long)i);
	}
	return 0;
}

/* Runs are in order and each lies in one kind of memory that has content. */
static int image_check_runs(const struct image *im, struct err *e)
{
	const struct image_area *a = image_areas(im), *end = a + im->header.count[TABLE_AREAS];
	uint64_t page = im->header.page_bytes, before = 0, total = 0;

	for (uint64_t i = 0; i < im->header.count[TABLE_RUNS]; i++) {
		const struct image_run *r = &image_runs(im)[i];
		uint64_t at = r->start, stop;

		if (r->start % page || !r->pages || r->pages > IMAGE_MEMORY_MOST / page ||
		    r->start < before || r->start >= ARCH_USER_END)
			return BAD("run %llu begins at %#llx", (unsigned long long)i,
				   (unsigned long long)r->start);
		before = stop = r->start + r->pages * page;
		total += r->pages;
		while (at < stop) {
			while (a < end && a->end <= at)
				a++;
			if (a == end || a->start > at || a->kind == AREA_KERNEL ||
			    a->kind == AREA_FILE_SHARED)
				return BAD("run %llu lies outside of memory, at %#llx",
					   (unsigned long long)i, (unsigned long long)at);
			at = a->end;
		}
	}
	return total > IMAGE_MEMORY_MOST / page ? BAD("more than 8 GiB of memory") : 0;
}

static int image_check_files(const struct image *im, struct err *e)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_FILES]; i++)
		if (image_files(im)[i].place > IMAGE_FILE_BOX ||
		    image_check_path(im, image_files(im)[i].path, e) < 0)
			return BAD("file %llu has no valid name", (unsigned long long)i);
	return 0;
}

static int image_check_threads(const struct image *im, struct err *e)
{
	const struct image_thread *t = image_threads(im);
	uint64_t n = im->header.count[TABLE_THREADS];

	if (!n || t[0].tid != image_program(im)->pid)
		return BAD("the first thread is not the process");
	for (uint64_t i = 0; i < n; i++, t++) {
		if (t->tid < 1 || t->tid > 1 << 22 || (i > 1 && t->tid <= t[-1].tid) ||
		    (i && t->tid == image_threads(im)[0].tid))
			return BAD("thread %llu has tid %d", (unsigned long long)i, t->tid);
		if (t->vector_bytes > IMAGE_VECTOR || t->vector_at % 64 ||
		    t->vector_at > im->header.count[TABLE_VECTORS] ||
		    t->vector_bytes > im->header.count[TABLE_VECTORS] - t->vector_at)
			return BAD("vector registers of thread %d lie outside", t->tid);
		if (!memchr(t->name, 0, sizeof(t->name)))
			return BAD("the name of thread %d does not end", t->tid);
		if (arch_check_thread(t, (const char *)im->table[TABLE_VECTORS].at + t->vector_at) <
		    0)
			return BAD("registers of thread %d", t->tid);
	}
	return 0;
}

static int image_check_descriptors(const struct image *im, struct err *e)
{
	const struct image_descriptor *d = image_descriptors(im);
	uint64_t n = im->header.count[TABLE_DESCRIPTORS];
	uint64_t bytes = 0;
	int before = -1;

	for (uint64_t i = 0; i < n; i++, d++) {
		bytes += d->data_bytes;
		if (d->number <= before || d->number >= IMAGE_NUMBER_MOST)
			return BAD("descriptor %d after %d", d->number, before);
		before = d->number;
		if (d->kind < DESCRIPTOR_SAME || d->kind >= DESCRIPTOR_KINDS || d->cloexec > 1 ||
		    d->peer < -1)
			return BAD("descriptor %d has an unknown kind", d->number);
		if (d->peer >= 0 && d->peer > d->number)
			return BAD("descriptor %d refers to a later one", d->number);
		if (d->kind == DESCRIPTOR_SAME && (d->peer < 0 || d->peer == d->number))
			return BAD("descriptor %d refers to itself", d->number);
		if (image_check_data(im, d->data, d->data_bytes) < 0 ||
		    image_check_string(im, d->path) < 0)
			return BAD("data of descriptor %d lie beyond the strings", d->number);
		if (d->object >= IMAGE_OBJECTS_MOST || d->reserved ||
		    (d->kind == DESCRIPTOR_OBJECT && !d->object) ||
		    (d->kind == DESCRIPTOR_SAME && d->object))
			return BAD("descriptor %d has an invalid object", d->number);
		if (d->kind == DESCRIPTOR_TERMINAL && d->offset >= IMAGE_TERMINAL_NUMBER)
			return BAD("descriptor %d has terminal %llu", d->number,
				   (unsigned long long)d->offset);
		if (d->kind == DESCRIPTOR_FILE && image_check_path(im, d->path, e) < 0)
			return -1;
	}
	/* No two descriptors have the same data: the copies of it would need any amount of memory. */
	if (bytes > im->header.count[TABLE_STRINGS])
		return BAD("data of descriptors overlap");
	for (uint64_t i = 0; i < im->header.count[TABLE_WATCHES]; i++)
		if (image_watches(im)[i].epoll < 0 || image_watches(im)[i].number < 0 ||
		    image_watches(im)[i].reserved)
			return BAD("watch %llu", (unsigned long long)i);
	return 0;
}

static int image_check_program(const struct image *im, struct err *e)
{
	const struct image_program *p = image_program(im);

	if (im->header.count[TABLE_PROGRAM] != 1)
		return BAD("%llu programs", (unsigned long long)im->header.count[TABLE_PROGRAM]);
	if (p->pid < 1 || p->pid > 1 << 22 || p->umask > 0777 || p->nauxv > IMAGE_AUXV_MOST ||
	    p->exe >= im->header.count[TABLE_FILES] || !memchr(p->name, 0, sizeof(p->name)))
		return BAD("the program with pid %d is not valid", p->pid);
	if (p->early > 1 || p->stopped > 1 || p->parent < 0 || p->group < 0 || p->session < 0 ||
	    p->terminal > IMAGE_TERMINAL_NUMBER || p->foreground < 0 || p->group > 1 << 22 ||
	    p->session > 1 << 22 || p->parent == p->pid)
		return BAD("the place of process %d in its tree", p->pid);
	return image_check_path(im, p->folder, e);
}

static int image_check_zombies(const struct image *im, struct err *e)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_ZOMBIES]; i++) {
		const struct image_zombie *z = &image_zombies(im)[i];

		if (z->pid < 2 || z->pid > 1 << 22 || z->group < 0 || z->group > 1 << 22 ||
		    z->status > 0xffff || z->reserved || !memchr(z->name, 0, sizeof(z->name)) ||
		    (z->status & 127) > IMAGE_SIGNALS)
			return BAD("zombie %llu has pid %d", (unsigned long long)i, z->pid);
	}
	return 0;
}

static int image_check_timers(const struct image *im, struct err *e)
{
	int before = -1;

	for (uint64_t i = 0; i < im->header.count[TABLE_TIMERS]; i++) {
		const struct image_timer *t = &image_timers(im)[i];

		if (t->number <= before || t->number >= IMAGE_TIMERS_MOST || t->reserved)
			return BAD("timer %d after %d", t->number, before);
		before = t->number;
	}
	return 0;
}

static int image_check_notify(const struct image *im, struct err *e)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_NOTIFY]; i++) {
		const struct image_notify *n = &image_notify(im)[i];
		int same = i && n[-1].descriptor == n->descriptor;

		if (n->descriptor < 0 || n->number < 1 || n->number > IMAGE_NOTIFY_MOST ||
		    (same && n[-1].number >= n->number) || (i && n[-1].descriptor > n->descriptor))
			return BAD("watch %d of descriptor %d", n->number, n->descriptor);
		if (image_check_path(im, n->path, e) < 0)
			return -1;
	}
	return 0;
}

static int image_check_terminals(const struct image *im, struct err *e)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_TERMINALS]; i++)
		if (image_terminals(im)[i].number >= IMAGE_TERMINAL_NUMBER ||
		    image_terminals(im)[i].packets > 1 || image_terminals(im)[i].reserved)
			return BAD("terminal %u", image_terminals(im)[i].number);
	return 0;
}

/* ---- trees ---- */

static int image_is_pid_of(const struct image *im, int32_t pid)
{
	for (uint64_t i = 0; i < im->header.count[TABLE_THREADS]; i++)
		if (image_threads(im)[i].tid == pid)
			return 1;
	for (uint64_t i = 0; i < im->header.count[TABLE_ZOMBIES]; i++)
		if (image_zombies(im)[i].pid == pid)
			return 1;
	return 0;
}

static int image_check_pids(const struct image *const *v, unsigned n, struct err *e)
{
	const struct image *im = v[n];

	for (unsigned k = 0; k < n; k++) {
		for (uint64_t i = 0; i < im->header.count[TABLE_THREADS]; i++)
			if (image_is_pid_of(v[k], image_threads(im)[i].tid))
				return BAD("tid %d twice", image_threads(im)[i].tid);
		for (uint64_t i = 0; i < im->header.count[TABLE_ZOMBIES]; i++)
			if (image_is_pid_of(v[k], image_zombies(im)[i].pid))
				return BAD("pid %d twice", image_zombies(im)[i].pid);
	}
	return 0;
}

static int image_check_parent(const struct image *const *v, unsigned n, struct err *e)
{
	const struct image_program *p = image_program(v[n]);

	if (n == 0)
		return p->parent ? BAD("the first process has parent %d", p->parent) : 0;
	if (p->parent == 1)
		return 0;
	for (unsigned k = 0; k < n; k++)
		if (image_program(v[k])->pid == p->parent)
			return 0;
	return BAD("process %d has no parent %d", p->pid, p->parent);
}

/* Each object is described once, by the first descriptor that has it. */
static int image_check_objects(const struct image *im, unsigned char *seen, int first,
			       struct err *e)
{
	const struct image_descriptor *d = image_descriptors(im);

	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++, d++) {
		if (!first && !d->object &&
		    (d->kind == DESCRIPTOR_OUTSIDE || d->kind == DESCRIPTOR_TERMINAL))
			return BAD("descriptor %d comes from outside", d->number);
		if (d->object && (d->kind == DESCRIPTOR_OBJECT) != seen[d->object])
			return BAD("descriptor %d has object %u", d->number, d->object);
		seen[d->object] = d->object != 0;
	}
	return 0;
}

int procimage_check_tree(const struct image *const *v, unsigned n, struct err *e)
{
	unsigned char seen[IMAGE_OBJECTS_MOST] = { 0 };
	uint64_t threads = 0, zombies = 0, pages = 0, shared = 0, descriptors = 0;

	if (!n || n > IMAGE_PROCESSES_MOST)
		return BAD("a tree of %u processes", n);
	for (unsigned i = 0; i < n; i++) {
		if (image_check_parent(v, i, e) < 0 || image_check_pids(v, i, e) < 0 ||
		    image_check_objects(v[i], seen, i == 0, e) < 0)
			return -1;
		descriptors += v[i]->header.count[TABLE_DESCRIPTORS];
		threads += v[i]->header.count[TABLE_THREADS];
		zombies += v[i]->header.count[TABLE_ZOMBIES];
		pages += procimage_memory_bytes(v[i]) / v[i]->header.page_bytes;
		for (uint64_t k = 0; k < v[i]->header.count[TABLE_AREAS]; k++)
			shared += image_areas(v[i])[k].kind == AREA_SHARED;
	}
	if (descriptors > 4 * IMAGE_DESCRIPTORS_MOST)
		return BAD("%llu descriptors in a tree", (unsigned long long)descriptors);
	if (threads > IMAGE_THREADS_MOST || zombies > IMAGE_ZOMBIES_MOST ||
	    shared > IMAGE_OBJECTS_MOST || pages > IMAGE_MEMORY_MOST / v[0]->header.page_bytes)
		return BAD("%llu threads, %llu zombies, %llu shared areas, %llu pages in a tree",
			   (unsigned long long)threads, (unsigned long long)zombies,
			   (unsigned long long)shared, (unsigned long long)pages);
	return 0;
}

int procimage_check(const struct image *im, struct err *e)
{
	uint64_t n = im->header.count[TABLE_STRINGS];

	if (!n || image_string(im, 0)[0] || image_string(im, 0)[n - 1])
		return BAD("the strings have no end");
	return image_check_program(im, e) < 0 || image_check_files(im, e) < 0 ||
			       image_check_areas(im, e) < 0 || image_check_runs(im, e) < 0 ||
			       image_check_threads(im, e) < 0 ||
			       image_check_descriptors(im, e) < 0 ||
			       image_check_zombies(im, e) < 0 || image_check_timers(im, e) < 0 ||
			       image_check_notify(im, e) < 0 || image_check_terminals(im, e) < 0
		       ? -1
		       : 0;
}
