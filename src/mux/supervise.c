/* supervise.c - see supervise.h. */
#include "mux/supervise.h"
#include "initlib/str.h"
#include "initlib/sys.h"

enum { BAD_START = 70, KILLED = 137, LIST = 4096, OWNER_ONLY = 0700 };

#define BIT(signal) (1ull << ((signal)-1))

static int supervise_status(int status)
{
	return status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

/* ---- processes ---- */

/* Kills the children that the kernel lists now. */
static int supervise_kill_children(void)
{
	static char pids[LIST];
	int fd = (int)sys_openat(AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);
	long n = fd < 0 ? fd : sys_read(fd, pids, sizeof(pids)), i;
	int pid = 0;

	sys_close(fd);
	for (i = 0; i < n; i++) {
		if (pids[i] != ' ') {
			pid = pid * 10 + (pids[i] - '0');
			continue;
		}
		sys_kill(pid, SIGKILL);
		pid = 0;
	}
	return n < 0 ? (int)n : 0;
}

/* A list that cannot be read leaves init, whose end gives this process its children. */
static void supervise_kill_all(int init)
{
	int status, pid;

	do {
		if (supervise_kill_children() < 0)
			sys_kill(init, SIGKILL);
		do
			pid = (int)sys_wait4(-1, &status, 0, NULL);
		while (pid == -EINTR);
	} while (pid > 0);
}

/* 1: init has ended. */
static int supervise_reap(int init, int *out_status)
{
	int status, pid, over = 0;

	while ((pid = (int)sys_wait4(-1, &status, WNOHANG, NULL)) > 0)
		if (pid == init) {
			*out_status = supervise_status(status);
			over = 1;
		}
	return over;
}

/* ---- the folder ---- */

/* Removes what can be removed from the working folder, and enters the first folder that is not empty. 1: entered one;
 * 0: it is empty now; -errno. */
static int supervise_sweep(void)
{
	static _Alignas(8) char entries[LIST];
	int dir = (int)sys_openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), found = 0;
	long n = 0, at, err = dir;

	while (dir >= 0 && !found && (n = sys_getdents(dir, entries, sizeof(entries))) > 0)
		for (at = 0, err = 0; at < n && !found;) {
			struct dirent64 *d = (struct dirent64 *)(void *)(entries + at);

			at += d->d_reclen;
			if (!text_compare(d->d_name, ".") || !text_compare(d->d_name, ".."))
				continue;
			err = sys_unlinkat(AT_FDCWD, d->d_name, 0);
			if (err == -EISDIR || err == -EPERM)
				err = sys_unlinkat(AT_FDCWD, d->d_name, AT_REMOVEDIR);
			if (err == -ENOTEMPTY) {
				sys_fchmodat(AT_FDCWD, d->d_name, OWNER_ONLY);
				err = sys_chdir(d->d_name);
				found = err >= 0;
			}
			if (err < 0)
				break;
		}
	sys_close(dir);
	return err < 0 ? (int)err : n < 0 ? (int)n : found;
}

/* No process is left that could change the folder meanwhile. A folder is entered, emptied, left by "..", and found
 * empty by the next sweep of its parent: no stack, whatever the depth. */
static void supervise_remove(const char *folder)
{
	int depth = 0, more;

	sys_fchmodat(AT_FDCWD, folder, OWNER_ONLY); /* programs may have changed it */
	if (sys_chdir(folder) < 0)
		return;
	while ((more = supervise_sweep()) >= 0) {
		if (!more && !depth)
			break;
		depth += more ? 1 : -1;
		if (!more && sys_chdir("..") < 0)
			return;
	}
	if (sys_chdir("/") >= 0)
		sys_unlinkat(AT_FDCWD, folder, AT_REMOVEDIR);
}

/* ---- the role ---- */

_Noreturn void supervise_main(char **argv)
{
	int init = (int)text_number(argv[2], 1u << 30), status = KILLED, over = 0;
	struct signalfd_siginfo info;
	int signals;

	sys_sigmask(~0ull);
	sys_prctl(PR_SET_NAME, (unsigned long)"atoll-super", 0);
	signals = (int)sys_signalfd(BIT(SIGCHLD) | BIT(SIGTERM), O_CLOEXEC);
	if (init < 2 || signals < 0 || sys_prctl(PR_SET_DUMPABLE, 0, 0) < 0 ||
	    sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0) < 0) {
		sys_kill(init, SIGKILL);
		sys_exit(BAD_START);
	}
	/* It may have ended before the signal was blocked. */
	over = supervise_reap(init, &status);
	while (!over) {
		if (sys_read(signals, &info, sizeof(info)) < 0)
			continue;
		over = supervise_reap(init, &status) || info.ssi_signo == SIGTERM;
	}
	supervise_kill_all(init);
	supervise_remove(argv[3]);
	sys_exit(status);
}
