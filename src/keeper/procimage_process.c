/* procimage_process.c - see procimage_process.h. What a worker does for START is in procimage_start.c. */
#include "keeper/procimage_process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/caps.h"
#include "jail/feature.h"
#include "jail/landlock.h"
#include "jail/launch.h"
#include "keeper/host_state.h"
#include "keeper/procimage_cipher.h"
#include "keeper/procimage_worker.h"
#include "procimage/plan.h"
#include "wire/frame.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SERVICE_FD = 3,
	HELD_MS = 5000,
	FILES_MS = 8000,
	COMPLETE_MS = 60000,
	KEPT_MS =
		120000 /* programs that stay stopped continue if the keeper says nothing for so long */
};
#define BIT(cap) (UINT64_C(1) << CAP_##cap)
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif
/* To enter boxes through the pidfd of an init that is not dumpable, for the steps of the confinement, to read the
 * snapshot children, and to give pipes to the init of a box. */
#define WORKER_CAPS                                                                                \
	(BIT(SYS_ADMIN) | BIT(SYS_PTRACE) | BIT(SYS_CHROOT) | BIT(SETUID) | BIT(SETGID) |          \
	 BIT(CHOWN) | BIT(SETPCAP) | BIT(KILL) | BIT(CHECKPOINT_RESTORE))

static const struct host_state *host;
static pid_t service_pid;

/* ---- messages ---- */

int procimage_order(int sock, const struct procimage_order *o, const int *fds, unsigned n,
		    struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PROCIMAGE_FDS * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(n * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)o, sizeof(*o) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	if (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*o))
		return err_set(e, ERR_SYS, "the process that holds process images has ended");
	return 0;
}

/* The number of descriptors, or -1 at the end of the socket. */
static int process_receive(int sock, struct procimage_order *o, int fds[PROCIMAGE_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PROCIMAGE_FDS * sizeof(int))];
	} control;
	struct iovec iov = { o, sizeof(*o) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	ssize_t n;
	struct cmsghdr *c;
	unsigned nfds = 0;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), nfds * sizeof(int));
	}
	return n == (ssize_t)sizeof(*o) ? (int)nfds : -1;
}

static void worker_answer(const struct worker *w, unsigned what, const struct err *e)
{
	struct procimage_answer a = { .what = what, .about = w->about };

	if (e && e->kind)
		a.err = *e;
	for (unsigned i = 0; i < w->n; i++)
		a.program[i] = w->program[i].about;
	(void)!send(w->sock, &a, sizeof(a), MSG_NOSIGNAL);
}

/* ---- init ---- */

int worker_request(int init, const void *frame, size_t len, const int *fds, unsigned nfds,
		   struct err *e)
{
	_Alignas(8) static char reply[WIRE_MAX];
	const struct frame *f = (const struct frame *)reply;
	int n;

	if (sock_send(init, frame, len, NULL, 0, fds, nfds, e) < 0)
		return -1;
	n = sock_recv(init, reply, NULL, NULL, e);
	if (n == 0)
		return err_set(e, ERR_SYS, "the init of the box has ended");
	if (n > 0 && f->type == WIRE_ERROR) {
		const struct wire_error *w = (const struct wire_error *)f;

		return err_set(e, w->kind, "init: %.*s", (int)sizeof(w->msg) - 1, w->msg);
	}
	if (n > 0 && f->type != WIRE_DONE)
		return err_set(e, ERR_SYS, "init answered with %s", frame_name(f->type));
	return n < 0 ? -1 : 0;
}

static int worker_hold(int init, uint16_t flags, struct err *e)
{
	struct frame f = sock_head(WIRE_HOLD, 0);

	f.flags = flags;
	return worker_request(init, &f, sizeof(f), NULL, 0, e);
}

static void worker_forget_content(struct worker *w)
{
	for (unsigned i = 0; i < w->n; i++)
		own_close_fd(&w->program[i].content);
}

