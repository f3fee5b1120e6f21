/* preload.c - a library for programs in gVisor: /etc/ld.so.preload names it there.
 *
 * runsc 20221219 (Debian 12) answers EINVAL to stat calls with AT_NO_AUTOMOUNT, which coreutils 9 always
 * sets: `ls DIR`, `ls -l` and `stat` would fail. There are no automounts in a box, so the flag changes nothing.
 * The gofer may not call mknod(), by which a program can create a regular file: it is created by open().
 * Without a C library of its own: a box may have another one than the host. */
#include "initlib/sys.h"

enum { NO_AUTOMOUNT = 0x800 };

int *__errno_location(void); /* of the C library of the program */
int statx(int dir, const char *path, int flags, unsigned mask, void *out);
int fstatat(int dir, const char *path, void *out, int flags);
int fstatat64(int dir, const char *path, void *out, int flags);

int mknod(const char *path, unsigned mode, unsigned long device);
int mknodat(int dir, const char *path, unsigned mode, unsigned long device);

static int preload_result(long n)
{
	if (n >= 0)
		return (int)n;
	*__errno_location() = (int)-n;
	return -1;
}

__attribute__((visibility("default"))) int statx(int dir, const char *path, int flags,
						 unsigned mask, void *out)
{
	return preload_result(SYS(statx, dir, path, flags & ~NO_AUTOMOUNT, mask, out));
}

/* On 64-bit processors the structures of kernel and C library are the same. */
__attribute__((visibility("default"))) int fstatat(int dir, const char *path, void *out, int flags)
{
	return preload_result(SYS(newfstatat, dir, path, out, flags & ~NO_AUTOMOUNT));
}

__attribute__((visibility("default"))) int fstatat64(int dir, const char *path, void *out,
						     int flags)
{
	return fstatat(dir, path, out, flags);
}

__attribute__((visibility("default"))) int mknodat(int dir, const char *path, unsigned mode,
						   unsigned long device)
{
	long fd;

	if (mode & S_IFMT && !S_ISREG(mode))
		return preload_result(SYS(mknodat, dir, path, mode, device));
	fd = SYS(openat, dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 07777);
	if (fd >= 0)
		SYS(close, fd);
	return preload_result(fd < 0 ? fd : 0);
}

__attribute__((visibility("default"))) int mknod(const char *path, unsigned mode,
						 unsigned long device)
{
	return mknodat(AT_FDCWD, path, mode, device);
}
