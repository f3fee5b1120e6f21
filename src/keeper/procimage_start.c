/* procimage_start.c - continues the programs of an image in another box.
 *
 * The new init gets the execs before their processes exist, with the ends of new pipes; the other ends and the bytes
 * that were on their way go to the copies. No copy runs before all of them are complete. */
#include "base/cleanup.h"
#include "jail/feature.h"
#include "jail/launch.h"
#include "keeper/procimage_worker.h"
#include "procimage/plan.h"
#include "wire/sock.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENDS = 4, CHANNEL = 2, STDIN = 3, TERMINALS = 32 };

struct start_ends {
	int init[ENDS], program[ENDS]; /* in the order of the bits of wire_exec_state.open */
};

static void ends_close(struct start_ends *x)
{
	for (unsigned i = 0; i < ENDS; i++) {
		own_close_fd(&x->init[i]);
		own_close_fd(&x->program[i]);
	}
}
#define auto_ends __attribute__((cleanup(ends_close))) struct start_ends

static int ends_open_pipe(struct start_ends *x, unsigned i, uint32_t owner, struct err *e)
{
	int pair[2];

	if (i == CHANNEL ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0
			 : pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "make the streams of an exec");
	x->init[i] = pair[i == STDIN];
	x->program[i] = pair[i != STDIN];
	/* Of an id in the box, like the pipes that init makes. */
	return fchown(pair[0], owner, owner) < 0 || fchown(pair[1], owner, owner) < 0
		       ? err_sys(e, "give a stream to the box")
		       : 0;
}

static int ends_open(struct start_ends *x, const struct wire_exec_state *s, uint32_t owner,
		     struct err *e)
{
	for (unsigned i = 0; i < ENDS && !s->tty; i++)
		if (s->open >> i & 1 && ends_open_pipe(x, i, owner, e) < 0)
			return -1;
	return 0;
}

/* The bytes that the program had not read yet. */
static int ends_fill(const struct start_ends *x, const struct worker_tree *tree, struct err *e)
{
	const struct image_descriptor *d;
	const struct image *im;
	unsigned filled = 0;

	for (unsigned k = 0; (d = plan_outside(tree->image, tree->n, k, &im)); k++) {
		int fd;

		/* Two descriptions of one pipe have the same bytes. */
		if (d->kind == DESCRIPTOR_TERMINAL || !d->data_bytes || filled >> d->offset & 1)
			continue;
		filled |= 1U << d->offset;
		fd = x->init[d->offset];
		if (d->offset == STDIN)
			fcntl(fd, F_SETPIPE_SZ, (int)d->data_bytes);
		if (fd < 0)
			continue; /* the input had ended: see start_placed() */
		if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
		    write(fd, image_string(im, d->data), d->data_bytes) != (ssize_t)d->data_bytes)
			return err_sys(e, "fill the input of the program");
	}
	return 0;
}

/* What the copy gets for a descriptor whose end at init is closed: the same, without another end. */
static int ends_closed(struct start_ends *x, const struct image_descriptor *d,
		       const struct image *im, struct err *e)
{
	unsigned i = (unsigned)d->offset;
	int pair[2];

	if (i == CHANNEL ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0
			 : pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "make the streams of an exec");
	x->program[i] = pair[i != STDIN];
	if (i == STDIN && d->data_bytes) {
		fcntl(pair[1], F_SETPIPE_SZ, (int)d->data_bytes);
		if (write(pair[1], image_string(im, d->data), d->data_bytes) !=
		    (ssize_t)d->data_bytes) {
			close(pair[1]);
			return err_sys(e, "fill the input of the program");
		}
	}
	close(pair[i == STDIN]);
	return 0;
}

/* ---- terminals ---- */

/* Those of all execs: init makes them in the box, with their numbers. The slaves stay open until the copies have
 * them, because a terminal without a slave is hung up. */
struct start_terminals {
	struct {
		uint32_t number;
		int master, slave;
	} v[TERMINALS];
	unsigned n;
};

static void terminals_close(struct start_terminals *t)
{
	while (t->n) {
		own_close_fd(&t->v[--t->n].master);
		own_close_fd(&t->v[t->n].slave);
	}
}
#define auto_terminals __attribute__((cleanup(terminals_close))) struct start_terminals

/* Index, or -1. */
static int terminals_find(const struct start_terminals *t, uint64_t number)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->v[i].number == number)
			return (int)i;
	return -1;
}