/* All execs that have not ended; their output up to now. */
static int worker_export(struct worker *w, int init, struct err *e)
{
	struct frame ask = sock_head(WIRE_EXPORT, 0);
	_Alignas(8) static char reply[WIRE_MAX];
	const struct wire_exec_state *s = (const struct wire_exec_state *)reply;
	unsigned i = 0;

	worker_forget_content(w);
	if (sock_send(init, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		return -1;
	for (;;) {
		int fd = -1, n;
		unsigned nfds = 1;

		n = sock_recv(init, reply, &fd, &nfds, e);
		if (n < 0)
			return -1;
		if (n && s->head.type == WIRE_DONE) {
			w->n = i;
			return 0;
		}
		if (!n || s->head.type != WIRE_EXEC_STATE || !nfds) {
			if (nfds)
				own_close_fd(&fd);
			return err_set(e, ERR_SYS, "init did not export its execs (%s)",
				       n ? frame_name(s->head.type) : "it has ended");
		}
		if (i == PROCIMAGE_PROGRAMS) {
			own_close_fd(&fd);
			return err_set(e, ERR_LIMIT, "more than %d programs run in the box",
				       PROCIMAGE_PROGRAMS);
		}
		w->source[i].state = *s;
		w->program[i++].content = fd;
	}
}

/* ---- take ---- */

static int worker_host_pid(int pidfd, struct err *e)
{
	char path[64], text[1024];
	const char *at;
	auto_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "Pid:\t");
	n = at ? atoi(at + 5) : 0;
	return n > 0 ? (int)n : err_set(e, ERR_SYS, "the snapshot of the program has ended");
}

void worker_tree(const struct worker *w, unsigned exec, struct worker_tree *out)
{
	*out = (struct worker_tree){ .image = { &w->program[exec].image }, .n = 1 };
	for (unsigned i = 0; i < w->nbelow; i++)
		if (w->below[i].exec == exec) {
			out->image[out->n] = &w->below[i].image;
			out->pages[out->n++].file = w->below[i].pages;
		}
}

static void worker_describe(struct worker *w, unsigned i)
{
	struct worker_program *p = &w->program[i];
	struct wire_image_program *to = &p->about;
	struct worker_tree tree;

	worker_tree(w, i, &tree);
	*to = (struct wire_image_program){ .ref = w->source[i].state.head.ref,
					   .pid = image_program(&p->image)->pid };
	memcpy(to->name, image_program(&p->image)->name, sizeof(to->name));
	for (unsigned t = 0; t < tree.n; t++) {
		const struct image *im = tree.image[t];
		const uint64_t *n = im->header.count;

		to->threads += (uint32_t)n[TABLE_THREADS];
		to->descriptors += (uint32_t)n[TABLE_DESCRIPTORS];
		to->bytes += procimage_memory_bytes(im);
		for (uint64_t k = 0; k < n[TABLE_DESCRIPTORS]; k++)
			to->nlost += image_descriptors(im)[k].kind == DESCRIPTOR_RESET;
	}
	to->lost = to->nlost ? WIRE_LOST_CONNECTIONS : 0;
	w->about.bytes += to->bytes;
}

/* What the box promises about its descriptors must be what init has exported. */
static int worker_check_image(struct worker *w, unsigned i, struct err *e)
{
	struct worker_tree tree;

	worker_tree(w, i, &tree);
	if (image_program(tree.image[0])->pid != w->source[i].state.pid)
		return err_set(e, ERR_SYS, "the image is of process %d, not of %d",
			       image_program(tree.image[0])->pid, w->source[i].state.pid);
	for (unsigned t = 0; t < tree.n; t++)
		for (uint64_t k = 0; k < tree.image[t]->header.count[TABLE_DESCRIPTORS]; k++) {
			const struct image_descriptor *d = &image_descriptors(tree.image[t])[k];

			if (d->kind == DESCRIPTOR_OUTSIDE && d->offset >= 4)
				return err_set(e, ERR_SYS, "descriptor %d has no other end",
					       d->number);
		}
	return procimage_check_tree(tree.image, tree.n, e);
}

int worker_build(struct worker *w, unsigned exec, const struct image_pages *pages, struct err *e)
{
	struct worker_program *p = &w->program[exec];
	struct worker_tree tree;
	auto_fd int clock = -1;

	if (worker_check_image(w, exec, e) < 0)
		return -1;
	if (p->clock.monotonic_ns || p->clock.boottime_ns) {
		clock = program_clock_open(&p->clock, e);
		if (clock < 0)
			return err_in(e, "the clock of the programs would go back");
	}
	worker_tree(w, exec, &tree);
	tree.pages[0] = *pages;
	if (image_zygote_build_tree(&p->zygote,
				    &(struct image_tree){ tree.image, tree.pages, tree.n, clock,
							  &w->instead },
				    &w->confine, e) < 0)
		return -1;
	p->built = 1;
	worker_describe(w, exec);
	return 0;
}

static int worker_build_captured(struct worker *w, unsigned i, struct err *e)
{
	struct worker_program *p = &w->program[i];
	struct pollfd ended = { .fd = p->child, .events = POLLIN };
	struct image_pages pages = { .file = -1 };

	if (p->child < 0)
		return err_set(e, ERR_SYS, "the capture sent no image of an exec");
	pages.process = worker_host_pid(p->child, e);
	if (pages.process < 0 || program_clock_read(pages.process, &p->clock, e) < 0 ||
	    worker_build(w, i, &pages, e) < 0)
		return -1;
	/* If it has ended, another process may have had its pid meanwhile. */
	if (poll(&ended, 1, 0) != 0)
		return err_set(e, ERR_SYS, "the snapshot of process %d has ended early",
			       image_program(&p->image)->pid);
	own_close_fd(&p->child);
	return 0;
}

static int worker_receive_image(struct worker *w, int sock, struct err *e)
{
	struct procimage_message m;
	struct worker_descendant *d = &w->below[w->nbelow];
	struct worker_program *p;
	int fds[2], rc;

	if (procimage_receive(sock, COMPLETE_MS, &m, fds, e) < 0)
		return -1;
	p = &w->program[m.exec < w->n ? m.exec : 0];
	if (m.err.kind) {
		rc = (*e = m.err, -1);
	} else if (m.what != PROCIMAGE_IMAGE || fds[0] < 0 || fds[1] < 0 || m.exec >= w->n ||
		   (!m.direct && p->child >= 0) || (m.direct && p->child < 0) ||
		   w->nbelow == PROCIMAGE_PROGRAMS - 1) {
		rc = err_set(e, ERR_SYS, "the capture sent an invalid message");
	} else if (m.direct) {
		d->exec = m.exec;
		rc = worker_read_image(&d->image, &d->bytes, &d->bytes_len, fds[0], m.bytes, e);
		d->pages = steal_fd(&fds[1]);
		w->nbelow++;
	} else {
		rc = worker_read_image(&p->image, &p->bytes, &p->bytes_len, fds[0], m.bytes, e);
		p->child = steal_fd(&fds[1]);
	}
	own_close_fd(&fds[0]);
	own_close_fd(&fds[1]);
	return rc;
}

/* Init holds for some seconds; the programs may be stopped for longer. */
static int worker_hold_on(struct worker *w, struct err *e)
{
	return w->held_init < 0 ? 0 : worker_hold(w->held_init, 0, e);
}

static int worker_receive_images(struct worker *w, int sock, unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++)
		if (worker_receive_image(w, sock, e) < 0)
			return -1;
	for (unsigned i = 0; i < w->n; i++)
		if (worker_hold_on(w, e) < 0 || worker_build_captured(w, i, e) < 0)
			return -1;
	return 0;
}

