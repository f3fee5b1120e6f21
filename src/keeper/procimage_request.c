/* procimage_request.c - requests for process images: the programs of a box, captured, and continued in other boxes.
 *
 *   IMAGE_TAKE ─► worker: all programs stopped ─► IMAGE      the CHECKPOINT of the same box reads the files
 *   CHECKPOINT ─► files read ─► FILES_DONE ─► worker: programs continue, images are completed
 *   IMAGE_WAIT ─► IMAGE when copies can be made
 *   IMAGE_START ─► worker: copies run in a box ─► IMAGE
 *   IMAGE_SAVE ─► worker: written to a file ─► linked ─► IMAGE
 *   IMAGE_LOAD ─► a new worker, from the file ─► IMAGE when copies can be made
 *
 * An image is a socket to its worker; closing it ends the worker and its zygotes. Images end with this keeper. If they
 * need more than an eighth of the memory of the machine, or are 64, the one that was not used for the longest time ends. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "keeper/keeper_internal.h"
#include "keeper/procimage_file.h"
#include "keeper/procimage_process.h"
#include "wire/image_flags.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IMAGES_MOST = 64, STARTS_MOST = 128, MEMORY_PART = 8 };

struct procimage_job {
	struct source src; /* first; the worker */
	char id[WIRE_ID], box[WIRE_ID];
	enum { IMAGE_STOPPING, IMAGE_STOPPED, IMAGE_COMPLETING, IMAGE_READY } state;
	uint64_t
		stopped_for; /* the programs of the box stay stopped until this client leaves; 0: they continue */
	int file; /* being written: a worker writes one at a time; -1: none */
	struct waiter taker,
		waiters[STARTS_MOST]; /* of TAKE, WAIT; once it is ready, of each START in turn */
	unsigned nwaiters;
	uint64_t used_ns;
	struct wire_image_about about;
	struct wire_image_program program[PROCIMAGE_PROGRAMS];
	struct procimage_job *next;
};

static struct procimage_job *image_find(struct keeper *k, const char *id)
{
	struct procimage_job *j = k->images;

	while (j && strcmp(j->id, id) != 0)
		j = j->next;
	return j;
}

static struct procimage_job *image_of_box(struct keeper *k, const char *box, int stopped)
{
	struct procimage_job *j = k->images;

	while (j && (strcmp(j->box, box) != 0 ||
		     (stopped ? j->state != IMAGE_STOPPED : j->state == IMAGE_READY)))
		j = j->next;
	return j;
}

static void image_fail_waiters(struct keeper *k, struct procimage_job *j, const struct err *e)
{
	if (j->state == IMAGE_STOPPING)
		client_error(k, j->taker.client, j->taker.ref, e);
	for (unsigned i = 0; i < j->nwaiters; i++)
		client_error(k, j->waiters[i].client, j->waiters[i].ref, e);
	j->nwaiters = 0;
}

/* Its worker and its zygotes end; copies stay. */
static void image_end(struct keeper *k, struct procimage_job *j, const struct err *e)
{
	struct procimage_job **at = &k->images;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	image_fail_waiters(k, j, e);
	keeper_unwatch(k, &j->src);
	own_close_fd(&j->file);
	free(j);
}

void procimage_client_left(struct keeper *k, uint64_t client)
{
	struct procimage_job *j = k->images, *next;
	struct err e;

	err_set(&e, ERR_SYS, "the client has ended");
	for (; j; j = next) {
		next = j->next;
		if (j->stopped_for == client)
			image_end(k, j, &e);
	}
}

static void image_tell(struct keeper *k, const struct procimage_job *j, struct waiter to)
{
	struct {
		struct wire_image_about about;
		struct wire_image_program program[PROCIMAGE_PROGRAMS];
	} out;

	out.about = j->about;
	out.about.head = sock_head(WIRE_IMAGE, to.ref);
	memcpy(out.about.id, j->id, sizeof(out.about.id));
	memcpy(out.program, j->program, sizeof(out.program));
	client_send(k, to.client, &out,
		    sizeof(out.about) + (j->state == IMAGE_READY ? j->about.programs : 0) *
						sizeof(out.program[0]),
		    -1);
}

/* ---- memory ---- */

/* The one that was not used for the longest time. */
static struct procimage_job *image_oldest(struct keeper *k, const struct procimage_job *but)
{
	struct procimage_job *oldest = NULL;

	for (struct procimage_job *j = k->images; j; j = j->next)
		if (j != but && j->state == IMAGE_READY && !j->nwaiters && !j->stopped_for &&
		    (!oldest || j->used_ns < oldest->used_ns))
			oldest = j;
	return oldest;
}

