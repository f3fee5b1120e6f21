/* keeper_client.c - see keeper_client.h. */
#include "client/keeper_client.h"
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct keeper_call {
	struct keeper_call *next;
	uint32_t ref;
	uint8_t want;
	keeper_done *done; /* NULL: cancelled */
	void *ctx;
	int fd;   /* not sent yet; or -1 */
	int once; /* it has, or had, a descriptor: not sent again */
	size_t len;
	char bytes[]; /* the request, which is sent again to the next keeper */
};

static struct keeper_call *keeper_take(struct keeper_client *o, uint32_t ref)
{
	for (struct keeper_call **at = &o->asks; *at; at = &(*at)->next) {
		struct keeper_call *a = *at;

		if (a->ref != ref)
			continue;
		*at = a->next;
		if (!*at)
			o->last = at;
		o->waiting--;
		return a;
	}
	return NULL;
}

/* Of a CREATE: the box must have the requested tier. */
static int keeper_check_box(struct keeper_client *o, const struct keeper_call *a,
			    const struct frame *f, struct err *e)
{
	const struct wire_create *asked = (const struct wire_create *)a->bytes;
	const struct wire_box *box = (const struct wire_box *)f;

	if (asked->head.type != WIRE_CREATE || f->type != WIRE_BOX ||
	    keeper_check_tier(asked, box, e) == 0)
		return 0;
	keeper_client_cancel(o, keeper_client_request_box(o, WIRE_KILL, 0, box->id, WIRE_DESTROYED,
							  NULL, NULL));
	return -1;
}

static void keeper_answer(struct keeper_client *o, struct keeper_call *a, const struct frame *f,
			  size_t len, int *fd)
{
	struct err e;
	int other = keeper_check_box(o, a, f, &e) < 0;

	if (!a->done)
		return;
	if (other) {
		own_close_fd(fd);
		a->done(a->ctx, NULL, 0, fd, &e);
		return;
	}
	if (f->type == a->want) {
		a->done(a->ctx, f, len, fd, NULL);
		return;
	}
	if (f->type == WIRE_ERROR)
		wire_error_read((const struct wire_error *)f, &e);
	else
		err_set(&e, ERR_INVALID, "keeper: unexpected frame (type %u)", f->type);
	a->done(a->ctx, NULL, 0, fd, &e);
}

static void on_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct keeper_client *o = loop_owner(p, struct keeper_client, post);
	struct keeper_call *a = keeper_take(o, f->ref);

	if (!a)
		return;
	keeper_answer(o, a, f, len, fd);
	free(a);
}

static void on_gone(struct frame_conn *p, const struct err *why)
{
	struct keeper_client *o = loop_owner(p, struct keeper_client, post);

	(void)why;
	o->on_lost(o);
}

static void keeper_fail(struct keeper_call *lost, const struct err *e)
{
	int none = -1;

	while (lost) {
		struct keeper_call *a = lost;

		lost = a->next;
		own_close_fd(&a->fd);
		if (a->done)
			a->done(a->ctx, NULL, 0, &none, e);
		free(a);
	}
}

static void keeper_fail_all(struct timer *t)
{
	struct keeper_client *o = loop_owner(t, struct keeper_client, refuse);
	struct keeper_call *all = o->asks;
	struct err e;

	o->asks = NULL;
	o->last = &o->asks;
	o->waiting = 0;
	err_set(&e, ERR_SYS, "%s", o->refusal);
	e.sys = EBUSY; /* the API answers 503 */
	keeper_fail(all, &e);
}

void keeper_client_refuse(struct keeper_client *o, const char *why)
{
	o->refusal = why;
	timer_set(&o->refuse, 0);
}

void keeper_client_init(struct keeper_client *o, struct loop *l,
			void (*on_lost)(struct keeper_client *))
{
	*o = (struct keeper_client){ .loop = l, .post.fd = -1, .next_ref = 1, .on_lost = on_lost };
	o->last = &o->asks;
	timer_init(&o->refuse, l, keeper_fail_all);
}

int keeper_client_is_connected(const struct keeper_client *o)
{
	return o->post.fd >= 0;
}

/* Removes the requests whose descriptor the last keeper has. */
static struct keeper_call *keeper_take_lost(struct keeper_client *o)
{
	struct keeper_call **at = &o->asks, *lost = NULL, **end = &lost;

	while (*at) {
		struct keeper_call *a = *at;

		if (!a->once || a->fd >= 0) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		*end = a;
		end = &a->next;
		a->next = NULL;
		o->waiting--;
	}
	o->last = at;
	return lost;
}

