/* below.c - see below.h. */
#include "cli/below.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int below_open(int root, const char *path, int flags, mode_t mode)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

int below_tidy(char *path)
{
	size_t n;

	while (path[0] == '.' && path[1] == '/')
		memmove(path, path + 2, strlen(path + 2) + 1);
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = 0;
	if (*path == '/' || !*path)
		return -1;
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
			return -1;
	return 0;
}

int below_folder_of(int root, char *path, const char **out_last)
{
	char *slash = strrchr(path, '/');
	int fd;

	*out_last = slash ? slash + 1 : path;
	if (!slash)
		return fcntl(root, F_DUPFD_CLOEXEC, 3);
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		const char *last;
		auto_fd int above = -1;

		*p = 0;
		last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
		fd = below_open(root, path, O_PATH | O_DIRECTORY, 0);
		if (fd < 0 && errno == ENOENT) {
			char *cut = strrchr(path, '/');

			if (cut)
				*cut = 0;
			above = cut ? below_open(root, path, O_PATH | O_DIRECTORY, 0)
				    : fcntl(root, F_DUPFD_CLOEXEC, 3);
			if (cut)
				*cut = '/';
			if (above >= 0 && mkdirat(above, last, 0755) == 0)
				fd = below_open(root, path, O_PATH | O_DIRECTORY, 0);
		}
		*p = '/';
		if (fd < 0)
			return -1;
		if (p == slash)
			return fd;
		close(fd);
	}
	return -1;
}

int below_create(int root, char *path, mode_t mode)
{
	const char *last;
	auto_fd int dir = below_folder_of(root, path, &last);

	/* An existing entry is removed first: a link could point elsewhere, and a file may have
	 * further names. */
	if (dir < 0 || (unlinkat(dir, last, 0) < 0 && errno != ENOENT))
		return -1;
	return openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
}