static uint64_t image_bytes(const struct keeper *k)
{
	uint64_t bytes = 0;

	for (const struct procimage_job *j = k->images; j; j = j->next)
		bytes += j->about.bytes;
	return bytes;
}

static void image_make_room(struct keeper *k, const struct procimage_job *but)
{
	uint64_t most =
		(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_PART;
	struct procimage_job *oldest;
	struct err e;

	err_set(&e, ERR_LIMIT, "the memory for process images is used up");
	while (image_bytes(k) > most && (oldest = image_oldest(k, but)))
		image_end(k, oldest, &e);
}

/* ---- requests ---- */

static int image_check_box(const struct keeper *k, const struct keeper_box *b, struct err *e)
{
	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "no such box");
	if (b->meta.about.tier)
		return err_set(
			e, ERR_DENIED,
			"not_capturable: programs in the isolation tier %s cannot be captured",
			tier_name(b->meta.about.tier));
	if (k->host.procimages < 0 || !b->meta.about.uid_base)
		return err_set(
			e, ERR_DENIED,
			"not_capturable: programs are captured only by a keeper that runs as root");
	if (!b->meta.cgroup[0])
		return err_set(e, ERR_DENIED, "box %s has no cgroup of its own", b->meta.about.id);
	if (b->meta.about.frozen)
		return err_set(e, ERR_CONFLICT, "box %s is paused: resume it first",
			       b->meta.about.id);
	return 0;
}

static struct keeper_box *image_find_box(struct keeper *k, const char id[WIRE_ID])
{
	return strnlen(id, WIRE_ID) < WIRE_ID && id_valid(id) ? keeper_box_find(&k->boxes, id)
							      : NULL;
}

static int image_open_init(const struct keeper_box *b, struct err *e)
{
	char path[KEEPER_BOX_SOCKET];

	keeper_box_socket(b, path);
	return sock_connect_now(path, e);
}

static unsigned image_count(const struct keeper *k)
{
	unsigned n = 0;

	for (const struct procimage_job *j = k->images; j; j = j->next)
		n++;
	return n;
}

