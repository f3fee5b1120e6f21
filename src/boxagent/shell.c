/* shell.c - see shell.h. */
#include "boxagent/shell.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { READ_MOST = 64 * 1024, GRACE_MS = 200 }; /* time for the last output of a program */

/* Disables pagers, colours and prompts. */
static const char *const quiet[][2] = {
	{ "PAGER", "cat" },
	{ "MANPAGER", "cat" },
	{ "GIT_PAGER", "cat" },
	{ "LESS", "-R" },
	{ "TERM", "dumb" },
	{ "GIT_TERMINAL_PROMPT", "0" },
	{ "PIP_PROGRESS_BAR", "off" },
	{ "TQDM_DISABLE", "1" },
	{ "DEBIAN_FRONTEND", "noninteractive" },
	{ "EDITOR", "true" },
	{ "NO_COLOR", "1" },
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static _Noreturn void shell_child(int dir, const char *command, int out)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	for (unsigned i = 0; i < ARRAY_LEN(quiet); i++)
		setenv(quiet[i][0], quiet[i][1], 1);
	signal(SIGPIPE, SIG_DFL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
	    fchdir(dir) < 0)
		_exit(126);
	execl("/bin/bash", "bash", "-c", command, (char *)NULL);
	_exit(127);
}

/* 1: there may be more; 0: end of file. */
static int read_some(int from, struct head_tail *out)
{
	static char bytes[READ_MOST];
	ssize_t n = read(from, bytes, sizeof(bytes));

	if (n > 0)
		head_tail_add(out, bytes, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until it has exited and nothing is left to read, or the time limit. 1: it has exited. */
static int shell_attend(int pidfd, int from, uint64_t timeout_ms, struct head_tail *out)
{
	uint64_t until = now_ms() + timeout_ms;
	int ended = 0, open = 1;

	while (!ended || open) {
		struct pollfd p[2] = { { .fd = open ? from : -1, .events = POLLIN },
				       { .fd = ended ? -1 : pidfd, .events = POLLIN } };
		uint64_t now = now_ms();

		if (now >= until || poll(p, 2, (int)(until - now)) == 0)
			return ended;
		if (p[0].revents)
			open = read_some(from, out);
		if (p[1].revents) {
			ended = 1;
			until = now_ms() + GRACE_MS;
		}
	}
	return 1;
}

int shell_run(int dir, const char *command, uint64_t timeout_ms, struct head_tail *out,
	      struct shell_end *end, struct err *e)
{
	auto_fd int from = -1, pidfd = -1;
	uint64_t began = now_ms();
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	from = p[0];
	pid = fork();
	if (pid == 0)
		shell_child(dir, command, p[1]);
	close(p[1]);
	if (pid < 0)
		return err_sys(e, "fork");
	*end = (struct shell_end){ 0 };
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0 || !shell_attend(pidfd, from, timeout_ms, out)) {
		end->timed_out = pidfd >= 0;
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL); /* it may not have its group yet */
	}
	while (waitpid(pid, &end->status, 0) < 0 && errno == EINTR)
		;
	end->ms = now_ms() - began;
	return pidfd < 0 ? err_set(e, ERR_SYS, "pidfd_open is not to be had") : 0;
}
