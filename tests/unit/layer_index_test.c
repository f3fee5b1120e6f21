/* layer_index_test.c - the index of a checkpoint: written, read, and rejected when it is damaged. */
#include "layer/index.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "k3xq7h2mzp4a"

static struct layer_index_head head_of(void)
{
	return (struct layer_index_head){ .id = ID, .box = "abcdefghijkl", .stop_ns = 7 };
}

static int index_file(void)
{
	int fd = memfd_create("index", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

static int add(struct layer_index_writer *w, const char *path, uint32_t mode, uint16_t flags)
{
	struct layer_index_fixed f = { .path_len = (uint16_t)strlen(path),
				       .flags = flags,
				       .mode = mode,
				       .uid = 1000,
				       .gid = 1000,
				       .ino = 1,
				       .nlink = 1,
				       .origin = ID };
	struct err e;

	return layer_index_add(w, &f, path, &e);
}

struct item {
	const char *path;
	uint32_t mode;
	uint16_t flags;
};

static int write_items(const struct item *v, unsigned n)
{
	int fd = index_file();
	struct layer_index_head h = head_of();
	struct layer_index_writer w;
	uint64_t bytes;
	struct err e;

	layer_index_begin(&w, fd);
	for (unsigned i = 0; i < n; i++)
		if (add(&w, v[i].path, v[i].mode, v[i].flags) < 0)
			abort();
	if (layer_index_end(&w, &h, &bytes, &e) < 0)
		abort();
	layer_index_drop(&w);
	return fd;
}

/* Entries that were read; -1: rejected. */
static int read_all(int fd, struct err *e)
{
	struct layer_index_reader r;
	struct layer_index_entry x;
	int n = 0, got = layer_index_open(&r, fd, e);

	while (got >= 0 && (got = layer_index_next(&r, &x, e)) > 0)
		n++;
	layer_index_close(&r);
	return got < 0 ? -1 : n;
}

static const struct item good[] = {
	{ "", S_IFDIR | 0755, 0 },
	{ "a", S_IFDIR | 0755, LAYER_INDEX_OPAQUE },
	{ "a/b", S_IFREG | 0644, LAYER_INDEX_MAPPED },
	{ "a/c", S_IFDIR | 0700, 0 },
	{ "a/c/d\n", S_IFLNK | 0777, 0 },
	{ "a!", S_IFCHR, LAYER_INDEX_WHITEOUT },
	{ "a-b", S_IFIFO | 0600, 0 },
};

TEST(an_index_is_read_as_it_was_written)
{
	auto_fd int fd = write_items(good, ARRAY_LEN(good));
	struct layer_index_reader r;
	struct layer_index_entry x;
	struct err e;

	CHECK_INT(layer_index_open(&r, fd, &e), 0);
	CHECK_STR(r.head.id, ID);
	CHECK_INT(r.head.stop_ns, 7);
	CHECK_INT(r.head.entries, ARRAY_LEN(good));
	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_INT(layer_index_next(&r, &x, &e), 1);
		CHECK_STR(x.path, good[i].path);
		CHECK_INT(x.f.mode, good[i].mode);
		CHECK_INT(x.f.flags, good[i].flags);
	}
	CHECK_INT(layer_index_next(&r, &x, &e), 0);
	layer_index_close(&r);
}

TEST(entries_of_a_folder_follow_it_directly)
{
	CHECK_INT(layer_index_compare("a/b", 3, "a!", 2), -1);
	CHECK_INT(layer_index_compare("a", 1, "a/b", 3), -1);
	CHECK_INT(layer_index_compare("a\xff", 2, "a/b", 3), 1);
	CHECK_INT(layer_index_compare("a/b", 3, "a/b", 3), 0);
}

TEST(an_invalid_entry_is_rejected)
{
	static const struct {
		struct item v[3];
		unsigned n;
	} bad[] = {
		{ { { "a", S_IFDIR, 0 } }, 1 },
		{ { { "", S_IFREG, 0 } }, 1 },
		{ { { "", S_IFDIR, 0 }, { "b", S_IFREG, 0 }, { "a", S_IFREG, 0 } }, 3 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG, 0 }, { "a", S_IFREG, 0 } }, 3 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG, 0 }, { "a/b", S_IFREG, 0 } }, 3 },
		{ { { "", S_IFDIR, 0 }, { "a/b", S_IFREG, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "aa", S_IFDIR, 0 }, { "ab/c", S_IFREG, 0 } }, 3 },
		{ { { "", S_IFDIR, 0 }, { "..", S_IFREG, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "/a", S_IFREG, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a/", S_IFREG, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFCHR, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG, LAYER_INDEX_WHITEOUT } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG, LAYER_INDEX_OPAQUE } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFDIR, LAYER_INDEX_HASHED } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG, LAYER_INDEX_FLAGS + 1 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFSOCK, 0 } }, 2 },
		{ { { "", S_IFDIR, 0 }, { "a", S_IFREG | 1 << 20, 0 } }, 2 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		auto_fd int fd = write_items(bad[i].v, bad[i].n);
		struct err e;

		if (read_all(fd, &e) != -1)
			printf("# accepted: %u\n", i);
		CHECK_INT(read_all(fd, &e), -1);
	}
}

TEST(a_cut_or_longer_file_is_rejected)
{
	auto_fd int fd = write_items(good, ARRAY_LEN(good));
	struct stat st;
	struct err e;

	CHECK_INT(read_all(fd, &e), ARRAY_LEN(good));
	CHECK_INT(fstat(fd, &st), 0);
	CHECK_INT(ftruncate(fd, st.st_size + 8), 0);
	CHECK_INT(read_all(fd, &e), -1);
	for (off_t n = st.st_size - 1; n >= 0; n -= 3) {
		CHECK_INT(ftruncate(fd, n), 0);
		CHECK_INT(read_all(fd, &e), -1);
	}
}

TEST(a_path_has_up_to_65535_bytes)
{
	auto_fd int fd = index_file();
	auto_free char *path = malloc(LAYER_INDEX_PATH + 1);
	struct layer_index_head h = head_of();
	struct layer_index_writer w;
	uint64_t bytes;
	struct err e;

	memset(path, 'x', LAYER_INDEX_PATH);
	for (unsigned i = 255; i < LAYER_INDEX_PATH; i += 256)
		path[i] = '/';
	path[LAYER_INDEX_PATH] = 0;
	layer_index_begin(&w, fd);
	CHECK_INT(add(&w, "", S_IFDIR, 0), 0);
	for (unsigned i = 255; i < LAYER_INDEX_PATH; i += 256) {
		path[i] = 0;
		CHECK_INT(add(&w, path, S_IFDIR, 0), 0);
		path[i] = '/';
	}
	CHECK_INT(add(&w, path, S_IFREG, 0), 0);
	CHECK_INT(layer_index_end(&w, &h, &bytes, &e), 0);
	layer_index_drop(&w);
	CHECK_INT(read_all(fd, &e), 257);
}