/* In a test build: the number in a file of the run folder; 0: there is none. */
static uint32_t image_test_number(const struct keeper *k, const char *name)
{
#ifdef ATOLL_TEST
	auto_fd int fd = openat(k->host.run, name, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		return (uint32_t)strtoul(text, NULL, 10);
#endif
	(void)k;
	(void)name;
	return 0;
}

/* fds: besides the socket of the worker, which is the first one. Returns the other end. */
static int image_start_worker(struct keeper *k, const struct procimage_order *o, int fds[3],
			      unsigned n, struct err *e)
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket for a process image");
	fds[0] = pair[1];
	rc = procimage_order(k->host.procimages, o, fds, n, e);
	close(pair[1]);
	if (rc == 0 && keeper_box_lift(&pair[0], e) == 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

static struct procimage_job *image_new(struct keeper *k, int take_sock, const char *id,
				       const char *box, struct err *e)
{
	struct procimage_job *j = calloc(1, sizeof(*j));

	if (!j)
		abort();
	*j = (struct procimage_job){ .src = { SRC_IMAGE, take_sock },
				     .used_ns = now_ns(),
				     .file = -1 };
	memcpy(j->id, id, sizeof(j->id));
	memcpy(j->box, box, sizeof(j->box));
	if (keeper_watch(k, &j->src, e) < 0) {
		close(take_sock);
		free(j);
		return NULL;
	}
	j->next = k->images;
	k->images = j;
	return j;
}

static int image_check_new(struct keeper *k, const struct procimage_job *j, struct err *e)
{
	struct procimage_job *oldest;

	if (j)
		return err_set(e, ERR_CONFLICT, "there is a process image %s already", j->id);
	if (image_count(k) < IMAGES_MOST)
		return 0;
	oldest = image_oldest(k, NULL);
	if (!oldest)
		return err_set(
			e, ERR_LIMIT,
			"all %d process images of this host are in use: try again in a second",
			IMAGES_MOST);
	image_end(k, oldest, e); /* no client waits for it */
	return 0;
}

static int image_take(struct keeper *k, struct client *c, const struct wire_image *w, struct err *e)
{
	struct keeper_box *b = image_find_box(k, w->box);
	struct procimage_order o = { .what = PROCIMAGE_TAKE,
				     .keep_stopped = w->head.flags & WIRE_IMAGE_STOP,
				     .without = image_test_number(k, "copy-without"),
				     .spoil = image_test_number(k, "image-spoil") };
	struct procimage_job *j;
	auto_fd int init = -1;
	int sock;

	if (w->head.flags & ~WIRE_IMAGE_STOP)
		return err_set(e, ERR_INVALID, "IMAGE_TAKE has no flag %#x", w->head.flags);
	if (image_check_box(k, b, e) < 0 || image_check_new(k, image_find(k, w->id), e) < 0)
		return -1;
	if (b->changing || image_of_box(k, w->box, 0))
		return err_set(e, ERR_CONFLICT, "box %s is being changed already", w->box);
	o.uid_base = b->meta.about.uid_base;
	o.features = b->meta.about.layers;
	init = image_open_init(b, e);
	if (init < 0)
		return -1;
	sock = image_start_worker(k, &o, (int[]){ -1, init, b->death.fd }, 3, e);
	j = sock < 0 ? NULL : image_new(k, sock, w->id, w->box, e);
	if (!j)
		return -1;
	j->taker = (struct waiter){ c->number, w->head.ref };
	j->stopped_for = o.keep_stopped ? c->number : 0;
	return 0;
}

static int image_wait(struct keeper *k, struct client *c, struct procimage_job *j,
		      const struct frame *f, struct err *e)
{
	const struct waiter w = { c->number, f->ref };

	if (j->state == IMAGE_READY) {
		image_tell(k, j, w);
		return 0;
	}
	if (j->nwaiters == STARTS_MOST)
		return err_set(e, ERR_LIMIT, "too many wait for process image %s", j->id);
	j->waiters[j->nwaiters++] = w;
	return 0;
}

/* ---- files ---- */

static int image_read_boot(const struct keeper *k, struct procimage_order *o, struct err *e)
{
	auto_fd int fd = openat(k->host.proc, "sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, o->boot, sizeof(o->boot) - 1) <= 0)
		return err_sys(e, "the id of this boot");
	o->boot[strcspn(o->boot, "\n")] = 0;
	return 0;
}

static int image_file_order(struct keeper *k, const struct wire_image_file *w,
			    struct procimage_order *o, struct err *e)
{
	if (!w->team[0] || strnlen(w->team, sizeof(w->team)) == sizeof(w->team))
		return err_set(e, ERR_INVALID, "the file of a process image has a team");
	if (image_read_boot(k, o, e) < 0)
		return -1;
	memcpy(o->id, w->id, sizeof(o->id));
	memcpy(o->team, w->team, sizeof(o->team));
	return procimage_file_key(k->host.checkpoints_dir, o->what == PROCIMAGE_SAVE, o->key, e);
}

static int image_save(struct keeper *k, struct client *c, struct procimage_job *j,
		      const struct wire_image_file *w, struct err *e)
{
	struct procimage_order o = { .what = PROCIMAGE_SAVE,
				     .portable = w->head.flags & WIRE_IMAGE_PORTABLE };
	auto_fd int file = -1;
	int rc;

	if (w->head.flags & ~WIRE_IMAGE_PORTABLE)
		return err_set(e, ERR_INVALID, "IMAGE_SAVE has no flag %#x", w->head.flags);
	if (j->state != IMAGE_READY)
		return err_set(e, ERR_CONFLICT, "process image %s is not complete", j->id);
	if (j->file >= 0)
		return err_set(e, ERR_CONFLICT, "process image %s is being written already", j->id);
	if (j->nwaiters == STARTS_MOST)
		return err_set(e, ERR_LIMIT, "too many wait for process image %s", j->id);
	file = procimage_file_new(k->host.checkpoints_dir, e);
	if (file < 0 || keeper_box_lift(&file, e) < 0 || image_file_order(k, w, &o, e) < 0)
		return -1;
	rc = procimage_order(j->src.fd, &o, &file, 1, e);
	explicit_bzero(o.key, sizeof(o.key));
	if (rc < 0)
		return -1;
	j->file = steal_fd(&file);
	j->waiters[j->nwaiters++] = (struct waiter){ c->number, w->head.ref };
	j->used_ns = now_ns();
	return 0;
}

static int image_load(struct keeper *k, struct client *c, struct procimage_job *j,
		      const struct wire_image_file *w, struct err *e)
{
	struct procimage_order o = { .what = PROCIMAGE_LOAD,
				     .portable = image_test_number(k, "image-kernel") };
	auto_fd int file = -1;
	int sock;

	if (k->host.procimages < 0)
		return err_set(e, ERR_DENIED,
			       "programs are continued only by a keeper that runs as root");
	if (j) /* another request was faster */
		return image_wait(k, c, j, &w->head, e);
	if (image_check_new(k, NULL, e) < 0)
		return -1;
	file = procimage_file_open(k->host.checkpoints_dir, w->id, e);
	if (file < 0 || image_file_order(k, w, &o, e) < 0)
		return -1;
	sock = image_start_worker(k, &o, (int[]){ -1, file, -1 }, 2, e);
	explicit_bzero(o.key, sizeof(o.key));
	j = sock < 0 ? NULL : image_new(k, sock, w->id, "", e);
	if (!j)
		return -1;
	j->state = IMAGE_COMPLETING;
	j->waiters[j->nwaiters++] = (struct waiter){ c->number, w->head.ref };
	return 0;
}

/* Files into which a process writes "0" to enter the cgroups of the box. */
static int image_open_tasks(const struct keeper *k, const struct keeper_box *b, int out[CG_NCTL],
			    struct err *e)
{
	const struct cgroups *cs = &k->host.cgroups;
	auto_fd int dir = -1;
	int n;

	if (cs->version == 1) {
		n = cgroup_tasks(cs, b->meta.cgroup, out, e);
		/* The rules for devices are those of the parent of all boxes, which boxes are born in. */
		if (n < 0 || cs->dir[CG_DEVICES] < 0 || cs->joined >> CG_DEVICES & 1)
			return n;
		out[n] = openat(cs->dir[CG_DEVICES], "tasks", O_WRONLY | O_CLOEXEC);
		if (out[n] >= 0)
			return n + 1;
		err_sys(e, "the cgroup for devices");
		while (n > 0)
			close(out[--n]);
		return -1;
	}
	dir = cgroup_dir(cs, b->meta.cgroup, e);
	if (dir < 0)
		return -1;
	out[0] = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return out[0] < 0 ? err_sys(e, "the cgroup of box %s", b->meta.about.id) : 1;
}

static int image_start(struct keeper *k, struct client *c, struct procimage_job *j,
		       const struct wire_image *w, struct err *e)
{
	struct keeper_box *b = image_find_box(k, w->box);
	struct procimage_order o = { .what = PROCIMAGE_START };
	int fds[2 + CG_NCTL], n, rc;
	auto_fd int init = -1;

	if (image_check_box(k, b, e) < 0)
		return -1;
	/* One that is being read from its file: a LOAD waits for that. */
	if (j->state != IMAGE_READY)
		return err_set(e, j->box[0] ? ERR_CONFLICT : ERR_NOT_FOUND,
			       "process image %s is not complete", j->id);
	if (j->nwaiters == STARTS_MOST)
		return err_set(e, ERR_LIMIT, "too many boxes wait for process image %s", j->id);
	init = image_open_init(b, e);
	if (init < 0)
		return -1;
	n = image_open_tasks(k, b, fds + 2, e);
	if (n < 0)
		return -1;
	fds[0] = init;
	fds[1] = b->death.fd;
	o.uid_base = b->meta.about.uid_base;
	o.features = b->meta.about.layers;
	rc = n ? procimage_order(j->src.fd, &o, fds, (unsigned)n + 2, e)
	       : err_set(e, ERR_DENIED, "this host has no cgroups for box %s", w->box);
	while (n > 0)
		close(fds[1 + n--]);
	if (rc == 0)
		j->waiters[j->nwaiters++] = (struct waiter){ c->number, w->head.ref };
	j->used_ns = now_ns();
	b->changed = 1; /* its cgroup had more than one process */
	return rc;
}

static void image_drop(struct keeper *k, struct client *c, struct procimage_job *j,
		       const struct wire_image *w)
{
	struct frame done = sock_head(WIRE_DONE, w->head.ref);
	struct err e;

	if (j) {
		err_set(&e, ERR_NOT_FOUND, "process image %s was deleted", j->id);
		image_end(k, j, &e);
	}
	if (w->head.flags & WIRE_IMAGE_FILE && k->host.checkpoints_dir >= 0 &&
	    procimage_file_drop(k->host.checkpoints_dir, w->id, &e) < 0)
		client_error(k, c->number, w->head.ref, &e);
	else
		client_send(k, c->number, &done, sizeof(done), -1);
}

void procimage_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_image *w = (const struct wire_image *)f;
	struct procimage_job *j;
	struct err e;
	int rc;

	if (strnlen(w->id, WIRE_ID) == WIRE_ID || !id_valid(w->id)) {
		err_set(&e, ERR_INVALID, "the id of a process image is that of a checkpoint");
		client_error(k, c->number, f->ref, &e);
		return;
	}
	j = image_find(k, w->id);
	if (f->type == WIRE_IMAGE_DROP) {
		image_drop(k, c, j, w);
		return;
	}
	if (f->type == WIRE_IMAGE_TAKE)
		rc = image_take(k, c, w, &e);
	else if (f->type == WIRE_IMAGE_LOAD)
		rc = image_load(k, c, j, (const struct wire_image_file *)f, &e);
	else if (!j)
		rc = err_set(&e, ERR_NOT_FOUND,
			     "checkpoint %s has no process image: it was taken without memory, the "
			     "keeper was restarted since, or its memory was needed",
			     w->id);
	else if (f->type == WIRE_IMAGE_SAVE)
		rc = image_save(k, c, j, (const struct wire_image_file *)f, &e);
	else
		rc = f->type == WIRE_IMAGE_WAIT ? image_wait(k, c, j, f, &e)
						: image_start(k, c, j, w, &e);
	if (rc < 0)
		client_error(k, c->number, f->ref, &e);
}

/* ---- files of the box ---- */

int procimage_holds(struct keeper *k, const char *box)
{
	return image_of_box(k, box, 1) != NULL;
}

void procimage_files_done(struct keeper *k, const char *box, int done)
{
	struct procimage_job *j = image_of_box(k, box, 1);
	struct procimage_order o = { .what = PROCIMAGE_FILES_DONE };
	struct err e;

	if (!j)
		return;
	j->state = IMAGE_COMPLETING;
	err_set(&e, ERR_CONFLICT, "the files of box %s could not be captured", box);
	if (!done || procimage_order(j->src.fd, &o, NULL, 0, &e) < 0)
		image_end(k, j, &e);
}

/* ---- answers ---- */

static void image_started(struct keeper *k, struct procimage_job *j,
			  const struct procimage_answer *a)
{
	struct waiter to = j->waiters[0];
	uint64_t took_us = j->about.took_us, bytes = j->about.bytes;
	struct err e = a->err;

	if (!j->nwaiters)
		return;
	memmove(j->waiters, j->waiters + 1, --j->nwaiters * sizeof(to));
	if (a->what == PROCIMAGE_SAVED) {
		if (!e.kind && j->file >= 0 &&
		    procimage_file_link(k->host.checkpoints_dir, j->file, j->id, &e) == 0)
			e.kind = ERR_NONE;
		own_close_fd(&j->file);
		j->about.bytes = a->about.bytes; /* of the file */
	}
	if (e.kind) {
		client_error(k, to.client, to.ref, &e);
	} else {
		j->about.took_us = a->about.took_us;
		image_tell(k, j, to);
	}
	j->about.took_us = took_us;
	j->about.bytes = bytes;
}

static void image_completed(struct keeper *k, struct procimage_job *j,
			    const struct procimage_answer *a)
{
	j->state = IMAGE_READY;
	j->about = a->about;
	if (j->about.programs > PROCIMAGE_PROGRAMS)
		j->about.programs = PROCIMAGE_PROGRAMS;
	memcpy(j->program, a->program, sizeof(j->program));
	for (unsigned i = 0; i < j->nwaiters; i++)
		image_tell(k, j, j->waiters[i]);
	j->nwaiters = 0;
	image_make_room(k, j);
}

void procimage_answered(struct keeper *k, struct source *s)
{
	struct procimage_job *j = (struct procimage_job *)s;
	static struct procimage_answer a;
	ssize_t n = recv(s->fd, &a, sizeof(a), MSG_DONTWAIT);
	struct err e;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	a.err.msg[sizeof(a.err.msg) - 1] = 0;
	if (n != (ssize_t)sizeof(a)) {
		err_set(&e, ERR_SYS, "the process of process image %s has ended", j->id);
		image_end(k, j, &e);
	} else if (j->state == IMAGE_READY) {
		image_started(k, j, &a);
	} else if (a.err.kind) {
		image_end(k, j, &a.err);
	} else if (a.what == PROCIMAGE_STOPPED && j->state == IMAGE_STOPPING) {
		j->state = IMAGE_STOPPED;
		image_tell(k, j, j->taker);
	} else if (a.what == PROCIMAGE_READY && j->state == IMAGE_COMPLETING) {
		image_completed(k, j, &a);
	} else {
		err_set(&e, ERR_SYS, "the process of process image %s gave a wrong answer", j->id);
		image_end(k, j, &e);
	}
}
