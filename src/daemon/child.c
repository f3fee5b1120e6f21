/* child.c - see child.h. */
#include "daemon/child.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { AGAIN_MS = 500 };

static _Noreturn void child_do_become(int link, const char *name, void (*be)(void *ctx), void *ctx)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	/* The child must not hold listening sockets, links of servers or the pidfile: the end of
	 * a process is noticed only when no other process holds its descriptor. */
	if (dup2(link, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0) < 0)
		_exit(1);
	prctl(PR_SET_NAME, name);
	be(ctx);
	_exit(1);
}

int child_start(struct child *a, const char *name, void (*be)(void *ctx), void *ctx, struct err *e)
{
	int pair[2];

	a->tried_ns = now_ns();
	if (sock_pair(pair, e) < 0)
		return -1;
	fflush(NULL);
	a->pid = fork();
	if (a->pid == 0)
		child_do_become(pair[1], name, be, ctx);
	close(pair[1]);
	a->link = pair[0];
	if (a->pid > 0)
		return 0;
	a->pid = 0;
	own_close_fd(&a->link);
	return err_sys(e, "fork %s", name);
}

void child_stop(struct child *a)
{
	own_close_fd(&a->link);
	a->pid = 0;
}

int child_rests(const struct child *a)
{
	return a->tried_ns && now_ns() - a->tried_ns < AGAIN_MS * UINT64_C(1000000);
}

int child_is(const struct child *a, pid_t pid)
{
	return a->pid && pid == a->pid;
}

int child_hand(struct child *a, uint16_t type, int take_pair[2], int server_link)
{
	struct frame head = sock_head(type, 0);
	struct err e;
	int rc = sock_send(a->link, &head, sizeof(head), NULL, 0, &take_pair[0], 1, &e);

	if (rc == 0)
		rc = sock_send(server_link, &head, sizeof(head), NULL, 0, &take_pair[1], 1, &e);
	close(take_pair[0]);
	close(take_pair[1]);
	return rc;
}
