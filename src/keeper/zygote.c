/* zygote.c - see zygote.h.
 *
 * A zygote must be able to enter boxes, so it runs as root of the keeper with a few capabilities.
 * In return it is isolated: its mounts, network and ipc are those of a box without programs, and
 * the only bytes that it reads are struct zygote_fork_order from the keeper. */
#include "keeper/zygote.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/clone.h"
#include "jail/launch.h"
#include "zygote/protocol.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK 65536
#define PLANT_MS 4000
#define BIT(cap) (UINT64_C(1) << CAP_##cap)
/* For entering namespaces through the pidfd of an init that is not dumpable, and for the
 * confinement steps of a child. */
#define ZYGOTE_CAPS                                                                                \
	(BIT(SYS_ADMIN) | BIT(SYS_PTRACE) | BIT(SYS_CHROOT) | BIT(SETUID) | BIT(SETGID) |          \
	 BIT(SETPCAP))
#define ENVIRON_ROOM 2048
#define OBJECT "/tmp/zygote.so"

extern const char zygote_image[], zygote_image_end[]; /* zygote_image.S */

struct start {
	const char *program, *name;
	int home; /* pidfd of init of its box */
	int orders, filter, out[2], in[2];
	struct err err;
};

/* ---- in the zygote before execve; it shares the memory of the keeper, so nothing is allocated
 * ---- */

static int enter_home(const struct start *s, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(e, "death signal");
	if (setns(s->home, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return err_sys(e, "enter the zygote's box");
	/* A private copy of the mounts, so that the changes below are in no box. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "own mounts");
	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=0755") < 0)
		return err_sys(e, "own /tmp");
	return chdir("/") < 0 ? err_sys(e, "chdir /") : 0;
}

static int write_object(struct err *e)
{
	size_t size = (size_t)(zygote_image_end - zygote_image);
	auto_fd int fd = open(OBJECT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);

	if (fd < 0 || write(fd, zygote_image, size) != (ssize_t)size)
		return err_sys(e, "write " OBJECT);
	return 0;
}

/* 0 and 1: pipes without a peer, as a program would have; 2: stderr of the keeper; 3: requests; 4:
 * the seccomp filter. */
static int place_descriptors(const struct start *s, struct err *e)
{
	const int from[] = { s->in[0], s->out[1], 2, s->orders, s->filter };
	int high[ARRAY_LEN(from)];

	for (unsigned i = 0; i < ARRAY_LEN(from); i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, JAIL_FD_HIGH / 2);
		if (high[i] < 0)
			return err_sys(e, "hold descriptor %u", i);
	}
	for (unsigned i = 0; i < ARRAY_LEN(from); i++)
		if (dup3(high[i], (int)i, 0) < 0)
			return err_sys(e, "place descriptor %u", i);
	if (syscall(SYS_close_range, ZYGOTE_FILTER + 1, ~0U, 0) < 0)
		return err_sys(e, "close all other descriptors");
	return 0;
}

static int zygote_main(void *arg)
{
	/* The name of a child will be written over the long argument. */
	static char padding[] = "................................................................"
				"................................................................"
				"................................................................";
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/tmp",
		    lang[] = "LC_ALL=C.UTF-8", object[] = "LD_PRELOAD=" OBJECT,
		    blas[] = "OPENBLAS_NUM_THREADS=1", omp[] = "OMP_NUM_THREADS=1",
		    /* Symbols are resolved here, once, and not in each child at the first call. */
		bound[] = "LD_BIND_NOW=1";
	/* Space for the variables of a child, which are written over it, so that /proc/self/environ
	 * shows them. */
	static char room[sizeof("ATOLL_ROOM=") + ENVIRON_ROOM] = "ATOLL_ROOM=";
	static char *env[] = { path, home, lang, object, blas, omp, bound, room, NULL };
	struct start *s = arg;
	char *argv[] = { (char *)s->program, (char *)s->name, padding, NULL };
	uint64_t none = 0;

	memset(room + strlen("ATOLL_ROOM="), '.', ENVIRON_ROOM);
	if (enter_home(s, &s->err) < 0 || write_object(&s->err) < 0 ||
	    caps_bound(ZYGOTE_CAPS, &s->err) < 0 || caps_no_new_privs(&s->err) < 0 ||
	    place_descriptors(s, &s->err) < 0)
		return 1;
	signal(SIGPIPE, SIG_DFL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	execve(s->program, argv, env);
	err_sys(&s->err, "run %s", s->program);
	return 1;
}

/* ---- in the keeper ---- */

static int filter_file(const struct host_state *h, struct err *e)
{
	size_t size = h->filter.len * sizeof(struct sock_filter);
	auto_fd int fd = memfd_create("filter", MFD_CLOEXEC);

	if (fd < 0 || write(fd, h->filter.code, size) != (ssize_t)size)
		return err_sys(e, "the filter as a file");
	return steal_fd(&fd);
}

static int zygote_launch(const struct host_state *h, struct start *s, struct zygote_handle *out,
			 struct err *e)
{
	/* Not freed: a sanitizer's notes about this stack must not apply to memory that is mapped
	 * there later. */
	static _Thread_local _Alignas(16) char stack[STACK];
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = STACK,
	};
	auto_fd int adj = -1;
	char name[40];
	long pid;

	pid = clone3_call(&args, sizeof(args), zygote_main, s);
	if (pid < 0) {
		errno = (int)-pid;
		return err_sys(e, "clone a zygote");
	}
	if (s->err.kind) {
		waitpid((pid_t)pid, NULL, __WALL);
		*e = s->err;
		return -1;
	}
	/* When the host is out of memory, a zygote is killed with the boxes, not with the keeper;
	 * its children get the same score as other processes in boxes. */
	snprintf(name, sizeof(name), "%d/oom_score_adj", (int)pid);
	adj = openat(h->proc, name, O_WRONLY | O_CLOEXEC);
	if (adj >= 0)
		(void)!write(adj, "500", 3);
	out->pid = (pid_t)pid;
	return 0;
}

int zygote_start(const struct host_state *h, const struct keeper_box *home, const char *program,
		 const char *name, struct zygote_handle *out, struct err *e)
{
	struct start s = { .program = program,
			   .name = name,
			   .home = home->death.fd,
			   .orders = -1,
			   .filter = -1,
			   .out = { -1, -1 },
			   .in = { -1, -1 } };
	int pair[2] = { -1, -1 }, done = -1;

	s.filter = filter_file(h, e);
	if (s.filter >= 0 && sock_pair(pair, e) == 0) {
		s.orders = pair[1];
		if (pipe2(s.in, O_CLOEXEC) < 0 || pipe2(s.out, O_CLOEXEC) < 0)
			err_sys(e, "pipes for a zygote");
		else
			done = zygote_launch(h, &s, out, e);
	}
	own_close_fd(&s.filter);
	own_close_fd(&pair[1]);
	for (int i = 0; i < 2; i++) {
		own_close_fd(&s.in[i]);
		own_close_fd(&s.out[i]);
	}
	out->orders = pair[0];
	if (done == 0 && keeper_box_lift(&out->orders, e) == 0)
		return 0;
	own_close_fd(&out->orders);
	return err_in(e, "zygote %s", name);
}

static int send_order(int orders, const struct zygote_fork_order *o, const int *fds, unsigned nfds,
		      struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * (3 + ZYGOTE_TASKS))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int) * nfds),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)o, sizeof(*o) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = CMSG_SPACE(sizeof(int) * nfds) };

	memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * nfds);
	if (sendmsg(orders, &m, MSG_NOSIGNAL) < 0)
		return err_sys(e, "order to the zygote");
	return 0;
}

