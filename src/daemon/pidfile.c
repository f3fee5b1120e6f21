/* pidfile.c - see pidfile.h. */
#include "daemon/pidfile.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAIT_MS = 5000, STEP_MS = 10 };

static void path_of(const char *run_dir, char out[300])
{
	snprintf(out, 300, "%.280s/serve.pid", run_dir);
}

static int read_note(int fd, struct pidfile_record *out)
{
	char text[128];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	out->failed_upgrades = out->upgrade_errno = 0;
	return sscanf(text, "%d %39s %d %d %d", &out->supervisor, out->version, &out->server,
		      &out->failed_upgrades, &out->upgrade_errno) >= 3
		       ? 0
		       : -1;
}

/* The previous daemon removes the file when it exits: a lock on a removed file has no effect. */
static int is_current(int fd, const char *path)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

int pidfile_take(const char *run_dir, struct err *e)
{
	struct pidfile_record there = { 0 };
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
		       (int)there.supervisor);
}

int pidfile_lock_state(const char *state_dir, struct err *e)
{
	auto_fd int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open the state folder %.150s", state_dir);
	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += STEP_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, "lock the state folder %.150s", state_dir);
		if (waited >= WAIT_MS)
			return err_set(
				e, ERR_CONFLICT,
				"another daemon, with another run folder, has the state folder %.120s: give this "
				"one its own with --state",
				state_dir);
		usleep(STEP_MS * 1000);
	}
	return steal_fd(&fd);
}

int pidfile_write(int fd, const struct pidfile_record *note, struct err *e)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%d %.39s %d %d %d\n", (int)note->supervisor,
			 note->version, (int)note->server, note->failed_upgrades,
			 note->upgrade_errno);

	/* One write over the old text, then truncation: a reader never sees an empty file. */
	if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
		return err_sys(e, "write serve.pid");
	return 0;
}

int pidfile_read(const char *run_dir, struct pidfile_record *out, struct err *e)
{
	char path[300];
	auto_fd int fd = -1;

	path_of(run_dir, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_sys(e, "open %s", path);
	/* If this process gets the lock, no daemon holds it: the file is of a daemon that no
	 * longer exists. */
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || read_note(fd, out) < 0)
		return err_set(e, ERR_NOT_FOUND, "no daemon serves from %.150s", run_dir);
	return 0;
}

/* A process id may have been given to another program: the command line of a daemon has the word `serve`. */
static int pidfile_is_daemon(pid_t pid)
{
	char path[40], words[4096];
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, words, sizeof(words) - 1);
	words[n > 0 ? n : 0] = 0;
	for (const char *w = words; w < words + (n > 0 ? n : 0); w += strlen(w) + 1)
		if (!strcmp(w, "serve"))
			return 1;
	return 0;
}

int pidfile_find_process(const char *run_dir, struct pidfile_record *out, int *out_pidfd,
			 struct err *e)
{
	auto_fd int pidfd = -1;

	if (pidfile_read(run_dir, out, e) < 0)
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, out->supervisor, 0);
	/* Checked while the descriptor is held: a signal sent through it reaches the process checked here. */
	if (pidfd < 0 || !pidfile_is_daemon(out->supervisor))
		return err_set(e, ERR_NOT_FOUND, "process %d no longer serves",
			       (int)out->supervisor);
	*out_pidfd = steal_fd(&pidfd);
	return 0;
}

void pidfile_leave(const char *run_dir, int fd)
{
	char path[300];

	path_of(run_dir, path);
	if (is_current(fd, path))
		unlink(path);
	close(fd);
}
