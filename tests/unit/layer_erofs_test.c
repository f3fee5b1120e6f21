/* layer_erofs_test.c - images of checkpoint layers: written, accepted by the checker and by fsck.erofs,
 * and rejected when a byte that matters is changed. */
#include "layer/erofs_check.h"
#include "layer/erofs_write.h"
#include "base/cleanup.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t *image;
static uint64_t bytes;
static char path[64];

static uint32_t add(struct erofs_writer *w, uint32_t in, const char *name, uint32_t mode)
{
	struct erofs_node n = { .mode = mode, .uid = 1000, .gid = 100, .mtime = { 1700000000, 5 } };

	return erofs_write_add(w, in, name, strlen(name), &n);
}

static uint32_t add_file(struct erofs_writer *w, uint32_t in, const char *name, const char *text)
{
	struct erofs_node n = { .mode = S_IFREG | 0644, .size = strlen(text) };

	n.block = erofs_write_reserve(w, n.size);
	if (n.size && pwrite(w->fd, text, n.size, (off_t)n.block * EROFS_BLOCK) != (ssize_t)n.size)
		abort();
	return erofs_write_add(w, in, name, strlen(name), &n);
}

static void finish(struct erofs_writer *w)
{
	struct err e;

	if (erofs_write_end(w, &bytes, &e) < 0)
		abort();
	image = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, w->fd, 0);
	if (image == MAP_FAILED)
		abort();
	close(w->fd);
	erofs_write_fini(w);
}

static int begin(struct erofs_writer *w)
{
	struct erofs_node root = { .mode = S_IFDIR | 0755 };
	int fd;

	strcpy(path, "/tmp/erofs.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		abort();
	erofs_write_begin(w, fd);
	erofs_write_root(w, &root);
	return fd;
}

static void end(void)
{
	munmap(image, bytes);
	unlink(path);
}

/* A tree with every kind of entry. Returns the number of names. */
static unsigned make_tree(void)
{
	char xattrs[300], big[200];
	struct erofs_node n = { .mode = S_IFDIR | 0700, .xattrs = xattrs };
	struct erofs_writer w;
	uint32_t dir, file;

	begin(&w);
	add_file(&w, 0, "!early", "sorts before the dot");
	memset(big, 'v', sizeof(big));
	n.xattr_bytes = erofs_write_xattr(xattrs, sizeof(xattrs), "overlay.opaque", 14, "y", 1);
	n.xattr_bytes += erofs_write_xattr(xattrs + n.xattr_bytes, sizeof(xattrs) - n.xattr_bytes,
					   "big", 3, big, sizeof(big));
	dir = erofs_write_add(&w, 0, "dir", 3, &n);
	file = add_file(&w, dir, "file", "text\n");
	n = (struct erofs_node){ .mode = S_IFCHR };
	erofs_write_add(&w, dir, "gone", 4, &n);
	add(&w, dir, "pipe", S_IFIFO | 0600);
	erofs_write_link(&w, 0, "hard", 4, file);
	n = (struct erofs_node){
		.mode = S_IFLNK | 0777, .target = "/etc/passwd", .size = 11, .mtime = { -5, 0 }
	};
	erofs_write_add(&w, 0, "link", 4, &n);
	finish(&w);
	return 7;
}

static int fsck_installed(void)
{
	return access("/usr/bin/fsck.erofs", X_OK) == 0;
}

static int fsck_accepts(void)
{
	char command[128];

	snprintf(command, sizeof(command), "fsck.erofs --extract %s >/dev/null 2>&1", path);
	return system(command) == 0;
}

TEST(a_tree_with_every_kind_of_entry_is_accepted)
{
	struct erofs_sum sum;
	struct err e = { 0 };
	unsigned names = make_tree();

	if (erofs_check(image, bytes, 100, &sum, &e) < 0)
		printf("# %s\n", e.msg);
	CHECK_INT(erofs_check(image, bytes, 100, &sum, &e), 0);
	CHECK_INT(sum.names, names);
	CHECK_INT(sum.inodes, 7);
	CHECK_INT(sum.folders, 2);
	CHECK_INT(sum.deleted, 1);
	CHECK_INT(sum.content_bytes, 25);
	CHECK_INT(erofs_check(image, bytes, names - 1, &sum, &e), -1);
	if (fsck_installed())
		CHECK(fsck_accepts());
	end();
}

TEST(a_folder_with_many_names_is_accepted)
{
	struct erofs_writer w;
	struct erofs_sum sum;
	struct err e;
	char name[256];

	begin(&w);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%08u-", i);
		memset(name + 9, 'n', sizeof(name) - 9);
		name[i % 255 < 9 ? 9 : i % 255] = 0;
		add_file(&w, 0, name, i % 3 ? "x" : "");
	}
	finish(&w);
	CHECK_INT(erofs_check(image, bytes, 3000, &sum, &e), 0);
	CHECK_INT(sum.names, 3000);
	if (fsck_installed())
		CHECK(fsck_accepts());
	end();
}

