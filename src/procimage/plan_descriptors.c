/* plan_descriptors.c - calls that make the descriptors of an image anew.
 *
 * Numbers are taken in ascending order. Calls that return two descriptors move both above all numbers of
 * the image first, so that neither lies where the other belongs. */
#include "procimage/plan.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { /* slots after those of the order */
       SLOT_A = RESTORER_OUTSIDE,
       SLOT_B,
       SLOT_C
};

struct planner {
	const struct plan_tree *t;
	const struct image *im;
	struct call_list *l;
	struct call_data *d;
	int high; /* above all numbers */
};

static uint64_t plan_data(struct planner *p, const struct image_descriptor *d)
{
	return call_data_add(p->d, image_string(p->im, d->data), d->data_bytes, 8);
}

static void plan_open(struct planner *p, long number, const uint64_t args[6])
{
	call_list_add(p->l, number, RESTORER_SUCCEED, args)->save = SLOT_A + 1;
}
#define OPEN(p, number, ...) plan_open(p, number, (const uint64_t[6]){ __VA_ARGS__ })

/* Where it is made: an object of the tree lies above all numbers, until each process has it. */
static uint64_t plan_number(const struct planner *p, const struct image_descriptor *d)
{
	return d->object ? (uint64_t)p->t->objects + d->object : (uint64_t)d->number;
}

/* The descriptor in a slot gets its number. */
static void plan_place(struct planner *p, unsigned slot, const struct image_descriptor *d)
{
	CALL(p->l, RESTORER_MOVE, RESTORER_SUCCEED, slot, plan_number(p, d), d->cloexec)
		->from_slot = 1;
}

static void plan_set_flags(struct planner *p, const struct image_descriptor *d)
{
	if (d->flags & (O_NONBLOCK | O_APPEND | O_DIRECT))
		CALL(p->l, SYS_fcntl, RESTORER_SUCCEED, plan_number(p, d), F_SETFL,
		     d->flags & (O_NONBLOCK | O_APPEND | O_DIRECT));
}

/* ---- files ---- */

static void plan_add_file(struct planner *p, const struct image_descriptor *d)
{
	const char *path = image_string(p->im, d->path);
	uint64_t flags = d->flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC |
				     O_DIRECTORY | O_NOATIME | O_PATH);

	OPEN(p, SYS_openat, (uint64_t)AT_FDCWD, call_data_add(p->d, path, strlen(path) + 1, 1),
	     flags | O_NOCTTY | O_LARGEFILE);
	if (d->offset)
		CALL(p->l, SYS_lseek, RESTORER_IGNORE, SLOT_A, d->offset, 0)->from_slot = 1;
	plan_place(p, SLOT_A, d);
}

