/* disk_image.c - see disk_image.h.
 *
 * A volume is in use while its loop device is: the device holds the image's open file, and with it
 * the lock that was taken on it. So the kernel itself refuses a second writer, or a writer among
 * readers, even if keeper and disk service are restarted; and releases the lock when the last mount
 * has ended. That may be a moment after the end of the box, so a lock that should be free is waited
 * for.
 *
 * A volume has a journal: after a crash of the host the next mount replays it. A reader must not
 * write, so a pending replay is done by a writable mount first. */
#include "keeper/disk_image.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* The user of every box: each box sees its own ids through an id-mapped mount. */
#define VOLUME_OWNER 1000
enum { LOCK_TRIES = 400, LOCK_WAIT_US = 5000 };
enum { SUPER_INCOMPAT = 1024 + 0x60, NEEDS_RECOVERY = 0x4 }; /* the flag of ext4 for that */

/* ---- an ext4 in a file ---- */

static int new_image(const char *dir, uint64_t bytes, struct err *e)
{
	auto_fd int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, "image in %s", dir);
	if (ftruncate(fd, (off_t)bytes) < 0)
		return err_sys(e, "image of %llu bytes", (unsigned long long)bytes);
	return steal_fd(&fd);
}

#define RESERVE_MOST (1ull << 30)

/* How much volumes may still grow: they are sparse. */
static uint64_t volumes_may_grow(const char *dir)
{
	char path[4096];
	struct dirent *de;
	struct stat st;
	uint64_t sum = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/volumes", dir);
	d = opendir(path);
	while (d && (de = readdir(d)) != NULL)
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_size > st.st_blocks * 512)
			sum += (uint64_t)(st.st_size - st.st_blocks * 512);
	if (d)
		closedir(d);
	return sum;
}

int image_room(const char *dir, uint64_t promised, uint64_t bytes, struct err *e)
{
	struct statvfs v;
	uint64_t free_bytes, reserve, taken = promised + volumes_may_grow(dir);

	if (statvfs(dir, &v) < 0)
		return err_sys(e, "free space of %s", dir);
	free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	reserve = (uint64_t)v.f_blocks * v.f_frsize / 20;
	taken += reserve < RESERVE_MOST ? reserve : RESERVE_MOST;
	if (taken <= free_bytes && bytes <= free_bytes - taken)
		return 0;
	return err_set(
		e, ERR_LIMIT,
		"a disk of %llu bytes does not fit: %llu are free where disks are kept, of which %llu are promised to "
		"others or kept back; ask for less, or end boxes and remove volumes",
		(unsigned long long)bytes, (unsigned long long)free_bytes,
		(unsigned long long)taken);
}

