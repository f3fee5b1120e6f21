/* procimage_sample.h - a small valid process image, for the unit test and the fuzzer. */
#pragma once
#include "base/err.h"
#include "procimage/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void sample_add_descriptor(struct image *im, struct image_descriptor d)
{
	*(struct image_descriptor *)procimage_add(im, TABLE_DESCRIPTORS, 1) = d;
}

static inline void sample_add_memory(struct image *im, uint32_t path)
{
	*(struct image_file *)procimage_add(im, TABLE_FILES, 1) =
		(struct image_file){ .path = path, .size = 8192 };
	*(struct image_area *)procimage_add(im, TABLE_AREAS, 1) = (struct image_area){
		.start = 0x400000, .end = 0x402000, .kind = AREA_FILE, .prot = PROT_READ | PROT_EXEC
	};
	*(struct image_area *)procimage_add(im, TABLE_AREAS, 1) =
		(struct image_area){ .start = 0x500000,
				     .end = 0x510000,
				     .kind = AREA_ANON,
				     .prot = PROT_READ | PROT_WRITE };
	*(struct image_area *)procimage_add(im, TABLE_AREAS, 1) =
		(struct image_area){ .start = 0x600000,
				     .end = 0x601000,
				     .kind = AREA_FILE_SHARED,
				     .prot = PROT_READ,
				     .offset = 4096 };
	*(struct image_run *)procimage_add(im, TABLE_RUNS, 1) = (struct image_run){ 0x501000, 3 };
	*(struct image_run *)procimage_add(im, TABLE_RUNS, 1) = (struct image_run){ 0x508000, 1 };
}

static inline void sample_add_threads(struct image *im)
{
	for (int i = 0; i < 2; i++) {
		struct image_thread *t = procimage_add(im, TABLE_THREADS, 1);

		t->tid = 100 + i;
		t->vector_at = (uint64_t)i * 1024;
#if defined(__x86_64__)
		t->registers[17] = 0x33; /* CS */
		t->vector_bytes = 832;
#else
		t->vector_bytes = 520;
#endif
		strcpy(t->name, "sample");
		procimage_add(im, TABLE_VECTORS, 1024);
	}
}

static inline void sample_make(struct image *im)
{
	uint32_t path, folder, bytes;
	struct image_program *p;

	procimage_init(im);
	path = procimage_add_string(im, "/usr/bin/sample");
	folder = procimage_add_string(im, "/home/user");
	bytes = procimage_add_bytes(im, "0123456789", 10);
	p = procimage_add(im, TABLE_PROGRAM, 1);
	*p = (struct image_program){ .pid = 100, .folder = folder, .umask = 022, .nauxv = 2 };
	sample_add_memory(im, path);
	sample_add_threads(im);
	sample_add_descriptor(im, (struct image_descriptor){
					  .number = 0, .kind = DESCRIPTOR_OUTSIDE, .peer = -1 });
	sample_add_descriptor(im, (struct image_descriptor){ .number = 1,
							     .kind = DESCRIPTOR_FILE,
							     .path = path,
							     .offset = 5,
							     .peer = -1 });
	sample_add_descriptor(
		im, (struct image_descriptor){ .number = 2, .kind = DESCRIPTOR_SAME, .peer = 1 });
	sample_add_descriptor(im, (struct image_descriptor){ .number = 4,
							     .kind = DESCRIPTOR_PIPE,
							     .inode = 9,
							     .peer = 4,
							     .data = bytes,
							     .data_bytes = 10 });
	sample_add_descriptor(
		im,
		(struct image_descriptor){
			.number = 5, .kind = DESCRIPTOR_PIPE, .inode = 9, .peer = 4, .flags = 1 });
	sample_add_descriptor(
		im, (struct image_descriptor){ .number = 7, .kind = DESCRIPTOR_EPOLL, .peer = -1 });
	*(struct image_watch *)procimage_add(im, TABLE_WATCHES, 1) =
		(struct image_watch){ 7, 4, 1, 0, 4 };
}

/* All bytes of an image; the caller frees them. */
static inline char *sample_encode(const struct image *im, size_t *out_len, struct err *e)
{
	int fd = memfd_create("image", 0);
	off_t len;
	char *bytes = NULL;

	if (procimage_encode(im, fd, e) == 0) {
		len = lseek(fd, 0, SEEK_END);
		bytes = malloc((size_t)len);
		if (pread(fd, bytes, (size_t)len, 0) != len)
			abort();
		*out_len = (size_t)len;
	}
	close(fd);
	return bytes;
}