void keeper_client_connect(struct keeper_client *o, int take_fd)
{
	struct keeper_call *lost;
	struct err e;

	frame_conn_fini(&o->post);
	frame_conn_init(&o->post, o->loop, take_fd);
	o->post.on_frame = on_frame;
	o->post.on_gone = on_gone;
	lost = keeper_take_lost(o);
	for (struct keeper_call *a = o->asks; a; a = a->next)
		frame_conn_send(&o->post, a->bytes, a->len, NULL, 0, steal_fd(&a->fd));
	err_set(&e, ERR_SYS, "the keeper ended before it had answered; repeat the request");
	keeper_fail(lost, &e);
}

void keeper_client_fini(struct keeper_client *o)
{
	frame_conn_fini(&o->post);
	timer_fini(&o->refuse);
	while (o->asks) {
		struct keeper_call *a = o->asks;

		o->asks = a->next;
		own_close_fd(&a->fd);
		free(a);
	}
	o->last = &o->asks;
}

struct keeper_call *keeper_client_request_fd(struct keeper_client *o, const void *ask, size_t len,
					     int take_fd, uint8_t want, keeper_done *done,
					     void *ctx)
{
	struct keeper_call *a = calloc(1, sizeof(*a) + len);
	struct frame *head;

	if (!a)
		abort();
	*a = (struct keeper_call){ .ref = o->next_ref++,
				   .want = want,
				   .done = done,
				   .ctx = ctx,
				   .fd = take_fd,
				   .once = take_fd >= 0,
				   .len = len };
	memcpy(a->bytes, ask, len);
	head = (struct frame *)a->bytes;
	head->version = WIRE_VERSION;
	head->ref = a->ref;
	*o->last = a;
	o->last = &a->next;
	o->waiting++;
	/* Without a connection the request waits for the next one. */
	if (o->refusal)
		timer_set(&o->refuse, 0);
	else if (keeper_client_is_connected(o))
		(void)frame_conn_send(&o->post, a->bytes, len, NULL, 0, steal_fd(&a->fd));
	return a;
}

struct keeper_call *keeper_client_request(struct keeper_client *o, const void *ask, size_t len,
					  uint8_t want, keeper_done *done, void *ctx)
{
	return keeper_client_request_fd(o, ask, len, -1, want, done, ctx);
}

void keeper_client_cancel(struct keeper_client *o, struct keeper_call *a)
{
	(void)o;
	if (a)
		a->done = NULL;
}

struct keeper_call *keeper_client_request_box(struct keeper_client *o, uint8_t type, uint16_t flags,
					      const char *id, uint8_t want, keeper_done *done,
					      void *ctx)
{
	struct wire_id ask = { .head = sock_head(type, 0) };

	ask.head.flags = flags;
	snprintf(ask.id, sizeof(ask.id), "%s", id);
	return keeper_client_request(o, &ask, sizeof(ask), want, done, ctx);
}

/* ---- checkpoints ---- */

struct keeper_call *keeper_client_checkpoint(struct keeper_client *o,
					     const struct wire_checkpoint *ask, keeper_done *done,
					     void *ctx)
{
	struct wire_checkpoint w = *ask;

	w.head.type = WIRE_CHECKPOINT;
	return keeper_client_request(o, &w, sizeof(w), WIRE_CHECKPOINTED, done, ctx);
}

struct keeper_call *keeper_client_checkpoint_merge(struct keeper_client *o,
						   const struct wire_checkpoint_merge *ask,
						   keeper_done *done, void *ctx)
{
	struct wire_checkpoint_merge w = *ask;

	w.head.type = WIRE_CHECKPOINT_MERGE;
	return keeper_client_request(o, &w, sizeof(w), WIRE_CHECKPOINTED, done, ctx);
}

struct keeper_call *keeper_client_checkpoint_open(struct keeper_client *o, const char *id,
						  enum wire_checkpoint_what what, keeper_done *done,
						  void *ctx)
{
	struct wire_checkpoint_file w = { .head = sock_head(WIRE_CHECKPOINT_OPEN, 0),
					  .what = what };

	snprintf(w.id, sizeof(w.id), "%s", id);
	return keeper_client_request(o, &w, sizeof(w), WIRE_DONE, done, ctx);
}

struct keeper_call *keeper_client_checkpoint_sync(struct keeper_client *o, const char *id,
						  keeper_done *done, void *ctx)
{
	return keeper_client_request_box(o, WIRE_CHECKPOINT_SYNC, 0, id, WIRE_DONE, done, ctx);
}

struct keeper_call *keeper_client_checkpoint_drop(struct keeper_client *o, const char *id,
						  uint16_t flags, keeper_done *done, void *ctx)
{
	return keeper_client_request_box(o, WIRE_CHECKPOINT_DROP, flags, id, WIRE_DONE, done, ctx);
}

struct keeper_call *keeper_client_checkpoint_list(struct keeper_client *o, const char *after,
						  keeper_done *done, void *ctx)
{
	return keeper_client_request_box(o, WIRE_CHECKPOINT_LIST, 0, after, WIRE_LISTED, done, ctx);
}
