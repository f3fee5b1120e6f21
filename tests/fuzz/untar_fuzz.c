/* untar_fuzz.c - an archive from a box, unpacked into a temporary folder in pieces of two sizes: the same
 * files come out, all of them plain ones, folders or links, and nothing next to the folder has changed.
 * A block that has "ustar" in its place gets the right sum first: the inputs would seldom have it. */
#include "base/cleanup.h"
#include "cli/untar.h"
#include "fuzz.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512 };

struct untar_result {
	int rc;
	uint64_t files, skipped, hash;
};

static char top[64];
static int outer = -1;

static uint64_t untar_hash(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint64_t untar_hash_content(int dir, const char *name, mode_t type, uint64_t h)
{
	char text[4096];
	ssize_t n;

	if (type == S_IFLNK) {
		n = readlinkat(dir, name, text, sizeof(text));
		assert(n >= 0);
		return untar_hash(h, text, (size_t)n);
	}
	auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		h = untar_hash(h, text, (size_t)n);
	return h;
}

/* The sum of the hashes of everything below, in any order; all of it is removed. */
static uint64_t untar_sweep(int dir, uint64_t above)
{
	DIR *d = fdopendir(dir);
	uint64_t sum = 0;

	assert(d);
	for (struct dirent *at; (at = readdir(d));) {
		struct stat st;
		uint64_t h;
		mode_t type;

		if (!strcmp(at->d_name, ".") || !strcmp(at->d_name, ".."))
			continue;
		assert(fstatat(dir, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		type = st.st_mode & S_IFMT;
		assert(type == S_IFREG || type == S_IFDIR || type == S_IFLNK);
		assert(type == S_IFDIR || st.st_nlink == 1);
		assert(type == S_IFLNK || !(st.st_mode & 07000));
		h = untar_hash(above, at->d_name, strlen(at->d_name) + 1);
		h = untar_hash(h, &st.st_mode, sizeof(st.st_mode));
		if (type == S_IFDIR)
			sum += h + untar_sweep(openat(dir, at->d_name,
						      O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					       h);
		else
			sum += untar_hash_content(dir, at->d_name, type, h);
		assert(unlinkat(dir, at->d_name, type == S_IFDIR ? AT_REMOVEDIR : 0) == 0);
	}
	closedir(d);
	return sum;
}

static void untar_remove_top(void)
{
	unlinkat(outer, "outside/file", 0);
	unlinkat(outer, "outside", AT_REMOVEDIR);
	unlinkat(outer, "in", AT_REMOVEDIR);
	rmdir(top);
}

/* top/in is unpacked into; top/outside/file is what an archive may want to reach. */
static void untar_begin(void)
{
	struct rlimit files;

	snprintf(top, sizeof(top), "/tmp/untar-fuzz.XXXXXX");
	if (!mkdtemp(top) || (outer = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    mkdirat(outer, "in", 0700) < 0 || mkdirat(outer, "outside", 0700) < 0)
		abort();
	auto_fd int fd = openat(outer, "outside/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "kept", 4) != 4)
		abort();
	atexit(untar_remove_top);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* for folders in folders */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static unsigned untar_count(const char *path)
{
	auto_fd int dir = openat(outer, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	unsigned n = 0;
	DIR *d = fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 3));

	assert(d && fstat(dir, &st) == 0 && (st.st_mode & 07777) == 0700);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void untar_check_outside(void)
{
	auto_fd int fd = openat(outer, "outside/file", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char text[8];

	assert(untar_count(".") == 2 && untar_count("outside") == 1);
	assert(fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
	assert(read(fd, text, sizeof(text)) == 4 && !memcmp(text, "kept", 4));
}

static struct untar_result untar_unpack(const char *bytes, size_t n, size_t piece)
{
	struct untar_result r = { 0 };
	auto_fd int root = openat(outer, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };
	struct untar u;

	untar_init(&u, root);
	for (size_t at = 0; at < n && r.rc == 0; at += piece)
		r.rc = untar_take(&u, bytes + at, n - at < piece ? n - at : piece, &e);
	if (r.rc == 0)
		r.rc = untar_end(&u, &e);
	assert(r.rc == 0 || e.msg[0]);
	r.files = u.files;
	r.skipped = u.skipped;
	untar_fini(&u);
	r.hash = untar_sweep(openat(outer, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 1);
	untar_check_outside();
	return r;
}

static void untar_set_sums(uint8_t *bytes, size_t len)
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const size_t pieces[] = { 100, 513 };
	uint8_t *copy = malloc(len ? len : 1);
	struct untar_result whole;

	if (!copy)
		abort();
	if (outer < 0)
		untar_begin();
	memcpy(copy, bytes, len);
	untar_set_sums(copy, len);
	whole = untar_unpack((const char *)copy, len, len ? len : 1);
	for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
		struct untar_result r = untar_unpack((const char *)copy, len, pieces[i]);

		assert(r.rc == whole.rc && r.files == whole.files && r.skipped == whole.skipped);
		assert(r.hash == whole.hash);
	}
	free(copy);
	return 0;
}
