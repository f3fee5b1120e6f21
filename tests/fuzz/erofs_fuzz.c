/* erofs_fuzz.c - images of checkpoint layers. The first byte chooses:
 *   0  the rest is an image: the checker must end, whatever it is
 *   1  the rest describes a tree: what the writer makes of it must be accepted
 *   2  the same, then a few bytes of the image are changed: the checker must end
 *   3  the rest is the index of a checkpoint: the reader must end */
#include "layer/erofs_check.h"
#include "layer/erofs_write.h"
#include "layer/index.h"
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct input {
	const uint8_t *at, *end;
};

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* One folder and what is in it; names ascend by their first byte. */
static void build(struct erofs_writer *w, struct input *in, uint32_t parent, unsigned depth,
		  uint32_t *linkable)
{
	unsigned n = take(in) % 40;
	char name[255], xattrs[600];

	for (unsigned i = 0; i < n; i++) {
		uint8_t kind = take(in), len = take(in);
		struct erofs_node node = { .uid = kind, .gid = len, .mtime = { -kind, len } };
		uint32_t number;

		memset(name, kind % 2 ? 0xff : '!', sizeof(name));
		name[0] = (char)(i < 13 ? '!' + i : '0' + i - 13); /* neither "." nor "/" */
		len = len < 2 ? 2 : len;
		node.mode = kind % 8 < 3 ? S_IFREG | 0644 : S_IFDIR | 0755;
		if (kind % 8 == 4)
			node = (struct erofs_node){ .mode = S_IFCHR };
		else if (kind % 8 == 5)
			node.mode = S_IFIFO | 0600;
		else if (kind % 8 == 6) {
			node.mode = S_IFLNK | 0777;
			node.size = 1 + kind % 100;
			node.target = name;
		} else if (kind % 8 == 7 && *linkable) {
			erofs_write_link(w, parent, name, len, *linkable);
			continue;
		}
		if (kind & 32 && (S_ISREG(node.mode) || S_ISDIR(node.mode))) {
			node.xattr_bytes =
				erofs_write_xattr(xattrs, sizeof(xattrs), "a", 1, name, len);
			if (S_ISDIR(node.mode))
				node.xattr_bytes +=
					erofs_write_xattr(xattrs + node.xattr_bytes,
							  sizeof(xattrs) - node.xattr_bytes,
							  "overlay.opaque", 14, "y", 1);
			node.xattrs = xattrs;
		}
		if (S_ISREG(node.mode)) {
			node.size = (uint64_t)kind * len;
			node.block = erofs_write_reserve(w, node.size);
		}
		number = erofs_write_add(w, parent, name, len, &node);
		if (S_ISREG(node.mode))
			*linkable = number;
		if (S_ISDIR(node.mode) && depth < 8)
			build(w, in, number, depth + 1, linkable);
	}
}

static void check_written(struct input *in, int change)
{
	struct erofs_node root = { .mode = S_IFDIR | 0755 };
	struct input edits = { in->end, in->end };
	struct erofs_writer w;
	struct erofs_sum sum;
	uint64_t bytes;
	uint32_t linkable = 0;
	uint8_t *image;
	struct err e;
	int fd = memfd_create("layer", MFD_CLOEXEC), done;

	if (change && in->end - in->at > 12) { /* the last bytes are the changes */
		edits.at = in->end - 12;
		in->end -= 12;
	}
	assert(fd >= 0);
	erofs_write_begin(&w, fd);
	erofs_write_root(&w, &root);
	build(&w, in, 0, 0, &linkable);
	done = erofs_write_end(&w, &bytes, &e);
	assert(done == 0);
	erofs_write_fini(&w);
	image = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert(image != MAP_FAILED);
	done = erofs_check(image, bytes, UINT64_MAX, &sum, &e);
	assert(done == 0);
	while (change && edits.at < edits.end) {
		uint64_t at = (uint64_t)take(&edits) << 16 | (uint64_t)take(&edits) << 8;

		at |= take(&edits);
		/* Most bytes that matter are at the end, and in the superblock. */
		if (at & 1 << 23)
			at = 1024 + at % 128;
		else
			at = bytes - 1 - at % bytes;
		image[at] = take(&edits);
	}
	done = erofs_check(image, bytes, UINT64_MAX, &sum, &e);
	assert(done == 0 || change);
	munmap(image, bytes);
	close(fd);
}

static void read_index(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("index", MFD_CLOEXEC), got;
	struct layer_index_reader r;
	struct layer_index_entry x;
	struct err e;
	ssize_t put = write(fd, bytes, len);

	assert(put == (ssize_t)len);
	got = layer_index_open(&r, fd, &e);
	while (got >= 0 && (got = layer_index_next(&r, &x, &e)) > 0)
		assert(strlen(x.path) == x.f.path_len);
	layer_index_close(&r);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct input in = { bytes + 1, bytes + len };
	struct erofs_sum sum;
	struct err e;

	if (!len)
		return 0;
	if (bytes[0] % 4 == 0)
		(void)!erofs_check(bytes + 1, len - 1, 1000, &sum, &e);
	else if (bytes[0] % 4 == 3)
		read_index(bytes + 1, len - 1);
	else
		check_written(&in, bytes[0] % 4 == 2);
	return 0;
}