TEST(a_cut_image_is_rejected)
{
	struct erofs_sum sum;
	struct err e;

	make_tree();
	for (uint64_t n = 0; n < bytes; n += 512)
		CHECK_INT(erofs_check(image, n, 100, &sum, &e), -1);
	end();
}

/* Every change of one bit in the superblock, the folders and the inodes: rejected, or one of a value
 * that may be any (times, modes, owners, content). */
TEST(every_other_bit_matters)
{
	struct erofs_sum sum;
	struct err e;
	unsigned accepted = 0, rejected = 0;
	struct erofs_super s;
	uint64_t from;

	make_tree();
	memcpy(&s, image + EROFS_SUPER, sizeof(s));
	from = (uint64_t)s.meta_blkaddr * EROFS_BLOCK;
	for (uint64_t at = 0; at < bytes; at == EROFS_BLOCK - 1 ? at = 3 * EROFS_BLOCK : at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			image[at] ^= (uint8_t)(1u << bit);
			if (erofs_check(image, bytes, 100, &sum, &e) == 0)
				accepted++;
			else
				rejected++;
			if (at < EROFS_BLOCK)
				CHECK_INT(accepted, 0);
			image[at] ^= (uint8_t)(1u << bit);
		}
	}
	printf("# %u rejected, %u accepted\n", rejected, accepted);
	CHECK(rejected > 10000);
	CHECK(from > 3 * EROFS_BLOCK);
	end();
}

/* Offset of the inode with this ino. */
static struct erofs_inode *inode(uint32_t ino)
{
	struct erofs_super s;

	memcpy(&s, image + EROFS_SUPER, sizeof(s));
	for (uint64_t at = (uint64_t)s.meta_blkaddr * EROFS_BLOCK; at < bytes; at += EROFS_SLOT) {
		struct erofs_inode *i = (struct erofs_inode *)(image + at);

		if (i->format == EROFS_EXTENDED && i->ino == ino && i->nlink)
			return i;
	}
	abort();
}

#define REJECTED(change, undo)                                                                     \
	do {                                                                                       \
		change;                                                                            \
		if (erofs_check(image, bytes, 100, &sum, &e) == 0)                                 \
			printf("# accepted: %s\n", #change);                                       \
		CHECK_INT(erofs_check(image, bytes, 100, &sum, &e), -1);                           \
		undo;                                                                              \
		CHECK_INT(erofs_check(image, bytes, 100, &sum, &e), 0);                            \
	} while (0)

TEST(hostile_inodes_are_rejected)
{
	struct erofs_sum sum;
	struct err e;
	struct erofs_inode *file, *dir, *gone, was;

	make_tree();
	file = inode(2); /* !early */
	dir = inode(3);
	gone = inode(5);
	was = *file;
	REJECTED(file->block = 0, *file = was);
	REJECTED(file->block = UINT32_MAX, *file = was);
	REJECTED(file->size = UINT64_MAX, *file = was);
	REJECTED(file->size = 1ull << 40, *file = was);
	REJECTED(file->block = dir->block, *file = was);
	REJECTED(file->nlink = 2, *file = was);
	REJECTED(file->mode = S_IFSOCK, *file = was);
	REJECTED(file->mode = S_IFBLK, *file = was);
	REJECTED(file->format = 3, *file = was);
	REJECTED(file->xattr_icount = 1, *file = was);
	REJECTED(file->xattr_icount = 60000, *file = was);
	REJECTED(file->uid = 65536, *file = was);
	was = *gone;
	REJECTED(gone->block = 0x0801, *gone = was);
	REJECTED(gone->mode |= 0666, *gone = was);
	was = *dir;
	REJECTED(dir->nlink = 3, *dir = was);
	REJECTED(dir->block = inode(1)->block, *dir = was);
	end();
}

TEST(content_has_at_most_8_tib)
{
	struct erofs_writer w;
	uint32_t first;

	begin(&w);
	first = erofs_write_reserve(&w, 1ull << 40);
	CHECK_INT(first, 1);
	CHECK_INT(erofs_write_reserve(&w, 1), 1 + (1ull << 28));
	CHECK_INT(erofs_write_reserve(&w, 1ull << 44), 0);
	CHECK_INT(erofs_write_reserve(&w, 0), 0);
	erofs_write_fini(&w);
	unlink(path);
}
