/* checkpoint_mount_test.c - images of checkpoints are mounted from files, and through loop devices where that is not
 * possible: kernels before 6.12, state folders in memory. */
#include "keeper/checkpoint_mount.h"
#include "base/cleanup.h"
#include "layer/erofs_write.h"
#include "tap.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *cannot_mount(void)
{
	return geteuid() != 0                          ? "needs root"
	       : access("/dev/loop-control", W_OK) < 0 ? "this host has no loop devices"
						       : NULL;
}

/* An image with an empty folder, in a file without a name; -1: not possible there. */
static int make_image(const char *folder)
{
	int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct erofs_node root = { .mode = S_IFDIR | 0751 };
	struct erofs_writer w;
	uint64_t bytes;
	struct err e;
	int done;

	if (file < 0)
		return -1;
	erofs_write_begin(&w, file);
	erofs_write_root(&w, &root);
	done = erofs_write_end(&w, &bytes, &e);
	erofs_write_fini(&w);
	if (done < 0)
		close(file);
	return done < 0 ? -1 : file;
}

static int mounts(const char *folder, enum checkpoint_way way)
{
	auto_fd int file = make_image(folder);
	struct err e = { 0 };
	auto_fd int fd = file < 0 ? -1 : checkpoint_mount_image(file, way, &e);
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		printf("# %s: %s\n", folder, e.msg);
	return fd >= 0 && e.kind == ERR_NONE && fstatfs(fd, &fs) == 0 && fstat(fd, &st) == 0 &&
	       (unsigned long)fs.f_type == EROFS_SUPER_MAGIC_V1 && (fs.f_flags & ST_RDONLY) &&
	       st.st_mode == (S_IFDIR | 0751);
}

TEST(an_image_is_mounted_from_its_file_or_through_a_loop_device)
{
	if (cannot_mount())
		SKIP(cannot_mount());
	CHECK(mounts("/var/tmp", CHECKPOINT_FILE));
	CHECK(mounts("/var/tmp", CHECKPOINT_LOOP));
}

TEST(an_image_in_memory_is_mounted_through_a_loop_device)
{
	if (cannot_mount())
		SKIP(cannot_mount());
	CHECK(mounts("/dev/shm", CHECKPOINT_FILE));
}