/* Everything is stopped until the keeper says that the files are read. */
static int worker_await_files(struct worker *w, struct err *e)
{
	struct procimage_order o;
	int fds[PROCIMAGE_FDS];

	worker_answer(w, PROCIMAGE_STOPPED, NULL);
	if (poll(&(struct pollfd){ .fd = w->sock, .events = POLLIN }, 1, FILES_MS) <= 0)
		return err_set(e, ERR_LIMIT, "the files were not read within %d ms", FILES_MS);
	return process_receive(w->sock, &o, fds) == 0 && o.what == PROCIMAGE_FILES_DONE
		       ? 0
		       : err_set(e, ERR_CONFLICT, "the files of the box were not captured");
}

static int worker_capture(struct worker *w, int init, int sock, uint64_t *began_ns, struct err *e)
{
	struct procimage_message m;
	unsigned count;
	int fds[2];

	if (procimage_receive(sock, HELD_MS, &m, fds, e) < 0)
		return -1;
	count = m.count;
	if (m.err.kind || m.what != PROCIMAGE_HELD) {
		*e = m.err;
		return e->kind ? -1 : err_set(e, ERR_SYS, "the capture sent an invalid message");
	}
	if (worker_export(w, init, e) < 0 || worker_await_files(w, e) < 0)
		return -1;
	m = (struct procimage_message){ .what = PROCIMAGE_RELEASE,
					.keep_stopped = w->held_init >= 0 };
	if (procimage_send(sock, &m, NULL, 0) < 0)
		return err_set(e, ERR_SYS, "the capture has ended");
	if (w->held_init < 0 && worker_hold(init, WIRE_HOLD_OFF, e) < 0)
		return -1;
	w->about.frozen_us = (now_ns() - *began_ns) / 1000;
	return worker_receive_images(w, sock, count, e);
}