static int await_report(int report, struct zygote_report *r, struct err *e)
{
	if (poll(&(struct pollfd){ .fd = report, .events = POLLIN }, 1, PLANT_MS) <= 0) {
		errno = ETIMEDOUT;
		return err_sys(e, "no answer from the zygote for %d ms", PLANT_MS);
	}
	if (read(report, r, sizeof(*r)) != (ssize_t)sizeof(*r))
		return err_set(e, ERR_SYS, "the zygote's child exited during its set-up");
	if (r->err.kind)
		*e = r->err;
	return r->err.kind ? -1 : 0;
}

static int zygote_order(const struct zygote_fork_args *p, int childs, int report, struct err *e)
{
	const struct spec *sp = p->spec;
	struct zygote_fork_order o = { .layers = p->box->meta.about.layers,
				       .without = p->without,
				       .landlock_abi = sp->landlock_abi,
				       .born_in = sp->cgroup >= 0,
				       .ntasks = (uint32_t)sp->ntasks,
				       .waits = (uint32_t)p->waits };
	int fds[3 + ZYGOTE_TASKS] = { p->box->death.fd, childs, report };
	unsigned n = 3;

	if (sp->cgroup >= 0)
		fds[n++] = sp->cgroup;
	for (int i = 0; i < sp->ntasks && i < ZYGOTE_TASKS; i++)
		fds[n++] = sp->tasks[i];
	return send_order(p->orders, &o, fds, n, e);
}

int zygote_fork(const struct zygote_fork_args *p, struct err *e)
{
	struct wire_zygote told = { .head = sock_head(WIRE_ZYGOTE, 0) };
	struct zygote_report r = { 0 };
	int talk[2] = { -1, -1 }, news[2] = { -1, -1 }, done = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) < 0)
		err_sys(e, "socket for a zygote");
	else if (pipe2(news, O_CLOEXEC) <
		 0) /* a pipe, because the kernel searches for cycles when sockets are sent */
		err_sys(e, "pipe for a zygote's report");
	else
		done = zygote_order(p, talk[1], news[1], e);
	own_close_fd(&talk[1]);
	own_close_fd(&news[1]);
	if (done == 0)
		done = await_report(news[0], &r, e);
	told.pid = r.pid;
	snprintf(told.program, sizeof(told.program), "%s", p->program);
	if (done == 0)
		done = sock_send(p->box->init, &told, sizeof(told), NULL, 0, &talk[0], 1, e);
	own_close_fd(&talk[0]);
	own_close_fd(&news[0]);
	return done < 0 ? err_in(e, "zygote") : 0;
}
