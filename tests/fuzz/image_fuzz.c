/* image_fuzz.c - an archive of an image, unpacked into a temporary folder as the process of the keeper
 * does it, but without its walls: nothing next to the folder has changed, and the result is an image
 * layer. A block that has "ustar" in its place gets the right sum first: inputs would seldom have it. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "keeper/image_unpack.h"
#include "keeper/layer_image.h"
#include "keeper/libarchive.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512 };

static char top[64];
static int outer = -1;

static void image_remove_top(void)
{
	unlinkat(outer, "outside/file", 0);
	unlinkat(outer, "outside", AT_REMOVEDIR);
	rmdir(top);
}

/* top/in is unpacked into; top/outside/file is what an archive may want to reach. */
static void image_begin(void)
{
	struct err e;

	snprintf(top, sizeof(top), "/tmp/image-fuzz.XXXXXX");
	if (libarchive_load(&e) < 0 || !mkdtemp(top) ||
	    (outer = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    mkdirat(outer, "outside", 0700) < 0)
		abort();
	auto_fd int fd = openat(outer, "outside/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "kept", 4) != 4)
		abort();
	atexit(image_remove_top);
}

static void image_check_outside(void)
{
	auto_fd int fd = openat(outer, "outside/file", O_RDONLY | O_CLOEXEC);
	struct stat st, dir;
	char text[8];

	assert(fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
	assert(read(fd, text, sizeof(text)) == 4 && !memcmp(text, "kept", 4));
	assert(fstatat(outer, "outside", &dir, 0) == 0 && dir.st_nlink == 2);
	assert(fstat(outer, &dir) == 0 && dir.st_nlink == 4);
}

static void image_set_sums(uint8_t *bytes, size_t len)
{
	for (; len >= BLOCK; bytes += BLOCK, len -= BLOCK) {
		unsigned sum = 0;

		if (memcmp(bytes + 257, "ustar", 5) != 0)
			continue;
		memset(bytes + 148, ' ', 8);
		for (unsigned i = 0; i < BLOCK; i++)
			sum += bytes[i];
		snprintf((char *)bytes + 148, 8, "%06o", sum);
	}
}

static void image_unpack_bytes(const uint8_t *bytes, size_t len)
{
	static const struct image_limits limits = { 1 << 20, 1000 };
	auto_fd int archive = memfd_create("archive", MFD_CLOEXEC), in = -1;
	struct layer_tree_sum sum;
	struct image_sum got;
	struct err e = { 0 };
	int done;

	if (mkdirat(outer, "in", 0700) < 0)
		abort();
	in = openat(outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (archive < 0 || in < 0 || write(archive, bytes, len) != (ssize_t)len ||
	    lseek(archive, 0, SEEK_SET) < 0)
		abort();
	done = image_unpack(archive, in, &limits, &got, &e);
	assert(done == 0 || e.msg[0]);
	image_check_outside();
	if (done == 0)
		assert(layer_image_check(in, &sum, &e) == 0);
	assert(layer_tree_remove(outer, "in", &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t *copy;

	if (geteuid() != 0)
		return 0; /* only root may set owners */
	if (outer < 0)
		image_begin();
	copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	image_set_sums(copy, len);
	image_unpack_bytes(copy, len);
	free(copy);
	return 0;
}
