/* image_zygote.c - see image_zygote.h. The lists are made in zygote_memory.c. */
#include "procimage/image_zygote.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "procimage/plan.h"
#include "procimage/restorer.h"
#include "procimage/zygote_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
enum { BUILD_SECONDS = 120, FORK_SECONDS = 20 };

static uint64_t zygote_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

const char *restorer_step_name(unsigned step)
{
	static const char *const names[RESTORER_STEPS] = {
		[STEP_NONE] = "nothing",
		[STEP_MEMORY] = "map the memory",
		[STEP_FILL] = "copy the memory",
		[STEP_KERNEL_PAGES] = "move the pages of the kernel",
		[STEP_PROGRAM] = "set the program",
		[STEP_CGROUP] = "enter the cgroups",
		[STEP_NAMESPACE] = "enter the namespaces",
		[STEP_HELPER] = "start the helper",
		[STEP_PID] = "take the pid",
		[STEP_CONFINE] = "confine the copy",
		[STEP_DESCRIPTOR] = "restore descriptors",
		[STEP_FOLDER] = "enter the working folder",
		[STEP_LIMITS] = "set limits",
		[STEP_SIGNALS] = "set signal handlers",
		[STEP_TIMERS] = "set timers",
		[STEP_THREAD] = "start threads",
		[STEP_TID] = "take a tid",
		[STEP_ORDER] = "read an order",
		[STEP_TREE] = "start the processes of the tree",
		[STEP_GROUP] = "enter a process group",
		[STEP_TERMINAL] = "take the terminal of a session",
	};

	return step < RESTORER_STEPS ? names[step] : "unknown step";
}

static int zygote_read_report(int fd, int seconds, struct restorer_report *r, struct err *e)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int rc;

	do
		rc = poll(&p, 1, seconds * 1000);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(e, ERR_SYS, "no answer within %d s", seconds);
	if (read(fd, r, sizeof(*r)) != sizeof(*r))
		return err_set(e, ERR_SYS, "it ended without a report");
	if (r->error) {
		errno = r->error;
		return err_sys(e, "%s (call %llu, result %lld)", restorer_step_name(r->step),
			       (unsigned long long)r->detail, (long long)r->result);
	}
	return 0;
}

static void zygote_report_failure(int fd, const struct err *e)
{
	struct zygote_failure f = { .magic = ZYGOTE_FAILURE, .err = *e };

	(void)!write(fd, &f, sizeof(f));
	_exit(70);
}

static int zygote_wait_built(struct image_zygote *z, struct err *e)
{
	union {
		struct restorer_report report;
		struct zygote_failure failure;
	} got;
	struct pollfd p = { z->control, POLLIN, 0 };
	ssize_t n;

	if (poll(&p, 1, BUILD_SECONDS * 1000) == 0)
		return err_set(e, ERR_SYS, "the checkpoint zygote was not built within %d s",
			       BUILD_SECONDS);
	n = recv(z->control, &got, sizeof(got), MSG_PEEK);
	if (n == (ssize_t)sizeof(got.failure) && got.failure.magic == ZYGOTE_FAILURE) {
		*e = got.failure.err;
		return -1;
	}
	return zygote_read_report(z->control, 1, &got.report, e) < 0
		       ? err_in(e, "build the checkpoint zygote")
		       : 0;
}

int image_zygote_build(struct image_zygote *z, const struct image *im,
		       const struct image_pages *pages, const struct confine_spec *confine,
		       struct err *e)
{
	const struct image_tree tree = { &im, pages, 1, -1, NULL };

	return image_zygote_build_tree(z, &tree, confine, e);
}

/* Copies inherit it. The kernel also exchanges the page from which the vDSO reads the time. */
static int zygote_enter_clock(const struct image_tree *tree, struct err *e)
{
	return tree->clock >= 0 && setns(tree->clock, CLONE_NEWTIME) < 0
		       ? err_sys(e, "enter the time namespace of the programs")
		       : 0;
}

