/* guest_proc.c - see guest_proc.h. The files that were there are read through a descriptor of the covered
 * folder. Values of gVisor are constants of the box (host name, limits of System V IPC), so copies stay
 * right. */
#include "mux/guest_proc.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include <linux/mount.h>

#define PLACE "/proc/sys/kernel"

enum { VALUE_MOST = 512, DENTS = 2048, DEEPEST = 1 };
enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

static int guest_proc_copy_file(int from, int to, const char *name)
{
	char value[VALUE_MOST];
	int in = (int)sys_openat(from, name, O_RDONLY | O_CLOEXEC, 0), out;
	long n;

	if (in < 0)
		return 0; /* a file that only another user may read */
	n = sys_read(in, value, sizeof(value));
	sys_close(in);
	out = (int)sys_openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (out < 0)
		return out;
	if (n > 0)
		n = sys_write(out, value, (size_t)n);
	sys_close(out);
	return n < 0 ? (int)n : 0;
}

static int guest_proc_copy(int from, int to, int depth);

static int guest_proc_copy_folder(int from, int to, const char *name, int depth)
{
	int in, out, err;

	if (depth == DEEPEST)
		return 0;
	err = (int)sys_mkdirat(to, name, 0555);
	if (err < 0)
		return err;
	in = (int)sys_openat(from, name, OPEN_DIR, 0);
	out = (int)sys_openat(to, name, OPEN_DIR, 0);
	err = in < 0 ? in : out < 0 ? out : guest_proc_copy(in, out, depth + 1);
	sys_close(in);
	sys_close(out);
	return err;
}

static int guest_proc_copy(int from, int to, int depth)
{
	_Alignas(8) char dents[DENTS];
	long have, at;
	int err = 0;

	while (!err && (have = sys_getdents(from, dents, sizeof(dents))) > 0)
		for (at = 0; !err && at < have;) {
			const struct dirent64 *d = (const struct dirent64 *)(void *)(dents + at);

			at += d->d_reclen;
			if (d->d_name[0] == '.')
				continue;
			err = d->d_type == DIRENT_DIR
				      ? guest_proc_copy_folder(from, to, d->d_name, depth)
				      : guest_proc_copy_file(from, to, d->d_name);
		}
	return err;
}

int guest_proc_boot_id(void)
{
	int from = (int)sys_openat(AT_FDCWD, PLACE, OPEN_DIR, 0), to = -1, err = from;
	int has = (int)sys_openat(from, "random/boot_id", O_PATH | O_CLOEXEC, 0);

	if (err >= 0 && has >= 0)
		err = -EEXIST;
	if (err >= 0)
		err = (int)SYS(mount, "tmpfs", PLACE, "tmpfs",
			       2 | 4 | 8 /* nosuid, nodev, noexec */, "mode=0555");
	if (err >= 0)
		err = to = (int)sys_openat(AT_FDCWD, PLACE, OPEN_DIR, 0);
	if (err >= 0)
		err = guest_proc_copy(from, to, 0);
	if (err >= 0)
		err = (int)sys_mkdirat(to, "random", 0555);
	if (err >= 0)
		err = (int)sys_openat(to, "random/boot_id", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				      0444);
	sys_close(has);
	sys_close(from);
	sys_close(to);
	return err;
}
