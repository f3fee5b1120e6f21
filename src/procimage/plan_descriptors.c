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

/* The descriptor in a slot gets its number. */
static void plan_place(struct planner *p, unsigned slot, const struct image_descriptor *d)
{
	CALL(p->l, RESTORER_MOVE, RESTORER_SUCCEED, slot, (uint64_t)d->number, d->cloexec)
		->from_slot = 1;
}

static void plan_set_flags(struct planner *p, const struct image_descriptor *d)
{
	if (d->flags & (O_NONBLOCK | O_APPEND | O_DIRECT))
		CALL(p->l, SYS_fcntl, RESTORER_SUCCEED, (uint64_t)d->number, F_SETFL,
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
	CALL(p->l, SYS_dup3, RESTORER_SUCCEED, slot, (uint64_t)d->number,
	     d->cloexec ? O_CLOEXEC : 0)
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

/* All ends of a pipe, when its first number is reached. */
static void plan_add_pipe(struct planner *p, const struct image_descriptor *first)
{
	const struct image_descriptor *d = first, *end = image_descriptors(p->im) +
							 p->im->header.count[TABLE_DESCRIPTORS];
	int filled = 0;

	if (first->peer != first->number)
		return;
	plan_make_two(p, SYS_pipe2, 0, O_CLOEXEC, 0, 1);
	for (; d < end; d++) {
		if (d->kind != DESCRIPTOR_PIPE || d->inode != first->inode)
			continue;
		if (!filled && d->data_bytes) {
			plan_write_bytes(p, SLOT_C, d);
			filled = 1;
		}
		plan_duplicate(p, (d->flags & O_ACCMODE) == O_RDONLY ? SLOT_B : SLOT_C, d);
	}
	plan_close_two(p);
}

static void plan_add_pair(struct planner *p, const struct image_descriptor *first)
{
	const struct image_descriptor *d = first, *end = image_descriptors(p->im) +
							 p->im->header.count[TABLE_DESCRIPTORS];

	if (first->peer != first->number)
		return;
	plan_make_two(p, SYS_socketpair, AF_UNIX, (first->type & 0xffff) | SOCK_CLOEXEC, 0, 0);
	for (; d < end; d++)
		if (d->kind == DESCRIPTOR_PAIR && d->inode == first->offset) {
			plan_write_bytes(p, SLOT_B, d);
			plan_write_bytes(p, SLOT_C, first);
			plan_duplicate(p, SLOT_C, d);
		}
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

static void plan_add_one(struct planner *p, const struct image_descriptor *d, unsigned *outside)
{
	switch ((enum image_descriptor_kind)d->kind) {
	case DESCRIPTOR_SAME:
		CALL(p->l, SYS_dup3, RESTORER_SUCCEED, (uint64_t)d->peer, (uint64_t)d->number,
		     d->cloexec ? O_CLOEXEC : 0);
		break;
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
	case DESCRIPTOR_OUTSIDE:
		plan_place(p, (*outside)++, d);
		break;
	case DESCRIPTOR_RESET:
		plan_add_reset(p, d);
		break;
	case DESCRIPTOR_KINDS:
		break;
	}
}

unsigned plan_count_outside(const struct image *im)
{
	unsigned n = 0;

	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++)
		n += image_descriptors(im)[i].kind == DESCRIPTOR_OUTSIDE;
	return n;
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

void plan_add_descriptors(const struct image *im, struct call_list *l, struct call_data *d)
{
	struct planner p = { im, l, d, plan_first_high(im) };
	unsigned outside = 0;

	l->step = STEP_DESCRIPTOR;
	for (uint64_t i = 0; i < im->header.count[TABLE_DESCRIPTORS]; i++)
		plan_add_one(&p, &image_descriptors(im)[i], &outside);
	plan_add_watches(&p);
}

int plan_first_high(const struct image *im)
{
	uint64_t n = im->header.count[TABLE_DESCRIPTORS];

	return (n ? image_descriptors(im)[n - 1].number : 0) + 64;
}