/* The programs of the source continue, if it still exists. */
static void worker_release(struct worker *w)
{
	struct err ignored;

	own_close_fd(&w->held_capture);
	if (w->capture > 0) {
		kill(w->capture, SIGKILL);
		while (waitpid(w->capture, NULL, 0) < 0 && errno == EINTR)
			;
	}
	w->capture = 0;
	if (w->held_init >= 0)
		(void)!worker_hold(w->held_init, WIRE_HOLD_OFF, &ignored);
	w->held_init = -1;
}

static int worker_take(struct worker *w, int init, int box, struct err *e)
{
	uint64_t began_ns = now_ns();
	struct stat usr;
	int sock = -1, rc;
	pid_t pid;

	if (stat("/usr", &usr) < 0)
		return err_sys(e, "/usr");
	if (worker_hold(init, 0, e) < 0 || worker_export(w, init, e) < 0)
		return -1;
	pid = procimage_capture_start(box, w->source, w->n, usr.st_dev, &sock, e);
	if (pid < 0)
		return -1;
	rc = worker_capture(w, init, sock, &began_ns, e);
	w->held_capture = sock;
	w->capture = pid;
	if (rc < 0 || w->held_init < 0)
		worker_release(w);
	w->about.programs = w->n;
	w->about.took_us = (now_ns() - began_ns) / 1000;
	return rc;
}

/* ---- worker ---- */

static void worker_confinement(struct worker *w, const struct procimage_order *o)
{
	static struct confine_path paths[16];
	int abi = o->features & FEATURE_BIT(FEATURE_LANDLOCK) ? host->probe.landlock_abi : 0;

	w->confine = (struct confine_spec){ .uid = JAIL_USER,
					    .gid = JAIL_USER,
					    .paths = paths,
					    .filter = host->filter.code,
					    .filter_rows = host->filter.len,
					    .exact_files = 1,
					    .without = o->without };
	if (abi < 1)
		return;
	w->confine.landlock_handled = landlock_handled(abi);
	for (unsigned i = 0; i < landlock_nrows && w->confine.npaths < ARRAY_LEN(paths); i++) {
		uint64_t rights = landlock_rows[i].bits & w->confine.landlock_handled;

		if (landlock_rows[i].path && rights)
			paths[w->confine.npaths++] =
				(struct confine_path){ landlock_rows[i].path, rights };
	}
}

/* When the host is out of memory, a worker, its zygotes and the copies, which are born from them, are killed before the
 * keeper, as processes of boxes are. */