static void plan_add_content(struct planner *p, const struct image_descriptor *d)
{
	struct restorer_call *c;
	int shared = plan_find_shared(p->t, d->inode);

	if (shared >= 0)
		OPEN(p, SYS_fcntl, (uint64_t)shared, F_DUPFD_CLOEXEC, (uint64_t)p->high);
	else
		OPEN(p, SYS_memfd_create, call_data_add(p->d, "file", 5, 1), 0);
	if (d->data_bytes) {
		c = CALL(p->l, SYS_write, RESTORER_EQUAL, SLOT_A, plan_data(p, d), d->data_bytes);
		c->from_slot = 1;
		c->expect = d->data_bytes;
	}
	CALL(p->l, SYS_lseek, RESTORER_SUCCEED, SLOT_A, d->offset, 0)->from_slot = 1;
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

/* ---- pipes and pairs ---- */

/* Two descriptors, in slots B and C, above all numbers. */
static void plan_make_two(struct planner *p, long number, uint64_t a, uint64_t b, uint64_t c,
			  int at_first)
{
	uint64_t two = call_data_add(p->d, NULL, 8, 8);
	struct restorer_call *call = CALL(p->l, number, RESTORER_SUCCEED, a, b, c);

	call->args[at_first ? 0 : 3] = two;
	for (unsigned i = 0; i < 2; i++) {
		CALL(p->l, RESTORER_LOAD, RESTORER_SUCCEED, two + 4 * i)->save = SLOT_A + 1;
		call = CALL(p->l, SYS_fcntl, RESTORER_SUCCEED, SLOT_A, F_DUPFD_CLOEXEC,
			    (uint64_t)p->high);
		call->from_slot = 1;
		call->save = (uint8_t)(SLOT_B + i + 1);
		/* Closed below, when both are above. */
	}
	for (unsigned i = 0; i < 2; i++) {
		CALL(p->l, RESTORER_LOAD, RESTORER_SUCCEED, two + 4 * i)->save = SLOT_A + 1;
		CALL(p->l, SYS_close, RESTORER_SUCCEED, SLOT_A)->from_slot = 1;
	}
}

static void plan_duplicate(struct planner *p, unsigned slot, const struct image_descriptor *d)
{
	CALL(p->l, SYS_dup3, RESTORER_SUCCEED, slot, plan_number(p, d), d->cloexec ? O_CLOEXEC : 0)
		->from_slot = 1;
	plan_set_flags(p, d);
}

static void plan_write_bytes(struct planner *p, unsigned slot, const struct image_descriptor *from)
{
	struct restorer_call *c;

	if (!from->data_bytes)
		return;
	CALL(p->l, SYS_fcntl, RESTORER_IGNORE, slot, F_SETPIPE_SZ,
	     (from->data_bytes + 4095) & ~4095U)
		->from_slot = 1;
	c = CALL(p->l, SYS_write, RESTORER_EQUAL, slot, plan_data(p, from), from->data_bytes);
	c->from_slot = 1;
	c->expect = from->data_bytes;
}

static void plan_close_two(struct planner *p)
{
	CALL(p->l, SYS_close, RESTORER_SUCCEED, SLOT_B)->from_slot = 1;
	CALL(p->l, SYS_close, RESTORER_SUCCEED, SLOT_C)->from_slot = 1;
}

typedef void plan_visit(struct planner *p, const struct image_descriptor *d, void *arg);

/* Descriptors of this process that no other has, or the objects of all. */
static void plan_each(struct planner *p, int objects, plan_visit *visit, void *arg)
{
	for (unsigned i = 0; i < (objects ? p->t->n : 1); i++) {
		const struct image *im = objects ? p->t->image[i] : p->im;
		const struct image *was = p->im;

		p->im = im;
		for (uint64_t k = 0; k < im->header.count[TABLE_DESCRIPTORS]; k++) {
			const struct image_descriptor *d = &image_descriptors(im)[k];

			if ((d->object != 0) == objects && d->kind != DESCRIPTOR_OBJECT)
				visit(p, d, arg);
		}
		p->im = was;
	}
}

struct plan_ends {
	const struct image_descriptor *first, *second;
	int before; /* another descriptor of the same pipe precedes `first` */
};

static void plan_find_first(struct planner *p, const struct image_descriptor *d, void *arg)
{
	struct plan_ends *x = arg;

	(void)p;
	if (x->second || d->kind != x->first->kind)
		return;
	if (d == x->first)
		x->second = d;
	else if (d->inode == x->first->inode ||
		 (d->kind == DESCRIPTOR_PAIR && d->inode == x->first->offset))
		x->before = 1;
}

static int plan_is_first(struct planner *p, const struct image_descriptor *d)
{
	struct plan_ends x = { .first = d };

	plan_each(p, d->object != 0, plan_find_first, &x);
	return !x.before;
}

static void plan_add_end(struct planner *p, const struct image_descriptor *d, void *arg)
{
	struct plan_ends *x = arg;

	if (d->kind != DESCRIPTOR_PIPE || d->inode != x->first->inode)
		return;
	if (!x->before && d->data_bytes) {
		plan_write_bytes(p, SLOT_C, d);
		x->before = 1;
	}
	plan_duplicate(p, (d->flags & O_ACCMODE) == O_RDONLY ? SLOT_B : SLOT_C, d);
}

/* All ends of a pipe, when its first one is reached. */
static void plan_add_pipe(struct planner *p, const struct image_descriptor *first)
{
	struct plan_ends x = { .first = first };

	if (!plan_is_first(p, first))
		return;
	plan_make_two(p, SYS_pipe2, 0, O_CLOEXEC, 0, 1);
	plan_each(p, first->object != 0, plan_add_end, &x);
	plan_close_two(p);
}

static void plan_add_other(struct planner *p, const struct image_descriptor *d, void *arg)
{
	struct plan_ends *x = arg;

	if (d->kind != DESCRIPTOR_PAIR || d->inode != x->first->offset || d == x->first ||
	    x->before)
		return;
	x->before = 1;
	plan_write_bytes(p, SLOT_B, d);
	plan_duplicate(p, SLOT_C, d);
}

static void plan_add_pair(struct planner *p, const struct image_descriptor *first)
{
	struct plan_ends x = { .first = first };

	if (!plan_is_first(p, first))
		return;
	plan_make_two(p, SYS_socketpair, AF_UNIX, (first->type & 0xffff) | SOCK_CLOEXEC, 0, 0);
	plan_write_bytes(p, SLOT_C, first);
	plan_each(p, first->object != 0, plan_add_other, &x);
	plan_duplicate(p, SLOT_B, first);
	plan_close_two(p);
}

/* ---- kernel objects ---- */

static void plan_add_timer(struct planner *p, const struct image_descriptor *d)
{
	OPEN(p, SYS_timerfd_create, d->type, 0);
	if (d->data_bytes == 32)
		CALL(p->l, SYS_timerfd_settime, RESTORER_SUCCEED, SLOT_A, 0, plan_data(p, d), 0)
			->from_slot = 1;
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

static void plan_add_event(struct planner *p, const struct image_descriptor *d)
{
	uint64_t count = d->offset;

	OPEN(p, SYS_eventfd2, 0, d->type ? EFD_SEMAPHORE : 0);
	if (count)
		CALL(p->l, SYS_write, RESTORER_SUCCEED, SLOT_A, call_data_add(p->d, &count, 8, 8),
		     8)
			->from_slot = 1;
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

static void plan_add_signal(struct planner *p, const struct image_descriptor *d)
{
	OPEN(p, SYS_signalfd4, (uint64_t)-1, call_data_add(p->d, &d->offset, 8, 8), 8, 0);
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

/* The kernel gives watches ascending numbers, from 1 on, also where some were removed. */
static void plan_add_notify(struct planner *p, const struct image_descriptor *d)
{
	uint64_t event = call_data_add(p->d, NULL, 32, 8);
	int next = 1;

	OPEN(p, SYS_inotify_init1, 0);
	for (uint64_t i = 0; i < p->im->header.count[TABLE_NOTIFY]; i++) {
		const struct image_notify *n = &image_notify(p->im)[i];
		const char *path = image_string(p->im, n->path);
		uint64_t at;

		if (n->descriptor != d->number)
			continue;
		at = call_data_add(p->d, path, strlen(path) + 1, 1);
		for (; next <= n->number; next++) {
			struct restorer_call *c = CALL(p->l, SYS_inotify_add_watch, RESTORER_EQUAL,
						       SLOT_A, at, n->mask | IN_DONT_FOLLOW);

			c->from_slot = 1;
			c->expect = (uint64_t)next;
			if (next == n->number)
				continue;
			/* It puts an event into the queue, IN_IGNORED. */
			CALL(p->l, SYS_inotify_rm_watch, RESTORER_SUCCEED, SLOT_A, (uint64_t)next)
				->from_slot = 1;
			CALL(p->l, SYS_read, RESTORER_SUCCEED, SLOT_A, event, 32)->from_slot = 1;
		}
	}
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

/* ---- sockets ---- */

static void plan_set_option(struct planner *p, int level, int name, int value)
{
	CALL(p->l, SYS_setsockopt, RESTORER_IGNORE, SLOT_A, (uint64_t)level, (uint64_t)name,
	     call_data_add(p->d, &value, sizeof(value), 4), sizeof(value))
		->from_slot = 1;
}

static void plan_add_bound(struct planner *p, const struct image_descriptor *d)
{
	int domain = (int)(d->type >> 16);
	const struct sockaddr_un *un = (const void *)image_string(p->im, d->data);

	OPEN(p, SYS_socket, (uint64_t)domain, d->type & 0xffff, 0);
	if (domain != AF_UNIX)
		plan_set_option(p, SOL_SOCKET, SO_REUSEADDR, 1);
	if (domain == AF_INET6)
		plan_set_option(p, IPPROTO_IPV6, IPV6_V6ONLY, (int)d->offset);
	if (d->data_bytes > 2) {
		uint64_t at = plan_data(p, d);

		/* The name of the source's socket lies in the files of the copy. */
		if (domain == AF_UNIX && un->sun_path[0])
			CALL(p->l, SYS_unlinkat, RESTORER_IGNORE, (uint64_t)AT_FDCWD, at + 2, 0);
		CALL(p->l, SYS_bind, RESTORER_SUCCEED, SLOT_A, at, d->data_bytes)->from_slot = 1;
	}
	if (d->kind == DESCRIPTOR_LISTENER)
		CALL(p->l, SYS_listen, RESTORER_SUCCEED, SLOT_A, d->backlog)->from_slot = 1;
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

/* A connection to a socket of the copy, which is then closed with a reset. Without a loopback interface
 * the socket is not connected, which is an error for its program as well. */
static void plan_add_reset(struct planner *p, const struct image_descriptor *d)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int linger[2] = { 1, 0 };
	uint64_t name = call_data_add(p->d, &here, sizeof(here), 8),
		 len = call_data_add(p->d, &(int){ 16 }, 4, 4);
	uint64_t hard = call_data_add(p->d, linger, sizeof(linger), 4);
	struct restorer_call *c;

	CALL(p->l, SYS_socket, RESTORER_SUCCEED, AF_INET,
	     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
		->save = SLOT_B + 1;
	CALL(p->l, SYS_bind, RESTORER_IGNORE, SLOT_B, name, sizeof(here))->from_slot = 1;
	CALL(p->l, SYS_listen, RESTORER_IGNORE, SLOT_B, 1)->from_slot = 1;
	CALL(p->l, SYS_getsockname, RESTORER_IGNORE, SLOT_B, name, len)->from_slot = 1;
	OPEN(p, SYS_socket, AF_INET, SOCK_STREAM, 0);
	CALL(p->l, SYS_connect, RESTORER_IGNORE, SLOT_A, name, sizeof(here))->from_slot = 1;
	c = CALL(p->l, SYS_accept4, RESTORER_IGNORE, SLOT_B, 0, 0, SOCK_CLOEXEC);
	c->from_slot = 1;
	c->save = SLOT_C + 1;
	CALL(p->l, SYS_setsockopt, RESTORER_IGNORE, SLOT_C, SOL_SOCKET, SO_LINGER, hard,
	     sizeof(linger))
		->from_slot = 1;
	CALL(p->l, SYS_close, RESTORER_IGNORE, SLOT_C)->from_slot = 1;
	CALL(p->l, SYS_close, RESTORER_IGNORE, SLOT_B)->from_slot = 1;
	plan_place(p, SLOT_A, d);
	plan_set_flags(p, d);
}

/* ---- all ---- */

static void plan_add_one(struct planner *p, const struct image_descriptor *d, void *arg)
{
	unsigned *outside = arg;

	switch ((enum image_descriptor_kind)d->kind) {
	case DESCRIPTOR_FILE:
		plan_add_file(p, d);
		break;
	case DESCRIPTOR_PIPE:
		plan_add_pipe(p, d);
		break;
	case DESCRIPTOR_EVENT:
		plan_add_event(p, d);
		break;
	case DESCRIPTOR_TIMER:
		plan_add_timer(p, d);
		break;
	case DESCRIPTOR_EPOLL:
		OPEN(p, SYS_epoll_create1, 0);
		plan_place(p, SLOT_A, d);
		break;
	case DESCRIPTOR_LISTENER:
	case DESCRIPTOR_SOCKET:
		plan_add_bound(p, d);
		break;
	case DESCRIPTOR_PAIR:
		plan_add_pair(p, d);
		break;
	case DESCRIPTOR_SIGNAL:
		plan_add_signal(p, d);
		break;
	case DESCRIPTOR_MEMORY:
		plan_add_content(p, d);
		break;
	case DESCRIPTOR_NOTIFY:
		plan_add_notify(p, d);
		break;
	case DESCRIPTOR_OUTSIDE:
	case DESCRIPTOR_TERMINAL:
		plan_place(p, (*outside)++, d);
		break;
	case DESCRIPTOR_RESET:
		plan_add_reset(p, d);
		break;
	case DESCRIPTOR_SAME: /* when the other one exists */
	case DESCRIPTOR_OBJECT:
	case DESCRIPTOR_KINDS:
		break;
	}
}

static void plan_add_watches(struct planner *p)
{
	for (uint64_t i = 0; i < p->im->header.count[TABLE_WATCHES]; i++) {
		const struct image_watch *w = &image_watches(p->im)[i];
		struct epoll_event event = { .events = w->events, .data.u64 = w->data };

		CALL(p->l, SYS_epoll_ctl, RESTORER_SUCCEED, (uint64_t)w->epoll, EPOLL_CTL_ADD,
		     (uint64_t)w->number, call_data_add(p->d, &event, sizeof(event), 8));
	}
}

/* In ascending order, so that none lies where a later one belongs. */
void plan_add_descriptors(const struct plan_tree *t, const struct image *im, struct call_list *l,
			  struct call_data *d)
{
	struct planner p = { t, im, l, d, t->high };
	unsigned outside = 0;

	l->step = STEP_DESCRIPTOR;
	plan_each(&p, 0, plan_add_one, &outside);
	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++) {
		const struct image_descriptor *x = &image_descriptors(im)[i];

		if (x->object || x->kind == DESCRIPTOR_SAME)
			CALL(l, SYS_dup3, RESTORER_SUCCEED,
			     x->object ? plan_number(&p, x) : (uint64_t)x->peer,
			     (uint64_t)x->number, x->cloexec ? O_CLOEXEC : 0);
	}
	plan_add_watches(&p);
}

const struct image_descriptor *plan_outside(const struct image *const *image, unsigned n,
					    unsigned index, const struct image **out)
{
	/* Those that only the first process has, then the objects of all. */
	for (int objects = 0; objects < 2; objects++)
		for (unsigned k = 0; k < (objects ? n : 1); k++)
			for (uint64_t i = 0; i < image[k]->header.count[TABLE_DESCRIPTORS]; i++) {
				const struct image_descriptor *d = &image_descriptors(image[k])[i];

				if (!plan_is_outside(d) || (d->object != 0) != objects || index--)
					continue;
				*out = image[k];
				return d;
			}
	return NULL;
}

unsigned plan_count_outside(const struct image *const *image, unsigned n)
{
	const struct image *im;
	unsigned outside = 0;

	while (outside <= RESTORER_OUTSIDE && plan_outside(image, n, outside, &im))
		outside++;
	return outside;
}

/* ---- what processes share ---- */

static int plan_is_first_shared(const struct plan_tree *t, unsigned k, uint64_t i)
{
	uint64_t inode = image_areas(t->image[k])[i].offset;

	for (unsigned m = 0; m <= k; m++)
		for (uint64_t j = 0; j < (m == k ? i : t->image[m]->header.count[TABLE_AREAS]); j++)
			if (image_areas(t->image[m])[j].kind == AREA_SHARED &&
			    image_areas(t->image[m])[j].offset == inode)
				return 0;
	return 1;
}

int plan_find_shared(const struct plan_tree *t, uint64_t inode)
{
	int number = t->shared;

	for (unsigned k = 0; k < t->n; k++)
		for (uint64_t i = 0; i < t->image[k]->header.count[TABLE_AREAS]; i++) {
			const struct image_area *a = &image_areas(t->image[k])[i];

			if (a->kind != AREA_SHARED)
				continue;
			if (a->offset == inode)
				return number;
			number += plan_is_first_shared(t, k, i);
		}
	return -1;
}

static uint64_t plan_shared_bytes(const struct plan_tree *t, uint64_t inode)
{
	uint64_t most = 0;

	for (unsigned k = 0; k < t->n; k++)
		for (uint64_t i = 0; i < t->image[k]->header.count[TABLE_AREAS]; i++) {
			const struct image_area *a = &image_areas(t->image[k])[i];
			uint64_t end = a->at_page * (uint64_t)t->image[k]->header.page_bytes +
				       a->end - a->start;

			if (a->kind == AREA_SHARED && a->offset == inode && end > most)
				most = end;
		}
	return most;
}

static void plan_make_shared(struct planner *p)
{
	uint64_t name = call_data_add(p->d, "shared", 7, 1), number = (uint64_t)p->t->shared;

	for (unsigned k = 0; k < p->t->n; k++)
		for (uint64_t i = 0; i < p->t->image[k]->header.count[TABLE_AREAS]; i++) {
			const struct image_area *a = &image_areas(p->t->image[k])[i];

			if (a->kind != AREA_SHARED || !plan_is_first_shared(p->t, k, i))
				continue;
			OPEN(p, SYS_memfd_create, name, 0);
			CALL(p->l, SYS_ftruncate, RESTORER_SUCCEED, SLOT_A,
			     plan_shared_bytes(p->t, a->offset))
				->from_slot = 1;
			CALL(p->l, RESTORER_MOVE, RESTORER_SUCCEED, SLOT_A, number++, 1)
				->from_slot = 1;
		}
}

void plan_add_objects(const struct plan_tree *t, struct call_list *l, struct call_data *d)
{
	struct planner p = { t, t->image[0], l, d, t->high };
	unsigned outside = 0;

	for (uint64_t i = 0; i < t->image[0]->header.count[TABLE_DESCRIPTORS]; i++) {
		const struct image_descriptor *x = &image_descriptors(t->image[0])[i];

		outside += plan_is_outside(x) && !x->object;
	}
	l->step = STEP_DESCRIPTOR;
	plan_make_shared(&p);
	plan_each(&p, 1, plan_add_one, &outside);
}

struct plan_tree plan_tree_of(const struct image *const *image, unsigned n, int least_high)
{
	struct plan_tree t = { image, n, least_high, 0, 0 };
	int objects = 0;

	for (unsigned k = 0; k < n; k++)
		for (uint64_t i = 0; i < image[k]->header.count[TABLE_DESCRIPTORS]; i++) {
			const struct image_descriptor *d = &image_descriptors(image[k])[i];

			if (d->number + 64 > t.high)
				t.high = d->number + 64;
			if ((int)d->object > objects)
				objects = (int)d->object;
		}
	t.objects = t.high + 128;
	t.shared = t.objects + objects + 1;
	return t;
}
