/* program_clock.c - see program_clock.h.
 *
 * The kernel counts the offsets of a time namespace from the clocks of the host, also inside of another one. So those of the
 * caller are added when they are written, and subtracted when they are read. */
#include "procimage/program_clock.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
enum { OFFSETS_TEXT = 256 };
#define SECOND_NS INT64_C(1000000000)

/* "monotonic  SECONDS  NANOSECONDS" and the same for boottime. */
static int clock_parse(const char *text, struct program_clock *out)
{
	long long s[2], ns[2];

	if (sscanf(text, "monotonic %lld %lld boottime %lld %lld", &s[0], &ns[0], &s[1], &ns[1]) !=
	    4)
		return -1;
	out->monotonic_ns = s[0] * SECOND_NS + ns[0];
	out->boottime_ns = s[1] * SECOND_NS + ns[1];
	return 0;
}

static int clock_read_offsets(const char *path, struct program_clock *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[OFFSETS_TEXT] = "";

	*out = (struct program_clock){ 0 };
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return err_sys(e, "read the clock of a program");
	return clock_parse(text, out) < 0 ? err_set(e, ERR_SYS, "cannot read %s: %.60s", path, text)
					  : 0;
}

int program_clock_read(pid_t pid, struct program_clock *out, struct err *e)
{
	struct program_clock own;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
	if (clock_read_offsets(path, out, e) < 0 ||
	    clock_read_offsets("/proc/self/timens_offsets", &own, e) < 0)
		return -1;
	out->monotonic_ns -= own.monotonic_ns;
	out->boottime_ns -= own.boottime_ns;
	return 0;
}

/* The nanoseconds are never negative. */
static int clock_print(char *to, size_t room, const char *name, int64_t ns)
{
	int64_t rest = ns % SECOND_NS;

	if (rest < 0)
		rest += SECOND_NS;
	return snprintf(to, room, "%s %lld %lld\n", name, (long long)((ns - rest) / SECOND_NS),
			(long long)rest);
}

/* In a process of its own: reports an errno and exists until the other end of the socket is closed. */
static _Noreturn void clock_hold(int sock, const struct program_clock *c)
{
	char text[OFFSETS_TEXT], byte;
	int fd, n, error = 0;

	n = clock_print(text, sizeof(text), "monotonic", c->monotonic_ns);
	n += clock_print(text + n, sizeof(text) - (size_t)n, "boottime", c->boottime_ns);
	if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) < 0) {
		error = errno;
	} else {
		fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, text, (size_t)n) != n)
			error = errno;
	}
	if (write(sock, &error, sizeof(error)) == sizeof(error))
		(void)!read(sock, &byte, 1);
	_exit(0);
}

static int clock_enter(pid_t pid, int sock, struct err *e)
{
	char path[64];
	int error = 0, fd;

	if (read(sock, &error, sizeof(error)) != sizeof(error))
		return err_set(e, ERR_SYS, "the process that makes a time namespace has ended");
	errno = error;
	if (error)
		return err_sys(e, "a time namespace (CONFIG_TIME_NS)");
	snprintf(path, sizeof(path), "/proc/%d/ns/time_for_children", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open a time namespace") : fd;
}

int program_clock_open(const struct program_clock *c, struct err *e)
{
	struct program_clock own;
	int pair[2], fd;
	pid_t pid;

	if (clock_read_offsets("/proc/self/timens_offsets", &own, e) < 0)
		return -1;
	own.monotonic_ns += c->monotonic_ns;
	own.boottime_ns += c->boottime_ns;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the process that makes a time namespace");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		clock_hold(pair[1], &own);
	}
	close(pair[1]);
	fd = pid < 0 ? err_sys(e, "start the process that makes a time namespace")
		     : clock_enter(pid, pair[0], e);
	close(pair[0]);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return fd;
}