static int worker_offer_to_oom(struct err *e)
{
	auto_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "500", 3) != 3 ? err_sys(e, "write 500 to oom_score_adj") : 0;
}

static int worker_prepare(const struct procimage_order *o, pid_t parent, struct err *e)
{
	if (!(o->without >> COPY_STEP_oom & 1) && worker_offer_to_oom(e) < 0)
		return -1;
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	setsid();
	prctl(PR_SET_NAME, "atoll-image"); /* its zygotes, too */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    getppid() != parent)
		return err_set(e, ERR_SYS, "the service has ended");
	return caps_bound(WORKER_CAPS, e) < 0 || caps_only(WORKER_CAPS, e) < 0 ? -1 : 0;
}

/* fds: its socket; init and the pidfd of init, or a file. Everything else of the service is closed. */
static int worker_place(const int *fds, int n, struct err *e)
{
	int high[3];

	for (int i = 0; i < n; i++)
		if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64)) < 0)
			return err_sys(e, "descriptors of the worker");
	for (int i = 0; i < n; i++)
		if (dup3(high[i], SERVICE_FD + i, O_CLOEXEC) < 0)
			return err_sys(e, "descriptors of the worker");
	return close_range((unsigned)(SERVICE_FD + n), ~0U, 0) < 0
		       ? err_sys(e, "descriptors of the worker")
		       : 0;
}

/* The images, from a box or from a file. */
static int worker_begin(struct worker *w, const struct procimage_order *o, struct err *e)
{
	uint64_t began_ns = now_ns();
	int rc;

	if (worker_prepare(o, service_pid, e) < 0)
		return -1;
	if (o->what == PROCIMAGE_TAKE) {
		w->features = o->features;
		w->held_init = o->keep_stopped ? SERVICE_FD + 1 : -1;
		rc = worker_take(w, SERVICE_FD + 1, SERVICE_FD + 2, e);
		if (w->held_init < 0)
			close(SERVICE_FD + 1);
		close(SERVICE_FD + 2);
		return rc;
	}
	rc = worker_load(w, o, SERVICE_FD + 1, e);
	close(SERVICE_FD + 1);
	w->about.took_us = (now_ns() - began_ns) / 1000;
	return rc;
}

static void worker_obey(struct worker *w, const struct procimage_order *o, const int *fds, int n)
{
	uint64_t began_ns = now_ns(), bytes = w->about.bytes, took_us = w->about.took_us;
	struct err e = { 0 };
	int rc, saves = o->what == PROCIMAGE_SAVE && n == 1;

	if (o->what == PROCIMAGE_START && n >= 2)
		rc = worker_start(w, o, fds, (unsigned)n, &e);
	else if (saves)
		rc = worker_save(w, o, fds[0], &w->about.bytes, &e);
	else
		rc = err_set(&e, ERR_INVALID, "not an order for an image");
	if (rc == 0)
		e.kind = ERR_NONE;
	w->about.took_us = (now_ns() - began_ns) / 1000;
	worker_answer(w, saves ? PROCIMAGE_SAVED : PROCIMAGE_STARTED, &e);
	w->about.bytes = bytes;
	w->about.took_us = took_us;
}

/* -1: no order will come. */
static int worker_await_order(struct worker *w, struct procimage_order *o, int fds[PROCIMAGE_FDS])
{
	struct pollfd p = { .fd = w->sock, .events = POLLIN };
	struct err ignored;

	while (w->held_init >= 0) {
		uint64_t until_ns = now_ns() + KEPT_MS * UINT64_C(1000000);
		int ready = 0;

		while (ready <= 0 && now_ns() < until_ns && worker_hold_on(w, &ignored) == 0)
			ready = poll(&p, 1, 2000);
		if (ready > 0)
			break;
		worker_release(w);
	}
	return process_receive(w->sock, o, fds);
}

