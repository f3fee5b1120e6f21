/* seat.c - see seat.h. */
#include "serve/seat.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 5000, STEP_MS = 10 };

static void path_of(const char *run_dir, char out[300])
{
	snprintf(out, 300, "%.280s/serve.pid", run_dir);
}

static int read_note(int fd, struct seat_note *out)
{
	char text[128];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%d %39s %d", &out->warden, out->version, &out->front) == 3 ? 0 : -1;
}

/* The one before us removes the file when it leaves: a lock on that one is worth nothing. */
static int is_current(int fd, const char *path)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

int seat_take(const char *run_dir, struct err *e)
{
	struct seat_note there = { 0 };
	char path[300];

	path_of(run_dir, path);
	for (int waited = 0; waited < WAIT_MS; waited += STEP_MS) {
		auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

		if (fd < 0)
			return err_sys(e, "open %s", path);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (is_current(fd, path))
				return steal_fd(&fd);
			continue;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, "lock %s", path);
		(void)!read_note(fd, &there); /* only for the message */
		usleep(STEP_MS * 1000);
	}
	return err_set(e, ERR_CONFLICT, "a daemon serves from %.150s already (pid %d)", run_dir,
		       (int)there.warden);
}

int seat_write(int fd, const struct seat_note *note, struct err *e)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%d %.39s %d\n", (int)note->warden, note->version,
			 (int)note->front);

	/* One write over the old text, then the rest of that: a reader never sees an empty file. */
	if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
		return err_sys(e, "write serve.pid");
	return 0;
}

int seat_read(const char *run_dir, struct seat_note *out, struct err *e)
{
	char path[300];
	auto_fd int fd = -1;

	path_of(run_dir, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_sys(e, "open %s", path);
	/* A lock that we get is held by nobody: what the file says is of one that is no more. */
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || read_note(fd, out) < 0)
		return err_set(e, ERR_NOT_FOUND, "no daemon serves from %.150s", run_dir);
	return 0;
}

void seat_leave(const char *run_dir, int fd)
{
	char path[300];

	path_of(run_dir, path);
	if (is_current(fd, path))
		unlink(path);
	close(fd);
}