int image_zygote_build_tree(struct image_zygote *z, const struct image_tree *tree,
			    const struct confine_spec *confine, struct err *e)
{
	uint64_t began = zygote_now_us();
	int pair[2];

	*z = (struct image_zygote){ .control = -1,
				    .outside = plan_count_outside(tree->image, tree->n) +
					       plan_count_terminals(tree->image, tree->n) };
	if (procimage_check_tree(tree->image, tree->n, e) < 0)
		return -1;
	if (z->outside > RESTORER_OUTSIDE)
		return err_set(e, ERR_LIMIT, "%u descriptors come from outside, at most %d",
			       z->outside, RESTORER_OUTSIDE);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "make a socket for the checkpoint zygote");
	z->pid = fork();
	if (z->pid == 0) {
		struct err failure = { 0 };

		close(pair[0]);
		prctl(PR_SET_DUMPABLE, 0);
		if (zygote_enter_clock(tree, &failure) == 0)
			zygote_memory_become(tree, confine, &pair[1], &failure);
		zygote_report_failure(pair[1], &failure);
	}
	close(pair[1]);
	z->control = pair[0];
	if (z->pid < 0) {
		err_sys(e, "fork the checkpoint zygote");
		image_zygote_fini(z);
		return -1;
	}
	if (zygote_wait_built(z, e) < 0) {
		image_zygote_fini(z);
		return -1;
	}
	z->took_us = (unsigned)(zygote_now_us() - began);
	return 0;
}

static int zygote_send_order(struct image_zygote *z, const struct image_target *t, int socket,
			     struct err *e)
{
	struct restorer_order order = { .outside = t->noutside,
					.helper = t->helper,
					.namespaces = t->init >= 0 ? t->namespaces : 0,
					.tasks = t->ntasks };
	int fds[2 + RESTORER_TASKS + RESTORER_OUTSIDE] = { t->init >= 0 ? t->init : socket,
							   socket };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec iov = { &order, sizeof(order) };
	size_t bytes = sizeof(int) * (2 + t->ntasks + t->noutside);
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_SPACE(bytes) };

	if (t->ntasks)
		memcpy(fds + 2, t->tasks, sizeof(int) * t->ntasks);
	if (t->noutside)
		memcpy(fds + 2 + t->ntasks, t->outside, sizeof(int) * t->noutside);
	control.head = (struct cmsghdr){ CMSG_LEN(bytes), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), fds, bytes);
	if (sendmsg(z->control, &m, MSG_NOSIGNAL) != sizeof(order))
		return err_sys(e, "send an order to the checkpoint zygote");
	return 0;
}

int image_zygote_fork(struct image_zygote *z, const struct image_target *t, int *out_socket,
		      struct err *e)
{
	struct restorer_report report;
	auto_fd int socket = -1;
	int pair[2], rc;

	if (t->ntasks > RESTORER_TASKS)
		return err_set(e, ERR_LIMIT, "%u cgroups, at most %d", t->ntasks, RESTORER_TASKS);
	if (t->noutside != z->outside)
		return err_set(e, ERR_INVALID, "%u descriptors were supplied, the program needs %u",
			       t->noutside, z->outside);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "make a socket for the copy");
	socket = pair[0];
	rc = zygote_send_order(z, t, pair[1], e);
	close(pair[1]);
	if (rc < 0 || zygote_read_report(socket, FORK_SECONDS, &report, e) < 0)
		return err_in(e, "continue the program in a copy");
	*out_socket = steal_fd(&socket);
	return 0;
}

int image_zygote_write_pages(const struct image_zygote *z, const struct image *im, int to,
			     struct err *e)
{
	static char buffer[1 << 20];
	uint64_t page = im->header.page_bytes;
	char path[64];
	auto_fd int memory = -1;

	snprintf(path, sizeof(path), "/proc/%d/mem", z->pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return err_sys(e, "open the memory of the checkpoint zygote");
	for (uint64_t i = 0; i < im->header.count[TABLE_RUNS]; i++) {
		uint64_t at = image_runs(im)[i].start, left = image_runs(im)[i].pages * page;

		while (left) {
			size_t want = left < sizeof(buffer) ? left : sizeof(buffer);
			ssize_t n = pread(memory, buffer, want, (off_t)at);

			if (n <= 0)
				return err_sys(e,
					       "read the memory of the checkpoint zygote at %#llx",
					       (unsigned long long)at);
			for (ssize_t done = 0, k; done < n; done += k)
				if ((k = write(to, buffer + done, (size_t)(n - done))) <= 0)
					return err_sys(e, "write the pages");
			at += (uint64_t)n;
			left -= (uint64_t)n;
		}
	}
	return 0;
}

void image_zygote_fini(struct image_zygote *z)
{
	if (z->control >= 0)
		close(z->control);
	if (z->pid > 0) {
		kill(z->pid, SIGKILL);
		while (waitpid(z->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*z = (struct image_zygote){ .control = -1 };
}
