/* early_file.c - see early_file.h.
 * A file worker is a process, and starting a process costs more than most programs of a few
 * lines. So init writes small files itself, as the box's user, as long as no other process has
 * run in the box: none could have placed a symbolic link, and none can stop init. */
#include "init/early_file.h"
#include "init/params.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/worker.h"

/* Init's capabilities would let it write anywhere, so the allowed paths are checked here. */
static int is_allowed(const char *path)
{
	const char *at;

	if (!text_starts(path, HOME "/") && !text_starts(path, "/tmp/"))
		return 0;
	for (at = path; *at; at++)
		if (at[0] == '/' && at[1] == '.' && at[2] == '.' && (!at[3] || at[3] == '/'))
			return 0;
	return 1;
}

static long write_all(int fd, const char *bytes, uint32_t n)
{
	while (n) {
		long w = sys_write(fd, bytes, n);

		if (w < 0)
			return w;
		bytes += w;
		n -= (uint32_t)w;
	}
	return 0;
}

static long write_file(char *path, const struct wire_put *put, const char *bytes, uint32_t n)
{
	int how = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
		  (put->flags & WIRE_PUT_EARLY_MORE ? O_APPEND : O_TRUNC);
	uint32_t mode = put->mode & 07777 ? put->mode & 07777 : 0644;
	int dir = open_parent(path, 0), fd;
	long err;

	if (dir < 0)
		return dir;
	fd = (int)sys_openat(dir, last_part(path), how, mode);
	sys_close(dir);
	if (fd < 0)
		return fd;
	err = write_all(fd, bytes, n);
	/* The umask that init was started with must not change the requested mode. */
	if (err >= 0)
		err = sys_fchmod(fd, mode);
	sys_close(fd);
	return err;
}

int lay_file(char *path, const struct wire_put *put, const char *bytes, uint32_t n)
{
	long err;

	if (put->flags & ~WIRE_PUT_EARLY_MORE)
		return -EINVAL;
	if (!is_allowed(path))
		return -EACCES;
	sys_setfsid(self.user, self.user);
	err = write_file(path, put, bytes, n);
	sys_setfsid(self.uid, self.gid);
	sys_prctl(PR_SET_DUMPABLE, 0, 0); /* the kernel resets it with the id */
	return (int)err;
}