static int terminals_ask(int init, uint32_t number, struct err *e)
{
	const struct wire_terminal ask = { .head = sock_head(WIRE_TERMINAL, 0), .number = number };
	_Alignas(8) static char reply[WIRE_MAX];
	const struct wire_error *w = (const struct wire_error *)reply;
	unsigned nfds = 1;
	int fd = -1, n;

	if (sock_send(init, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		return -1;
	n = sock_recv(init, reply, &fd, &nfds, e);
	if (n > 0 && w->head.type == WIRE_FD && nfds == 1)
		return fd;
	if (n >= 0 && nfds)
		own_close_fd(&fd);
	if (n > 0 && w->head.type == WIRE_ERROR)
		return err_set(e, w->kind, "init: %.*s", (int)sizeof(w->msg) - 1, w->msg);
	return n < 0 ? -1 : err_set(e, ERR_SYS, "init made no terminal");
}

static int terminals_add(struct start_terminals *t, int init, uint32_t number, struct err *e)
{
	int i = (int)t->n;

	if (terminals_find(t, number) >= 0)
		return 0;
	if (number >= WIRE_TERMINALS)
		return err_set(e, ERR_INVALID, "no such terminal");
	if (t->n == TERMINALS)
		return err_set(e, ERR_LIMIT, "more than %d terminals in a box", TERMINALS);
	t->v[i].number = number;
	t->v[i].slave = -1;
	t->v[i].master = terminals_ask(init, number, e);
	if (t->v[i].master < 0)
		return err_in(e, "terminal %u", number);
	t->n++;
	t->v[i].slave = ioctl(t->v[i].master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return t->v[i].slave < 0 ? err_sys(e, "open terminal %u", number) : 0;
}

static void terminals_set(const struct start_terminals *t, const struct image_terminal *from)
{
	const struct winsize size = { from->rows, from->cols, from->width, from->height };
	const int packets = (int)from->packets;
	int i = terminals_find(t, from->number);

	/* A size or a setting that the kernel rejects stays as it is in a new one. */
	(void)!ioctl(t->v[i].slave, TCSETS2, from->settings);
	(void)!ioctl(t->v[i].master, TIOCSWINSZ, &size);
	if (packets)
		(void)!ioctl(t->v[i].master, TIOCPKT, &packets);
}

static int terminals_add_image(struct start_terminals *t, int init, const struct image *im,
			       struct err *e)
{
	const struct image_program *p = image_program(im);

	if (p->terminal && terminals_add(t, init, p->terminal - 1, e) < 0)
		return -1;
	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++) {
		const struct image_descriptor *d = &image_descriptors(im)[i];

		if (d->kind == DESCRIPTOR_TERMINAL &&
		    terminals_add(t, init, (uint32_t)d->offset, e) < 0)
			return -1;
	}
	for (uint64_t i = 0; i < im->header.count[TABLE_TERMINALS]; i++) {
		const struct image_terminal *x = &image_terminals(im)[i];

		if (terminals_add(t, init, x->number, e) < 0)
			return -1;
		terminals_set(t, x);
	}
	return 0;
}

static int terminals_make(const struct worker *w, struct start_terminals *t, int init,
			  struct err *e)
{
	for (unsigned i = 0; i < w->n; i++)
		if ((w->source[i].state.tty &&
		     terminals_add(t, init, w->source[i].state.tty - 1U, e) < 0) ||
		    terminals_add_image(t, init, &w->program[i].image, e) < 0)
			return -1;
	for (unsigned i = 0; i < w->nbelow; i++)
		if (terminals_add_image(t, init, &w->below[i].image, e) < 0)
			return -1;
	return 0;
}

/* Slaves of the leaders of sessions, in order: see plan_leads_terminal(). */
static int terminals_of_leaders(const struct start_terminals *t, const struct worker_tree *tree,
				int *out, unsigned *n, struct err *e)
{
	for (unsigned k = 0; k < tree->n; k++) {
		if (!plan_leads_terminal(tree->image[k]))
			continue;
		if (*n == RESTORER_OUTSIDE)
			return err_set(e, ERR_LIMIT, "more than %d descriptors from outside",
				       RESTORER_OUTSIDE);
		out[(*n)++] =
			t->v[terminals_find(t, image_program(tree->image[k])->terminal - 1)].slave;
	}
	return 0;
}

/* ---- execs ---- */

static int start_import(const struct worker *w, unsigned i, const struct start_ends *x,
			const struct start_terminals *t, int init, struct err *e)
{
	const struct wire_exec_state *s = &w->source[i].state;
	int fds[1 + ENDS] = { w->program[i].content };
	unsigned n = 1;

	if (s->tty)
		fds[n++] = t->v[terminals_find(t, s->tty - 1U)].master;
	for (unsigned k = 0; k < ENDS; k++)
		if (x->init[k] >= 0)
			fds[n++] = x->init[k];
	return worker_request(init, s, sizeof(*s), fds, n, e);
}

static int start_namespaces(const struct worker *w, uint64_t features)
{
	static const struct {
		uint64_t feature;
		int flag;
	} rows[] = {
		{ FEATURE_BIT(FEATURE_USERNS), CLONE_NEWUSER },
		{ FEATURE_BIT(FEATURE_MOUNTS), CLONE_NEWNS },
		{ FEATURE_BIT(FEATURE_PIDS_NS), CLONE_NEWPID },
		{ FEATURE_BIT(FEATURE_NET), CLONE_NEWNET },
		{ FEATURE_BIT(FEATURE_IPC), CLONE_NEWIPC },
		{ FEATURE_BIT(FEATURE_UTS), CLONE_NEWUTS },
		{ FEATURE_BIT(FEATURE_CGROUP_NS), CLONE_NEWCGROUP },
	};
	int flags = 0;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		flags |= features & rows[i].feature ? rows[i].flag : 0;
	if (w->confine.without >> COPY_STEP_namespaces & 1) /* a copy needs these to be born */
		flags &= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;
	return flags;
}

static int start_most(int most, int32_t number)
{
	return number > most ? number : most;
}

static int start_highest(const struct image *im, int most)
{
	const struct image_program *p = image_program(im);

	for (uint64_t k = 0; k < im->header.count[TABLE_THREADS]; k++)
		most = start_most(most, image_threads(im)[k].tid);
	for (uint64_t k = 0; k < im->header.count[TABLE_ZOMBIES]; k++)
		most = start_most(start_most(most, image_zombies(im)[k].pid),
				  image_zombies(im)[k].group);
	return start_most(start_most(most, p->group), p->session);
}

/* Above all pids and tids of the image, so that the helper takes none of them. That of each exec and those that its
 * tree needs for a moment are others: the helper before may still be ending. */
static int start_helper_pid(const struct worker *w)
{
	int most = 2;

	for (unsigned i = 0; i < w->n; i++)
		most = start_highest(&w->program[i].image, most);
	for (unsigned i = 0; i < w->nbelow; i++)
		most = start_highest(&w->below[i].image, most);
	return most + 1;
}

static int start_one(struct worker *w, unsigned i, const struct procimage_order *o,
		     const struct start_terminals *terminals, const int *fds, unsigned n,
		     int *out_go, struct err *e)
{
	struct worker_program *p = &w->program[i];
	auto_ends x = { { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
	const struct image_descriptor *d;
	int outside[RESTORER_OUTSIDE];
	struct worker_tree tree;
	const struct image *im;
	struct image_target t = { .init = fds[1],
				  .namespaces = start_namespaces(w, o->features),
				  .helper = start_helper_pid(w) + (int)i * (RESTORER_PROCESSES + 1),
				  .tasks = fds + 2,
				  .ntasks = n - 2,
				  .outside = outside };

	if (w->confine.without >> COPY_STEP_cgroups & 1)
		t.ntasks = 0;
	worker_tree(w, i, &tree);
	if (ends_open(&x, &w->source[i].state, o->uid_base + JAIL_INIT_ID, e) < 0 ||
	    ends_fill(&x, &tree, e) < 0)
		return -1;
	while (t.noutside < RESTORER_OUTSIDE &&
	       (d = plan_outside(tree.image, tree.n, t.noutside, &im))) {
		if (d->kind == DESCRIPTOR_TERMINAL) {
			outside[t.noutside++] =
				terminals->v[terminals_find(terminals, d->offset)].master;
			continue;
		}
		if (x.program[d->offset] < 0 && ends_closed(&x, d, im, e) < 0)
			return -1;
		outside[t.noutside++] = x.program[d->offset];
	}
	if (terminals_of_leaders(terminals, &tree, outside, &t.noutside, e) < 0 ||
	    start_import(w, i, &x, terminals, fds[0], e) < 0)
		return -1;
	return image_zygote_fork(&p->zygote, &t, out_go, e);
}

int worker_start(struct worker *w, const struct procimage_order *o, const int *fds, unsigned n,
		 struct err *e)
{
	struct timeval patience = { .tv_sec = 10 };
	auto_terminals terminals = { .n = 0 };
	int go[PROCIMAGE_PROGRAMS], rc;
	unsigned i = 0;

	/* The confinement of copies is decided when their zygotes are built. */
	if ((o->features ^ w->features) & FEATURE_BIT(FEATURE_LANDLOCK))
		return err_set(e, ERR_CONFLICT,
			       "the programs were captured in a box with other isolation steps");
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	rc = terminals_make(w, &terminals, fds[0], e);
	while (rc == 0 && i < w->n) {
		go[i] = -1;
		rc = start_one(w, i, o, &terminals, fds, n, &go[i], e);
		if (rc < 0)
			err_in(e, "process %d (%s)", w->program[i].about.pid,
			       w->program[i].about.name);
		i++;
	}
	for (unsigned k = 0; k < i; k++)
		if (rc == 0 && write(go[k], "g", 1) != 1)
			rc = err_sys(e, "continue process %d", w->program[k].about.pid);
	for (unsigned k = 0; k < i; k++)
		own_close_fd(&go[k]);
	return rc;
}
