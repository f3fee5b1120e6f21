/* procimage_start.c - continues the programs of an image in another box.
 *
 * The new init gets the execs before their processes exist, with the ends of new pipes; the other ends and the bytes
 * that were on their way go to the copies. No copy runs before all of them are complete. */
#include "base/cleanup.h"
#include "jail/feature.h"
#include "jail/launch.h"
#include "keeper/procimage_worker.h"
#include "procimage/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENDS = 4, CHANNEL = 2, STDIN = 3 };

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
	for (unsigned i = 0; i < ENDS; i++)
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
		if (!d->data_bytes || filled >> d->offset & 1)
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

static int start_import(const struct worker *w, unsigned i, const struct start_ends *x, int init,
			struct err *e)
{
	int fds[1 + ENDS] = { w->program[i].content };
	unsigned n = 1;

	for (unsigned k = 0; k < ENDS; k++)
		if (x->init[k] >= 0)
			fds[n++] = x->init[k];
	return worker_request(init, &w->source[i].state, sizeof(w->source[i].state), fds, n, e);
}

static int start_namespaces(uint64_t features)
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

static int start_one(struct worker *w, unsigned i, const struct procimage_order *o, const int *fds,
		     unsigned n, int *out_go, struct err *e)
{
	struct worker_program *p = &w->program[i];
	auto_ends x = { { -1, -1, -1, -1 }, { -1, -1, -1, -1 } };
	const struct image_descriptor *d;
	int outside[RESTORER_OUTSIDE];
	struct worker_tree tree;
	const struct image *im;
	struct image_target t = { .init = fds[1],
				  .namespaces = start_namespaces(o->features),
				  .helper = start_helper_pid(w) + (int)i * (RESTORER_PROCESSES + 1),
				  .tasks = fds + 2,
				  .ntasks = n - 2,
				  .outside = outside };

	worker_tree(w, i, &tree);
	if (ends_open(&x, &w->source[i].state, o->uid_base + JAIL_INIT_ID, e) < 0 ||
	    ends_fill(&x, &tree, e) < 0)
		return -1;
	while (t.noutside < RESTORER_OUTSIDE &&
	       (d = plan_outside(tree.image, tree.n, t.noutside, &im))) {
		if (x.program[d->offset] < 0 && ends_closed(&x, d, im, e) < 0)
			return -1;
		outside[t.noutside++] = x.program[d->offset];
	}
	if (start_import(w, i, &x, fds[0], e) < 0)
		return -1;
	return image_zygote_fork(&p->zygote, &t, out_go, e);
}

int worker_start(struct worker *w, const struct procimage_order *o, const int *fds, unsigned n,
		 struct err *e)
{
	struct timeval patience = { .tv_sec = 10 };
	int go[PROCIMAGE_PROGRAMS], rc = 0;
	unsigned i = 0;

	/* The confinement of copies is decided when their zygotes are built. */
	if ((o->features ^ w->features) & FEATURE_BIT(FEATURE_LANDLOCK))
		return err_set(e, ERR_CONFLICT,
			       "the programs were captured in a box with other isolation steps");
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (rc == 0 && i < w->n) {
		go[i] = -1;
		rc = start_one(w, i, o, fds, n, &go[i], e);
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