/* more: further options and their values, NULL at the end. */
static int make_filesystem(int fd, uint32_t owner, char *const more[4], struct err *e)
{
	char path[40], extended[80];
	char *argv[] = { "mkfs.ext4", "-q",    "-F",    "-m",    "0",  "-E", extended,
			 more[0],     more[1], more[2], more[3], NULL, NULL, NULL };
	char *env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	unsigned n = 7;
	int status, bad;
	pid_t pid;

	while (argv[n])
		n++;
	argv[n] = path; /* after the options */
	/* mkfs does not inherit O_CLOEXEC descriptors; it opens the file through /proc of this
	 * process. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	snprintf(extended, sizeof(extended), "nodiscard,lazy_itable_init=1,root_owner=%u:%u", owner,
		 owner);
	bad = posix_spawn(&pid, "/usr/sbin/mkfs.ext4", NULL, NULL, argv, env);
	if (bad)
		return err_set(e, ERR_SYS, "mkfs.ext4: %s", strerror(bad));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return err_set(e, ERR_INVALID,
			       "mkfs.ext4 refuses this size, or the state folder is full");
	return 0;
}

/* Another process may take the free number between the two calls; then try the next one. */
static int attach_loop(int fd, int read_only, char *out_path, size_t size, struct err *e)
{
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config c = { .fd = (uint32_t)fd,
				 .info.lo_flags = LO_FLAGS_AUTOCLEAR |
						  (read_only ? LO_FLAGS_READ_ONLY : 0) };

	for (int tries = 0; control >= 0 && tries < 64; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		auto_fd int dev = -1;

		if (n < 0)
			return err_sys(e, "no free loop device");
		snprintf(out_path, size, "/dev/loop%d", n);
		dev = open(out_path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (dev < 0)
			return err_sys(e, "open %s", out_path);
		if (ioctl(dev, LOOP_CONFIGURE, &c) == 0)
			return steal_fd(&dev); /* open until the mount holds the device */
		if (errno != EBUSY)
			return err_sys(e, "attach %s", out_path);
	}
	return err_sys(e, "open /dev/loop-control");
}

/* flag: a mount option of the file system; NULL: none. */
static int mount_detached(const char *device, const char *flag, unsigned attrs, struct err *e)
{
	auto_fd int fs = fsopen("ext4", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
	    (flag && fsconfig(fs, FSCONFIG_SET_FLAG, flag, NULL, 0) < 0) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "mount %s", device);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attrs);
	return fd < 0 ? err_sys(e, "mount %s", device) : fd;
}

/* No journal: the disk of a box ends with the box. */
int image_box_disk(const char *dir, uint64_t bytes, uint64_t files, uint32_t uid, struct err *e)
{
	auto_fd int img = new_image(dir, bytes, e), dev = -1;
	char device[32], count[24];
	char *const more[4] = { "-O", "^has_journal", "-N", count };

	snprintf(count, sizeof(count), "%llu", (unsigned long long)files);
	if (img < 0)
		return -1;
	if (make_filesystem(img, uid, more, e) < 0)
		return err_in(e, "%llu bytes, %llu files", (unsigned long long)bytes,
			      (unsigned long long)files);
	dev = attach_loop(img, 0, device, sizeof(device), e);
	return dev < 0 ? -1 : mount_detached(device, NULL, 0, e);
}

/* ---- volumes ---- */

static int open_volumes(const char *dir, struct err *e)
{
	auto_fd int state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0 || (mkdirat(state, "volumes", 0700) < 0 && errno != EEXIST))
		return err_sys(e, "volumes in %s", dir);
	fd = openat(state, "volumes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "volumes in %s", dir) : fd;
}

static void file_of(char out[48], const char *id)
{
	snprintf(out, 48, "%.31s.img", id);
}

/* Opens the image and locks it: LOCK_EX or LOCK_SH. */
static int open_locked(int volumes, const char *id, int lock, struct err *e)
{
	char file[48];
	auto_fd int fd = -1;

	file_of(file, id);
	fd = openat(volumes, file, (lock == LOCK_EX ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no volume named %s", id);
	if (fd < 0)
		return err_sys(e, "open volume %s", id);
	for (int tries = 0; flock(fd, lock | LOCK_NB) < 0; tries++) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock volume %s", id);
		if (tries == LOCK_TRIES)
			return err_set(e, ERR_CONFLICT, "volume %s is still in use", id);
		usleep(LOCK_WAIT_US);
	}
	return steal_fd(&fd);
}

int image_volume_make(const char *dir, const char *id, uint64_t bytes, struct err *e)
{
	char *const more[4] = { NULL };
	auto_fd int volumes = open_volumes(dir, e), img = -1;
	char file[48], path[4096], self[40];

	if (volumes < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/volumes", dir);
	img = new_image(path, bytes, e);
	if (img < 0 || make_filesystem(img, VOLUME_OWNER, more, e) < 0)
		return err_in(e, "volume %s", id);
	file_of(file, id);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", img);
	/* The image gets its name when it is complete, and survives a crash of the host. */
	if (fsync(img) < 0)
		return err_sys(e, "volume %s", id);
	if (linkat(AT_FDCWD, self, volumes, file, AT_SYMLINK_FOLLOW) < 0)
		return errno == EEXIST
			       ? err_set(e, ERR_CONFLICT, "there is a volume named %s already", id)
			       : err_sys(e, "volume %s", id);
	return fsync(volumes) < 0 ? err_sys(e, "volume %s", id) : 0;
}

int image_volume_drop(const char *dir, const char *id, struct err *e)
{
	auto_fd int volumes = open_volumes(dir, e), img = -1;
	char file[48];

	img = volumes < 0 ? -1 : open_locked(volumes, id, LOCK_EX, e);
	if (img < 0)
		return -1;
	file_of(file, id);
	if (unlinkat(volumes, file, 0) < 0 || fsync(volumes) < 0)
		return err_sys(e, "drop volume %s", id);
	return 0;
}

/* mkfs creates it for fsck, which creates it again when needed; the user of the box could not
 * remove it. */
static void remove_lost_and_found(int mount)
{
	struct stat st;

	if (fstatat(mount, "lost+found", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == 0)
		unlinkat(mount, "lost+found", AT_REMOVEDIR);
}

static int mount_to_write(int volumes, const char *id, struct err *e)
{
	auto_fd int img = open_locked(volumes, id, LOCK_EX, e), dev = -1;
	char device[32];
	int fd;

	dev = img < 0 ? -1 : attach_loop(img, 0, device, sizeof(device), e);
	if (dev < 0)
		return -1;
	/* discard: space of files that are deleted in the box is freed on the host. */
	fd = mount_detached(device, "discard", 0, e);
	if (fd >= 0)
		remove_lost_and_found(fd);
	return fd;
}

static int needs_recovery(int volumes, const char *id)
{
	char file[48];
	auto_fd int fd = -1;
	unsigned char flags = 0; /* little endian on disk, on every machine */

	file_of(file, id);
	fd = openat(volumes, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && pread(fd, &flags, 1, SUPER_INCOMPAT) == 1 && flags & NEEDS_RECOVERY;
}

/* The flag is also set while a box writes to the volume; the lock detects that. */
static int image_recover(int volumes, const char *id, struct err *e)
{
	auto_fd int mount = -1;

	if (!needs_recovery(volumes, id))
		return 0;
	mount = mount_to_write(volumes, id, e);
	return mount < 0 ? -1 : 0;
}

int image_volume_mount(const char *dir, const char *id, int read_only, struct err *e)
{
	auto_fd int volumes = open_volumes(dir, e), img = -1, dev = -1;
	char device[32];

	if (volumes < 0)
		return -1;
	if (!read_only)
		return mount_to_write(volumes, id, e);
	if (image_recover(volumes, id, e) < 0)
		return -1;
	img = open_locked(volumes, id, LOCK_SH, e);
	dev = img < 0 ? -1 : attach_loop(img, 1, device, sizeof(device), e);
	return dev < 0 ? -1 : mount_detached(device, "ro", MOUNT_ATTR_RDONLY, e);
}
