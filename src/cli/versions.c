/* versions.c - see versions.h. */
#include "cli/versions.h"
#include "base/clock.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 10000, SAID = 400 };

struct versions_asked {
	pid_t pid; /* 0: not asked */
	int fd;
	size_t n;
	char said[SAID];
};

/* Its output and its errors go to a pipe of this process; it has no input. */
static int versions_start(struct versions_asked *x, const char *const *argv)
{
	static char *const env[] = { "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent",
				     NULL };
	posix_spawn_file_actions_t does;
	int fds[2], bad;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&does);
	posix_spawn_file_actions_addopen(&does, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&does, fds[1], 1);
	posix_spawn_file_actions_adddup2(&does, fds[1], 2);
	bad = posix_spawn(&x->pid, argv[0], &does, NULL, (char *const *)argv, env);
	posix_spawn_file_actions_destroy(&does);
	close(fds[1]);
	x->fd = bad ? -1 : fds[0];
	if (bad) {
		close(fds[0]);
		x->pid = 0;
	}
	return bad ? -1 : 0;
}

/* Output that is too long is read and dropped: the program must not block. */
static void versions_hear(struct versions_asked *x)
{
	char rest[SAID];
	size_t room = sizeof(x->said) - x->n;
	ssize_t n = read(x->fd, room ? x->said + x->n : rest, room ? room : sizeof(rest));

	if (n > 0 && room)
		x->n += (size_t)n;
	if (n == 0 || (n < 0 && errno != EINTR))
		own_close_fd(&x->fd);
}

static void hear_all(struct versions_asked *all, unsigned n)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	for (;;) {
		struct pollfd p[64];
		unsigned open = 0;
		uint64_t now = now_ns();

		for (unsigned i = 0; i < n; i++) {
			p[i] = (struct pollfd){ .fd = all[i].pid ? all[i].fd : -1,
						.events = POLLIN };
			open += p[i].fd >= 0;
		}
		if (!open || now >= end)
			return;
		if (poll(p, n, (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR)
			return;
		for (unsigned i = 0; i < n; i++)
			if (p[i].fd >= 0 && p[i].revents)
				versions_hear(&all[i]);
	}
}

void versions_ask(struct versions *v, const struct lang *only)
{
	struct versions_asked all[64] = { 0 };
	unsigned n = lang_count();

	memset(v, 0, sizeof(*v));
	for (unsigned i = 0; i < n && i < ARRAY_LEN(all); i++)
		if ((!only || only == lang_at(i)) && lang_present(lang_at(i)))
			(void)!versions_start(&all[i], lang_at(i)->version);
	hear_all(all, n);
	for (unsigned i = 0; i < n; i++) {
		if (!all[i].pid)
			continue;
		if (all[i].fd >= 0) {
			kill(all[i].pid, SIGKILL); /* killed by this process after its time limit */
			close(all[i].fd);
		}
		waitpid(all[i].pid, NULL, 0);
		lang_version_in(all[i].said, all[i].n, v->text[i]);
	}
}

const char *versions_of(const struct versions *v, const struct lang *l)
{
	for (unsigned i = 0; i < lang_count(); i++)
		if (lang_at(i) == l)
			return v->text[i];
	return "";
}
