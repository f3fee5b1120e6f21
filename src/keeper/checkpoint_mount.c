/* checkpoint_mount.c - see checkpoint_mount.h. */
#include "keeper/checkpoint_mount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/checkpoint_store.h"
#include "layer/erofs_check.h"
#include "layer/erofs_write.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct checkpoint_mount {
	struct checkpoint_mount *next;
	char id[WIRE_ID];
	int fd;
	uint64_t idle_ns; /* since when no box has it; 0: one may have it */
};

static struct checkpoint_mount *mounts; /* of the layer store, which has one thread */

/* ---- EROFS ---- */

/* Kernels before 6.12 mount block devices only. The device frees itself after the last mount. */
static int mount_loop(int file, char out_path[32], struct err *e)
{
	struct loop_config c = { .fd = (uint32_t)file,
				 .info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR };
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	for (unsigned tries = 0; control >= 0 && tries < 16; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE), fd;

		snprintf(out_path, 32, "/dev/loop%d", n);
		fd = n < 0 ? -1 : open(out_path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &c) == 0)
			return fd;
		own_close_fd(&fd);
		if (errno != EBUSY)
			break;
	}
	return err_sys(e, "attach a loop device");
}

static int mount_source(const char *source, struct err *e)
{
	auto_fd int fs = fsopen("erofs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 && errno == ENODEV)
		return err_set(
			e, ERR_DENIED,
			"checkpoints need the file system EROFS, which this kernel does not have: load it with "
			"'modprobe erofs', or use a kernel with CONFIG_EROFS_FS");
	/* Without "ro" the kernel opens the device for writing, and a read-only loop device refuses that. */
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "mount a checkpoint layer");
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? err_sys(e, "mount a checkpoint layer") : fd;
}

int checkpoint_mount_image(int file, enum checkpoint_way way, struct err *e)
{
	char path[40], device[32];
	auto_fd int loop = -1;
	struct err without = {
		.sys = ENOTBLK
	}; /* kept apart: an answer with a text is a failure */
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = way == CHECKPOINT_FILE ? mount_source(path, &without) : -1;
	if (fd >= 0)
		return fd;
	if (without.sys != ENOTBLK && without.sys != EINVAL) {
		*e = without;
		return -1;
	}
	loop = mount_loop(file, device, e);
	return loop < 0 ? -1 : mount_source(device, e);
}

int checkpoint_mount_possible(int dir, const char *folder, struct err *e)
{
	static int known;
	auto_fd int file = -1, fd = -1;
	struct erofs_node root = { .mode = S_IFDIR | 0755 };
	struct erofs_writer w;
	uint64_t bytes;
	int done;

	if (known)
		return 0;
	file = openat(dir, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		return err_sys(e, "make a file for a checkpoint");
	erofs_write_begin(&w, file);
	erofs_write_root(&w, &root);
	done = erofs_write_end(&w, &bytes, e);
	erofs_write_fini(&w);
	if (done < 0)
		return -1;
	fd = checkpoint_mount_image(file, CHECKPOINT_FILE, e);
	if (fd < 0)
		return err_in(e, "this host cannot mount checkpoints");
	known = 1;
	return 0;
}

/* ---- the table ---- */

static struct checkpoint_mount *mount_find(const char *id)
{
	for (struct checkpoint_mount *m = mounts; m; m = m->next)
		if (strcmp(m->id, id) == 0)
			return m;
	return NULL;
}

static int mount_open(int dir, const char *id, struct err *e)
{
	char name[64];
	uint8_t head[4096];
	struct stat st;
	auto_fd int file = -1;
	ssize_t n;

	checkpoint_store_name(id, WIRE_CHECKPOINT_LAYER, name);
	file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no layer of checkpoint %s", id);
	if (file < 0 || fstat(file, &st) < 0 || (n = pread(file, head, sizeof(head), 0)) < 0)
		return err_sys(e, "layer of checkpoint %s", id);
	if (erofs_check_size(head, (size_t)n, (uint64_t)st.st_size, e) < 0)
		return err_in(e, "checkpoint %s", id);
	return checkpoint_mount_image(file, CHECKPOINT_FILE, e);
}

int checkpoint_mount_get(int dir, const char *id, struct err *e)
{
	struct checkpoint_mount *m = mount_find(id);
	int fd;

	if (!m) {
		fd = mount_open(dir, id, e);
		if (fd < 0)
			return -1;
		m = calloc(1, sizeof(*m));
		if (!m)
			abort();
		snprintf(m->id, sizeof(m->id), "%s", id);
		m->fd = fd;
		m->next = mounts;
		mounts = m;
	}
	m->idle_ns = 0;
	fd = open_tree(m->fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	return fd < 0 ? err_sys(e, "mount the layer of checkpoint %s", id) : fd;
}

void checkpoint_mount_release(const char *id)
{
	struct checkpoint_mount *m = mount_find(id);

	if (m)
		m->idle_ns = now_ns();
}

void checkpoint_mount_forget(const char *id)
{
	for (struct checkpoint_mount **at = &mounts; *at; at = &(*at)->next) {
		struct checkpoint_mount *m = *at;

		if (strcmp(m->id, id) != 0)
			continue;
		*at = m->next;
		close(m->fd);
		free(m);
		return;
	}
}

int checkpoint_mount_expire(void)
{
	const uint64_t idle = CHECKPOINT_MOUNT_IDLE_S * 1000000000ull;
	uint64_t now = now_ns(), next = UINT64_MAX;

	for (struct checkpoint_mount **at = &mounts; *at;) {
		struct checkpoint_mount *m = *at;

		if (m->idle_ns && now - m->idle_ns >= idle) {
			*at = m->next;
			close(m->fd);
			free(m);
			continue;
		}
		if (m->idle_ns && idle - (now - m->idle_ns) < next)
			next = idle - (now - m->idle_ns);
		at = &m->next;
	}
	return next == UINT64_MAX ? -1 : (int)(next / 1000000) + 1;
}