static _Noreturn void worker_process(const struct procimage_order *first, const int *given, int n)
{
	static struct worker w;
	struct timeval patience = { .tv_sec = 10 };
	struct procimage_order o;
	int fds[PROCIMAGE_FDS], rc;
	struct err e = { 0 };

	if (worker_place(given, n, &e) < 0)
		_exit(1);
	w.sock = SERVICE_FD;
	w.held_init = w.held_capture = w.instead.vdso = -1;
	for (unsigned i = 0; i < PROCIMAGE_PROGRAMS; i++)
		w.program[i].content = w.program[i].child = -1;
	setsockopt(SERVICE_FD + 1, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(SERVICE_FD + 1, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	o = *first;
	worker_set_test(o.without, o.spoil);
	/* What boxes have is decided when the zygotes are built; START compares. */
	if (o.what == PROCIMAGE_LOAD)
		o.features = FEATURE_BIT(FEATURE_LANDLOCK);
	worker_confinement(&w, &o);
	w.confine.exact_files = o.what == PROCIMAGE_TAKE;
	rc = worker_begin(&w, &o, &e);
	explicit_bzero(&o, sizeof(o));
	worker_answer(&w, PROCIMAGE_READY, rc < 0 ? &e : NULL);
	while (rc == 0 && (n = worker_await_order(&w, &o, fds)) >= 0) {
		worker_obey(&w, &o, fds, n);
		explicit_bzero(o.key, sizeof(o.key));
		for (int i = 0; i < n; i++)
			close(fds[i]);
	}
	worker_release(&w);
	/* The zygotes end with their sockets and their parent. */
	for (unsigned i = 0; i < w.n; i++)
		if (w.program[i].built)
			image_zygote_fini(&w.program[i].zygote);
	_exit(0);
}

/* ---- service ---- */

/* Once, for all workers and zygotes: copies have files of this /usr mapped, and see its path as long as this mount
 * namespace exists. */
static int service_own_root(struct err *e)
{
	auto_fd int null = -1;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=0755") < 0 ||
	    mkdir("/tmp/usr", 0755) < 0 || mkdir("/tmp/proc", 0555) < 0 ||
	    mkdir("/tmp/dev", 0755) < 0 || mkdir("/tmp/tmp", 0755) < 0 ||
	    mount("/usr", "/tmp/usr", NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    mount(NULL, "/tmp/usr", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
		  NULL) < 0 ||
	    mount("proc", "/tmp/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_sys(e, "root folder of process images");
	null = open("/tmp/dev/null", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (null < 0 || mount("/dev/null", "/tmp/dev/null", NULL, MS_BIND, NULL) < 0 ||
	    chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, "root folder of process images");
	return 0;
}

static _Noreturn void service_process(int sock)
{
	int high = fcntl(sock, F_DUPFD_CLOEXEC, 64), fds[PROCIMAGE_FDS], n;
	struct procimage_order o;
	struct err e;

	/* Closes all other descriptors, also the lock of the keeper. */
	if (high < 0 || dup3(high, SERVICE_FD, O_CLOEXEC) < 0 ||
	    close_range(SERVICE_FD + 1, ~0U, 0) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "atoll-images");
	signal(SIGTERM, SIG_IGN); /* it ends when the keeper's end of the socket is closed */
	signal(SIGINT, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	service_pid = getpid();
	if (service_own_root(&e) < 0 || procimage_capture_prepare(&e) < 0 ||
	    cipher_prepare(&e) < 0) {
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
		_exit(1); /* then programs are not captured */
	}
	while ((n = process_receive(SERVICE_FD, &o, fds)) >= 0) {
		if (((o.what == PROCIMAGE_TAKE && n == 3) ||
		     (o.what == PROCIMAGE_LOAD && n == 2)) &&
		    fork() == 0)
			worker_process(&o, fds, n);
		explicit_bzero(o.key, sizeof(o.key));
		for (int i = 0; i < n; i++)
			close(fds[i]);
	}
	_exit(0);
}

int procimage_service_start(const struct host_state *h, pid_t *out_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the service of process images");
	host = h;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		service_process(pair[1]);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "start the service of process images");
	}
	*out_pid = pid;
	return pair[0];
}
