/* image.c - see image.h. The rules of each record are in procimage_check.c. */
#include "procimage/image.h"
#include "base/err.h"
#include "procimage/image_tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const size_t procimage_record_bytes[IMAGE_TABLES] = {
	[TABLE_PROGRAM] = sizeof(struct image_program),
	[TABLE_AREAS] = sizeof(struct image_area),
	[TABLE_RUNS] = sizeof(struct image_run),
	[TABLE_FILES] = sizeof(struct image_file),
	[TABLE_THREADS] = sizeof(struct image_thread),
	[TABLE_DESCRIPTORS] = sizeof(struct image_descriptor),
	[TABLE_WATCHES] = sizeof(struct image_watch),
	[TABLE_ZOMBIES] = sizeof(struct image_zombie),
	[TABLE_TIMERS] = sizeof(struct image_timer),
	[TABLE_NOTIFY] = sizeof(struct image_notify),
	[TABLE_TERMINALS] = sizeof(struct image_terminal),
	[TABLE_VECTORS] = 1,
	[TABLE_STRINGS] = 1,
};

static const uint64_t most[IMAGE_TABLES] = {
	[TABLE_PROGRAM] = 1,
	[TABLE_AREAS] = IMAGE_AREAS_MOST,
	[TABLE_RUNS] = IMAGE_RUNS_MOST,
	[TABLE_FILES] = IMAGE_AREAS_MOST,
	[TABLE_THREADS] = IMAGE_THREADS_MOST,
	[TABLE_DESCRIPTORS] = IMAGE_DESCRIPTORS_MOST,
	[TABLE_WATCHES] = 16 * IMAGE_DESCRIPTORS_MOST,
	[TABLE_ZOMBIES] = IMAGE_ZOMBIES_MOST,
	[TABLE_TIMERS] = IMAGE_TIMERS_MOST,
	[TABLE_NOTIFY] = IMAGE_NOTIFY_MOST,
	[TABLE_TERMINALS] = IMAGE_TERMINALS_MOST,
	[TABLE_VECTORS] = (uint64_t)IMAGE_VECTOR * IMAGE_THREADS_MOST,
	[TABLE_STRINGS] = IMAGE_STRINGS_MOST,
};

void procimage_init(struct image *im)
{
	*im = (struct image){ .header = { .magic = IMAGE_MAGIC,
					  .version = IMAGE_VERSION,
#if defined(__x86_64__)
					  .arch = IMAGE_X86_64,
#else
					  .arch = IMAGE_AARCH64,
#endif
					  .page_bytes = (uint32_t)sysconf(_SC_PAGESIZE) } };
	procimage_add_string(im, ""); /* string 0: none */
}

void procimage_fini(struct image *im)
{
	if (!im->mapped)
		for (unsigned i = 0; i < IMAGE_TABLES; i++)
			free(im->table[i].at);
	*im = (struct image){ 0 };
}

void *procimage_add(struct image *im, enum image_table which, uint64_t n)
{
	struct image_list *t = &im->table[which];
	size_t size = procimage_record_bytes[which];
	char *at;

	if (t->count + n > t->room) {
		t->room = (t->count + n) * 2;
		t->at = reallocarray(t->at, t->room, size);
		if (!t->at)
			abort();
	}
	at = (char *)t->at + t->count * size;
	memset(at, 0, n * size);
	t->count += n;
	im->header.count[which] = t->count;
	return at;
}

uint32_t procimage_add_bytes(struct image *im, const void *bytes, size_t n)
{
	uint64_t at = im->table[TABLE_STRINGS].count;
	char *to = procimage_add(im, TABLE_STRINGS, n + 1);

	if (n)
		memcpy(to, bytes, n);
	return (uint32_t)at;
}

uint32_t procimage_add_string(struct image *im, const char *s)
{
	return procimage_add_bytes(im, s, strlen(s));
}

uint64_t procimage_memory_bytes(const struct image *im)
{
	uint64_t pages = 0;

	for (uint64_t i = 0; i < im->header.count[TABLE_RUNS]; i++)
		pages += image_runs(im)[i].pages;
	return pages * im->header.page_bytes;
}

static int image_write_bytes(int fd, const void *from, size_t len, struct err *e)
{
	const char *at = from;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0)
			return err_sys(e, "write the process image");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int procimage_encode(const struct image *im, int fd, struct err *e)
{
	if (procimage_check(im, e) < 0 ||
	    image_write_bytes(fd, &im->header, sizeof(im->header), e) < 0)
		return -1;
	for (unsigned i = 0; i < IMAGE_TABLES; i++) {
		static const char zero[8];
		size_t len = im->header.count[i] * procimage_record_bytes[i];

		if (image_write_bytes(fd, im->table[i].at, len, e) < 0 ||
		    image_write_bytes(fd, zero, -len & 7, e) < 0)
			return -1;
	}
	return 0;
}

static int image_place_tables(struct image *im, char *bytes, size_t len, struct err *e)
{
	size_t at = sizeof(im->header);

	for (unsigned i = 0; i < IMAGE_TABLES; i++) {
		uint64_t count = im->header.count[i];
		size_t size;

		if (count > most[i])
			return err_set(e, ERR_INVALID,
				       "process image: table %u has %llu records, at most %llu", i,
				       (unsigned long long)count, (unsigned long long)most[i]);
		size = (count * procimage_record_bytes[i] + 7) & ~(size_t)7;
		if (size > len - at)
			return err_set(e, ERR_INVALID,
				       "process image: table %u ends beyond the file", i);
		im->table[i] = (struct image_list){ bytes + at, count, count };
		at += size;
	}
	if (at != len)
		return err_set(e, ERR_INVALID, "process image: %zu bytes after the last table",
			       len - at);
	return 0;
}

int procimage_decode(struct image *im, void *bytes, size_t len, struct err *e)
{
	struct image read = { .mapped = bytes };
	struct image own;

	if (len < sizeof(read.header))
		return err_set(e, ERR_INVALID, "process image: %zu bytes are no header", len);
	memcpy(&read.header, bytes, sizeof(read.header));
	if (read.header.magic != IMAGE_MAGIC)
		return err_set(e, ERR_INVALID, "this is no process image");
	if (read.header.version != IMAGE_VERSION)
		return err_set(e, ERR_INVALID, "process image of version %u, this program reads %d",
			       read.header.version, IMAGE_VERSION);
	procimage_init(&own);
	own.header.arch ^= read.header.arch;
	own.header.page_bytes ^= read.header.page_bytes;
	procimage_fini(&(struct image){ .table = { [TABLE_STRINGS] = own.table[TABLE_STRINGS] } });
	if (own.header.arch || own.header.page_bytes || read.header.reserved)
		return err_set(e, ERR_INVALID,
			       "process image of another architecture (%u, pages of %u bytes)",
			       read.header.arch, read.header.page_bytes);
	if (image_place_tables(&read, bytes, len, e) < 0 || procimage_check(&read, e) < 0)
		return -1;
	*im = read;
	return 0;
}
