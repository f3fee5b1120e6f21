/* fork_server.c - see fork_server.h.
 *
 *   zygote                         A                              B
 *   steps into the box's pid ns
 *   clone3(VM|VFORK[, cgroup]) ->  enters the cgroups (v1)
 *     asleep                       fork() --------------------->  jumps back to the zygote's stack,
 *   steps back  <----------------  ends                           seals itself, reports
 *
 * A exists so that B has a parent that dies inside the box's pid namespace: the kernel then gives B
 * to the box's init, which reaps it like any orphan. A shares the zygote's memory, so only one copy
 * is made, for B. */
#include "zygote/fork_server.h"
#include "base/cleanup.h"
#include "jail/clone.h"
#include "zygote/confine_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

enum { BOX, SOCK, REPORT, CGROUP, MOST = CGROUP + ZYGOTE_TASKS };

static struct {
	struct zygote_fork_order order;
	int fds[MOST];
	unsigned nfds;
	int home; /* our own pid namespace */
	struct seccomp filter;
	jmp_buf back;
	struct err err;
	char stack[65536] __attribute__((aligned(16)));
} now;

static int receive_fds(int sock, void *body, size_t len, int *fds, unsigned *nfds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * MOST)];
	} control;
	struct iovec iov = { body, len };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	*nfds = 0;
	if (c && c->cmsg_type == SCM_RIGHTS) {
		*nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), *nfds * sizeof(int));
	}
	return (int)n;
}

static void server_report(int fd, const struct err *e)
{
	struct zygote_report r = { .err = *e, .pid = (int32_t)getpid() };

	(void)!write(fd, &r, sizeof(r));
}

/* ---- A ---- */

static int a_main(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < now.order.ntasks; i++)
		/* "0": this process and all its forks. */
		if (write(now.fds[CGROUP + i], "0", 1) != 1) {
			err_sys(&now.err, "enter cgroup %u", i);
			return 1;
		}
	switch (fork()) {
	case 0:
		longjmp(now.back, 1);
	case -1:
		err_sys(&now.err, "fork into the box");
		return 1;
	}
	return 0;
}

/* ---- the zygote ---- */

static int run_a(void)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | (now.order.born_in ? CLONE_INTO_CGROUP : 0),
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)now.stack,
		.stack_size = sizeof(now.stack),
		.cgroup = now.order.born_in ? (uint64_t)now.fds[CGROUP] : 0,
	};
	long pid;

	now.err.kind = ERR_NONE;
	if (setns(now.fds[BOX], CLONE_NEWPID) < 0)
		return err_sys(&now.err, "step into the box's pid namespace");
	pid = clone3_call(&args, sizeof(args), a_main, NULL);
	if (setns(now.home, CLONE_NEWPID) < 0)
		_exit(70); /* the child of the next box would be created in this one */
	if (pid < 0) {
		errno = (int)-pid;
		return err_sys(&now.err, "clone into the box");
	}
	while (waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return now.err.kind ? -1 : 0;
}

static int become_child(const struct fork_server_hooks *hooks)
{
	struct sealing s = { .order = &now.order,
			     .filter = &now.filter,
			     .sock = now.fds[SOCK],
			     .report = now.fds[REPORT],
			     .box = now.fds[BOX] };
	struct err e = { 0 };

	if (seal(&s, &e) < 0) {
		server_report(s.report, &e);
		_exit(70);
	}
	e.kind = ERR_NONE;
	server_report(s.report, &e);
	close(s.report);
	close(s.box);
	hooks->in_child(); /* other requests are served meanwhile */
	return s.sock;
}

static int order_is_whole(void)
{
	unsigned want = CGROUP + (now.order.born_in ? 1 : now.order.ntasks);

	return now.nfds == want && now.order.ntasks <= ZYGOTE_TASKS;
}

static void map_filter(void)
{
	struct stat st;
	void *at;

	if (fstat(ZYGOTE_FILTER, &st) < 0 || st.st_size <= 0)
		_exit(71);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, ZYGOTE_FILTER, 0);
	if (at == MAP_FAILED)
		_exit(71);
	now.filter.code = at;
	now.filter.len = (unsigned short)((size_t)st.st_size / sizeof(struct sock_filter));
	close(ZYGOTE_FILTER);
}

int fork_server_run(const struct fork_server_hooks *hooks, int *out_waits)
{
	map_filter();
	/* There is no /proc here; but a process can name its namespaces by its own pidfd. */
	now.home = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (now.home < 0 || write(ZYGOTE_ORDERS, "R", 1) != 1)
		_exit(71);
	while (receive_fds(ZYGOTE_ORDERS, &now.order, sizeof(now.order), now.fds, &now.nfds) ==
	       (int)sizeof(now.order)) {
		if (!order_is_whole())
			_exit(70);
		if (setjmp(now.back)) {
			*out_waits = (int)now.order.waits;
			return become_child(hooks);
		}
		if (run_a() < 0)
			server_report(now.fds[REPORT], &now.err);
		for (unsigned i = 0; i < now.nfds; i++)
			close(now.fds[i]);
	}
	_exit(0);
}

/* ---- B, afterwards ---- */

void fork_server_stdio(int sock)
{
	int fds[MOST];
	unsigned nfds;
	char byte;

	if (receive_fds(sock, &byte, 1, fds, &nfds) != 1 || nfds != 3)
		_exit(0);
	for (int i = 0; i < 3; i++) {
		if (dup2(fds[i], i) < 0)
			_exit(70);
		close(fds[i]);
	}
}

int fork_server_told(int sock)
{
	char byte;

	return recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void read_all(int fd, void *to, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = read(fd, (char *)to + have, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		have += (size_t)n;
	}
}

char *fork_server_start_msg(int sock, uint32_t *out_len)
{
	char *words;

	read_all(sock, out_len, sizeof(*out_len));
	if (*out_len > START_MSG_BYTES)
		_exit(70);
	words = malloc(*out_len + 1);
	if (!words)
		_exit(70);
	read_all(sock, words, *out_len);
	words[*out_len] = 0;
	return words;
}
